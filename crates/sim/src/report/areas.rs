//! The load of a link over time, job upon job: what each takes of it, up to all there is.

use metronome_core::model::units::Duration;

use super::axis::{self, Axis};
use super::sharing::Part;
use super::svg::{Anchor, Frame, Path, Svg};
use super::text::percent;
use crate::encounter::Course;

pub(super) fn draw(svg: &mut Svg, frame: Frame, parts: &[Part], course: &Course, round: Duration) {
    let up = draw_axes(svg, frame, course.span.as_secs_f64());
    let mut stack = Stack { frame, up, below: vec![0.0; course.more.len()] };
    for part in parts {
        let layer = stack.put(&part.course.load);
        svg.explained(&part.actor.about(), &part.tip, |svg| svg.path("area", &layer.path));
        if let Some(place) = layer.label {
            svg.text("count", place, Anchor::Middle, &part.actor.number.to_string());
        }
    }
    let others = stack.put(&course.more);
    svg.explained("class=\"more\"", "all others", |svg| svg.path("area", &others.path));
    let ends = frame.x + frame.width * round.as_secs_f64() / course.span.as_secs_f64();
    svg.line("round", (ends, frame.y), (ends, frame.y + frame.height));
    svg.text("mark", (ends - 3.0, frame.y - 4.0), Anchor::End, "one round of the circle");
}

fn draw_axes(svg: &mut Svg, frame: Frame, seconds: f64) -> Axis {
    let (unit, name) = if seconds < 3.0 { (1e-3, "ms") } else { (1.0, "s") };
    axis::draw_below(svg, frame, &Axis::across(frame, 0.0, seconds / unit), &format!("time, {name}"));
    let up = Axis::up(frame, 0.0, 1.0);
    for mark in [0.0, 0.5, 1.0] {
        svg.line("grid", (frame.x, up.at(mark)), (frame.x + frame.width, up.at(mark)));
        svg.text("mark", (frame.x - 5.0, up.at(mark) + 4.0), Anchor::End, &percent(mark));
    }
    up
}

/// What has been drawn so far.
struct Stack {
    frame: Frame,
    up: Axis,
    /// The part of the link that is taken in each column.
    below: Vec<f64>,
}

struct Layer {
    path: Path,
    /// The first place where there is room for a number.
    label: Option<(f64, f64)>,
}

/// A stretch of columns with the same heights, as they are drawn.
#[derive(Clone, Copy)]
struct Run {
    left: f64,
    right: f64,
    bottom: f64,
    top: f64,
}

impl Stack {
    /// Puts a load on all that is there.
    fn put(&mut self, load: &[f64]) -> Layer {
        let runs = self.runs(load);
        for (below, load) in self.below.iter_mut().zip(load) {
            *below += load;
        }
        let mut path = Path::default();
        for touching in runs.chunk_by(|one, next| (next.left - one.right).abs() < 0.01) {
            path.shape(&outline(touching));
        }
        let roomy = |run: &&Run| run.right - run.left > 11.0 && run.bottom - run.top > 13.0;
        let middle = |run: &Run| ((run.left + run.right) / 2.0, (run.bottom + run.top) / 2.0 + 3.5);
        Layer { path, label: runs.iter().find(roomy).map(middle) }
    }

    /// Where there is something, with neighbours of one height in one.
    fn runs(&self, load: &[f64]) -> Vec<Run> {
        let width = self.frame.width / load.len().max(1) as f64;
        let mut runs: Vec<Run> = Vec::new();
        for (column, (below, load)) in self.below.iter().zip(load).enumerate() {
            let (left, right) =
                (self.frame.x + width * column as f64, self.frame.x + width * (column + 1) as f64);
            let (bottom, top) = (self.up.at(*below), self.up.at(below + load));
            let same = |run: &Run| {
                (run.right - left).abs() < 0.01
                    && (run.bottom - bottom).abs() < 0.3
                    && (run.top - top).abs() < 0.3
            };
            match runs.last_mut() {
                Some(run) if same(run) => run.right = right,
                _ if bottom - top > 0.05 => runs.push(Run { left, right, bottom, top }),
                _ => {}
            }
        }
        runs
    }
}

/// Along the top to the right, and back along the bottom.
fn outline(runs: &[Run]) -> Vec<(f64, f64)> {
    let there = runs.iter().flat_map(|run| [(run.left, run.top), (run.right, run.top)]);
    let back = runs.iter().rev().flat_map(|run| [(run.right, run.bottom), (run.left, run.bottom)]);
    there.chain(back).collect()
}
