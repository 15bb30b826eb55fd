//! Distributions: which share of the jobs was done within a time, and slowed by no more than a factor. All policies
//! in one picture; a line that never reaches the top is a policy that leaves jobs behind.

use super::axis::{self, Axis};
use super::svg::{Anchor, Frame, Path, Svg};
use super::text::{Unit, percent};
use super::{Shown, legend};
use crate::outcome::{Fate, Outcome};

const FRAME: Frame = Frame { x: 52.0, y: 8.0, width: 500.0, height: 280.0 };
/// More corners than this are finer than the picture.
const MOST_CORNERS: usize = 400;

pub(super) fn section(shown: &[Shown]) -> String {
    let pictures = [completion_times(shown), slowdowns(shown)].into_iter().flatten().collect::<String>();
    let slowed = shown.iter().flat_map(|shown| &shown.outcome.jobs).any(|job| job.slowdown.is_some());
    let heading = if slowed {
        "How long jobs took, and how much sharing links slowed them"
    } else {
        "How long jobs took"
    };
    let content = format!("{}<div class=\"panels two\">\n{pictures}</div>\n", legend::policies(shown));
    super::section(heading, ABOUT, &content)
}

const ABOUT: &str = "The further up and to the left a line runs, the better. \
     A line that ends below 100 % belongs to a policy under which some jobs never complete.";

/// Values of the jobs that have one, and how many jobs there are to be had.
struct Curve<'a> {
    shown: &'a Shown<'a>,
    sorted: Vec<f64>,
    jobs: usize,
}

impl<'a> Curve<'a> {
    fn of(shown: &'a Shown<'a>, values: impl Iterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = values.collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let accepted = shown.outcome.jobs.iter().filter(|job| job.fate != Fate::Refused);
        Self { shown, sorted, jobs: accepted.count() }
    }
}

fn completion_times(shown: &[Shown]) -> Option<String> {
    let times = |outcome: &Outcome| -> Vec<f64> {
        let completed = outcome.jobs.iter().filter(|job| job.fate == Fate::Completed);
        completed.filter_map(|job| Some(job.end?.since(job.submit).as_secs_f64())).collect()
    };
    let longest = shown.iter().flat_map(|shown| times(shown.outcome)).fold(0.0, f64::max);
    let unit = Unit::of(longest);
    let values = |shown: &Shown| times(shown.outcome).into_iter().map(move |time| time / unit.seconds);
    let curves: Vec<Curve> = shown.iter().map(|shown| Curve::of(shown, values(shown))).collect();
    let says = format!("time from submission to completion, {}", unit.name);
    (longest > 0.0)
        .then(|| panel("Completion times", &says, Span { from: 0.0, to: longest / unit.seconds }, &curves))
}

/// Only where the network was modelled.
fn slowdowns(shown: &[Shown]) -> Option<String> {
    let values = |outcome: &Outcome| -> Vec<f64> {
        let completed = outcome.jobs.iter().filter(|job| job.fate == Fate::Completed);
        completed.filter_map(|job| job.slowdown).collect()
    };
    let worst = shown.iter().flat_map(|shown| values(shown.outcome)).fold(0.0, f64::max);
    let curves: Vec<Curve> =
        shown.iter().map(|shown| Curve::of(shown, values(shown.outcome).into_iter())).collect();
    let says = "iteration time over that of running alone at the same place";
    (worst > 0.0)
        .then(|| panel("Slowdown by sharing links", says, Span { from: 1.0, to: worst.max(1.1) }, &curves))
}

#[derive(Clone, Copy)]
struct Span {
    from: f64,
    to: f64,
}

fn panel(title: &str, says: &str, span: Span, curves: &[Curve]) -> String {
    let mut svg = Svg::new(FRAME.x + FRAME.width + 14.0, FRAME.y + FRAME.height + 38.0);
    let across = Axis::across(FRAME, span.from, span.to);
    let up = Axis::up(FRAME, 0.0, 1.0);
    axis::draw_below(&mut svg, FRAME, &across, says);
    for mark in [0.0, 0.25, 0.5, 0.75, 1.0] {
        svg.line("grid", (FRAME.x, up.at(mark)), (FRAME.x + FRAME.width, up.at(mark)));
        svg.text("mark", (FRAME.x - 5.0, up.at(mark) + 4.0), Anchor::End, &percent(mark));
    }
    svg.text_up("says", (11.0, FRAME.y + FRAME.height / 2.0), "share of jobs");
    for curve in curves {
        draw(&mut svg, curve, across, up);
    }
    format!("<figure><figcaption><b>{title}</b></figcaption>\n{}</figure>\n", svg.finish(title))
}

fn draw(svg: &mut Svg, curve: &Curve, across: Axis, up: Axis) {
    let policy = &curve.shown.summary.policy;
    let reached = curve.sorted.len() as f64 / curve.jobs.max(1) as f64;
    let tip = format!("{policy}: {} of the jobs", percent(reached));
    let about = format!("class=\"{}\"", legend::class(policy, curve.shown.index));
    svg.explained(&about, &tip, |svg| svg.path("curve", &steps(curve, across, up)));
}

/// Up by one job at its value, and on to the end of the axis.
fn steps(curve: &Curve, across: Axis, up: Axis) -> Path {
    let mut path = Path::default();
    let share = |jobs: usize| up.at(jobs as f64 / curve.jobs.max(1) as f64);
    let every = curve.sorted.len().div_ceil(MOST_CORNERS).max(1);
    let mut before = 0;
    path.to((across.at(across.from), share(0)));
    for (index, value) in curve.sorted.iter().enumerate() {
        let done = index + 1;
        if done % every == 0 || done == curve.sorted.len() {
            let x = across.at(value.max(across.from));
            path.to((x, share(before)));
            path.to((x, share(done)));
            before = done;
        }
    }
    path.to((across.at(across.to), share(before)));
    path
}
