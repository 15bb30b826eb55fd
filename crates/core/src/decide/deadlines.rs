//! The timetable of a decision: what is booked for jobs with deadlines.
//!
//! Every decision makes the timetable anew from the one before (`Timetable`): a booked job stays booked, or keeps the
//! plan it has where a new one would leave a job out (`promised`). The proposer `bookings` puts what the timetable
//! says of now into the plan; all other jobs are served from what is left.
//!
//! The timetable stands until the size of a job is to change, or a job has come, gone or lost its place: so deciding
//! again changes nothing.

mod advise;
mod best_effort;
mod books;
mod capacity_pools;
mod earliest;
mod filled;
mod grow;
mod kind;
mod memory;
mod memory_per_unit;
mod need;
mod pool_hierarchy;
mod promised;

use super::view::View;
use crate::deadlines::Timetable;
use crate::decide::snapshot::Snapshot;
use crate::model::id::JobId;
use crate::model::policy::Deadlines;
use crate::model::report::Reason;
use crate::model::units::Instant;

use books::Books;

pub(crate) use advise::{Advice, advise};
pub(super) use capacity_pools::Pools;
pub(super) use kind::makes_room;
pub(super) use need::{BookedSize, DeadlineJob};

/// Decisions about deadlines alone: the timetable, and the capacity that it leaves.
#[derive(Debug, Default)]
pub(super) struct Schedule<'a> {
    pub(super) timetable: Timetable,
    /// The jobs with deadlines, by deadline.
    pub(super) jobs: Vec<DeadlineJob<'a>>,
    /// Whether an earlier decision put the timetable into the plan already, as far as it could.
    pub(super) stands: bool,
    /// Free capacity beside the bookings.
    pub(super) pools: Option<Pools>,
    /// Jobs that will never run.
    pub(super) refused: Vec<(JobId, Reason)>,
}

/// Makes the timetable that holds from now on.
pub(super) fn schedule<'a>(view: &View<'a>) -> Schedule<'a> {
    let snapshot = view.snapshot;
    if view.policy.deadlines == Deadlines::Ignored || snapshot.timed.is_empty() {
        return Schedule { timetable: snapshot.plan.timetable().lessons(), ..Schedule::default() };
    }
    let jobs = need::timed(snapshot, view.policy.deadlines);
    let pools = Pools::of(snapshot, &jobs);
    let stands = stands(snapshot, &jobs, &pools);
    let books = Books::new(snapshot, jobs, pools);
    if stands {
        return as_it_stands(books);
    }
    match view.policy.deadlines {
        Deadlines::Ignored => Schedule::default(),
        Deadlines::Earliest => earliest::schedule(books),
        Deadlines::Filled => filled::schedule(books),
        Deadlines::Promised => promised::schedule(view, books),
    }
}

/// Whether the timetable was made for these jobs and this capacity, and no size was to change since.
fn stands(snapshot: &Snapshot<'_>, jobs: &[DeadlineJob<'_>], pools: &Pools) -> bool {
    let table = snapshot.plan.timetable();
    let knows_all = jobs.len() == table.entries.len() && jobs.iter().all(|job| table.get(job.id).is_some());
    let is_due = |made: Instant| table.next_change(made).is_some_and(|change| change <= snapshot.now);
    table.made.is_some_and(|made| !is_due(made)) && knows_all && table.capacity == pools.capacity()
}

fn as_it_stands(mut books: Books<'_>) -> Schedule<'_> {
    books.book_as_before();
    let timetable = books.snapshot.plan.timetable().clone();
    Schedule { timetable, jobs: books.jobs, pools: Some(books.pools), stands: true, ..Schedule::default() }
}
