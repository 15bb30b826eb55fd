//! What happened, folded into the state.

use std::sync::Arc;

use super::deadlines::late;
use super::state::{Ended, State, UnderWay};
use super::{Ending, Engine};
use crate::decide::infeasible::hopeless;
use crate::decide::order::next_level_at;
use crate::model::id::{JobId, QueueId};
use crate::model::job::{ClassPosition, ExitReason, Idle, Job, JobSpec, Life};
use crate::model::plan::{Action, Assignment, StepId};
use crate::model::policy::{Policy, Preemption, Sizing};
use crate::model::queue::lineage;
use crate::model::report::{Failure, Reason};
use crate::model::units::{Duration, Instant};
use crate::observe::progress::Progress;
use crate::observe::scaling::Measured;

/// Every engine has this queue.
const DEFAULT_QUEUE: QueueId = QueueId(0);

/// How many jobs that are over are remembered.
const REMEMBERED: usize = 1000;

impl Engine {
    pub(super) fn submitted(&mut self, spec: Arc<JobSpec>) {
        let spec = self.in_known_queue(spec);
        let unwanted = self.too_many_jobs().or_else(|| self.exceeds_quota(&spec));
        let id = self.state.jobs.push(self.newcomer(spec));
        self.index.welcome(&mut self.state, id);
        match unwanted.or_else(|| self.refusal(id)) {
            Some(reason) => self.over(id, Life::Refused(reason)),
            None => self.index.line_up(&mut self.state, id),
        }
    }

    /// The same in the default queue, with an alarm, where the queue that the world names does not exist.
    pub(super) fn in_known_queue(&mut self, mut spec: Arc<JobSpec>) -> Arc<JobSpec> {
        if self.state.queues.get(spec.queue).is_none() {
            self.alarm(format!("job {} is in queue {:?}, which does not exist", spec.name, spec.queue));
            Arc::make_mut(&mut spec).queue = DEFAULT_QUEUE;
        }
        spec
    }

    /// A job as it is when nothing has happened to it yet.
    pub(super) fn newcomer(&self, spec: Arc<JobSpec>) -> Job {
        let life = if spec.suspended { Life::Suspended } else { Life::Queued };
        Job {
            spec,
            submitted: self.state.now,
            life,
            progress: Progress::default(),
            standing: ClassPosition { pass: self.state.pass, newcomer: true, place: 0, level: 0 },
            failed_starts: 0,
            failed_moves: 0,
            last_failure: None,
            not_before: Instant::START,
            runs_since: None,
            is_to_be_repaired: false,
            times_measured: 0,
            slower_than_fair: None,
            measured: Measured::default(),
            idle: Idle::default(),
            shapes: Vec::new(),
            class: None,
        }
    }

    fn too_many_jobs(&self) -> Option<Reason> {
        let most = self.state.settings.most_jobs;
        (self.state.jobs.len() >= most).then_some(Reason::TooManyJobs { most })
    }

    /// Why its queue could never hold this job, where such a job is refused.
    pub(super) fn exceeds_quota(&self, spec: &JobSpec) -> Option<Reason> {
        if self.state.settings.keeps_hopeless {
            return None;
        }
        let need = spec.least();
        let queues = &self.state.queues;
        let bounds = lineage(queues, spec.queue).filter_map(|queue| Some((queue, queues[queue].bound()?)));
        let users = spec.owner.as_ref().and_then(|user| queues[spec.queue].bound_of(user));
        let mut bounds = bounds.chain(users.map(|bound| (spec.queue, bound)));
        let (queue, quota) = bounds.find(|(_, bound)| !need.fits_in(*bound))?;
        Some(Reason::ExceedsQuota { queue, need, quota })
    }

    /// Why no plan could ever hold this job, where such a job is refused.
    pub(super) fn refusal(&self, id: JobId) -> Option<Reason> {
        let refuses = !self.state.settings.keeps_hopeless;
        refuses.then(|| hopeless(&self.state.cluster, &self.index.room, &self.state.jobs[id])).flatten()
    }

    pub(super) fn cancelled(&mut self, id: JobId) {
        self.leave_by_owners_will(id, ExitReason::Cancel);
    }

