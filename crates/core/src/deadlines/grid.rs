//! Times at which bookings may change.

use crate::model::units::{Duration, Instant};

/// Grid of times: multiples of a step. With many jobs, steps grow with the distance from now, where precision matters
/// little; no step exceeds a fixed part of the distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grid {
    now: Instant,
    /// Origin from which steps are counted.
    origin: Instant,
    step: Duration,
    coarsening: Coarsening,
}

/// Times of decisions: multiples of a time, or a minimum interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rounds {
    pub(crate) multiples_of: Duration,
    pub(crate) apart: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coarsening {
    Never,
    WithDistance,
}

/// Jobs from which on the grid coarsens with distance.
const COARSENING_MIN_JOBS: usize = 400;

/// With coarsening, a step is at most this part of the distance from now.
const MIN_STEPS_OF_DISTANCE: u64 = 16;

/// Smallest step.
const MIN_STEP: Duration = Duration::from_secs(1);

impl Grid {
    /// Grid for a number of jobs. With a minimum interval only, steps are counted from now.
    pub(crate) fn of(now: Instant, rounds: Rounds, jobs: usize) -> Self {
        let coarsening =
            if jobs < COARSENING_MIN_JOBS { Coarsening::Never } else { Coarsening::WithDistance };
        let Rounds { multiples_of, apart } = rounds;
        let origin = if multiples_of.is_zero() && !apart.is_zero() { now } else { Instant::START };
        Self { now, origin, step: multiples_of.max(apart).max(MIN_STEP), coarsening }
    }

    /// First time of the grid at or after `at`.
    pub(crate) fn up(&self, at: Instant) -> Instant {
        let cells = at.since(self.now).0 / (self.step.0 * MIN_STEPS_OF_DISTANCE);
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
