//! The timetable while it is made: bookings, and what is free beside them.

use std::collections::BTreeMap;

use super::Schedule;
use super::capacity_pools::{Booked, Pools};
use super::need::DeadlineJob;
use crate::deadlines::{
    Booking, DeadlineEntry, DeadlineVerdict, Grid, Outlook, PoolDemand, Stops, Timetable, book_without_gap,
    fill,
};
use crate::decide::snapshot::Snapshot;
use crate::model::id::NodeId;

pub(super) struct Books<'a> {
    pub(super) snapshot: &'a Snapshot<'a>,
    /// By deadline.
    pub(super) jobs: Vec<DeadlineJob<'a>>,
    /// Free capacity beside the bookings.
    pub(super) pools: Pools,
    pub(super) grid: Grid,
    /// Bookings by the index of their job in `jobs`.
    pub(super) booked: BTreeMap<usize, Booked>,
}

/// Bookings for some jobs, and what is free beside them.
pub(super) struct Plan {
    pub(super) pools: Pools,
    pub(super) booked: BTreeMap<usize, Booked>,
}

impl<'a> Books<'a> {
    pub(super) fn new(snapshot: &'a Snapshot<'a>, jobs: Vec<DeadlineJob<'a>>, pools: Pools) -> Self {
        let grid = pools.grid;
        Self { snapshot, jobs, pools, grid, booked: BTreeMap::new() }
    }

    pub(super) fn before(&self, at: usize) -> Option<&'a DeadlineEntry> {
        self.snapshot.plan.timetable().get(self.jobs[at].id)
    }

    /// A running job without a booking that cannot be stopped keeps what it has until it ends.
    pub(super) fn reserve_for_unbooked_jobs(&mut self) {
        let mut pools = self.pools.clone();
        let booked = |at: &usize| self.snapshot.plan.timetable().governs(self.jobs[*at].id);
        for at in (0..self.jobs.len()).filter(|at| self.stays(*at) && !booked(at)) {
            self.leave_to(&mut pools, at);
        }
        self.pools = pools;
    }

    /// Books for every job what the timetable of the last decision says.
    pub(super) fn book_as_before(&mut self) {
        self.reserve_for_unbooked_jobs();
        for at in 0..self.jobs.len() {
            let entry = self.before(at);
            if let Some((entry, booking)) = entry.and_then(|entry| Some((entry, entry.booking.clone()?))) {
                self.book(at, Booked { booking, node: entry.node });
            }
        }
    }

    /// A job keeps what it has until it is done.
    pub(super) fn leave_to(&self, pools: &mut Pools, at: usize) {
        let timed = &self.jobs[at];
        if let Some(held) = self.snapshot.plan.get(timed.id) {
            let left = timed.job.progress.pace().time(timed.need.work);
            pools.take_until(self.snapshot, held, timed.need.now + left);
        }
    }

    /// The smallest booking that gets a job done in time, beside what is booked in these pools.
    pub(super) fn fill(&self, pools: &Pools, at: usize) -> Option<Booked> {
        let timed = &self.jobs[at];
        if timed.is_in_place() {
            return self.fill_in_place(pools, timed, at);
        }
        let outlook = pools.outlook(self.snapshot, timed, None)?;
        let booking = self.fill_need(&outlook, &timed.need, timed.stops)?;
        Some(Booked { booking, node: None })
    }

    pub(super) fn fill_need(&self, outlook: &Outlook, need: &PoolDemand, stops: Stops) -> Option<Booking> {
        match stops {
            Stops::AtAnyTime => fill(outlook, need, &self.grid),
            Stops::Never => book_without_gap(outlook, need, &self.grid, &self.snapshot.tuning.deadlines),
        }
    }

    /// A booking on the node of the job; on any node, if it has none.
    fn fill_in_place(&self, pools: &Pools, timed: &DeadlineJob<'a>, at: usize) -> Option<Booked> {
        let on = |node: NodeId| {
            let outlook = pools.outlook(self.snapshot, timed, Some(node))?;
            let booking = self.fill_need(&outlook, &timed.need, timed.stops)?;
            Some(Booked { booking, node: Some(node) })
        };
        match self.node_of(at) {
            Some(node) => on(node),
            None => pools.nodes_for(self.snapshot, timed).into_iter().find_map(on),
        }
    }

    /// The node of a job that is bound to one: where it is, or is to be.
    pub(super) fn node_of(&self, at: usize) -> Option<NodeId> {
        let timed = &self.jobs[at];
        let held = self.snapshot.plan.get(timed.id).and_then(|held| held.nodes().next());
        let booked = || self.booked.get(&at).and_then(|booked| booked.node);
        let before = || self.before(at).filter(|entry| entry.booking.is_some()).and_then(|entry| entry.node);
        held.or_else(booked).or_else(before).filter(|_| timed.is_in_place())
    }

    /// Whether a job runs and cannot be stopped.
    pub(super) fn stays(&self, at: usize) -> bool {
        let timed = &self.jobs[at];
        timed.stops == Stops::Never && timed.need.has.members > 0
    }

    /// Books jobs anew in the order of their deadlines, after those that cannot be stopped; the error is the first job
    /// that does not fit.
    pub(super) fn plan(&self, mut pools: Pools, who: impl Iterator<Item = usize>) -> Result<Plan, usize> {
        let mut booked = BTreeMap::new();
        let (stay, others): (Vec<usize>, Vec<usize>) = who.partition(|at| self.stays(*at));
        for at in stay.into_iter().chain(others) {
            let found = self.fill(&pools, at).ok_or(at)?;
            pools.book(self.snapshot, &self.jobs[at], &found);
            booked.insert(at, found);
        }
        Ok(Plan { pools, booked })
    }

    pub(super) fn adopt(&mut self, plan: Plan) {
        self.pools = plan.pools;
        self.booked = plan.booked;
    }

    pub(super) fn book(&mut self, at: usize, booked: Booked) {
        self.pools.book(self.snapshot, &self.jobs[at], &booked);
        self.booked.insert(at, booked);
    }

    pub(super) fn cancel(&mut self, at: usize) -> Option<Booked> {
        let booked = self.booked.remove(&at)?;
        self.pools.cancel(self.snapshot, &self.jobs[at], &booked);
        Some(booked)
    }

    /// Closes the books: the timetable with a verdict on each job.
    pub(super) fn close(
        self,
        mut table: Timetable,
        verdict: impl Fn(usize) -> DeadlineVerdict,
    ) -> Schedule<'a> {
        let now = self.snapshot.now;
        table.made = Some(now);
        table.capacity = self.pools.capacity().to_vec();
        table.entries = BTreeMap::new();
        let mut booked = self.booked;
        for (at, timed) in self.jobs.iter().enumerate() {
            let found = booked.remove(&at);
            let members = found.as_ref().map_or(0, |found| found.booking.members_at(now));
            let before = self.snapshot.plan.timetable().get(timed.id);
            let since = before.filter(|_| members == timed.need.has.members).map_or(now, |entry| entry.since);
            let (node, booking) = found.map_or((None, None), |found| (found.node, Some(found.booking)));
            let (verdict, handover) = (verdict(at), timed.handover);
            table.entries.insert(timed.id, DeadlineEntry { verdict, booking, node, since, handover });
        }
        Schedule { timetable: table, jobs: self.jobs, pools: Some(self.pools), ..Schedule::default() }
    }
}
