//! Who has booked how much of what there is, and when: deadlines are kept by plans made ahead.
//!
//! The problem. Jobs have so much work left, sizes they may have with a speed at each, and a time by which they are to
//! be done. A pool has so many units, the same for all, of which some are taken for some time (`Outlook`). Which sizes at
//! which times get everybody done, with as little taken as possible?
//!
//! The answer, job by job in the order of deadlines: the smallest size is looked for that suffices when what is free
//! just before the deadline is used first (`fill`), and what the job would then have at each time is its `Booking`.
//! Nothing here knows nodes, jobs or policies; `decide/deadlines` does.

mod booking;
mod contiguous;
mod entry;
mod fill;
mod grid;
mod need;
mod outlook;
#[cfg(test)]
mod tests;

pub(crate) use booking::Walk;
pub use booking::{Booking, Segment};
pub(crate) use contiguous::book_in_one_piece;
pub use entry::{Entry, Pool, Timetable, Verdict};
pub(crate) use fill::{as_soon_as_may_be, fill};
pub(crate) use grid::{Grid, Rounds};
pub(crate) use need::{Cost, Has, Need, Pauses, Size};
pub(crate) use outlook::{Outlook, Piece};

use crate::model::units::Duration;

/// Whether a job may be stopped once it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stops {
    AtAnyTime,
    Never,
}

/// Parts of a pool: thousandths of a GPU or of a core. Less than none where more was booked than there is any more.
pub(crate) type Units = i64;

/// What is planned is planned to end so much before it has to: time is counted in whole nanoseconds, and every look at
/// a running job may round one away.
pub(crate) const GUARD: Duration = Duration(1_000_000);
