//! Evictions, moves and resizes within a draft, and trials: scratch drafts for what-if evaluation.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Draft;
use crate::model::id::{IdVec, JobId, NodeId};
use crate::model::job::{Job, JobSpec};
use crate::model::plan::Assignment;

impl<'a> Draft<'a> {
    /// Evicts a job in the plan. Its members count in their groups until it has left.
    pub(in crate::decide) fn evict(&mut self, job: JobId, spec: &JobSpec, assignment: &Assignment) {
        self.capacity.remove(self.snapshot, assignment);
        self.held.remove(self.snapshot.queues, spec, assignment.total());
        if self.contention.flow(job).is_some() {
            self.contention.to_mut().leave(job);
        }
        self.growth += 1;
        self.unassign(job);
    }

    /// Takes back the place that a job was given in this draft: it waits instead.
    pub(in crate::decide) fn withdraw(&mut self, id: JobId, job: &Job, assignment: &Assignment) {
        self.evict(id, &job.spec, assignment);
        self.count(job, assignment, -1);
        self.changes.remove(&id);
    }

    /// Moves a job in the plan to a place in free capacity.
    pub(in crate::decide) fn relocate(&mut self, id: JobId, job: &'a Job, to: Assignment) {
        let from = self.snapshot.plan.get(id).expect("a job that moves is in the plan");
        self.evict(id, &job.spec, from);
        self.settle(id, job, to);
        self.use_spare_capacity(id, |_| true);
    }

    /// Takes a place that was found in a trial and assigns it to a job.
    pub(in crate::decide) fn settle(&mut self, id: JobId, job: &'a Job, assignment: Assignment) {
        self.take_all(job, &assignment);
        self.assign(id, &job.spec, assignment);
    }

    /// A scratch draft. Capacity that is released in it is claimed by the jobs that hold it.
    pub(in crate::decide) fn trial(&self) -> Self {
        let capacity = self.capacity.for_trial(self.snapshot);
        Self { counts: self.counts.clone(), ..Self::over(self.snapshot, capacity, self.held.clone()) }
    }

    /// Gives a job another size. False where its nodes have too little: then nothing has changed.
    pub(in crate::decide) fn resize(
        &mut self,
        id: JobId,
        spec: &JobSpec,
        from: &Assignment,
        to: Arc<Assignment>,
    ) -> bool {
        self.put_instead(from, &to);
        let cluster = self.snapshot.cluster;
        let allocated = &mut self.capacity.allocated;
        allocated.remove_all(&to);
        let fits = allocated.lacking(cluster, &to).is_empty();
        allocated.add_all(&to);
        if !fits {
            self.put_instead(&to, from);
            return false;
        }
        self.held.remove(self.snapshot.queues, spec, from.total());
        self.held.add(self.snapshot.queues, spec, to.total());
        self.growth += u64::from(from.covers(&to));
        self.meet_at(id, spec, &to);
        self.changes.insert(id, Some(to));
        true
    }

    /// Moves a job's flow in the contention graph: at another size it crosses other links.
    fn meet_at(&mut self, id: JobId, spec: &JobSpec, place: &Assignment) {
        if self.contention.flow(id).is_some() {
            let contention = self.contention.to_mut();
            contention.leave(id);
            contention.join(id, spec, place);
        }
    }

    /// Undoes `resize`.
    pub(in crate::decide) fn undo_resize(
        &mut self,
        id: JobId,
        spec: &JobSpec,
        to: &Assignment,
        from: &Arc<Assignment>,
    ) {
        self.put_instead(to, from);
        self.held.remove(self.snapshot.queues, spec, to.total());
        self.held.add(self.snapshot.queues, spec, from.total());
        self.growth -= u64::from(from.covers(to));
        self.meet_at(id, spec, from);
        if self.snapshot.plan.get(id) == Some(from) {
            self.changes.remove(&id);
        } else {
            self.changes.insert(id, Some(from.clone()));
        }
    }

    fn put_instead(&mut self, one: &Assignment, other: &Assignment) {
        let nodes: BTreeSet<NodeId> = one.nodes().chain(other.nodes()).collect();
        nodes.iter().for_each(|node| self.capacity.count_out(self.snapshot, *node));
        self.capacity.allocated.remove_all(one);
        self.capacity.allocated.add_all(other);
        nodes.iter().for_each(|node| self.capacity.count_in(self.snapshot, *node));
    }

    /// In a trial: releases the capacity of a job, as if it had left.
    pub(in crate::decide) fn release(&mut self, job: &Job, assignment: &Assignment) {
        self.capacity.remove(self.snapshot, assignment);
        self.capacity.claims.iter_mut().for_each(|claims| claims.add_all(assignment));
        self.count(job, assignment, -1);
    }

    /// In a trial: undoes `release`.
    pub(in crate::decide) fn reclaim(&mut self, job: &Job, assignment: &Assignment) {
        self.capacity.add(self.snapshot, assignment);
        self.capacity.claims.iter_mut().for_each(|claims| claims.remove_all(assignment));
        self.count(job, assignment, 1);
    }

    fn count(&mut self, job: &Job, assignment: &Assignment, sign: i64) {
        for part in assignment.parts() {
            let shape = &job.spec.roles[usize::from(part.role)].shape;
            self.counts.add(&shape.groups, part.node, sign * i64::from(part.members));
        }
    }

    /// In a trial: drops the bounds on fits, because capacity was released.
    pub(in crate::decide) fn forget_fits(&mut self) {
        self.capacity.fits = IdVec::filled(u64::MAX, self.capacity.fits.len());
    }
}
