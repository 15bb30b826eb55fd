//! Capacity pools: what is free from now on of each kind of resource that jobs with deadlines share.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::kind::{Kind, makes_room};
use super::memory_per_unit::{PerUnit, may_run_out};
use super::need::DeadlineJob;
use super::pool_hierarchy::{self, PoolHierarchy, units};
use crate::deadlines::{Booking, CapacityPool, DecisionTimes, Grid, Outlook, Timetable, Units};
use crate::decide::estimates::{end_if_started, expected_end};
use crate::decide::snapshot::Snapshot;
use crate::model::allocated::is_eligible;
use crate::model::cluster::NodeState;
use crate::model::id::{JobId, NodeId};
use crate::model::job::Job;
use crate::model::plan::Assignment;
use crate::model::report::Reason;
use crate::model::units::Instant;

/// One part in this many of a pool is kept for jobs without deadlines while there are some.
pub(super) fn best_effort_part(snapshot: &Snapshot<'_>) -> Units {
    Units::try_from(snapshot.tuning.decide.best_effort_part).unwrap_or(Units::MAX)
}

/// Whether that part can be booked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Floor {
    Kept,
    Open,
}

/// A booking, and its node where the job is bound to one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Booked {
    pub(super) booking: Booking,
    pub(super) node: Option<NodeId>,
}

/// The outlook of each pool.
#[derive(Clone, Debug)]
pub(in crate::decide) struct Pools {
    outlooks: BTreeMap<CapacityPool, Outlook>,
    capacity: Vec<(CapacityPool, Units)>,
    hierarchy: PoolHierarchy,
    /// One part in this many of a pool is kept for jobs without deadlines.
    best_effort_part: Units,
    /// The times at which decisions may be made.
    pub(super) grid: Grid,
}

