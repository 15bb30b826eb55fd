//! Times at which bookings may change.

use crate::model::units::{Duration, Instant};
use crate::tuning::DeadlinesTuning;

/// Grid of times: multiples of a step. With many jobs, steps grow with the distance from now, where precision matters
/// little; no step exceeds a fixed part of the distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grid {
    now: Instant,
    /// Origin from which steps are counted.
    origin: Instant,
    step: Duration,
    coarsening: Coarsening,
    /// A coarse step is at most one over this of the distance from now.
    min_steps_of_distance: u64,
}

/// Times of decisions: multiples of a time, or a minimum interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DecisionTimes {
    pub(crate) multiples_of: Duration,
    pub(crate) apart: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coarsening {
    Never,
    WithDistance,
}

impl Grid {
    /// Grid for a number of jobs. With a minimum interval only, steps are counted from now.
    pub(crate) fn of(now: Instant, rounds: DecisionTimes, jobs: usize, tuning: &DeadlinesTuning) -> Self {
        let coarsening =
            if jobs < tuning.coarsening_min_jobs { Coarsening::Never } else { Coarsening::WithDistance };
        let DecisionTimes { multiples_of, apart } = rounds;
        let origin = if multiples_of.is_zero() && !apart.is_zero() { now } else { Instant::START };
        Self {
            now,
            origin,
            step: multiples_of.max(apart).max(tuning.min_booking_step),
            coarsening,
            min_steps_of_distance: tuning.min_steps_of_distance,
        }
    }

    /// First time of the grid at or after `at`.
    pub(crate) fn up(&self, at: Instant) -> Instant {
        let cells = at.since(self.now).0 / (self.step.0 * self.min_steps_of_distance);
        match self.coarsening {
            Coarsening::WithDistance if cells >= 2 => {
                self.round_up_to(at, self.step.times(1 << cells.ilog2()))
            }
            _ => self.round_up_to(at, self.step),
        }
    }

    fn round_up_to(self, at: Instant, step: Duration) -> Instant {
        let since = Instant(at.since(self.origin).0).rounded_up(step);
        self.origin + Duration(since.0)
    }
}
