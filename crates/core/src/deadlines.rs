//! Advance reservations for jobs with deadlines: which job holds how much capacity, and when.
//!
//! **Problem.** Each job has remaining work, sizes with a speed each, and a deadline. A pool has a number of
//! identical units, some of which are allocated for some time (`Outlook`). Which sizes at which times let every job
//! meet its deadline with the least capacity?
//!
//! **Solution.** Jobs are booked one by one in the order of their deadlines (earliest deadline first): `fill` finds
//! the smallest size that suffices when it uses the latest free capacity before the deadline first, and the size at
//! each time is the job's `Booking`. This room knows no nodes, jobs or policies; `decide/deadlines` does.

mod booking;
mod contiguous;
mod entry;
mod fill;
mod grid;
mod need;
mod outlook;
#[cfg(test)]
mod tests;

pub(crate) use booking::WorkSimulation;
pub use booking::{Booking, BookingSegment};
pub(crate) use contiguous::book_without_gap;
pub use entry::{CapacityPool, DeadlineEntry, DeadlineVerdict, Timetable};
pub(crate) use fill::{fill, fill_as_early_as_possible};
pub(crate) use grid::{DecisionTimes, Grid};
pub(crate) use need::{BookingSize, CapacityCost, PoolDemand, PresentSize, ResizePauses};
pub(crate) use outlook::{Outlook, OutlookPiece};

use crate::model::units::Duration;

/// Whether a job may be preempted once it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stops {
    AtAnyTime,
    Never,
}

/// Capacity of a pool, in thousandths of a GPU or of a core. Negative where bookings exceed a capacity that has
/// shrunk.
pub(crate) type Units = i64;

/// Margin before a deadline at which plans end. Time is counted in whole nanoseconds, and every observation of a
/// running job may lose one to rounding.
pub(crate) const DEADLINE_MARGIN: Duration = Duration(1_000_000);