impl Pools {
    /// The capacity of ready nodes, without what jobs hold that cannot be stopped.
    pub(super) fn of(snapshot: &Snapshot<'_>, jobs: &[DeadlineJob<'_>]) -> Self {
        let staying: Vec<(&Job, &Assignment)> = staying(snapshot).collect();
        let stay: Vec<&Job> = staying.iter().map(|(job, _)| *job).collect();
        let booked = match may_run_out(snapshot, jobs, &stay) {
            true => pool_hierarchy::Booked::MemoryAsWell,
            false => pool_hierarchy::Booked::UnitsAlone,
        };
        let hierarchy = PoolHierarchy::of(snapshot, jobs.iter().map(|timed| timed.kind), booked);
        let rounds = DecisionTimes { multiples_of: snapshot.round, apart: snapshot.spacing };
        let grid = Grid::of(snapshot.now, rounds, jobs.len(), &snapshot.tuning.deadlines);
        let mut capacity: BTreeMap<CapacityPool, Units> = BTreeMap::new();
        let ready = snapshot.cluster.nodes().iter().filter(|(_, node)| node.state == NodeState::Ready);
        for (id, node) in ready {
            for pool in hierarchy.around(id) {
                *capacity.entry(pool).or_default() += units(pool, node.capacity);
            }
        }
        let outlooks = capacity.iter().map(|(pool, units)| (*pool, Outlook::new(snapshot.now, *units)));
        let outlooks = outlooks.collect();
        let best_effort_part = best_effort_part(snapshot);
        let capacity = capacity.into_iter().collect();
        let mut pools = Self { outlooks, capacity, hierarchy, best_effort_part, grid };
        pools.take_for_staying_jobs(snapshot, &staying);
        pools
    }

    fn take_for_staying_jobs(&mut self, snapshot: &Snapshot<'_>, staying: &[(&Job, &Assignment)]) {
        for (job, held) in staying {
            let until = match (job.spec.work.alone, job.runs_since) {
                (Some(_), Some(_)) => expected_end(snapshot, job),
                _ => end_of(job, snapshot.now),
            };
            self.take_until(snapshot, held, until);
        }
    }

    /// Takes what a job holds out of the pools until it ends: no other job can be booked for it.
    pub(super) fn take_until(&mut self, snapshot: &Snapshot<'_>, held: &Assignment, until: Instant) {
        let until = self.grid.up(until);
        for (node, amount) in held.takes() {
            let described = snapshot.cluster.node(*node);
            if described.state != NodeState::Ready {
                continue;
            }
            for pool in self.hierarchy.around(*node) {
                if let Some(outlook) = self.outlooks.get_mut(&pool) {
                    outlook.take(snapshot.now, until, units(pool, *amount));
                }
            }
        }
    }

    /// Keeps a part of each pool from new bookings, for jobs without deadlines, or opens it again.
    pub(super) fn floor(&mut self, floor: Floor) {
        let sign = if floor == Floor::Kept { 1 } else { -1 };
        for (pool, units) in &self.capacity {
            if let Some(outlook) = self.outlooks.get_mut(pool) {
                outlook.take(Instant::START, Instant(u64::MAX), sign * (units / self.best_effort_part));
            }
        }
    }

    /// The first time after now at which the free amount of some pool changes.
    pub(in crate::decide) fn first_change(&self) -> Option<Instant> {
        self.outlooks.values().filter_map(Outlook::first_change).min()
    }

    pub(super) fn capacity(&self) -> &[(CapacityPool, Units)] {
        &self.capacity
    }

    /// Free capacity for a job, in the units that it books.
    pub(super) fn outlook(
        &self,
        snapshot: &Snapshot<'_>,
        timed: &DeadlineJob<'_>,
        node: Option<NodeId>,
    ) -> Option<Cow<'_, Outlook>> {
        self.outlook_of(snapshot, timed.kind, node, || PerUnit::most_of(timed))
    }

    fn outlook_of(
        &self,
        snapshot: &Snapshot<'_>,
        kind: Kind,
        node: Option<NodeId>,
        per_unit: impl Fn() -> Option<PerUnit>,
    ) -> Option<Cow<'_, Outlook>> {
        let common = |common: Cow<'_, Outlook>, other: &Outlook| Cow::Owned(common.common(other));
        let pools = self.hierarchy.pools(snapshot, kind, node);
        let mut outlooks = pools.iter().filter_map(|pool| self.outlooks.get(pool));
        let first = Cow::Borrowed(outlooks.next()?);
        let all = outlooks.fold(first, common);
        let memories = self.hierarchy.memories(snapshot, kind, node);
        let Some(per_unit) = Some(&memories).filter(|pools| !pools.is_empty()).and_then(|_| per_unit())
        else {
            return Some(all);
        };
        let memories = memories.iter().filter_map(|pool| self.outlooks.get(pool));
        Some(memories.fold(all, |all, memory| common(all, &memory.map_units(|free| per_unit.units_in(free)))))
    }

    /// What would be free for a job without this booking.
    pub(super) fn outlook_without(
        &self,
        snapshot: &Snapshot<'_>,
        timed: &DeadlineJob<'_>,
        booked: &Booked,
    ) -> Option<Outlook> {
        if self.hierarchy.memories(snapshot, timed.kind, booked.node).is_empty() {
            let mut outlook = self.outlook(snapshot, timed, booked.node)?.into_owned();
            outlook.cancel(&timed.need, &booked.booking);
            return Some(outlook);
        }
        let mut without = self.clone();
        without.cancel(snapshot, timed, booked);
        without.outlook(snapshot, timed, booked.node).map(Cow::into_owned)
    }

    /// The part of `amount` that lies in the pool from which a job takes.
    pub(super) fn part_of(
        &self,
        snapshot: &Snapshot<'_>,
        kind: Kind,
        node: Option<NodeId>,
        amount: Units,
    ) -> Units {
        let of = |pool: &CapacityPool| {
            self.capacity.iter().find(|(known, _)| known == pool).map(|(_, units)| *units)
        };
        let own = self.hierarchy.pools(snapshot, kind, node).iter().filter_map(of).min().unwrap_or_default();
        let all = kind.units(snapshot.cluster.capacity());
        let share = i128::from(amount) * i128::from(own) / i128::from(all.max(1));
        Units::try_from(share).unwrap_or(Units::MAX)
    }

    pub(super) fn book(&mut self, snapshot: &Snapshot<'_>, timed: &DeadlineJob<'_>, booked: &Booked) {
        self.change(snapshot, timed, booked, 1);
    }

    pub(super) fn cancel(&mut self, snapshot: &Snapshot<'_>, timed: &DeadlineJob<'_>, booked: &Booked) {
        self.change(snapshot, timed, booked, -1);
    }

    fn change(&mut self, snapshot: &Snapshot<'_>, timed: &DeadlineJob<'_>, booked: &Booked, sign: Units) {
        let Booked { booking, node } = booked;
        for pool in self.hierarchy.pools(snapshot, timed.kind, *node) {
            if let Some(outlook) = self.outlooks.get_mut(&pool) {
                match sign {
                    1 => outlook.book(&timed.need, booking),
                    _ => outlook.cancel(&timed.need, booking),
                }
            }
        }
        for pool in self.hierarchy.memories(snapshot, timed.kind, *node) {
            for segment in &booking.segments {
                if let Some(outlook) = self.outlooks.get_mut(&pool) {
                    outlook.take(segment.from, segment.to, sign * timed.memory.with(segment.members));
                }
            }
        }
    }

    /// Whether some pool is overbooked at some time.
    pub(super) fn is_overbooked(&self) -> bool {
        let end = Instant(u64::MAX);
        self.outlooks.values().any(|outlook| outlook.least(Instant::START, end) < 0)
    }

    /// Nodes on which a job that is bound to one node might run, the node with most free capacity until its deadline
    /// first.
    pub(super) fn nodes_for(&self, snapshot: &Snapshot<'_>, timed: &DeadlineJob<'_>) -> Vec<NodeId> {
        let (roles, least) = (&timed.job.spec.roles, timed.job.spec.least());
        let nodes = snapshot.cluster.nodes().iter().filter(|(id, node)| {
            node.state == NodeState::Ready
                && roles.iter().all(|role| is_eligible(snapshot.cluster, *id, role.shape.on))
                && least.fits_in(node.capacity)
        });
        let free = |id: NodeId| -> i128 {
            let outlook = self.outlooks.get(&CapacityPool::CoresOf(id));
            let pieces = outlook.map(|outlook| outlook.between(timed.need.now, timed.need.until));
            let areas = pieces.into_iter().flatten();
            areas.map(|piece| i128::from(piece.free) * i128::from(piece.to.since(piece.from).0)).sum()
        };
        let mut nodes: Vec<(i128, NodeId)> = nodes.map(|(id, _)| (-free(id), id)).collect();
        nodes.sort_unstable();
        nodes.into_iter().map(|(_, id)| id).collect()
    }
}

