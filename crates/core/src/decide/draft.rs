//! A plan in the making: the room that is left, what has changed, and a log by which tries are undone.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Decision;
use crate::id::{IdVec, JobId, NodeId, QueueId, ShapeId};
use crate::job::Standing;
use crate::plan::{Amendment, Assignment, Generation};
use crate::report::Report;
use crate::room::fit_on;
use crate::snapshot::Snapshot;
use crate::units::{Instant, Resources};

#[derive(Debug)]
pub(super) struct Draft<'a> {
    pub(super) snapshot: &'a Snapshot<'a>,
    free: IdVec<NodeId, Resources>,
    total: Resources,
    /// What jobs hold that have not been looked at yet: theirs unless somebody ahead of them needs it.
    claims: Option<IdVec<NodeId, Resources>>,
    /// How many more members of each shape fit; not kept where every job is placed anew.
    fits: Option<IdVec<ShapeId, u64>>,
    held: IdVec<QueueId, Resources>,
    log: Vec<(NodeId, Resources)>,
    changes: BTreeMap<JobId, Option<Arc<Assignment>>>,
    pub(super) report: Report,
    pub(super) standings: Vec<(JobId, Standing)>,
}

/// A point in the log to go back to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark(usize);

/// Which room a placement may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Only what nobody holds.
    Unclaimed,
    /// Also what jobs further down the list hold.
    Claimed,
}

impl<'a> Draft<'a> {
    /// Everybody in the plan keeps what they have.
    pub(super) fn beside_the_plan(snapshot: &'a Snapshot<'a>) -> Self {
        let free = snapshot.room.free().clone();
        let fits = Some(snapshot.room.fits().clone());
        Self::over(snapshot, free, None, fits, snapshot.held.clone())
    }

    /// Everything is free again, but claimed by who has it now.
    pub(super) fn afresh(snapshot: &'a Snapshot<'a>) -> Self {
        let free: IdVec<NodeId, Resources> =
            snapshot.cluster.nodes().values().map(|node| node.capacity).collect();
        let claims = free.iter().map(|(node, whole)| *whole - snapshot.room.free()[node]).collect();
        let held = IdVec::filled(Resources::NONE, snapshot.queues.len());
        Self::over(snapshot, free, Some(claims), None, held)
    }

    fn over(
        snapshot: &'a Snapshot<'a>,
        free: IdVec<NodeId, Resources>,
        claims: Option<IdVec<NodeId, Resources>>,
        fits: Option<IdVec<ShapeId, u64>>,
        held: IdVec<QueueId, Resources>,
    ) -> Self {
        let total = free.values().copied().sum();
        Self {
            snapshot,
            free,
            total,
            claims,
            fits,
            held,
            log: Vec::new(),
            changes: BTreeMap::new(),
            report: Report::default(),
            standings: Vec::new(),
        }
    }

    /// An upper bound on the free room: what exceeds it fits nowhere.
    pub(super) fn total(&self) -> Resources {
        self.total
    }

    pub(super) fn room_on(&self, node: NodeId, reach: Reach) -> Resources {
        match (&self.claims, reach) {
            (Some(claims), Reach::Unclaimed) => self.free[node] - claims[node],
            _ => self.free[node],
        }
    }

    /// What taking from this node would take away from others.
    pub(super) fn claimed_on(&self, node: NodeId) -> Resources {
        self.claims.as_ref().map_or(Resources::NONE, |claims| claims[node])
    }

    /// How many members of that shape fit in all, where that is kept.
    pub(super) fn fits(&self, shape: ShapeId) -> Option<u64> {
        Some(self.fits.as_ref()?[shape])
    }

    pub(super) fn held_by(&self, queue: QueueId) -> Resources {
        self.held[queue]
    }

    pub(super) fn mark(&self) -> Mark {
        Mark(self.log.len())
    }

    pub(super) fn take(&mut self, node: NodeId, amount: Resources) {
        let left = self.free[node].checked_sub(amount).expect("placement takes only what is free");
        self.set(node, left);
        self.total = self.total - amount;
        self.log.push((node, amount));
    }

    /// Undoes everything since the mark.
    pub(super) fn rollback(&mut self, mark: Mark) {
        while self.log.len() > mark.0 {
            let (node, amount) = self.log.pop().expect("the log is longer than the mark");
            self.set(node, self.free[node] + amount);
            self.total = self.total + amount;
        }
    }

    fn set(&mut self, node: NodeId, free: Resources) {
        let before = std::mem::replace(&mut self.free[node], free);
        let Some(fits) = &mut self.fits else { return };
        for (id, shape) in self.snapshot.room.shapes.live() {
            let cluster = self.snapshot.cluster;
            let (was, is) = (fit_on(cluster, node, before, shape), fit_on(cluster, node, free, shape));
            fits[id] = fits[id] + u64::from(is) - u64::from(was);
        }
    }

    /// The claims of a job are settled one way or the other: it is its turn.
    pub(super) fn lift_claims(&mut self, assignment: &Assignment) {
        if let Some(claims) = &mut self.claims {
            for (node, amount) in assignment.takes() {
                claims[*node] = claims[*node] - *amount;
            }
        }
    }

    /// Takes the room of an assignment that exists already, if all of it is left.
    pub(super) fn keep(&mut self, queue: QueueId, assignment: &Assignment) -> bool {
        let fits = assignment.takes().iter().all(|(node, amount)| amount.fits_in(self.free[*node]));
        if fits {
            for (node, amount) in assignment.takes() {
                self.free[*node] = self.free[*node] - *amount;
                self.total = self.total - *amount;
            }
            self.held[queue] = self.held[queue] + assignment.total();
        }
        fits
    }

    /// Writes down an assignment whose room placement has taken.
    pub(super) fn assign(&mut self, job: JobId, queue: QueueId, assignment: Assignment) {
        self.held[queue] = self.held[queue] + assignment.total();
        self.changes.insert(job, Some(Arc::new(assignment)));
        self.log.clear();
    }

    pub(super) fn unassign(&mut self, job: JobId) {
        self.changes.insert(job, None);
    }

    pub(super) fn finish(self, wake: Option<Instant>) -> Decision {
        let generation = Generation(self.snapshot.plan.generation().0 + u64::from(!self.changes.is_empty()));
        Decision {
            amendment: Amendment { generation, changes: self.changes },
            report: self.report,
            standings: self.standings,
            wake,
        }
    }
}
