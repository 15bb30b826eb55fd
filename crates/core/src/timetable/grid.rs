//! The times at which bookings may change.

use crate::units::{Duration, Instant};

/// Bookings change at multiples of a step. Far ahead, where it matters little and there would be too many of them, at
/// multiples of larger and larger ones: none more than a part of the time until then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grid {
    now: Instant,
    step: Duration,
    coarsens: Coarsening,
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
    /// For so many jobs where decisions fall on multiples of a round, if they do.
    pub(crate) fn of(now: Instant, round: Duration, jobs: usize) -> Self {
        let coarsens = if jobs < MANY_JOBS { Coarsening::Never } else { Coarsening::WithDistance };
        Self { now, step: round.max(LEAST), coarsens }
    }

    /// The first of these times that is no earlier.
    pub(crate) fn up(&self, at: Instant) -> Instant {
        let cells = at.since(self.now).0 / (self.step.0 * PARTS);
        match self.coarsens {
            Coarsening::WithDistance if cells >= 2 => at.rounded_up(self.step.times(1 << cells.ilog2())),
            _ => at.rounded_up(self.step),
        }
    }
}
