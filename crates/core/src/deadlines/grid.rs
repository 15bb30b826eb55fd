//! The times at which bookings may change.

use crate::model::units::{Duration, Instant};

/// Bookings change at multiples of a step. Far ahead, where it matters little and there would be too many of them, at
/// multiples of larger and larger ones: none more than a part of the time until then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grid {
    now: Instant,
    /// From where steps are counted.
    origin: Instant,
    step: Duration,
    coarsens: Coarsening,
}

/// When decisions may fall: on multiples of a time, or so far apart.
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

/// With so many jobs or more, times are told less exactly the further ahead they are.
const MANY_JOBS: usize = 400;

/// A step is at most one part in so many of the time until then.
const PARTS: u64 = 16;

/// The least step.
const LEAST: Duration = Duration::from_secs(1);

impl Grid {
    /// For so many jobs. Where decisions are only kept apart, steps are counted from now.
    pub(crate) fn of(now: Instant, rounds: Rounds, jobs: usize) -> Self {
        let coarsens = if jobs < MANY_JOBS { Coarsening::Never } else { Coarsening::WithDistance };
        let Rounds { multiples_of, apart } = rounds;
        let origin = if multiples_of.is_zero() && !apart.is_zero() { now } else { Instant::START };
        Self { now, origin, step: multiples_of.max(apart).max(LEAST), coarsens }
    }

    /// The first of these times that is no earlier.
    pub(crate) fn up(&self, at: Instant) -> Instant {
        let cells = at.since(self.now).0 / (self.step.0 * PARTS);
        match self.coarsens {
            Coarsening::WithDistance if cells >= 2 => {
                self.to_multiple(at, self.step.times(1 << cells.ilog2()))
            }
            _ => self.to_multiple(at, self.step),
        }
    }

    fn to_multiple(self, at: Instant, step: Duration) -> Instant {
        let since = Instant(at.since(self.origin).0).rounded_up(step);
        self.origin + Duration(since.0)
    }
}
