//! What happened, folded into the state.

use std::sync::Arc;

use super::state::{Ended, UnderWay};
use super::{Ending, Engine};
use crate::cluster::{NodeSpec, NodeState};
use crate::decide::order::next_level_at;
use crate::id::{JobId, NodeId};
use crate::job::{Exit, Job, JobSpec, Life, Standing, Topology};
use crate::plan::{Action, Assignment, StepId};
use crate::policy::Policy;
use crate::progress::{Progress, Sample};
use crate::report::{Failure, Reason};
use crate::room::fit_when_ready;
use crate::units::{Duration, Instant, Resources};

/// How many jobs that are over are remembered.
const REMEMBERED: usize = 1000;

impl Engine {
    pub(super) fn submitted(&mut self, spec: Arc<JobSpec>) {
        let refusal = self.can_never_run(&spec);
        let standing = Standing { pass: self.state.pass, newcomer: true, place: 0, level: 0 };
        let life = if spec.suspended { Life::Suspended } else { Life::Queued };
        let id = self.state.jobs.push(Job {
            spec,
            submitted: self.state.now,
            life,
            progress: Progress::default(),
            standing,
            failed_starts: 0,
            last_failure: None,
            not_before: Instant::START,
            shapes: Vec::new(),
            class: None,
        });
        self.index.welcome(&mut self.state, id);
        match refusal {
            Some(reason) => self.over(id, Life::Refused(reason)),
            None => self.index.line_up(&mut self.state, id),
        }
    }

    /// Why no plan could ever hold this job, even with every node well and free.
    fn can_never_run(&self, spec: &JobSpec) -> Option<Reason> {
        let cluster = &self.state.cluster;
        let most = self.state.settings.most_jobs;
        if self.state.jobs.len() >= most {
            return Some(Reason::TooManyJobs { most });
        }
        if let Some(quota) = self.state.queues[spec.queue].bound() {
            let (queue, need) = (spec.queue, spec.least());
            if !need.fits_in(quota) {
                return Some(Reason::ExceedsQuota { queue, need, quota });
            }
        }
        let required = match spec.topology {
            Topology::Required(level) => Some(level),
            Topology::Anywhere | Topology::Preferred(_) => None,
        };
        for role in &spec.roles {
            let (each, members) = (role.shape.each, role.gang.min());
            let mut total = 0u64;
            let mut by_domain = vec![0u64; cluster.domain_count()];
            let mut best = 0u64;
            for (node, here) in cluster.nodes().iter() {
                let fit = u64::from(fit_when_ready(cluster, node, here.capacity, &role.shape));
                total += fit;
                if let Some(level) = required {
                    let domain = here.domains.get(usize::from(level.0));
                    let in_domain = domain.map_or(fit, |domain| {
                        by_domain[domain.0 as usize] += fit;
                        by_domain[domain.0 as usize]
                    });
                    best = best.max(in_domain);
                } else if total >= u64::from(members) {
                    break;
                }
            }
            if total < u64::from(members) {
                return Some(Reason::NoMatchingNode { each, members, fit: total as u32 });
            }
            if let Some(level) = required.filter(|_| best < u64::from(members)) {
                return Some(Reason::TopologyUnsatisfied { level, members, best: best as u32 });
            }
        }
        let (need, whole) = (spec.least(), cluster.capacity());
        (!need.fits_in(whole)).then_some(Reason::NoMatchingNode { each: need, members: 1, fit: 0 })
    }

    pub(super) fn cancelled(&mut self, id: JobId) {
        self.leave_by_owners_will(id, Exit::Cancel);
    }

    pub(super) fn suspended(&mut self, id: JobId) {
        if let Some(job) = self.state.jobs.get_mut(id) {
            Arc::make_mut(&mut job.spec).suspended = true;
            self.leave_by_owners_will(id, Exit::Suspend);
        }
    }

    fn leave_by_owners_will(&mut self, id: JobId, exit: Exit) {
        let Some(job) = self.state.jobs.get(id) else { return };
        let held = job.life.holds();
        self.index.step_out(&mut self.state, id);
        self.drop_from_plan(id);
        if held.is_empty() {
            match exit {
                Exit::Cancel => self.over(id, Life::Done),
                _ => self.state.jobs[id].life = Life::Suspended,
            }
            return;
        }
        // Whatever was under way no longer matters; the world refuses it as older than what follows.
        self.forget_step(id);
        self.state.jobs[id].life = Life::Leaving { held, exit };
        self.index.unsettled.insert(id);
    }

    pub(super) fn resumed(&mut self, id: JobId) {
        let Some(job) = self.state.jobs.get_mut(id) else { return };
        Arc::make_mut(&mut job.spec).suspended = false;
        if job.life == Life::Suspended {
            self.back_to_waiting(id);
        }
    }

    pub(super) fn ended(&mut self, id: JobId, how: Ending) {
        if self.state.jobs.get(id).is_some() {
            let life = match how {
                Ending::Completed => Life::Done,
                Ending::Failed => Life::Failed(Reason::TrainingFailed),
            };
            self.over(id, life);
        }
    }

