//! Whether a job is slower in the windows of its rotation than in windows of fair sharing.
//!
//! Every iteration sends the same bytes, so bytes a second are iterations a second. The time before the job's first directive
//! counts as fair: it shared its links with the same jobs then. A rotation serves a job sooner in some windows and later in
//! others, so the mean over a cycle counts, and a cycle of which some slots were not measured yet says nothing.

use std::collections::BTreeMap;

use metronome_core::model::units::Moment;
use metronome_core::traffic::{Rotation, Slot, TrafficDirective};

/// Bytes sent in some time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sent {
    bytes: f64,
    nanos: f64,
}

impl Sent {
    fn add(&mut self, bytes: f64, nanos: f64) {
        self.bytes += bytes;
        self.nanos += nanos;
    }

    fn rate(&self) -> f64 {
        self.bytes / self.nanos.max(1.0)
    }
}

/// How links are shared at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Window {
    Fair,
    /// In an order that was decided. The first of several ranks has the class of fair sharing, and is not fair.
    Directed(Slot),
}

/// Counts of one job since the jobs on its links last changed.
#[derive(Clone, Debug, Default)]
pub(crate) struct WindowCounts(BTreeMap<Window, Sent>);

/// A comparison of directed windows with fair ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Comparison {
    /// How much longer an iteration takes in directed windows, over its time in fair ones; negative where it is shorter.
    pub(crate) measured: f64,
    /// The lower end of the 95 % interval of that.
    pub(crate) at_least: f64,
    pub(crate) fair_iterations: f64,
    pub(crate) directed_iterations: f64,
}

/// Fewer iterations of either kind say nothing.
const MIN_ITERATIONS: f64 = 12.0;

/// Nor do fewer in one slot of a rotation.
const MIN_ITERATIONS_IN_SLOT: f64 = 2.0;

/// Iterations vary by at least so much where links are shared, whatever the profile says.
const MIN_NOISE: f64 = 0.05;

/// Standard errors on either side of a mean in a 95 % interval.
const STANDARD_ERRORS: f64 = 2.0;

impl WindowCounts {
    pub(crate) fn add(&mut self, window: Window, bytes: u64, nanos: u64) {
        self.0.entry(window).or_default().add(bytes as f64, nanos as f64);
    }

    /// None while there are too few iterations. `directed` are the slots of the directed windows of a cycle, `volume` are the
    /// bytes of an iteration, `noise` is the deviation of its time over its mean.
    pub(crate) fn compare(&self, directed: &[Slot], volume: f64, noise: f64) -> Option<Comparison> {
        let fair = self.0.get(&Window::Fair)?;
        let iterations = |sent: &Sent| sent.bytes / volume.max(1.0);
        let (mut rate, mut variance, mut directed_iterations) = (0.0, 0.0, 0.0);
        for (slot, share) in shares(directed) {
            let sent = self.0.get(&Window::Directed(slot))?;
            if iterations(sent) < MIN_ITERATIONS_IN_SLOT {
                return None;
            }
            rate += share * sent.rate();
            variance += share * share / iterations(sent);
            directed_iterations += iterations(sent);
        }
        let fair_iterations = iterations(fair);
        if fair_iterations.min(directed_iterations) < MIN_ITERATIONS {
            return None;
        }
        let measured = fair.rate() / rate - 1.0;
        let error = noise.max(MIN_NOISE) * (1.0 / fair_iterations + variance).sqrt();
        let at_least = measured - STANDARD_ERRORS * error;
        Some(Comparison { measured, at_least, fair_iterations, directed_iterations })
    }
}

impl Window {
    /// The window of a directive at a moment.
    pub(crate) fn at(directive: &TrafficDirective, now: Moment) -> Self {
        let slot = directive.slot_at(now);
        match directive.window_at(now) {
            Some(Rotation::REFERENCE) => Self::Fair,
            None if slot == Slot::FAIR => Self::Fair,
            _ => Self::Directed(slot),
        }
    }
}

/// The slots of the directed windows of a cycle; without a rotation there is one for ever.
pub(crate) fn directed_slots(directive: &TrafficDirective) -> Vec<Slot> {
    match directive.rotation {
        Some(rotation) => rotation.slots[..Rotation::REFERENCE].to_vec(),
        None => vec![Slot { class: directive.class, follows: directive.follows }],
    }
}

/// The different slots, each with its part of all.
fn shares(slots: &[Slot]) -> BTreeMap<Slot, f64> {
    let mut shares = BTreeMap::new();
    slots.iter().for_each(|slot| *shares.entry(*slot).or_default() += 1.0 / slots.len() as f64);
    shares
}

#[cfg(test)]
mod tests {
    use metronome_core::model::units::Duration;
    use metronome_core::traffic::TrafficPolicy;

    use super::*;

    const FIRST: Slot = Slot::in_class(0);
    const LAST: Slot = Slot::in_class(5);

    /// Counts of so many iterations of 100 bytes, each of which takes so long.
    fn counts(windows: &[(Window, u64, u64)]) -> WindowCounts {
        let mut counts = WindowCounts::default();
        windows.iter().for_each(|(window, n, nanos)| counts.add(*window, 100 * n, nanos * n));
        counts
    }

    fn compared(fair: u64, directed: u64, iterations: u64) -> Option<Comparison> {
        let windows = [(Window::Fair, iterations, fair), (Window::Directed(FIRST), iterations, directed)];
        counts(&windows).compare(&[FIRST], 100.0, 0.0)
    }

    #[test]
    fn a_job_is_slower_by_at_least_what_its_noise_leaves_of_the_difference() {
        let slower = compared(1_000, 1_100, 50).unwrap();
        assert!((slower.measured - 0.1).abs() < 1e-9 && (slower.at_least - 0.08).abs() < 1e-9, "{slower:?}");
        assert!(compared(1_000, 900, 50).unwrap().measured < 0.0);
        assert_eq!(compared(1_000, 2_000, 11), None, "too few iterations");
    }

    #[test]
    fn a_rotation_is_judged_by_all_of_its_slots_however_often_each_was_measured() {
        // The job is last in the first windows, and first in as many later ones.
        let cycle = [LAST, LAST, FIRST, FIRST];
        let late = counts(&[(Window::Fair, 40, 1_000), (Window::Directed(LAST), 40, 1_250)]);
        assert_eq!(late.compare(&cycle, 100.0, 0.0), None, "the windows in which it is first are to come");
        let [fair, last, first] = [Window::Fair, Window::Directed(LAST), Window::Directed(FIRST)];
        let both = counts(&[(fair, 40, 1_000), (last, 40, 1_250), (first, 10, 800)]);
        let compared = both.compare(&cycle, 100.0, 0.0).unwrap();
        assert!((compared.measured - (1.0 / 1.025 - 1.0)).abs() < 1e-9, "{compared:?}");
        assert!(compared.at_least < 0.0);
    }

    #[test]
    fn the_first_rank_of_a_rotation_is_not_fair_sharing_though_it_has_the_same_class() {
        let mut slots = [FIRST; Rotation::WINDOWS];
        slots[1] = LAST;
        let rotation = Rotation { window: Duration(10), slots };
        let lane = TrafficPolicy { rotation: Some(rotation), ..TrafficPolicy::default() };
        let directive = TrafficDirective::of(lane, Moment::EPOCH, Moment::EPOCH);
        let window = |at| Window::at(&directive, Moment(at));
        assert_eq!([5, 15, 115].map(window), [Window::Directed(FIRST), Window::Directed(LAST), Window::Fair]);
        assert_eq!(directed_slots(&directive).len(), Rotation::REFERENCE);
    }
}
