//! What would let a job be booked that is not: a later deadline, or the absence of another job.

use super::best_effort;
use super::books::Books;
use super::capacity_pools::{Floor, Pools};
use super::need::{DeadlineJob, timed};
use crate::deadlines::{DEADLINE_MARGIN, Outlook, PoolDemand, Stops, fill_as_early_as_possible};
use crate::decide::snapshot::Snapshot;
use crate::model::id::{JobId, NodeId};
use crate::model::job::Binding;
use crate::model::policy::Deadlines;
use crate::model::units::{Duration, Instant};

/// The most booked jobs that are examined for being in the way, and the most that are named.
const ASKED_ABOUT: usize = 200;
const NAMED: usize = 3;

/// A time that no booking reaches, with room for additions.
const FAR: Duration = Duration(u64::MAX / 4);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Advice {
    /// The earliest deadline for which the job could be booked beside the others.
    pub(crate) earliest: Option<Instant>,
    /// Jobs without any one of which the job could be booked for its own deadline.
    pub(crate) in_the_way: Vec<JobId>,
}

/// Advice for a job; none for a job that is booked, or whose deadline does not count.
pub(crate) fn advise(snapshot: &Snapshot<'_>, deadlines: Deadlines, id: JobId) -> Option<Advice> {
    if deadlines != Deadlines::Promised {
        return None;
    }
    let jobs = timed(snapshot, deadlines);
    let at = jobs.iter().position(|timed| timed.id == id)?;
    let pools = Pools::of(snapshot, &jobs);
    let mut books = Books::new(snapshot, jobs, pools);
    books.book_as_before();
    if books.booked.contains_key(&at) {
        return None;
    }
    keep_best_effort_part(&mut books, at);
    Some(Advice { earliest: books.earliest(at), in_the_way: books.in_the_way(at) })
}

/// Keeps the part of jobs without deadlines from bookings, as a decision does.
fn keep_best_effort_part(books: &mut Books<'_>, at: usize) {
    let deadline = books.jobs[at].job.spec.deadline;
    let strict = deadline.is_some_and(|deadline| deadline.binding == Binding::Strict);
    let goes_below =
        strict && !books.snapshot.plan.timetable().owes_best_effort(&books.snapshot.tuning.deadlines);
    if best_effort::any_jobs(books.snapshot) && !goes_below {
        books.pools.floor(Floor::Kept);
    }
}

impl Books<'_> {
    /// The earliest time by which a job could end, with what is free beside the bookings at each time.
    fn earliest(&self, at: usize) -> Option<Instant> {
        let timed = &self.jobs[at];
        let on = |node: Option<NodeId>| {
            let outlook = self.pools.outlook(self.snapshot, timed, node)?;
            Some(self.soonest(&outlook, timed)? + DEADLINE_MARGIN)
        };
        match (timed.is_in_place(), self.node_of(at)) {
            (false, _) => on(None),
            (true, Some(node)) => on(Some(node)),
            (true, None) => {
                let nodes = self.pools.nodes_for(self.snapshot, timed);
                nodes.into_iter().filter_map(|node| on(Some(node))).min()
            }
        }
    }

    fn soonest(&self, outlook: &Outlook, timed: &DeadlineJob<'_>) -> Option<Instant> {
        let need = &timed.need;
        if timed.stops == Stops::AtAnyTime {
            return fill_as_early_as_possible(outlook, need, &self.grid).map(|booking| booking.ends);
        }
        let with = |sizes| PoolDemand { sizes, until: need.now + FAR, ..need.clone() };
        let alone = need.sizes.iter().map(|size| with([*size].into()));
        let booked = alone.filter_map(|need| self.fill_need(outlook, &need, timed.stops));
        booked.map(|booking| booking.ends).min()
    }

    /// Jobs of which one alone keeps a job from being in time, the latest deadline first.
    fn in_the_way(&self, at: usize) -> Vec<JobId> {
        let booked = self.booked.iter().rev().take(ASKED_ABOUT);
        let without = booked.filter(|(other, booked)| {
            let (mut pools, timed) = (self.pools.clone(), &self.jobs[**other]);
            pools.cancel(self.snapshot, timed, booked);
            !self.stays(**other) && self.fill(&pools, at).is_some()
        });
        without.map(|(other, _)| self.jobs[*other].id).take(NAMED).collect()
    }
}
