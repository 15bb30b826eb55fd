//! The rhythm of a job's reports, and when its silence means that it hangs.
//!
//! Only a report that more iterations are done than ever before is a sign of life: whoever hangs may go on saying where it
//! is. When it came is told by the clock of who hears it, so whatever a job's own clock says changes nothing here.

use serde::{Deserialize, Serialize};

use crate::model::units::{Duration, Instant, Iterations};

/// A job hangs that was silent for so many of its iterations…
const ITERATIONS: u64 = 10;

/// …and for so many times as long as its reports are apart…
const GAPS: u64 = 3;

/// …and for so long, because reports come late at times…
const AT_LEAST: Duration = Duration::MINUTE;

/// …if it had come further so many times before.
const HEARD_BEFORE: u32 = 3;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Pulse {
    /// When it last said that it had come further.
    heard: Option<Instant>,
    /// How often it did since it began to run where it is, and how far it had come.
    times: u32,
    done: Iterations,
    /// The longest of late that an iteration took, and that reports were apart.
    iteration: Duration,
    gap: Duration,
}

impl Pulse {
    /// For serde: what is left out means this.
    pub(super) fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// It says that so much is done.
    pub(super) fn hears(&mut self, now: Instant, done: Iterations) {
        let Some(before) = self.heard else {
            (self.heard, self.times, self.done) = (Some(now), 1, done);
            return;
        };
        if done <= self.done {
            return;
        }
        let (gap, gained) = (now.since(before), done.0 - self.done.0);
        let iteration = Duration(gap.0 / gained);
        let patience = self.patience();
        if self.iteration.is_zero() {
            self.iteration = iteration;
        } else {
            self.iteration = longest_of_late(self.iteration, iteration.min(self.iteration.times(2)));
        }
        // Whoever has hung once is not waited for that long the next time; whoever has become slower is.
        let gap = if self.times < HEARD_BEFORE { gap } else { gap.min(patience) };
        self.gap = longest_of_late(self.gap, gap);
        (self.heard, self.done) = (Some(now), done);
        self.times = self.times.saturating_add(1);
    }

    /// It starts anew, where it was or elsewhere: until it is heard of again nothing is expected of it.
    pub(super) fn begins_anew(&mut self) {
        *self = Self { iteration: self.iteration, gap: self.gap, ..Self::default() };
    }

    /// From when on its silence means that it hangs, unless it is heard of before.
    pub(super) fn hangs_from(&self) -> Option<Instant> {
        let heard = self.heard.filter(|_| self.times >= HEARD_BEFORE)?;
        Some(heard + self.patience())
    }

    /// Since when nothing was heard of it, if it hangs.
    pub(super) fn silent_since(&self, now: Instant) -> Option<Instant> {
        self.heard.filter(|_| self.hangs_from().is_some_and(|from| from <= now))
    }

    fn patience(&self) -> Duration {
        self.iteration.times(ITERATIONS).max(self.gap.times(GAPS)).max(AT_LEAST)
    }
}

/// What was long a while ago counts a little less with each that is shorter.
fn longest_of_late(before: Duration, now: Duration) -> Duration {
    now.max(Duration(before.0 - before.0 / 8))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A report every so many seconds, each of so many iterations more.
    fn pulse(every: u64, more: u64, times: u64) -> Pulse {
        let mut pulse = Pulse::default();
        (1..=times).for_each(|k| pulse.hears(Instant::from_secs(k * every), Iterations(k * more)));
        pulse
    }

    fn hangs_after(pulse: &Pulse) -> Option<u64> {
        Some(pulse.hangs_from()?.since(pulse.heard?).as_secs())
    }

    #[test]
    fn ten_of_its_iterations_without_a_word_are_too_long() {
        let pulse = pulse(30, 1, 5);
        assert_eq!(hangs_after(&pulse), Some(300));
        assert_eq!(pulse.silent_since(Instant::from_secs(449)), None);
        assert_eq!(pulse.silent_since(Instant::from_secs(450)), Some(Instant::from_secs(150)));
    }

    #[test]
    fn reports_may_be_rarer_than_iterations_and_a_little_late() {
        assert_eq!(hangs_after(&pulse(100, 100, 5)), Some(300));
        assert_eq!(hangs_after(&pulse(1, 1, 5)), Some(60));
    }

    #[test]
    fn of_a_newcomer_and_of_who_starts_anew_nothing_is_expected() {
        assert_eq!(hangs_after(&pulse(10, 1, 2)), None);
        let mut pulse = pulse(10, 1, 9);
        pulse.begins_anew();
        assert_eq!((pulse.hangs_from(), pulse.silent_since(Instant(u64::MAX))), (None, None));
    }

    #[test]
    fn who_says_the_same_again_has_not_come_further() {
        let mut pulse = pulse(10, 1, 5);
        let (before, later) = (pulse, Instant::from_secs(1000));
        pulse.hears(later, Iterations(5));
        pulse.hears(later, Iterations(2));
        assert_eq!(pulse, before);
        pulse.hears(later, Iterations(6));
        assert_eq!(pulse.silent_since(later), None);
    }

    #[test]
    fn who_hung_for_a_day_is_not_waited_for_another() {
        let mut pulse = pulse(10, 1, 5);
        pulse.hears(Instant::from_secs(86_400), Iterations(6));
        assert!(hangs_after(&pulse).unwrap() <= 300, "{pulse:?}");
        (1..60).for_each(|k| pulse.hears(Instant::from_secs(86_400 + k * 10), Iterations(6 + k)));
        assert_eq!(hangs_after(&pulse), Some(100));
    }

    #[test]
    fn who_becomes_slower_is_believed_after_a_few_reports() {
        let mut pulse = pulse(1, 1, 50);
        let mut hung = 0;
        for k in 1..=20 {
            let now = Instant::from_secs(50 + k * 200);
            hung += u32::from(pulse.silent_since(now).is_some());
            pulse.hears(now, Iterations(50 + k));
        }
        assert!(hung <= 3, "{hung}");
    }
}
