//! The row of a job: its rate as a filled curve, and below it a strip of what it does.

use metronome_sim::report::svg::{Frame, Path};

use super::panel::Canvas;
use super::shades::hue;
use crate::trace::figures::Span;
use crate::trace::words::Directive;

/// What goes beyond the rate of the link waits on the host; it is drawn up to here.
const MOST_RATE: f64 = 1.12;

pub(super) fn draw(canvas: &mut Canvas, frame: Frame, strip: Frame, index: usize) {
    let about = format!("class=\"{}\"", hue(index));
    let tip = canvas.drawn.jobs[index].job.name.clone();
    let job = &canvas.drawn.jobs[index];
    let handed = |span: Span| {
        job.curves.iter().map(|curve| curve.rate(span)).sum::<f64>() / job.curves.len().max(1) as f64
    };
    let (rate, line) = match &job.wire {
        Some(wire) => {
            let on_the_wire = filled(canvas, frame, job.rate, |span| wire.rate(span));
            (on_the_wire, outline(canvas, frame, job.rate, handed))
        }
        None => (filled(canvas, frame, job.rate, handed), Path::default()),
    };
    let phases = phases(canvas, strip, index);
    let turns = turns(canvas, frame, index);
    let iterations = iterations(canvas, frame, index);
    canvas.svg.explained(&about, &tip, |svg| {
        svg.path("rate", &rate);
        svg.path("handed", &line);
        for (class, path) in &phases {
            svg.path(class, path);
        }
        svg.path("turn", &turns);
        svg.path("iteration", &iterations);
    });
}

/// One shape for each stretch in which the job sends.
fn filled(canvas: &Canvas, frame: Frame, most: f64, rate: impl Fn(Span) -> f64) -> Path {
    let bottom = frame.y + frame.height;
    let (mut path, mut corners) = (Path::default(), Vec::<(f64, f64)>::new());
    for span in canvas.view.columns() {
        let height = (rate(span) / most).min(MOST_RATE) * frame.height;
        let (left, right) = canvas.across(span);
        if height >= 0.3 {
            if corners.is_empty() {
                corners.push((left, bottom));
            }
            corners.extend([(left, bottom - height), (right, bottom - height)]);
        } else {
            close(&mut path, &mut corners, bottom);
        }
    }
    close(&mut path, &mut corners, bottom);
    path
}

/// A line in a closer look.
fn outline(canvas: &Canvas, frame: Frame, most: f64, rate: impl Fn(Span) -> f64) -> Path {
    let mut path = Path::default();
    for span in canvas.view.columns().filter(|_| canvas.view.is_zoom) {
        let y = frame.y + frame.height * (1.0 - (rate(span) / most).min(MOST_RATE));
        let (left, right) = canvas.across(span);
        path.to((left, y));
        path.to((right, y));
    }
    path
}

fn close(path: &mut Path, corners: &mut Vec<(f64, f64)>, bottom: f64) {
    if let Some((x, _)) = corners.last().copied() {
        corners.push((x, bottom));
        path.shape(corners);
        corners.clear();
    }
}

/// Computing lies below all else: a job that neither sends nor is held computes.
fn phases(canvas: &Canvas, strip: Frame, index: usize) -> [(&'static str, Path); 3] {
    let job = &canvas.drawn.jobs[index];
    let held: Vec<Span> = job.job.held.iter().map(|held| (held.from_ns, held.to_ns)).collect();
    let computing: Vec<Span> = job.active.into_iter().collect();
    [("computing", &computing), ("sending", &job.sending), ("held", &held)]
        .map(|(class, spans)| (class, blocks(canvas, strip, spans)))
}

fn blocks(canvas: &Canvas, strip: Frame, spans: &[Span]) -> Path {
    let mut path = Path::default();
    for span in spans.iter().filter_map(|span| canvas.view.clip(*span)) {
        let (left, right) = canvas.across(span);
        path.block(Frame { x: left, width: (right - left).max(0.3), ..strip });
    }
    path
}

/// Ticks at the top of the row where iterations are to begin, in a closer look.
fn turns(canvas: &Canvas, frame: Frame, index: usize) -> Path {
    let mut path = Path::default();
    let directives = &canvas.drawn.jobs[index].job.directives;
    for (at, one) in directives.iter().enumerate().filter(|_| canvas.view.is_zoom) {
        let until = directives.get(at + 1).map_or(u64::MAX, |next| next.at_ns);
        let turn = one.directive.as_ref().and_then(|value| Directive::of(value).turn());
        let Some((turn, (from, to))) = turn.zip(canvas.view.clip((one.at_ns, until))) else { continue };
        let first = from + (turn.offset % turn.period + turn.period - from % turn.period) % turn.period;
        for tick in (first..to).step_by(turn.period as usize) {
            let x = canvas.at(tick);
            path.shape(&[(x - 4.0, frame.y - 6.0), (x + 4.0, frame.y - 6.0), (x, frame.y + 1.0)]);
        }
    }
    path
}

/// Lines where the trainer says that iterations began, in a closer look.
fn iterations(canvas: &Canvas, frame: Frame, index: usize) -> Path {
    let mut path = Path::default();
    let recorded = &canvas.drawn.jobs[index].job.recorded;
    let begins = recorded.iter().map(|iteration| iteration.began_ns);
    for begin in begins.filter(|begin| canvas.view.is_zoom && canvas.view.clip((*begin, begin + 1)).is_some())
    {
        let x = canvas.at(begin);
        path.shape(&[(x, frame.y), (x, frame.y + frame.height)]);
    }
    path
}
