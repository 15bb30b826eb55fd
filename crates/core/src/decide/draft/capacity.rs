//! Allocated capacity of each node in a draft, and how many members of each shape still fit.

use crate::decide::node_filters::is_not_ready;
use crate::decide::snapshot::Snapshot;
use crate::model::allocated::Allocated;
use crate::model::id::{IdVec, NodeId, ShapeId};
use crate::model::plan::Assignment;
use crate::model::units::Resources;

#[derive(Debug)]
pub(super) struct Capacity {
    pub(super) allocated: Allocated,
    /// Free on all nodes together.
    pub(super) total: Resources,
    /// What jobs hold that were not looked at yet: theirs unless a job of higher rank needs it.
    pub(super) claims: Option<Allocated>,
    /// An upper bound on how many more members of each shape fit.
    pub(super) fits: IdVec<ShapeId, u64>,
    pub(super) counting: Counting,
}

/// How `fits` is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counting {
    /// Updated with every change of a node: exact over all nodes that are ready, an upper bound where another filter excludes one.
    Exact,
    /// Lowered to what a search that failed has found, because free capacity only shrinks after that.
    AfterFailures,
}

impl Capacity {
    pub(super) fn new(
        snapshot: &Snapshot<'_>,
        allocated: Allocated,
        claims: Option<Allocated>,
        fits: IdVec<ShapeId, u64>,
        counting: Counting,
    ) -> Self {
        let total = snapshot.cluster.nodes().ids().map(|node| allocated.free(snapshot.cluster, node)).sum();
        Self { allocated, total, claims, fits, counting }
    }

    /// A copy for a trial, in which released capacity is claimed by the jobs that hold it.
    pub(super) fn for_trial(&self, snapshot: &Snapshot<'_>) -> Self {
        let claims = Some(Allocated::nothing(snapshot.cluster.nodes().len()));
        let fits = IdVec::filled(u64::MAX, self.fits.len());
        let (allocated, counting) = (self.allocated.clone(), Counting::AfterFailures);
        Self { allocated, total: self.total, claims, fits, counting }
    }

    pub(super) fn add(&mut self, snapshot: &Snapshot<'_>, assignment: &Assignment) {
        assignment.nodes().for_each(|node| self.count_out(snapshot, node));
        self.allocated.add_all(assignment);
        assignment.nodes().for_each(|node| self.count_in(snapshot, node));
    }

    pub(super) fn remove(&mut self, snapshot: &Snapshot<'_>, assignment: &Assignment) {
        assignment.nodes().for_each(|node| self.count_out(snapshot, node));
        self.allocated.remove_all(assignment);
        assignment.nodes().for_each(|node| self.count_in(snapshot, node));
    }

    /// Changes what is allocated on one node.
    pub(super) fn change(
        &mut self,
        snapshot: &Snapshot<'_>,
        node: NodeId,
        change: impl FnOnce(&mut Allocated),
    ) {
        self.count_out(snapshot, node);
        change(&mut self.allocated);
        self.count_in(snapshot, node);
    }

    pub(super) fn count_out(&mut self, snapshot: &Snapshot<'_>, node: NodeId) {
        self.total = self.total - self.allocated.free(snapshot.cluster, node);
        if self.counting == Counting::Exact {
            self.count_fits(snapshot, node, |fits, fit| fits - fit);
        }
    }

    pub(super) fn count_in(&mut self, snapshot: &Snapshot<'_>, node: NodeId) {
        self.total = self.total + self.allocated.free(snapshot.cluster, node);
        if self.counting == Counting::Exact {
            self.count_fits(snapshot, node, |fits, fit| fits + fit);
        }
    }

    fn count_fits(&mut self, snapshot: &Snapshot<'_>, node: NodeId, count: impl Fn(u64, u64) -> u64) {
        if !is_not_ready(snapshot, node) {
            for (id, shape) in snapshot.room.shapes.live() {
                let fit = u64::from(self.allocated.fit(snapshot.cluster, node, shape));
                self.fits[id] = count(self.fits[id], fit);
            }
        }
    }
}
