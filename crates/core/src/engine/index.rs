//! What follows from the state, kept up to date beside it, and made anew when a state is restored.

use std::collections::{BTreeMap, BTreeSet};

use super::state::State;
use crate::check::{self, Checker};
use crate::decide::order::place_in_class;
use crate::id::{IdVec, JobId, NodeId, QueueId};
use crate::job::{Job, Life, Priority};
use crate::plan::Assignment;
use crate::room::Room;
use crate::snapshot::{ClassKey, Waiting};
use crate::units::{Instant, Resources};

#[derive(Debug, Default)]
pub(super) struct Index {
    /// Room beside the plan.
    pub(super) room: Room,
    pub(super) waiting: Waiting,
    pub(super) held: IdVec<QueueId, Resources>,
    pub(super) priorities: BTreeMap<Priority, usize>,
    /// What jobs hold in fact.
    pub(super) occupied: IdVec<NodeId, Resources>,
    pub(super) checker: Checker,
    pub(super) deadlines: BTreeSet<(Instant, JobId)>,
    /// Jobs that wait to be let into the line again.
    pub(super) back_offs: BTreeSet<(Instant, JobId)>,
    /// Jobs whose life may differ from the plan.
    pub(super) unsettled: BTreeSet<JobId>,
}

impl Index {
    pub(super) fn of(state: &mut State) -> Self {
        let nodes = state.cluster.nodes().len();
        let mut index = Self {
            room: Room::of(&state.cluster),
            held: IdVec::filled(Resources::NONE, state.queues.len()),
            occupied: check::occupied(nodes, state.jobs.iter().map(|(_, job)| job)),
            checker: Checker::new(nodes, state.queues.len()),
            deadlines: state.under_way.iter().map(|(job, step)| (step.deadline, *job)).collect(),
            ..Self::default()
        };
        let ids: Vec<JobId> = state.jobs.iter().map(|(id, _)| id).collect();
        let dirty = state.dirty;
        for id in ids {
            index.welcome(state, id);
            if let Some(assignment) = state.plan.get(id).cloned() {
                index.hold(state, id, &assignment);
                index.checker.record(id, &state.jobs[id].spec, Some(&assignment));
            }
            index.line_up(state, id);
            index.resume(state, id);
        }
        // Standing in line again is no news.
        state.dirty = dirty;
        index
    }

    /// Back-offs go on, and about any other job there may be something to do.
    fn resume(&mut self, state: &State, id: JobId) {
        let job = &state.jobs[id];
        if job.not_before > state.now {
            self.back_offs.insert((job.not_before, id));
        }
        let leaves = matches!(job.life, Life::Leaving { .. } | Life::Degraded { .. });
        if !leaves || job.not_before <= state.now || state.under_way.contains_key(&id) {
            self.unsettled.insert(id);
        }
    }

    /// Counts a job that the state has.
    pub(super) fn welcome(&mut self, state: &mut State, id: JobId) {
        let job = &mut state.jobs[id];
        *self.priorities.entry(job.spec.priority).or_default() += 1;
        job.shapes =
            job.spec.roles.iter().map(|role| self.room.intern(&state.cluster, &role.shape)).collect();
    }

    /// Forgets a job that the state is about to lose.
    pub(super) fn dismiss(&mut self, state: &mut State, id: JobId) {
        self.step_out(state, id);
        let job = &state.jobs[id];
        for shape in &job.shapes {
            self.room.release(*shape);
        }
        if let Some(count) = self.priorities.get_mut(&job.spec.priority) {
            *count -= 1;
            if *count == 0 {
                self.priorities.remove(&job.spec.priority);
            }
        }
        self.back_offs.remove(&(job.not_before, id));
        self.unsettled.remove(&id);
    }

    /// Lets a job that waits and is not planned stand in line, now or when its back-off has ended.
    pub(super) fn line_up(&mut self, state: &mut State, id: JobId) {
        let (now, planned) = (state.now, state.plan.get(id).is_some());
        let job = &mut state.jobs[id];
        if !job.life.is_waiting() || planned || job.spec.suspended || job.class.is_some() {
            return;
        }
        if job.not_before > now {
            self.back_offs.insert((job.not_before, id));
            return;
        }
        let place = place_in_class(&state.policy.order, id, job, now);
        job.class = Some(self.waiting.join(class_key(job), place));
        state.dirty = true;
    }

    /// Takes a job out of the line, if it stands there. Those behind it may have waited for nothing else.
    pub(super) fn step_out(&mut self, state: &mut State, id: JobId) {
        let job = &mut state.jobs[id];
        if let Some(class) = job.class.take() {
            let place = place_in_class(&state.policy.order, id, job, state.now);
            self.waiting.leave(class, place);
            state.dirty = true;
        }
    }

    /// Takes room beside the plan.
    pub(super) fn hold(&mut self, state: &State, id: JobId, assignment: &Assignment) {
        for (node, amount) in assignment.takes() {
            self.room.take(&state.cluster, *node, *amount);
        }
        let queue = state.jobs[id].spec.queue;
        self.held[queue] = self.held[queue] + assignment.total();
    }

    /// Gives room beside the plan back.
    pub(super) fn let_go(&mut self, state: &State, id: JobId, assignment: &Assignment) {
        for (node, amount) in assignment.takes() {
            self.room.give(&state.cluster, *node, *amount);
        }
        let queue = state.jobs[id].spec.queue;
        self.held[queue] = self.held[queue] - assignment.total();
    }

    pub(super) fn occupy(&mut self, assignment: &Assignment) {
        for (node, amount) in assignment.takes() {
            self.occupied[*node] = self.occupied[*node] + *amount;
        }
    }

    pub(super) fn vacate(&mut self, assignment: &Assignment) {
        for (node, amount) in assignment.takes() {
            self.occupied[*node] = self.occupied[*node] - *amount;
        }
    }

    pub(super) fn next_timer(&self) -> Option<Instant> {
        let first = |timers: &BTreeSet<(Instant, JobId)>| timers.first().map(|(at, _)| *at);
        [first(&self.deadlines), first(&self.back_offs)].into_iter().flatten().min()
    }
}

fn class_key(job: &Job) -> ClassKey {
    let roles = job.spec.roles.iter().zip(&job.shapes).map(|(role, shape)| (role.kind, *shape, role.gang));
    ClassKey {
        queue: job.spec.queue,
        priority: job.spec.priority,
        user: job.spec.user,
        topology: job.spec.topology,
        roles: roles.collect(),
    }
}
