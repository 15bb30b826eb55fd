//! When, and for how long, a member is frozen so that its iterations begin where they should.
//!
//! A hold shifts what comes after it by its length less what was queued already, and nobody knows how much that is. So the
//! hold is what the last iteration was early by, and a *trim* that grows while iterations stay early and shrinks when they
//! become late. An iteration begins here with its main burst, as in the profiles that the agent tells.

use std::time::Duration;

use metronome_core::model::units::Moment;
use metronome_core::traffic::{Held, TrafficDirective};

/// How one member is held.
#[derive(Debug, Default)]
pub struct Pacer {
    generation: u64,
    /// Nanoseconds that a hold is longer than it would have to be.
    trim: f64,
    /// How long the member is held when its iteration has sent all it had.
    next: Option<u64>,
    /// Whether it has reached its place, if it is to do so once, and after how many holds.
    is_there: bool,
    holds: u8,
    /// When it was last held, and whether what came of it is still to be seen.
    held: Moment,
    was_held: bool,
}

/// An iteration so near to its place is there.
const THERE: u64 = 2_000_000;
/// A job that is to reach its place once is held so often for it. Each hold costs up to a period, and beside other jobs places are
/// seldom reached to the millisecond.
const MAX_HOLDS_ONCE: u8 = 8;
/// Once it was held, a job that is late by this part of its period is there: another hold would cost nearly a whole period.
const LATE_BY_LITTLE: f64 = 0.05;
/// The part of what is left that goes into the trim.
const GAIN: f64 = 0.3;

impl Pacer {
    /// An iteration has begun to send.
    pub fn began(&mut self, word: &TrafficDirective, at: Moment) {
        if word.generation != self.generation {
            *self = Self { generation: word.generation, trim: self.trim, ..Self::default() };
        }
        self.next = None;
        let Some(held) = word.holds() else { return };
        let (after, period) = (word.after_its_place(at).0, word.period.0);
        // Less than half a period after its place it is late, and goes at once.
        let is_late = after < period / 2;
        let early = if is_late { -(after as f64) } else { (period - after) as f64 };
        if std::mem::take(&mut self.was_held) {
            self.trim = (self.trim + GAIN * early).clamp(0.0, period as f64 / 2.0);
        }
        let hold = match held {
            Held::EveryIteration => early + self.trim,
            Held::Once if !self.is_to_be_held_once(word, at) => return,
            Held::Once if self.holds > 0 && is_late && after as f64 <= LATE_BY_LITTLE * period as f64 => {
                self.is_there = true;
                return;
            }
            // A job that is late waits for the next place.
            Held::Once => (period - after) as f64 + self.trim,
        };
        let hold = (hold.max(0.0) as u64).min(word.hold.0);
        self.next = (hold >= THERE / 4).then_some(hold);
    }

    /// An iteration has sent all it had: for how long its member is frozen now.
    pub fn paused(&mut self, now: Moment) -> Option<Duration> {
        let hold = self.next.take()?;
        self.held = now;
        self.was_held = true;
        self.holds = self.holds.saturating_add(1);
        Some(Duration::from_nanos(hold))
    }

    /// Whoever is held once is left alone from its place on, until it has drifted too far from it.
    fn is_to_be_held_once(&mut self, word: &TrafficDirective, now: Moment) -> bool {
        self.is_there = match self.is_there {
            true => !word.is_held_again(now, self.held),
            false => word.distance(now).0 <= THERE || self.holds >= MAX_HOLDS_ONCE,
        };
        if self.is_there {
            self.holds = 0;
        }
        !self.is_there
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn word(held: &str, generation: u64) -> TrafficDirective {
        serde_json::from_value(serde_json::json!({
            "generation": generation, "anchor": "1970-01-01T00:00:00Z", "periodNs": 200 * MS, "turnNs": 30 * MS,
            "holdNs": 200 * MS, "validUntil": "2100-01-01T00:00:00Z", "held": held,
            "toleranceNs": 20 * MS, "pauseNs": 1000 * MS
        }))
        .unwrap()
    }

    /// Iterations of this length, of which a hold shifts the next by as much as it is longer than what was queued.
    fn train(pacer: &mut Pacer, word: &TrafficDirective, natural: u64, queued: u64, from: u64) -> Vec<u64> {
        let mut at = from;
        (0..60)
            .map(|_| {
                pacer.began(word, Moment(at));
                let held = pacer.paused(Moment(at + 50 * MS)).map_or(0, |hold| hold.as_nanos() as u64);
                at += natural + held.saturating_sub(queued);
                word.after_its_place(Moment(at)).0
            })
            .collect()
    }

    fn off(after: u64) -> u64 {
        after.min(200 * MS - after)
    }

    #[test]
    fn whatever_is_queued_the_shift_is_trimmed_until_iterations_are_in_place() {
        for queued in [0, 10 * MS, 50 * MS] {
            let mut pacer = Pacer::default();
            let places = train(&mut pacer, &word("everyIteration", 1), 190 * MS, queued, 137 * MS);
            assert!(places[30..].iter().all(|after| off(*after) < 3 * MS), "{queued}: {places:?}");
        }
    }

    #[test]
    fn a_job_whose_iterations_vary_is_held_a_few_times_at_most_to_reach_its_place_once() {
        let mut pacer = Pacer::default();
        let word = word("once", 1);
        let (mut at, mut held) = (137 * MS, Vec::new());
        for iteration in 0..40 {
            pacer.began(&word, Moment(at));
            let hold = pacer.paused(Moment(at + 50 * MS)).map_or(0, |hold| hold.as_nanos() as u64);
            held.extend((hold > 0).then_some(hold / MS));
            at += (200 + iteration % 3 * 4) * MS - 4 * MS + hold;
        }
        assert!((1..=usize::from(MAX_HOLDS_ONCE)).contains(&held.len()), "{held:?}");
    }

    #[test]
    fn whoever_is_held_once_is_then_left_alone_until_it_has_drifted() {
        let mut pacer = Pacer::default();
        let word = word("once", 1);
        let places = train(&mut pacer, &word, 200 * MS, 0, 137 * MS);
        assert!(places[20..].iter().all(|after| off(*after) <= 2 * MS), "{places:?}");
        assert_eq!(pacer.next, None);
        pacer.began(&word, Moment(100_000 * MS + 20 * MS));
        assert_eq!(pacer.next, None, "not far enough");
        pacer.began(&word, Moment(100_000 * MS));
        assert!(pacer.next.is_some(), "30 ms early");
    }
}