impl Pools {
    /// Whether a job that cannot be stopped ends before what it takes is booked.
    pub(in crate::decide) fn allow_start(
        &self,
        snapshot: &Snapshot<'_>,
        table: &Timetable,
        id: JobId,
    ) -> Result<(), Reason> {
        let job = &snapshot.jobs[id];
        let kind = Kind::of(job);
        if makes_room(job) {
            return Ok(());
        }
        let outlook = self.outlook_of(snapshot, kind, None, || PerUnit::of(job));
        let Some(outlook) = outlook else { return Ok(()) };
        let end = self.grid.up(end_of(job, snapshot.now));
        if outlook.least(snapshot.now, end) >= kind.units(job.spec.least()) {
            return Ok(());
        }
        let booked = table.iter().filter_map(|(id, entry)| Some((id, entry.booking.as_ref()?)));
        let next = booked.filter_map(|(id, booking)| Some((booking.next_change(snapshot.now)?, id))).min();
        next.map_or(Ok(()), |(until, ahead)| Err(Reason::ReservedUntil { ahead, until }))
    }

    /// Takes what a starting job was given out of the pools, if the job cannot be stopped.
    pub(in crate::decide) fn take_for_starting_job(
        &mut self,
        snapshot: &Snapshot<'_>,
        id: JobId,
        held: &Assignment,
    ) {
        let job = &snapshot.jobs[id];
        if !makes_room(job) {
            self.take_until(snapshot, held, end_of(job, snapshot.now));
        }
    }
}

/// Jobs in the plan without a deadline that cannot be stopped.
fn staying<'a>(snapshot: &Snapshot<'a>) -> impl Iterator<Item = (&'a Job, &'a Assignment)> {
    let Snapshot { jobs, plan, timed, .. } = *snapshot;
    let untimed = plan.iter().filter(move |(id, _)| !timed.contains(id));
    untimed.map(|(id, held)| (&jobs[id], &**held)).filter(|(job, _)| !makes_room(job))
}

/// The end of a job that starts now; never, if its work is unknown.
fn end_of(job: &Job, now: Instant) -> Instant {
    end_if_started(job, now).unwrap_or(Instant(u64::MAX))
}
