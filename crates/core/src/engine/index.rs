//! What follows from the state, kept up to date beside it, and made anew when a state is restored.

use std::collections::{BTreeMap, BTreeSet};

use super::state::State;
use crate::check::Checker;
use crate::decide::order::place_in_class;
use crate::decide::snapshot::{ClassKey, Waiting};
use crate::model::allocated::Allocated;
use crate::model::free_capacity::FreeCapacity;
use crate::model::groups::{GroupMembership, Tallies};
use crate::model::id::{GroupId, JobId};
use crate::model::job::{Binding, Job, Life, Priority};
use crate::model::plan::Assignment;
use crate::model::policy::{Deadlines, Policy};
use crate::model::queue::Holdings;
use crate::model::units::Instant;
use crate::traffic::contention_graph::{ContentionGraph, pattern_of};

#[derive(Debug, Default)]
pub(super) struct Index {
    /// FreeCapacity beside the plan.
    pub(super) room: FreeCapacity,
    pub(super) waiting: Waiting,
    pub(super) tallies: Tallies,
    pub(super) held: Holdings,
    pub(super) contention: ContentionGraph,
    /// Those in the plan whose number of members is not fixed.
    pub(super) elastic: BTreeSet<JobId>,
    /// Those whose deadline counts.
    pub(super) timed: BTreeSet<JobId>,
    pub(super) priorities: BTreeMap<Priority, usize>,
    /// What jobs hold in fact.
    pub(super) occupied: Allocated,
    pub(super) checker: Checker,
    pub(super) deadlines: BTreeSet<(Instant, JobId)>,
    /// Jobs that wait to be let into the line again.
    pub(super) back_offs: BTreeSet<(Instant, JobId)>,
    /// Jobs that may soon be stopped for another's sake, with when.
    pub(super) ripening: BTreeSet<(Instant, JobId)>,
    /// Jobs that report, with when they seem to hang if they are not heard of before. A job that was started anew since, or
    /// is over, may still be in it.
    pub(super) fading: BTreeSet<(Instant, JobId)>,
    /// Jobs of which a node has not confirmed the directive, with when the engine asks again.
    pub(super) directive_retries: BTreeSet<(Instant, JobId)>,
    pub(super) unconfirmed: BTreeSet<JobId>,
    /// Jobs whose directive may differ from the plan.
    pub(super) redirected: BTreeSet<JobId>,
    /// Jobs whose life may differ from the plan.
    pub(super) unsettled: BTreeSet<JobId>,
}

