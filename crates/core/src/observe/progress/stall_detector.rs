//! Stall detection: the rhythm of a job's reports, and the silence after which the job counts as stalled.
//!
//! Only a report of more iterations than ever before is a sign of life, because a stalled process may repeat its last
//! report. The scheduler's clock gives the time of a report, so a job's own clock has no effect.

use serde::{Deserialize, Serialize};

use crate::model::units::{Duration, Instant, Iterations};

/// Iterations without a sign of life after which a job is stalled…
const STALL_ITERATIONS: u64 = 10;

/// …and multiple of the usual gap between reports…
const STALL_REPORT_GAPS: u64 = 3;

/// …and shortest silence, because reports may be late…
const MIN_STALL: Duration = Duration::MINUTE;

/// …after this many signs of life since the start.
const MIN_SIGNS_OF_LIFE: u32 = 3;

/// Signs of life of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ReportRhythm {
    /// Time of the last sign of life.
    heard: Option<Instant>,
    /// Signs of life since the job started on its present nodes, and the iterations done.
    times: u32,
    done: Iterations,
    /// Decaying maxima of the time per iteration and of the gap between reports.
    iteration: Duration,
    gap: Duration,
}

impl ReportRhythm {
    /// Whether the value is the default, which serde omits.
    pub(super) fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Records a report of `done` iterations.
    pub(super) fn record(&mut self, now: Instant, done: Iterations) {
        let Some(before) = self.heard else {
            (self.heard, self.times, self.done) = (Some(now), 1, done);
            return;
        };
        if done <= self.done {
            return;
        }
        let (gap, gained) = (now.since(before), done.0 - self.done.0);
        let iteration = Duration(gap.0 / gained);
        let stall_timeout = self.stall_timeout();
        if self.iteration.is_zero() {
            self.iteration = iteration;
        } else {
            self.iteration = decaying_max(self.iteration, iteration.min(self.iteration.times(2)));
        }
        // A stall does not lengthen the next timeout; a lasting slowdown does.
        let gap = if self.times < MIN_SIGNS_OF_LIFE { gap } else { gap.min(stall_timeout) };
        self.gap = decaying_max(self.gap, gap);
        (self.heard, self.done) = (Some(now), done);
        self.times = self.times.saturating_add(1);
    }

    /// Restarts detection for a new run, on the same or on other nodes: nothing is expected before its first sign of
    /// life.
    pub(super) fn restart(&mut self) {
        *self = Self { iteration: self.iteration, gap: self.gap, ..Self::default() };
    }

    /// Time from which the job counts as stalled unless it shows a sign of life before.
    pub(super) fn hangs_from(&self) -> Option<Instant> {
        let heard = self.heard.filter(|_| self.times >= MIN_SIGNS_OF_LIFE)?;
        Some(heard + self.stall_timeout())
    }

    /// Time of the last sign of life of a stalled job.
    pub(super) fn silent_since(&self, now: Instant) -> Option<Instant> {
        self.heard.filter(|_| self.hangs_from().is_some_and(|from| from <= now))
    }

    /// Timeout: the longest of the three bounds.
    fn stall_timeout(&self) -> Duration {
        self.iteration.times(STALL_ITERATIONS).max(self.gap.times(STALL_REPORT_GAPS)).max(MIN_STALL)
    }
}

/// Maximum that decays by an eighth with each shorter value.
fn decaying_max(before: Duration, now: Duration) -> Duration {
    now.max(Duration(before.0 - before.0 / 8))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reports every `every` seconds, each of `more` iterations more.
    fn rhythm(every: u64, more: u64, times: u64) -> ReportRhythm {
        let mut rhythm = ReportRhythm::default();
        (1..=times).for_each(|k| rhythm.record(Instant::from_secs(k * every), Iterations(k * more)));
        rhythm
    }

    fn hangs_after(rhythm: &ReportRhythm) -> Option<u64> {
        Some(rhythm.hangs_from()?.since(rhythm.heard?).as_secs())
    }

    #[test]
    fn a_job_is_stalled_after_ten_iterations_of_silence() {
        let rhythm = rhythm(30, 1, 5);
        assert_eq!(hangs_after(&rhythm), Some(300));
        assert_eq!(rhythm.silent_since(Instant::from_secs(449)), None);
        assert_eq!(rhythm.silent_since(Instant::from_secs(450)), Some(Instant::from_secs(150)));
    }

    #[test]
    fn reports_may_be_rarer_than_iterations_and_late() {
        assert_eq!(hangs_after(&rhythm(100, 100, 5)), Some(300));
        assert_eq!(hangs_after(&rhythm(1, 1, 5)), Some(60));
    }

    #[test]
    fn a_new_or_restarted_job_is_not_stalled() {
        assert_eq!(hangs_after(&rhythm(10, 1, 2)), None);
        let mut rhythm = rhythm(10, 1, 9);
        rhythm.restart();
        assert_eq!((rhythm.hangs_from(), rhythm.silent_since(Instant(u64::MAX))), (None, None));
    }

    #[test]
    fn a_repeated_report_is_no_sign_of_life() {
        let mut rhythm = rhythm(10, 1, 5);
        let (before, later) = (rhythm, Instant::from_secs(1000));
        rhythm.record(later, Iterations(5));
        rhythm.record(later, Iterations(2));
        assert_eq!(rhythm, before);
        rhythm.record(later, Iterations(6));
        assert_eq!(rhythm.silent_since(later), None);
    }

    #[test]
    fn a_stall_does_not_lengthen_the_next_timeout() {
        let mut rhythm = rhythm(10, 1, 5);
        rhythm.record(Instant::from_secs(86_400), Iterations(6));
        assert!(hangs_after(&rhythm).unwrap() <= 300, "{rhythm:?}");
        (1..60).for_each(|k| rhythm.record(Instant::from_secs(86_400 + k * 10), Iterations(6 + k)));
        assert_eq!(hangs_after(&rhythm), Some(100));
    }

    #[test]
    fn a_lasting_slowdown_raises_the_timeout_after_a_few_reports() {
        let mut rhythm = rhythm(1, 1, 50);
        let mut hung = 0;
        for k in 1..=20 {
            let now = Instant::from_secs(50 + k * 200);
            hung += u32::from(rhythm.silent_since(now).is_some());
            rhythm.record(now, Iterations(50 + k));
        }
        assert!(hung <= 3, "{hung}");
    }
}
