//! Demand of a job on a pool.

use std::sync::Arc;

use super::{DEADLINE_MARGIN, Units};
use crate::model::units::{Duration, Instant};
use crate::observe::progress::WorkPace;
use crate::observe::scaling::Speed;

/// A size of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BookingSize {
    pub members: u32,
    /// Units of the pool that the size takes.
    pub units: Units,
    pub speed: Speed,
}

/// Size of a job when a booking begins, and the rest of its present pause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PresentSize {
    pub members: u32,
    pub pause: Duration,
}

/// Time without progress after a change of size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResizePauses {
    /// First start in a booking.
    pub first: Duration,
    /// Restart.
    pub again: Duration,
    /// Growth.
    pub more: Duration,
    /// Shrinking.
    pub fewer: Duration,
}

/// Work with a deadline for a gang of several sizes.
#[derive(Clone, Debug)]
pub(crate) struct PoolDemand {
    /// Time at the smallest size.
    pub work: Duration,
    /// Sizes in ascending order, each faster than the one before.
    pub sizes: Arc<[BookingSize]>,
    pub now: Instant,
    pub until: Instant,
    pub has: PresentSize,
    pub pauses: ResizePauses,
}

/// Capacity over time: units times nanoseconds.
pub(crate) type CapacityCost = u128;

impl PoolDemand {
    pub(crate) fn size(&self, members: u32) -> Option<BookingSize> {
        self.sizes.iter().copied().find(|size| size.members == members)
    }

    /// Deadline minus [`DEADLINE_MARGIN`].
    pub(crate) fn target(&self) -> Instant {
        Instant(self.until.0.saturating_sub(DEADLINE_MARGIN.0))
    }

    /// Index of the largest size that fits into `free`, up to the index `most`.
    pub(super) fn largest(&self, free: Units, most: usize) -> Option<usize> {
        (0..=most).rev().find(|at| self.sizes[*at].units <= free)
    }

    /// Minimum cost of meeting the deadline in an empty pool: the smallest size that is fast enough, and the next
    /// smaller size for as long as that suffices. `None` if no size is fast enough.
    pub(crate) fn cost(&self) -> Option<CapacityCost> {
        let time = self.target().since(self.now);
        let enough = self.sizes.iter().position(|size| WorkPace::at(size.speed).work(time) >= self.work)?;
        let size = self.sizes[enough];
        let Some(below) = enough.checked_sub(1).map(|below| self.sizes[below]) else {
            return Some(cost_of(size, WorkPace::at(size.speed).time(self.work)));
        };
        let lacking = u128::from((self.work - WorkPace::at(below.speed).work(time)).0);
        let faster = u128::from(size.speed.0 - below.speed.0).max(1);
        let at_size = (lacking * u128::from(Speed::PLAIN.0)).div_ceil(faster).min(u128::from(time.0));
        let at_size = Duration(at_size as u64);
        Some(cost_of(size, at_size) + cost_of(below, time - at_size))
    }
}

fn cost_of(size: BookingSize, time: Duration) -> CapacityCost {
    size.units.unsigned_abs() as u128 * u128::from(time.0)
}