    /// A job is over: everything it held is free, and only its memory stays, for a while.
    fn over(&mut self, id: JobId, life: Life) {
        self.forget_step(id);
        self.drop_from_plan(id);
        for held in self.state.jobs[id].life.holds() {
            self.index.vacate(&held);
        }
        self.index.dismiss(&mut self.state, id);
        let state = life.state();
        let reason = match life {
            Life::Refused(reason) | Life::Failed(reason) => Some(reason),
            _ => None,
        };
        let job = self.state.jobs.remove(id).expect("a job that is over was there");
        let (name, submitted, ended) = (job.spec.name.clone(), job.submitted, self.state.now);
        self.state.over.push_back((id, Ended { name, submitted, ended, state, reason }));
        if self.state.over.len() > REMEMBERED {
            self.state.over.pop_front();
        }
    }

    pub(super) fn worked(&mut self, id: JobId, executed: Duration) {
        let now = self.state.now;
        if self.state.jobs.get(id).is_none() {
            return;
        }
        // Its place in line depends on what is left to do.
        self.index.step_out(&mut self.state, id);
        self.state.jobs[id].progress.corrected(now, executed);
        self.index.line_up(&mut self.state, id);
    }

    pub(super) fn reported(&mut self, id: JobId, sample: Sample) {
        if let Some(job) = self.state.jobs.get_mut(id) {
            job.progress.reported(sample);
        }
    }

    /// The step of this number, if it is the one awaited. Outcomes of others come too late to matter.
    fn awaited(&mut self, id: JobId, step: StepId) -> Option<UnderWay> {
        let awaited = self.state.under_way.get(&id).is_some_and(|under_way| under_way.step == step);
        if awaited { self.forget_step(id) } else { None }
    }

    fn forget_step(&mut self, id: JobId) -> Option<UnderWay> {
        let under_way = self.state.under_way.remove(&id)?;
        self.index.deadlines.remove(&(under_way.deadline, id));
        self.index.unsettled.insert(id);
        Some(under_way)
    }

    pub(super) fn step_done(&mut self, id: JobId, step: StepId) {
        let Some(under_way) = self.awaited(id, step) else { return };
        let life = self.state.jobs[id].life.clone();
        match (under_way.action, life) {
            (Action::Start(_), Life::Starting(held)) => {
                self.state.jobs[id].failed_starts = 0;
                self.runs_on(id, held);
            }
            (Action::Move { .. }, Life::Moving { from, to })
            | (Action::Rescale { .. }, Life::Resizing { from, to }) => {
                self.index.vacate(&from);
                self.runs_on(id, to);
            }
            (_, Life::Leaving { exit, .. }) => self.has_left(id, exit),
            (_, Life::Degraded { .. }) => self.has_left(id, Exit::Preempt),
            (action, life) => unreachable!("{action:?} is never under way for a job that is {life:?}"),
        }
    }

    fn runs_on(&mut self, id: JobId, held: Arc<Assignment>) {
        let now = self.state.now;
        let job = &mut self.state.jobs[id];
        job.progress.starts(now, held.total().gpus);
        job.life = Life::Running(held);
        // The order may change by itself while it runs.
        let wake = next_level_at(&self.state.policy.order, job, now, self.state.settings.tick);
        self.state.wake = [self.state.wake, wake].into_iter().flatten().min();
    }

    fn has_left(&mut self, id: JobId, exit: Exit) {
        let now = self.state.now;
        let job = &mut self.state.jobs[id];
        let held = std::mem::replace(&mut job.life, Life::Preempted).holds();
        job.progress.stops(now);
        for held in held {
            self.index.vacate(&held);
        }
        match exit {
            Exit::Cancel => self.over(id, Life::Done),
            Exit::Suspend if self.state.jobs[id].spec.suspended => self.state.jobs[id].life = Life::Suspended,
            Exit::Abort(failure) => self.start_failed(id, failure),
            Exit::Preempt | Exit::Suspend => self.back_to_waiting(id),
        }
    }

    fn back_to_waiting(&mut self, id: JobId) {
        let job = &mut self.state.jobs[id];
        job.life =
            if job.progress.executed(self.state.now).is_zero() { Life::Queued } else { Life::Preempted };
        self.index.line_up(&mut self.state, id);
        self.index.unsettled.insert(id);
    }

