//! How fast each job goes in a course: a bar from what it takes alone to what it takes here. It is the legend as well.

use super::sharing::Part;
use super::svg::{Anchor, Frame, Svg};
use super::text::{short, short_time, tidy};

const ROW: f64 = 38.0;
const LEAST_ROW: f64 = 29.0;
const TITLE: f64 = 22.0;

/// Where bars are, and what the longest stands for.
#[derive(Clone, Copy)]
pub(super) struct Pace {
    pub(super) left: f64,
    pub(super) right: f64,
    /// Times alone.
    pub(super) most: f64,
}

/// How high so many rows are.
pub(super) fn height(jobs: usize) -> f64 {
    TITLE + LEAST_ROW * jobs as f64
}

pub(super) fn draw(svg: &mut Svg, pace: Pace, parts: &[Part]) {
    svg.text("says", (pace.left, 12.0), Anchor::Start, "mean iteration, beyond what it takes alone");
    let row = if parts.len() > 6 { LEAST_ROW } else { ROW };
    for (index, part) in parts.iter().enumerate() {
        let y = TITLE + row * index as f64;
        let at = Frame { x: pace.left, y, width: pace.right - pace.left, height: row };
        svg.explained(&part.actor.about(), &part.tip, |svg| draw_row(svg, at, pace, part));
    }
}

/// Letters of a name that fit above a bar.
const FITS: usize = 39;
/// Beside the longest bar there is room for its number.
const NUMBER: f64 = 92.0;

fn draw_row(svg: &mut Svg, at: Frame, pace: Pace, part: &Part) {
    let (actor, slowdown) = (part.actor, part.slowdown());
    let longest = at.width - 18.0 - NUMBER;
    let width = (slowdown - 1.0).max(0.0) / (pace.most - 1.0) * longest;
    let bar = Frame { x: at.x + 18.0, y: at.y + 16.0, width: width.max(1.5), height: 8.0 };
    svg.rect("hit", at);
    svg.rect("swatch", Frame { x: at.x, y: at.y + 1.0, width: 14.0, height: 23.0 });
    svg.text("count", (at.x + 7.0, at.y + 16.5), Anchor::Middle, &actor.number.to_string());
    svg.text("title", (at.x + 18.0, at.y + 10.5), Anchor::Start, &short(&actor.name(), FITS));
    svg.rect("bar", bar);
    let says = format!("{} × · {}", tidy(slowdown), short_time(part.mean()));
    svg.text("mark", (bar.x + bar.width + 5.0, at.y + 24.0), Anchor::Start, &says);
}
