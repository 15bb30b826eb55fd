//! A plan in the making: free capacity, what was decided so far, and a log by which tentative placements are undone.

mod capacity;
mod trial;

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::group_counts::{Counts, RuleKind};
use super::node_filters::{Preference, excludes, is_not_ready, is_slow};
use crate::decide::snapshot::{Class, Snapshot};
use crate::model::allocated::{Allocated, fit};
use crate::model::devices::Devices;
use crate::model::id::{GroupId, IdVec, JobId, NodeId, QueueId, ShapeId};
use crate::model::job::{Job, JobSpec, Rule, Shape};
use crate::model::plan::{Assignment, Part, Reservation};
use crate::model::queue::{Holdings, Queue};
use crate::model::units::Resources;
use crate::traffic::contention_graph::ContentionGraph;
use capacity::{Capacity, Counting};

#[derive(Debug)]
pub(super) struct Draft<'a> {
    pub(super) snapshot: &'a Snapshot<'a>,
    capacity: Capacity,
    held: Holdings,
    pub(super) contention: Cow<'a, ContentionGraph>,
    /// Backfill reservations: job, start time, spare capacity per node.
    pub(super) reservations: Vec<Reservation>,
    /// The spare capacity of the reservations that are enforced now: placements take no more than that of these nodes.
    enforced: BTreeMap<NodeId, Resources>,
    preference: Preference,
    pub(super) counts: Counts<'a>,
    /// Parts that a placement has taken and no assignment holds yet.
    log: Vec<(Part, &'a Shape)>,
    changes: BTreeMap<JobId, Option<Arc<Assignment>>>,
    /// The number of evictions, releases and lifted reservations in this draft: each may let a refused class fit.
    growth: u64,
    /// Jobs whose slowdown on links was predicted in this draft, each as often as it was.
    pub(super) link_predictions: Cell<u64>,
}

/// A point in the log to go back to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark(usize);

/// Which capacity a placement may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Free capacity that no job claims.
    Unclaimed,
    /// Also capacity that jobs of lower rank claim.
    Claimed,
}

impl<'a> Draft<'a> {
    /// A draft in which every job in the plan keeps what it has.
    pub(super) fn beside_the_plan(snapshot: &'a Snapshot<'a>) -> Self {
        let (allocated, fits) = (snapshot.room.taken().clone(), snapshot.room.fits().clone());
        let capacity = Capacity::new(snapshot, allocated, None, fits, Counting::Exact);
        Self::over(snapshot, capacity, snapshot.held.clone())
    }

    /// A draft in which all capacity is free, and claimed by the jobs in the plan.
    pub(super) fn from_empty(snapshot: &'a Snapshot<'a>) -> Self {
        let allocated = Allocated::nothing(snapshot.cluster.nodes().len());
        let claims = Some(snapshot.room.taken().clone());
        let fits = IdVec::filled(u64::MAX, snapshot.room.fits().len());
        let capacity = Capacity::new(snapshot, allocated, claims, fits, Counting::AfterFailures);
        Self::over(snapshot, capacity, Holdings::nothing(snapshot.queues.len()))
    }

    fn over(snapshot: &'a Snapshot<'a>, capacity: Capacity, held: Holdings) -> Self {
        Self {
            snapshot,
            capacity,
            held,
            contention: Cow::Borrowed(snapshot.contention),
            reservations: Vec::new(),
            enforced: BTreeMap::new(),
            preference: Preference::AnyNode,
            counts: Counts::new(snapshot),
            log: Vec::new(),
            changes: BTreeMap::new(),
            growth: 0,
            link_predictions: Cell::new(0),
        }
    }

    /// Zero at first; grows with every change in the draft that may let a class fit that was refused.
    pub(super) fn stamp(&self, class: &Class) -> u64 {
        self.growth + self.counts.changes(&class.watches)
    }

    /// Makes every class be looked at again: jobs may be asked to give way that were not before.
    pub(super) fn reopen_classes(&mut self) {
        self.growth += 1;
    }

