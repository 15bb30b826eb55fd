//! What was decided, over all rows: windows of rotations as vertical bands, directives as lines.

use metronome_sim::report::svg::{Anchor, Frame};

use super::panel::Canvas;
use crate::trace::document::{Job, Trace};
use crate::trace::figures::Span;
use crate::trace::words::{Directive, Slot};

/// A window of a rotation, with how jobs stand in it.
#[derive(Debug, PartialEq, Eq)]
struct Window {
    span: Span,
    number: u64,
    says: String,
}

impl Window {
    fn is_fair(&self) -> bool {
        self.says == SHARED_EQUALLY
    }
}

const SHARED_EQUALLY: &str = "shared equally";

/// The width of a letter.
const LETTER: f64 = 5.7;

pub(super) fn draw_windows(canvas: &mut Canvas, frame: Frame) {
    let mut last = None;
    for window in windows(canvas.drawn.trace, canvas.view.span) {
        let Some(span) = canvas.view.clip(window.span) else { continue };
        let (left, right) = canvas.across(span);
        let at = Frame { x: left, width: right - left, ..frame };
        let look = match (window.is_fair(), window.number % 2) {
            (true, _) => "band fair",
            (false, 0) => "band even",
            (false, _) => "band odd",
        };
        canvas.svg.rect(look, at);
        let fits = window.says.chars().count() as f64 * LETTER < right - left;
        if fits && last.as_ref() != Some(&window.says) {
            canvas.svg.text("window", (left + 3.0, frame.y - 5.0), Anchor::Start, &window.says);
        }
        last = Some(window.says);
    }
}

/// Windows of the first job that has a rotation in force: windows of all jobs are the same.
fn windows(trace: &Trace, view: Span) -> Vec<Window> {
    let mut all = Vec::new();
    let mut at = view.0;
    while at < view.1 {
        let next_change = |job: &Job| job.directives.iter().map(|one| one.at_ns).find(|change| *change > at);
        let change = trace.jobs.iter().filter_map(next_change).min().unwrap_or(u64::MAX).min(view.1);
        let in_force: Vec<(&str, Directive)> =
            trace.jobs.iter().filter_map(|job| Some((&*job.name, in_force(job, at)?))).collect();
        let length = in_force.iter().find_map(|(_, directive)| Some(directive.rotation.as_ref()?.window_ns));
        let Some(length) = length.filter(|length| *length > 0) else {
            at = change;
            continue;
        };
        let number = at / length;
        let to = ((number + 1) * length).min(change);
        let slots = in_force.iter().filter_map(|(name, directive)| Some((*name, directive.slot_at(at)?)));
        all.push(Window { span: (at, to), number, says: order_in_words(&slots.collect::<Vec<_>>()) });
        at = to;
    }
    all
}

fn in_force(job: &Job, at: u64) -> Option<Directive> {
    let runs = job.ended_ns.is_none_or(|end| at < end);
    let last = job.directives.iter().rev().find(|one| one.at_ns <= at).filter(|_| runs)?;
    last.directive.as_ref().map(Directive::of)
}

/// `b before a`; `first come, first served`; `shared equally`.
fn order_in_words(slots: &[(&str, &Slot)]) -> String {
    let mut order: Vec<(u8, &str)> = slots.iter().map(|(name, slot)| (slot.class, *name)).collect();
    order.sort_unstable();
    let groups = order.chunk_by(|one, other| one.0 == other.0);
    let groups: Vec<String> =
        groups.map(|group| group.iter().map(|(_, name)| *name).collect::<Vec<_>>().join(" = ")).collect();
    let is_first_come = slots.iter().any(|(_, slot)| slot.follows.as_deref() == Some("firstCome"));
    match (groups.len(), is_first_come) {
        (0 | 1, true) => "first come, first served".to_owned(),
        (0 | 1, false) => SHARED_EQUALLY.to_owned(),
        _ => groups.join(" before "),
    }
}

/// A line for each moment at which jobs were given other directives, and for each first use of a profile.
pub(super) fn draw_directives(canvas: &mut Canvas, frame: Frame) {
    let bottom = frame.y + frame.height;
    for (number, at) in moments(canvas.drawn.trace).into_iter().enumerate() {
        if canvas.view.clip((at, at + 1)).is_some() {
            let x = canvas.at(at);
            canvas.svg.line("directive", (x, frame.y - 2.0), (x, bottom));
            canvas.svg.rect("flag", Frame { x: x - 8.0, y: bottom - 15.0, width: 16.0, height: 15.0 });
            canvas.svg.text("number", (x, bottom - 3.5), Anchor::Middle, &(number + 1).to_string());
        }
    }
}

/// Directives of one decision reach their jobs at once.
const ONE_DECISION_NS: u64 = 1_000_000;

/// The moments at which directives were given: they are numbered in this order.
pub(super) fn moments(trace: &Trace) -> Vec<u64> {
    let mut all: Vec<u64> = trace.jobs.iter().flat_map(|job| &job.directives).map(|one| one.at_ns).collect();
    all.sort_unstable();
    all.dedup_by(|later, earlier| later.saturating_sub(*earlier) < ONE_DECISION_NS);
    all
}

/// The number of a directive's moment, from 1.
pub(super) fn number_of(moments: &[u64], at: u64) -> usize {
    moments.partition_point(|moment| *moment <= at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_in_a_window_is_told_by_classes() {
        let slot = |class: u8, follows: Option<&str>| Slot { class, follows: follows.map(str::to_owned) };
        let (first, second) = (slot(0, None), slot(1, Some("firstCome")));
        assert_eq!(order_in_words(&[("a", &second), ("b", &first)]), "b before a");
        assert_eq!(order_in_words(&[("a", &second), ("b", &second), ("c", &first)]), "c before a = b");
        let come = slot(0, Some("firstCome"));
        assert_eq!(order_in_words(&[("a", &come), ("b", &come)]), "first come, first served");
        assert_eq!(order_in_words(&[("a", &first), ("b", &first)]), "shared equally");
    }
}