    pub(super) fn suspended(&mut self, id: JobId) {
        if let Some(job) = self.state.jobs.get_mut(id) {
            Arc::make_mut(&mut job.spec).suspended = true;
            self.leave_by_owners_will(id, ExitReason::Suspend);
        }
    }

    pub(super) fn leave_by_owners_will(&mut self, id: JobId, exit: ExitReason) {
        let Some(job) = self.state.jobs.get(id) else { return };
        let held = job.life.holds();
        self.index.step_out(&mut self.state, id);
        self.index.book_nothing_for(&mut self.state, id);
        self.drop_from_plan(id);
        if held.is_empty() {
            match exit {
                ExitReason::Cancel => self.over(id, Life::Done),
                ExitReason::Miss(deadline) => self.over(id, Life::Failed(late(deadline))),
                _ => self.set_life(id, Life::Suspended),
            }
            return;
        }
        // Whatever was under way no longer matters; the world refuses it as older than what follows.
        self.forget_step(id);
        self.set_life(id, Life::Leaving { held, exit });
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
            self.judge_prediction(id, how);
            let life = match how {
                Ending::Completed | Ending::Withdrawn => Life::Done,
                Ending::Failed => Life::Failed(Reason::TrainingFailed),
            };
            self.over(id, life);
        }
    }

    /// A job is over: everything it held is free, and only its memory stays, for a while.
    pub(super) fn over(&mut self, id: JobId, life: Life) {
        self.forget_step(id);
        self.drop_from_plan(id);
        for held in self.state.jobs[id].life.holds() {
            self.index.occupied.remove_all(&held);
        }
        self.has_made_room(id);
        self.index.dismiss(&mut self.state, id);
        self.state.plan.withdraw_directives(id);
        self.forget_directive(id);
        let state = life.state();
        let reason = match life {
            Life::Refused(reason) | Life::Failed(reason) => Some(reason),
            _ => None,
        };
        let Some(job) = self.state.jobs.remove(id) else { return };
        self.index.recount(&mut self.state, id);
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
        self.state.jobs[id].progress.correct(now, executed);
        self.index.line_up(&mut self.state, id);
        if self.state.policy.preemption == Preemption::ByGain {
            self.victims_may_be_had();
        }
    }

    /// The step of this number, if it is the one awaited. Outcomes of others come too late to matter.
    fn awaited(&mut self, id: JobId, step: StepId) -> Option<UnderWay> {
        let awaited = self.state.under_way.get(&id).is_some_and(|under_way| under_way.step == step);
        if awaited { self.forget_step(id) } else { None }
    }

    pub(super) fn forget_step(&mut self, id: JobId) -> Option<UnderWay> {
        let under_way = self.state.under_way.remove(&id)?;
        self.index.deadlines.remove(&(under_way.deadline, id));
        self.index.unsettled.insert(id);
        Some(under_way)
    }

    pub(super) fn step_done(&mut self, id: JobId, step: StepId) {
        self.directive_step_done(id, step);
        let Some(under_way) = self.awaited(id, step) else { return };
        let life = self.state.jobs[id].life.clone();
        match (under_way.action, life) {
            (Action::Start(_), Life::Starting(held)) => {
                self.state.jobs[id].failed_starts = 0;
                self.runs_on(id, &held);
            }
            (Action::Move { .. }, Life::Moving { to, .. })
            | (Action::Rescale { .. } | Action::ResizeInPlace { .. }, Life::Resizing { to, .. }) => {
                self.leaves_all_but(id, &to);
                self.runs_on(id, &to);
            }
            (_, Life::Leaving { exit, .. }) => self.has_left(id, exit),
            (_, Life::Degraded { .. }) => {
                self.state.jobs[id].is_to_be_repaired = true;
                self.has_left(id, ExitReason::Preempt);
            }
            (action, life) => self.alarm(format!("{action:?} was under way for a job that is {life:?}")),
        }
    }

    /// Of what a job holds on its way from one place to another, it holds this from now on.
    fn leaves_all_but(&mut self, id: JobId, kept: &Assignment) {
        for held in self.state.jobs[id].life.holds() {
            self.index.occupied.remove_all(&held);
        }
        self.index.occupied.add_all(kept);
    }

    fn runs_on(&mut self, id: JobId, held: &Arc<Assignment>) {
        self.set_life(id, Life::Running(held.clone()));
        self.runs(id, held, self.state.now);
    }

    /// A job runs, and has since then.
    pub(super) fn runs(&mut self, id: JobId, held: &Assignment, since: Instant) {
        self.no_longer_runs(id);
        let now = self.state.now;
        let job = &mut self.state.jobs[id];
        let pace = job.pace_on(held);
        job.progress.start(since, held.total().gpus, pace);
        job.progress.record_nodes(now, held);
        job.runs_since = Some(since);
        job.failed_moves = 0;
        job.restart_idle_interval();
        job.is_to_be_repaired = false;
        // When it will be gone is known better now, and so what may be started beside what is booked.
        self.state.dirty |= self.state.plan.timetable.iter().next().is_some();
        let job = &self.state.jobs[id];
        // The order may change by itself while it runs.
        let wake = next_level_at(&self.state.policy.order, job, now, self.state.settings.tick);
        self.state.wake = [self.state.wake, wake].into_iter().flatten().min();
        match self.state.jobs[id].ripe(self.state.settings.min_run).filter(|ripe| *ripe > now) {
            Some(ripe) => drop(self.index.ripening.insert((ripe, id))),
            None => self.may_be_a_victim(id),
        }
    }

    /// A job runs that may be stopped for another's sake; others of higher priority may want its place.
    fn may_be_a_victim(&mut self, id: JobId) {
        let State { policy, queues, jobs, .. } = &self.state;
        let spec = &jobs[id].spec;
        let outranked = self.index.priorities.keys().next_back().is_some_and(|most| *most > spec.priority);
        // Others may count more by their user, have less to do, or lie in a queue that wants its own back.
        let by_more = policy.preemption == Preemption::ByGain || queues.len() > 1;
        let gives_back = policy.sizing == Sizing::Spare && spec.capabilities.rescale;
        if (outranked || by_more) && spec.capabilities.makes_room() || gives_back {
            self.victims_may_be_had();
        }
    }

    fn no_longer_runs(&mut self, id: JobId) {
        let ripe = self.state.jobs[id].ripe(self.state.settings.min_run);
        if let Some(ripe) = ripe {
            self.index.ripening.remove(&(ripe, id));
        }
        self.state.jobs[id].runs_since = None;
    }

    /// Somebody who did not fit may now find a job to take the place of.
    pub(super) fn victims_may_be_had(&mut self) {
        let Policy { preemption, sizing, .. } = &self.state.policy;
        if preemption.makes_room() || *sizing == Sizing::Spare {
            self.index.room.grow();
            self.state.dirty = true;
        }
    }

    /// Forgets for whose sake a job left, and says who it was. Whoever it kept to a budget may be free to go now.
    fn has_made_room(&mut self, id: JobId) -> Option<JobId> {
        let beneficiary = self.state.displaced.remove(&id)?;
        self.victims_may_be_had();
        Some(beneficiary)
    }

    /// Everything about what a job holds goes through here, so that its groups count it where it is.
    pub(super) fn set_life(&mut self, id: JobId, life: Life) {
        self.state.jobs[id].life = life;
        self.index.recount(&mut self.state, id);
    }

    fn has_left(&mut self, id: JobId, exit: ExitReason) {
        let now = self.state.now;
        self.no_longer_runs(id);
        let job = &mut self.state.jobs[id];
        job.progress.stop(now);
        for held in job.life.holds() {
            self.index.occupied.remove_all(&held);
        }
        self.set_life(id, Life::Preempted);
        self.has_made_room(id);
        match exit {
            ExitReason::Cancel => self.over(id, Life::Done),
            ExitReason::Miss(deadline) => self.over(id, Life::Failed(late(deadline))),
            ExitReason::Suspend if self.state.jobs[id].spec.suspended => self.set_life(id, Life::Suspended),
            ExitReason::Abort(failure) => self.start_failed(id, failure),
            ExitReason::Preempt | ExitReason::Suspend => self.back_to_waiting(id),
        }
    }

    pub(super) fn back_to_waiting(&mut self, id: JobId) {
        let fresh = self.state.jobs[id].progress.executed(self.state.now).is_zero();
        self.set_life(id, if fresh { Life::Queued } else { Life::Preempted });
        self.index.line_up(&mut self.state, id);
        self.index.unsettled.insert(id);
        // Whoever has a deadline is planned for, also while it backs off.
        self.state.dirty |= self.index.timed.contains(&id);
    }

    pub(super) fn step_failed(&mut self, id: JobId, step: StepId, failure: Failure) {
        self.directive_step_failed(id, step, failure);
        let Some(under_way) = self.awaited(id, step) else { return };
        let life = self.state.jobs[id].life.clone();
        let is_move = matches!(under_way.action, Action::Move { .. });
        match (under_way.action, life) {
            (Action::Start(_), Life::Starting(held)) => {
                self.index.occupied.remove_all(&held);
                self.set_life(id, Life::Queued);
                self.drop_from_plan(id);
                self.start_failed(id, failure);
            }
            // It is where it was.
            (Action::Move { .. }, Life::Moving { from, .. })
            | (Action::Rescale { .. } | Action::ResizeInPlace { .. }, Life::Resizing { from, .. }) => {
                self.leaves_all_but(id, &from);
                self.state.jobs[id].failed_moves += u32::from(is_move);
                self.stays_on(id, from);
            }
            // It would not go: it stays, and what was planned in its place is not.
            (Action::Preempt { .. }, Life::Leaving { held, .. }) => {
                if let Some(held) = held.into_iter().next() {
                    self.stays_on(id, held);
                }
            }
            // These must happen in the end: they are tried again.
            (_, Life::Leaving { .. } | Life::Degraded { .. }) => {
                self.index.unsettled.remove(&id);
                self.back_off(id, self.state.now + self.state.settings.back_off);
            }
            (action, life) => self.alarm(format!("{action:?} was under way for a job that is {life:?}")),
        }
    }

    fn stays_on(&mut self, id: JobId, held: Arc<Assignment>) {
        self.set_life(id, Life::Running(held.clone()));
        let failed = self.state.jobs[id].failed_moves.saturating_sub(1).min(6);
        self.back_off(id, self.state.now + self.state.settings.cool_down.times(1 << failed));
        // Whoever it was to make room for may need more of it gone than its room.
        if let Some(beneficiary) = self.has_made_room(id).filter(|id| self.is_planned_elsewhere(*id)) {
            self.back_to_where_it_is(beneficiary);
        }
        self.put_back_into_plan(id, held);
        // With it back, its queue or user may hold too much for others who are planned and not there yet.
        self.state.dirty = true;
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
        job.failed_starts = job.failed_starts.saturating_add(1);
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
            self.victims_may_be_had();
            self.state.dirty = true;
            any = true;
        }
        any
    }

    /// Those for whom room was kept until now, and who could not start, are looked at anew; true if there were any.
    pub(super) fn end_reservations(&mut self) -> bool {
        let now = self.state.now;
        let before = self.state.plan.reservations.len();
        self.state.plan.reservations.retain(|kept| kept.from > now);
        let over = self.state.plan.reservations.len() < before;
        if over {
            self.index.room.grow();
            self.state.dirty = true;
        }
        over
    }

    /// Takes note of jobs that have run long enough to be stopped for another's sake; true if there were any.
    pub(super) fn ripen(&mut self) -> bool {
        let ripe = |(at, _): &(Instant, JobId)| *at <= self.state.now;
        let count = self.index.ripening.iter().take_while(|ripening| ripe(ripening)).count();
        for _ in 0..count {
            self.index.ripening.pop_first();
        }
        if count > 0 {
            self.victims_may_be_had();
        }
        count > 0
    }

    pub(super) fn policy_changed(&mut self, policy: Policy) {
        let waiting: Vec<JobId> =
            self.state.jobs.iter().filter(|(_, job)| job.class.is_some()).map(|(id, _)| id).collect();
        for id in &waiting {
            self.index.step_out(&mut self.state, *id);
        }
        self.index.contention.tune(&policy.tuning.traffic);
        self.state.policy = policy;
        for id in &waiting {
            self.index.line_up(&mut self.state, *id);
        }
        self.state.dirty = true;
    }
}