    /// Whether the stamp of any class may have grown.
    pub(super) fn has_reopened_classes(&self) -> bool {
        self.growth > 0 || self.counts.have_changed()
    }

    /// An upper bound on the free capacity: a request above it fits nowhere.
    pub(super) fn total(&self) -> Resources {
        self.capacity.total
    }

    pub(super) fn free_on(&self, node: NodeId, reach: Reach) -> Resources {
        let free = self.capacity.allocated.free(self.snapshot.cluster, node);
        match (&self.capacity.claims, reach) {
            (Some(claims), Reach::Unclaimed) => free - claims.resources()[node],
            _ => free,
        }
    }

    /// How many more members of a shape a node takes; none if a node filter excludes it.
    pub(super) fn fit_on(&self, node: NodeId, shape: &Shape, reach: Reach) -> u32 {
        let cluster = self.snapshot.cluster;
        if excludes(self.snapshot, node, self.preference) {
            return 0;
        }
        let Capacity { allocated, claims, .. } = &self.capacity;
        let claims = claims.as_ref().filter(|_| reach == Reach::Unclaimed);
        let spare = self.enforced.get(&node);
        if claims.is_none() && spare.is_none() {
            return allocated.fit(cluster, node, shape);
        }
        let free = self.free_on(node, reach);
        let free = spare.map_or(free, |spare| free.common(*spare));
        let minds = allocated.depends_on_devices(node, shape)
            || claims.is_some_and(|claims| claims.depends_on_devices(node, shape));
        let devices = minds.then(|| self.devices_on(node, reach));
        fit(cluster, node, shape, free, devices.as_ref(), |counter| {
            let claimed = claims.map_or(0, |claims| claims.count(node, counter));
            allocated.left(cluster, node, counter).saturating_sub(claimed)
        })
    }

    /// Whether members fall behind their peers on a node.
    pub(super) fn is_slow(&self, node: NodeId) -> bool {
        is_slow(self.snapshot, node)
    }

    /// The result of a search that excludes slow nodes; where it finds nothing, that of a search over all nodes.
    pub(super) fn prefer_healthy_nodes<T>(&mut self, find: impl Fn(&mut Self) -> Option<T>) -> Option<T> {
        let found = if self.snapshot.slow.is_empty() {
            None
        } else {
            self.preference = Preference::HealthyNodes;
            find(self)
        };
        self.preference = Preference::AnyNode;
        found.or_else(|| find(self))
    }

