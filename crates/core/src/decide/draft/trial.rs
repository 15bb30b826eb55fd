//! Telling others to leave, and trying first what that would do.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Draft;
use crate::model::allocated::Allocated;
use crate::model::id::{IdVec, JobId, NodeId};
use crate::model::job::{Job, JobSpec};
use crate::model::plan::Assignment;

impl<'a> Draft<'a> {
    /// Tells somebody in the plan to leave. They count in their groups until they have.
    pub(in crate::decide) fn evict(&mut self, job: JobId, spec: &JobSpec, assignment: &Assignment) {
        assignment.nodes().for_each(|node| self.count_out(node));
        self.taken.remove_all(assignment);
        assignment.nodes().for_each(|node| self.count_in(node));
        self.held.remove(self.snapshot.queues, spec, assignment.total());
        if self.contention.flow(job).is_some() {
            self.contention.to_mut().leave(job);
        }
        self.growth += 1;
        self.unassign(job);
    }

    /// Somebody who was given a place in this draft waits instead.
    pub(in crate::decide) fn take_back(&mut self, id: JobId, job: &Job, assignment: &Assignment) {
        self.evict(id, &job.spec, assignment);
        self.count(job, assignment, -1);
        self.changes.remove(&id);
    }

    /// Gives somebody in the plan another place, of room that is free.
    pub(in crate::decide) fn relocate(&mut self, id: JobId, job: &'a Job, to: Assignment) {
        let from = self.snapshot.plan.get(id).expect("who is moved is in the plan");
        self.evict(id, &job.spec, from);
        self.settle(id, job, to);
        self.use_up_spare(id, |_| true);
    }

    /// Gives a job a place that was found in a trial.
    pub(in crate::decide) fn settle(&mut self, id: JobId, job: &'a Job, assignment: Assignment) {
        for part in assignment.parts() {
            self.take(*part, &job.spec.roles[usize::from(part.role)].shape);
        }
        self.assign(id, &job.spec, assignment);
    }

    /// A draft to try things in that are not to last. What is released there is claimed by who has it.
    pub(in crate::decide) fn trial(&self) -> Self {
        let nothing = Allocated::nothing(self.snapshot.cluster.nodes().len());
        let fits = IdVec::filled(u64::MAX, self.fits.len());
        Self {
            total: self.total,
            counts: self.counts.clone(),
            ..Self::over(self.snapshot, self.taken.clone(), Some(nothing), fits, self.held.clone())
        }
    }

    /// Gives a job another size where it is. False where that is more than there is: then nothing has changed.
    pub(in crate::decide) fn resize(
        &mut self,
        id: JobId,
        spec: &JobSpec,
        from: &Assignment,
        to: Arc<Assignment>,
    ) -> bool {
        self.put_instead(from, &to);
        let cluster = self.snapshot.cluster;
        self.taken.remove_all(&to);
        let fits = self.taken.lacking(cluster, &to).is_empty();
        self.taken.add_all(&to);
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

    /// Who has another size meets others elsewhere on links.
    fn meet_at(&mut self, id: JobId, spec: &JobSpec, place: &Assignment) {
        if self.contention.flow(id).is_some() {
            let contention = self.contention.to_mut();
            contention.leave(id);
            contention.join(id, spec, place);
        }
    }

    /// A job was given another size in vain.
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
        nodes.iter().for_each(|node| self.count_out(*node));
        self.taken.remove_all(one);
        self.taken.add_all(other);
        nodes.iter().for_each(|node| self.count_in(*node));
    }

    /// In a trial: as if somebody were gone.
    pub(in crate::decide) fn release(&mut self, job: &Job, assignment: &Assignment) {
        assignment.nodes().for_each(|node| self.count_out(node));
        self.taken.remove_all(assignment);
        assignment.nodes().for_each(|node| self.count_in(node));
        self.claims.iter_mut().for_each(|claims| claims.add_all(assignment));
        self.count(job, assignment, -1);
    }

    /// In a trial: somebody is back who was thought away.
    pub(in crate::decide) fn reclaim(&mut self, job: &Job, assignment: &Assignment) {
        assignment.nodes().for_each(|node| self.count_out(node));
        self.taken.add_all(assignment);
        assignment.nodes().for_each(|node| self.count_in(node));
        self.claims.iter_mut().for_each(|claims| claims.remove_all(assignment));
        self.count(job, assignment, 1);
    }

    fn count(&mut self, job: &Job, assignment: &Assignment, sign: i64) {
        for part in assignment.parts() {
            let shape = &job.spec.roles[usize::from(part.role)].shape;
            self.counts.add(&shape.groups, part.node, sign * i64::from(part.members));
        }
    }

    /// In a trial: room has grown, so what was found to fit no longer bounds anything.
    pub(in crate::decide) fn forget_fits(&mut self) {
        self.fits = IdVec::filled(u64::MAX, self.fits.len());
    }
}