impl Index {
    pub(super) fn of(state: &mut State) -> Self {
        let nodes = state.cluster.nodes().len();
        let mut index = Self {
            room: FreeCapacity::of(&state.cluster),
            tallies: Tallies::of(&state.groups),
            held: Holdings::nothing(state.queues.len()),
            contention: ContentionGraph::of(&state.cluster, &state.policy.tuning.traffic),
            occupied: Allocated::nothing(nodes),
            checker: Checker::new(nodes, state.queues.len()),
            deadlines: state.under_way.iter().map(|(job, step)| (step.deadline, *job)).collect(),
            ..Self::default()
        };
        let ids: Vec<JobId> = state.jobs.iter().map(|(id, _)| id).collect();
        let dirty = state.dirty;
        for id in ids {
            // A copy of a live state still names the classes of the engine it was copied from.
            state.jobs[id].class = None;
            index.welcome(state, id);
            state.jobs[id].life.holds().iter().for_each(|held| index.occupied.add_all(held));
            if let Some(assignment) = state.plan.get(id).cloned() {
                index.hold(state, id, &assignment);
                index.checker.record(
                    &state.cluster,
                    &state.queues,
                    id,
                    &state.jobs[id].spec,
                    Some(&assignment),
                );
            }
            index.recount(state, id);
            index.line_up(state, id);
            index.resume(state, id);
        }
        for (id, directive) in &state.directives {
            index.track_directive(*id, directive);
        }
        let directed = state.plan.traffic.keys().chain(state.plan.weights.keys());
        index.redirected = directed.chain(state.directives.keys()).copied().collect();
        index.checker.excuse(&state.cluster, state.cluster.nodes().ids());
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
        if let Some(ripe) = job.ripe(state.settings.min_run).filter(|ripe| *ripe > state.now) {
            self.ripening.insert((ripe, id));
        }
        if let Some(hangs) = job.progress.stalled_from().filter(|hangs| *hangs > state.now) {
            self.fading.insert((hangs, id));
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
        if has_a_deadline(job) {
            self.timed.insert(id);
        }
        job.shapes =
            job.spec.roles.iter().map(|role| self.room.intern(&state.cluster, &role.shape)).collect();
    }

    /// The counterpart of `welcome`: before a job asks for something else, or is gone.
    pub(super) fn unwelcome(&mut self, state: &mut State, id: JobId) {
        self.step_out(state, id);
        self.timed.remove(&id);
        self.book_nothing_for(state, id);
        let job = &mut state.jobs[id];
        for shape in job.shapes.drain(..) {
            self.room.release(shape);
        }
        if let Some(count) = self.priorities.get_mut(&job.spec.priority) {
            *count -= 1;
            if *count == 0 {
                self.priorities.remove(&job.spec.priority);
            }
        }
    }

    /// Forgets a job that the state is about to lose.
    pub(super) fn dismiss(&mut self, state: &mut State, id: JobId) {
        self.unwelcome(state, id);
        let job = &state.jobs[id];
        self.back_offs.remove(&(job.not_before, id));
        if let Some(ripe) = job.ripe(state.settings.min_run) {
            self.ripening.remove(&(ripe, id));
        }
        self.unsettled.remove(&id);
    }

    /// Counts a job in its groups, wherever it is planned or still holds nodes.
    pub(super) fn recount(&mut self, state: &mut State, id: JobId) {
        if self.tallies.recount(&state.groups, id, belongs(state, id)) {
            state.dirty = true;
        }
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
        job.class = Some(self.waiting.join(class_key(&state.policy, id, job, now), place, || watches(job)));
        state.dirty = true;
    }

    /// Takes a job out of the line, if it stands there. Those behind it may have waited for nothing else.
    pub(super) fn step_out(&mut self, state: &mut State, id: JobId) {
        let job = &mut state.jobs[id];
        if let Some(class) = job.class.take() {
            let place = place_in_class(&state.policy.order, id, job, state.now);
            self.waiting.leave(class, place);
            state.dirty = true;
            self.keep_nothing_for(state, id);
        }
    }

    /// What was kept for a job is free for those who were held up by that.
    fn keep_nothing_for(&mut self, state: &mut State, id: JobId) {
        let before = state.plan.reservations.len();
        state.plan.reservations.retain(|kept| kept.job != id);
        if state.plan.reservations.len() < before {
            self.room.grow();
        }
    }

    /// What was booked for a job is free for those who were held up by that.
    pub(super) fn book_nothing_for(&mut self, state: &mut State, id: JobId) {
        if state.plan.timetable.forget(id) {
            self.room.grow();
            state.dirty = true;
        }
    }

    /// Takes room beside the plan.
    pub(super) fn hold(&mut self, state: &State, id: JobId, assignment: &Assignment) {
        self.room.take(&state.cluster, assignment);
        self.held.add(&state.queues, &state.jobs[id].spec, assignment.total());
        self.contention.join(id, &state.jobs[id].spec, assignment);
        if state.jobs[id].spec.roles.iter().any(|role| role.gang.is_elastic()) {
            self.elastic.insert(id);
        }
    }

    /// Gives room beside the plan back.
    pub(super) fn let_go(&mut self, state: &State, id: JobId, assignment: &Assignment) {
        self.room.give(&state.cluster, assignment);
        self.held.remove(&state.queues, &state.jobs[id].spec, assignment.total());
        self.contention.leave(id);
        self.elastic.remove(&id);
    }

    pub(super) fn next_timer(&self) -> Option<Instant> {
        let first = |timers: &BTreeSet<(Instant, JobId)>| timers.first().map(|(at, _)| *at);
        let timers = [&self.deadlines, &self.back_offs, &self.ripening, &self.fading].map(first);
        timers.into_iter().flatten().min()
    }
}

fn class_key(policy: &Policy, id: JobId, job: &Job, now: Instant) -> ClassKey {
    let roles = job.spec.roles.iter().zip(&job.shapes).map(|(role, shape)| (role.kind, *shape, role.gang));
    ClassKey {
        queue: job.spec.queue,
        priority: job.spec.priority,
        user: job.spec.user,
        owner: job.spec.owner.clone(),
        topology: job.spec.topology,
        teams: job.spec.teams,
        preempts: job.spec.preempts,
        is_to_be_repaired: job.goes_first(),
        length: if policy.depends_on_durations() { length(job, now) } else { 0 },
        sends: sends(policy, job),
        due: Some(id).filter(|_| policy.deadlines != Deadlines::Ignored && has_a_deadline(job)),
        roles: roles.collect(),
    }
}

/// Whether a job has a deadline that counts: one that binds, and work that is known.
fn has_a_deadline(job: &Job) -> bool {
    let binds = job.spec.deadline.is_some_and(|deadline| deadline.binding != Binding::BestEffort);
    binds && job.spec.work.alone.is_some()
}

/// A number for what a job does in an iteration, where that matters; jobs of one class look the same on links.
fn sends(policy: &Policy, job: &Job) -> u64 {
    let pattern = policy.depends_on_traffic().then(|| pattern_of(&job.spec)).flatten();
    pattern.map_or(0, |pattern| pattern.fingerprint())
}

/// What is left to do in half powers of two; zero where that is unknown.
fn length(job: &Job, now: Instant) -> u8 {
    let Some(left) = job.remaining(now) else { return 0 };
    let seconds = left.as_secs().max(1);
    let doublings = seconds.ilog2();
    let beyond_the_middle = doublings > 0 && seconds >> (doublings - 1) & 1 == 1;
    1 + 2 * doublings as u8 + u8::from(beyond_the_middle)
}

/// The groups that a job's rules look at, each once.
fn watches(job: &Job) -> Vec<GroupId> {
    let rules = job.spec.roles.iter().flat_map(|role| &*role.shape.rules);
    let groups: BTreeSet<GroupId> = rules.flat_map(|rule| rule.groups()).copied().collect();
    groups.into_iter().collect()
}

/// Where a job counts in its groups: where it is planned, and where else it holds nodes.
pub(super) fn belongs(state: &State, id: JobId) -> Vec<GroupMembership> {
    let Some(job) = state.jobs.get(id) else { return Vec::new() };
    if job.spec.roles.iter().all(|role| role.shape.groups.is_empty()) {
        return Vec::new();
    }
    let mut counted = job.life.holds();
    if let Some(planned) = state.plan.get(id).filter(|planned| !counted.contains(planned)) {
        counted.push(planned.clone());
    }
    let parts = counted.iter().flat_map(|assignment| assignment.parts());
    let groups = parts.flat_map(|part| {
        let groups = &job.spec.roles[usize::from(part.role)].shape.groups;
        groups.iter().map(|group| (*group, part.node, part.members))
    });
    groups.collect()
}