    pub(super) fn step_failed(&mut self, id: JobId, step: StepId, failure: Failure) {
        let Some(under_way) = self.awaited(id, step) else { return };
        let life = self.state.jobs[id].life.clone();
        match (under_way.action, life) {
            (Action::Start(_), Life::Starting(held)) => {
                self.index.vacate(&held);
                self.state.jobs[id].life = Life::Queued;
                self.drop_from_plan(id);
                self.start_failed(id, failure);
            }
            // It is where it was.
            (Action::Move { .. }, Life::Moving { from, to })
            | (Action::Rescale { .. }, Life::Resizing { from, to }) => {
                self.index.vacate(&to);
                self.stays_on(id, from);
            }
            // It would not go: it stays, and what was planned in its place is not.
            (Action::Preempt, Life::Leaving { held, .. }) => self.stays_on(id, held[0].clone()),
            // These must happen in the end: they are tried again.
            (_, Life::Leaving { .. } | Life::Degraded { .. }) => {
                self.index.unsettled.remove(&id);
                self.back_off(id, self.state.now + self.state.settings.back_off);
            }
            (action, life) => unreachable!("{action:?} is never under way for a job that is {life:?}"),
        }
    }

    fn stays_on(&mut self, id: JobId, held: Arc<Assignment>) {
        self.state.jobs[id].life = Life::Running(held.clone());
        self.back_off(id, self.state.now + self.state.settings.cool_down);
        self.put_back_into_plan(id, held);
    }

    /// Nothing is to be tried with a job before then. A back-off that was under way is void.
    fn back_off(&mut self, id: JobId, until: Instant) {
        let before = std::mem::replace(&mut self.state.jobs[id].not_before, until);
        self.index.back_offs.remove(&(before, id));
        self.index.back_offs.insert((until, id));
    }

    /// A start failed: the job tries again later, and gives up when it has failed too often.
    fn start_failed(&mut self, id: JobId, failure: Failure) {
        let (now, back_off) = (self.state.now, self.state.settings.back_off);
        let job = &mut self.state.jobs[id];
        job.failed_starts += 1;
        job.last_failure = Some(failure);
        if job.failed_starts > job.spec.start_retries {
            let reason = Reason::StartFailed { times: job.failed_starts, failure };
            return self.over(id, Life::Failed(reason));
        }
        let later = now + back_off.times(1 << (job.failed_starts - 1).min(6));
        self.back_off(id, later);
        self.back_to_waiting(id);
    }

    /// Lets those in whose back-off has ended; true if there were any.
    pub(super) fn end_back_offs(&mut self) -> bool {
        let mut any = false;
        while let Some((at, id)) =
            self.index.back_offs.first().copied().filter(|(at, _)| *at <= self.state.now)
        {
            self.index.back_offs.remove(&(at, id));
            self.index.line_up(&mut self.state, id);
            self.index.unsettled.insert(id);
            self.state.dirty = true;
            any = true;
        }
        any
    }

    pub(super) fn node_added(&mut self, spec: &NodeSpec) {
        if let Ok(node) = self.state.cluster.add_node(spec) {
            self.index.room.add(&self.state.cluster, node);
            self.index.occupied.push(Resources::NONE);
            self.index.checker.add_node();
            self.state.dirty = true;
        }
    }

    pub(super) fn node_changed(&mut self, node: NodeId, is: NodeState) {
        let Some(was) = self.state.cluster.nodes().get(node).map(|node| node.state) else { return };
        if was == is {
            return;
        }
        self.state.cluster.set_state(node, is);
        match (was, is) {
            (_, NodeState::Ready) => self.index.room.count_in(&self.state.cluster, node),
            (NodeState::Ready, _) => self.index.room.count_out(&self.state.cluster, node),
            _ => {}
        }
        self.state.dirty = true;
        if is != NodeState::Ready {
            let planned: Vec<JobId> = self.planned_but_not_there(node).collect();
            planned.into_iter().for_each(|id| self.back_to_where_it_is(id));
        }
        if is == NodeState::Gone {
            let touched = |job: &Job| job.life.holds().iter().any(|held| held.touches(node));
            let broken: Vec<JobId> =
                self.state.jobs.iter().filter(|(_, job)| touched(job)).map(|(id, _)| id).collect();
            broken.into_iter().for_each(|id| self.loses(id, node));
        }
    }

    /// A node under a job is gone. What is left of the job is stopped, so that it can start again whole.
    fn loses(&mut self, id: JobId, lost: NodeId) {
        let now = self.state.now;
        self.drop_from_plan(id);
        let job = &mut self.state.jobs[id];
        match job.life.clone() {
            Life::Running(held) => {
                job.progress.stops(now);
                job.life = Life::Degraded { held, lost };
            }
            life @ (Life::Starting(_) | Life::Moving { .. } | Life::Resizing { .. }) => {
                job.progress.stops(now);
                job.life = Life::Leaving { held: life.holds(), exit: Exit::Abort(Failure::NodeGone) };
                self.forget_step(id);
            }
            // It is being stopped already.
            _ => return,
        }
        self.index.unsettled.insert(id);
    }

    pub(super) fn policy_changed(&mut self, policy: Policy) {
        let waiting: Vec<JobId> =
            self.state.jobs.iter().filter(|(_, job)| job.class.is_some()).map(|(id, _)| id).collect();
        for id in &waiting {
            self.index.step_out(&mut self.state, *id);
        }
        self.state.policy = policy;
        for id in &waiting {
            self.index.line_up(&mut self.state, *id);
        }
        self.state.dirty = true;
    }
}
