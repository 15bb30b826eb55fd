//! Stall detection: the rhythm of a job's reports, and the silence after which the job counts as stalled.
//!
//! Only a report of more iterations than ever before is a sign of life, because a stalled process may repeat its last
//! report. The scheduler's clock gives the time of a report, so a job's own clock has no effect.

use serde::{Deserialize, Serialize};

use crate::model::units::{Duration, Instant, Iterations};
use crate::tuning::ObserveTuning;

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
    /// Time from which the job counts as stalled, unless it shows a sign of life before.
    #[serde(skip_serializing_if = "Option::is_none")]
    stalled_from: Option<Instant>,
}

impl ReportRhythm {
    /// Whether the value is the default, which serde omits.
    pub(super) fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Records a report of `done` iterations.
    pub(super) fn record(&mut self, now: Instant, done: Iterations, tuning: &ObserveTuning) {
        match self.heard {
            None => self.times = 1,
            Some(_) if done <= self.done => return,
            Some(before) => self.update_rhythm(now.since(before), done.0 - self.done.0, tuning),
        }
        (self.heard, self.done) = (Some(now), done);
        let is_regular = self.times >= tuning.min_signs_of_life;
        self.stalled_from = is_regular.then(|| now + self.stall_timeout(tuning));
    }

    /// Updates the decaying maxima after a gap in which the job gained iterations.
    fn update_rhythm(&mut self, gap: Duration, gained: u64, tuning: &ObserveTuning) {
        let iteration = Duration(gap.0 / gained);
        let stall_timeout = self.stall_timeout(tuning);
        if self.iteration.is_zero() {
            self.iteration = iteration;
        } else {
            self.iteration = decaying_max(self.iteration, iteration.min(self.iteration.times(2)), tuning);
        }
        // A stall does not lengthen the next timeout; a lasting slowdown does.
        let gap = if self.times < tuning.min_signs_of_life { gap } else { gap.min(stall_timeout) };
        self.gap = decaying_max(self.gap, gap, tuning);
        self.times = self.times.saturating_add(1);
    }

    /// Restarts detection for a new run, on the same or on other nodes: nothing is expected before its first sign of
    /// life.
    pub(super) fn restart(&mut self) {
        *self = Self { iteration: self.iteration, gap: self.gap, ..Self::default() };
    }

    /// Time from which the job counts as stalled unless it shows a sign of life before.
    pub(super) fn stalled_from(&self) -> Option<Instant> {
        self.stalled_from
    }

    /// Time of the last sign of life of a stalled job.
    pub(super) fn silent_since(&self, now: Instant) -> Option<Instant> {
        self.heard.filter(|_| self.stalled_from.is_some_and(|from| from <= now))
    }

    /// Timeout: the longest of the three bounds.
    fn stall_timeout(&self, tuning: &ObserveTuning) -> Duration {
        let by_iterations = self.iteration.times(tuning.stall_iterations);
        by_iterations.max(self.gap.times(tuning.stall_report_gaps)).max(tuning.min_stall_silence)
    }
}

/// Maximum that decays by a fixed part with each shorter value.
fn decaying_max(before: Duration, now: Duration, tuning: &ObserveTuning) -> Duration {
    now.max(Duration(before.0 - before.0 / tuning.rhythm_decay))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reports every `every` seconds, each of `more` iterations more.
    fn rhythm(every: u64, more: u64, times: u64) -> ReportRhythm {
        let mut rhythm = ReportRhythm::default();
        (1..=times).for_each(|k| {
            rhythm.record(Instant::from_secs(k * every), Iterations(k * more), &ObserveTuning::DEFAULT);
        });
        rhythm
    }

    fn hangs_after(rhythm: &ReportRhythm) -> Option<u64> {
        Some(rhythm.stalled_from()?.since(rhythm.heard?).as_secs())
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
        assert_eq!((rhythm.stalled_from(), rhythm.silent_since(Instant(u64::MAX))), (None, None));
    }

    #[test]
    fn a_repeated_report_is_no_sign_of_life() {
        let mut rhythm = rhythm(10, 1, 5);
        let (before, later) = (rhythm, Instant::from_secs(1000));
        rhythm.record(later, Iterations(5), &ObserveTuning::DEFAULT);
        rhythm.record(later, Iterations(2), &ObserveTuning::DEFAULT);
        assert_eq!(rhythm, before);
        rhythm.record(later, Iterations(6), &ObserveTuning::DEFAULT);
        assert_eq!(rhythm.silent_since(later), None);
    }

    #[test]
    fn a_stall_does_not_lengthen_the_next_timeout() {
        let mut rhythm = rhythm(10, 1, 5);
        rhythm.record(Instant::from_secs(86_400), Iterations(6), &ObserveTuning::DEFAULT);
        assert!(hangs_after(&rhythm).unwrap() <= 300, "{rhythm:?}");
        (1..60).for_each(|k| {
            rhythm.record(Instant::from_secs(86_400 + k * 10), Iterations(6 + k), &ObserveTuning::DEFAULT);
        });
        assert_eq!(hangs_after(&rhythm), Some(100));
    }

    #[test]
    fn a_lasting_slowdown_raises_the_timeout_after_a_few_reports() {
        let mut rhythm = rhythm(1, 1, 50);
        let mut hung = 0;
        for k in 1..=20 {
            let now = Instant::from_secs(50 + k * 200);
            hung += u32::from(rhythm.silent_since(now).is_some());
            rhythm.record(now, Iterations(50 + k), &ObserveTuning::DEFAULT);
        }
        assert!(hung <= 3, "{hung}");
    }
}