    pub(super) fn devices_on(&self, node: NodeId, reach: Reach) -> Devices<'_> {
        let devices = self.capacity.allocated.devices(self.snapshot.cluster, node);
        match (&self.capacity.claims, reach) {
            (Some(claims), Reach::Unclaimed) => {
                devices.beside(claims.resources()[node].gpus, claims.shares(node))
            }
            _ => devices,
        }
    }

    /// What jobs of lower rank claim of a node.
    pub(super) fn claimed_on(&self, node: NodeId) -> Resources {
        self.capacity.claims.as_ref().map_or(Resources::NONE, |claims| claims.resources()[node])
    }

    /// An upper bound on how many members of a shape fit in all.
    pub(super) fn fits(&self, shape: ShapeId) -> u64 {
        self.capacity.fits[shape]
    }

    /// The same beside the reservations that are enforced, where `fits` counts every node.
    pub(super) fn fits_beside_reservations(&self, shape: ShapeId) -> u64 {
        let Snapshot { cluster, room, .. } = self.snapshot;
        let each = room.shapes.get(shape);
        let ready = self.enforced.keys().filter(|node| !is_not_ready(self.snapshot, **node));
        let lost = ready.map(|node| {
            let beside = self.fit_on(*node, each, Reach::Unclaimed);
            u64::from(self.capacity.allocated.fit(cluster, *node, each).saturating_sub(beside))
        });
        self.capacity.fits[shape].saturating_sub(lost.sum())
    }

    /// Notes that a search over all nodes found capacity for this number of members and no more.
    pub(super) fn limit_fits(&mut self, shape: ShapeId, fit: u64) {
        self.capacity.fits[shape] = self.capacity.fits[shape].min(fit);
    }

    pub(super) fn held(&self) -> &Holdings {
        &self.held
    }

    pub(super) fn queues(&self) -> &'a IdVec<QueueId, Queue> {
        self.snapshot.queues
    }

    pub(super) fn mark(&self) -> Mark {
        Mark(self.log.len())
    }

    /// Takes capacity for members of a shape where the part says.
    pub(super) fn take(&mut self, part: Part, shape: &'a Shape) {
        let Part { node, device, members, .. } = part;
        let count = u64::from(members);
        self.capacity.change(self.snapshot, node, |allocated| {
            allocated.add(node, shape.each.times(count));
            for (counter, each) in &*shape.counters {
                allocated.add_count(node, *counter, each.saturating_mul(count));
            }
            if let Some(device) = device {
                allocated.add_share(node, device, shape.each.gpus.times(count));
            }
        });
        self.counts.add(&shape.groups, node, i64::from(members));
        self.log.push((part, shape));
    }

    /// Takes capacity for a whole gang.
    pub(super) fn take_all(&mut self, job: &'a Job, assignment: &Assignment) {
        for part in assignment.parts() {
            self.take(*part, &job.spec.roles[usize::from(part.role)].shape);
        }
    }

    /// The kind of rule that keeps one more member of a shape off a node: its own, or one of a member of the same job
    /// that was placed before it.
    pub(super) fn forbid(&self, shape: &Shape, node: NodeId) -> Option<RuleKind> {
        let domain = |group: GroupId, node: NodeId| self.snapshot.groups.domain(group, node);
        let intrudes = |(there, other): (NodeId, GroupId)| {
            domain(other, node).is_some_and(|here| domain(other, there) == Some(here))
        };
        let own = self.counts.forbid(shape, node);
        own.or_else(|| self.guards(shape).any(intrudes).then_some(RuleKind::Apart))
    }

    /// Whether members of this shape must be placed one at a time, because each may decide about the next.
    pub(super) fn is_ruled(&self, shape: &Shape) -> bool {
        !shape.rules.is_empty() || self.guards(shape).next().is_some()
    }

    /// Members of the job that is being placed, with their nodes, that must be apart from a group of this shape.
    fn guards(&self, shape: &Shape) -> impl Iterator<Item = (NodeId, GroupId)> {
        let placed = self.log.iter().filter(|_| !shape.groups.is_empty());
        let rules =
            placed.flat_map(|(part, other)| other.rules.iter().map(move |rule| (part.node, other, rule)));
        rules.filter_map(|(node, other, rule)| match rule {
            // A shape with the same rule finds counted members by their count.
            Rule::Apart(group) if other.groups.contains(group) && shape.rules.contains(rule) => None,
            Rule::Apart(group) if shape.groups.contains(group) => Some((node, *group)),
            _ => None,
        })
    }

    /// Parts of the job that is being placed.
    pub(super) fn placed(&self) -> impl Iterator<Item = Part> {
        self.log.iter().map(|(part, _)| *part)
    }

    /// Undoes everything since the mark.
    pub(super) fn rollback(&mut self, mark: Mark) {
        while self.log.len() > mark.0 {
            let (part, shape) = self.log.pop().expect("the log is longer than the mark");
            let Part { node, device, members, .. } = part;
            let count = u64::from(members);
            self.capacity.change(self.snapshot, node, |allocated| {
                allocated.remove(node, shape.each.times(count));
                for (counter, each) in &*shape.counters {
                    allocated.remove_count(node, *counter, each.saturating_mul(count));
                }
                if let Some(device) = device {
                    allocated.remove_share(node, device, shape.each.gpus.times(count));
                }
            });
            self.counts.add(&shape.groups, node, -i64::from(members));
        }
    }

    /// Drops the claims of a job whose turn it is.
    pub(super) fn drop_claims(&mut self, assignment: &Assignment) {
        if let Some(claims) = &mut self.capacity.claims {
            claims.remove_all(assignment);
        }
    }

    /// Whether the nodes of an assignment have free what it takes.
    pub(super) fn has_capacity_for(&self, assignment: &Assignment) -> bool {
        self.capacity.allocated.lacking(self.snapshot.cluster, assignment).is_empty()
    }

    /// Takes the capacity of an assignment in the plan, even where its nodes have less.
    pub(super) fn keep(&mut self, spec: &JobSpec, assignment: &Assignment) {
        self.capacity.add(self.snapshot, assignment);
        self.held.add(self.snapshot.queues, spec, assignment.total());
    }

    /// Writes down an assignment whose capacity a placement has taken.
    pub(super) fn assign(&mut self, job: JobId, spec: &JobSpec, assignment: Assignment) {
        self.held.add(self.snapshot.queues, spec, assignment.total());
        if !self.contention.has_no_links() {
            self.contention.to_mut().join(job, spec, &assignment);
        }
        self.changes.insert(job, Some(Arc::new(assignment)));
        self.log.clear();
    }

    pub(super) fn unassign(&mut self, job: JobId) {
        self.changes.insert(job, None);
    }

    /// The assignment that a job was given in this draft.
    pub(super) fn assigned(&self, job: JobId) -> Option<&Arc<Assignment>> {
        self.changes.get(&job)?.as_ref()
    }

    /// Jobs that were given an assignment in this draft: another place or another size.
    pub(super) fn starting(&self) -> impl Iterator<Item = (JobId, &Arc<Assignment>)> {
        self.changes.iter().filter_map(|(job, change)| Some((*job, change.as_ref()?)))
    }

    /// Whether a job in the plan is evicted in this draft.
    pub(super) fn is_leaving(&self, job: JobId) -> bool {
        self.changes.get(&job).is_some_and(Option::is_none)
    }

    /// Whether this draft changes a job.
    pub(super) fn is_changed(&self, job: JobId) -> bool {
        self.changes.contains_key(&job)
    }

    /// Makes placements leave the capacity of these reservations alone, until the next call.
    pub(super) fn enforce_reservations(&mut self, enforced: impl Fn(&Reservation) -> bool) {
        self.enforced.clear();
        for reservation in self.reservations.iter().filter(|reservation| enforced(reservation)) {
            for (node, spare) in &reservation.spare {
                let left = self.enforced.entry(*node).or_insert(*spare);
                *left = left.common(*spare);
            }
        }
    }

    pub(super) fn enforces_no_reservation(&self) -> bool {
        self.enforced.is_empty()
    }

    /// Drops the reservation of a job that has a place. Classes that it held up may fit now.
    pub(super) fn release_reservation(&mut self, job: JobId) {
        let before = self.reservations.len();
        self.reservations.retain(|kept| kept.job != job);
        self.growth += u64::from(self.reservations.len() < before);
    }

    /// Takes what a job was given off the spare capacity of the reservations at whose start it still runs.
    pub(super) fn use_spare_capacity(&mut self, job: JobId, still_runs: impl Fn(&Reservation) -> bool) {
        let Some(assignment) = self.assigned(job).cloned() else { return };
        for kept in self.reservations.iter_mut().filter(|kept| still_runs(kept)) {
            for (node, taken) in assignment.takes() {
                kept.spare.entry(*node).and_modify(|spare| *spare = *spare - *taken);
            }
        }
    }

    /// What this draft changes: each job's new assignment, or none.
    pub(super) fn into_changes(self) -> (BTreeMap<JobId, Option<Arc<Assignment>>>, Vec<Reservation>) {
        (self.changes, self.reservations)
    }
}
