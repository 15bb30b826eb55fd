//! What a job needs of a pool.

use std::sync::Arc;

use super::{GUARD, Units};
use crate::model::units::{Duration, Instant};
use crate::observe::progress::Pace;
use crate::observe::scaling::Speed;

/// A size that a job may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub members: u32,
    /// What so many members take of the pool.
    pub units: Units,
    pub speed: Speed,
}

/// What a job has when a plan begins: so many members, which do nothing for so long yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Has {
    pub members: u32,
    pub pause: Duration,
}

/// How long a job does nothing when its size changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pauses {
    /// When it starts for the first time in a plan.
    pub first: Duration,
    /// When it starts again.
    pub again: Duration,
    /// When it comes to have more members.
    pub more: Duration,
    /// When it comes to have fewer.
    pub fewer: Duration,
}

/// Work to be done by a time, by a gang of one of some sizes.
#[derive(Clone, Debug)]
pub(crate) struct Need {
    /// As time at the least size.
    pub work: Duration,
    /// The smallest first, each faster than the one before.
    pub sizes: Arc<[Size]>,
    pub now: Instant,
    pub until: Instant,
    pub has: Has,
    pub pauses: Pauses,
}

/// Units taken for a time: units times nanoseconds.
pub(crate) type Cost = u128;

impl Need {
    pub(crate) fn size(&self, members: u32) -> Option<Size> {
        self.sizes.iter().copied().find(|size| size.members == members)
    }

    /// When it is to be done, with a little to spare.
    pub(crate) fn target(&self) -> Instant {
        Instant(self.until.0.saturating_sub(GUARD.0))
    }

    /// The index of the largest size that takes no more than `free`, up to a size.
    pub(super) fn largest(&self, free: Units, most: usize) -> Option<usize> {
        (0..=most).rev().find(|at| self.sizes[*at].units <= free)
    }

    /// The least that must be taken for it to be done in time if it had the pool to itself: at the smallest size that is
    /// fast enough, and at the one below for as long as that does. `None` if no size is fast enough.
    pub(crate) fn cost(&self) -> Option<Cost> {
        let time = self.target().since(self.now);
        let enough = self.sizes.iter().position(|size| Pace::at(size.speed).work(time) >= self.work)?;
        let size = self.sizes[enough];
        let Some(below) = enough.checked_sub(1).map(|below| self.sizes[below]) else {
            return Some(taken(size, Pace::at(size.speed).time(self.work)));
        };
        let lacking = u128::from((self.work - Pace::at(below.speed).work(time)).0);
        let faster = u128::from(size.speed.0 - below.speed.0).max(1);
        let at_size = (lacking * u128::from(Speed::PLAIN.0)).div_ceil(faster).min(u128::from(time.0));
        let at_size = Duration(at_size as u64);
        Some(taken(size, at_size) + taken(below, time - at_size))
    }
}

fn taken(size: Size, time: Duration) -> Cost {
    size.units.unsigned_abs() as u128 * u128::from(time.0)
}
