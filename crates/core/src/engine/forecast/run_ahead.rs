//! The run ahead: a world in which everything goes as it is known to go.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::displaced_bookings::{GivesWay, gives_way};
use super::duration::left;
use super::event_queue::{Agenda, Happening};
use super::{Forecast, Guesses, Length, MOST_EVENTS, Outlook, Sought, Stopped};
use crate::engine::{Ending, Engine, Event, State, UnderWay};
use crate::model::id::JobId;
use crate::model::job::{Checkpointing, Job, JobSpec, Life};
use crate::model::plan::{Action, StepId};
use crate::model::policy::{Deadlines, Gangs};
use crate::model::report::{DeadlinePrediction, Reason};
use crate::model::units::{Duration, Instant};

pub(super) struct Ahead {
    engine: Engine,
    from: Instant,
    now: Instant,
    agenda: Agenda,
    /// When each running job is foreseen to end.
    ends: BTreeMap<JobId, Instant>,
    seen: BTreeMap<JobId, Forecast>,
    /// Jobs of guessed length that have run so far.
    guesses: Guesses,
    events: u64,
}

impl Ahead {
    pub(super) fn from(mut state: State, now: Instant) -> Self {
        // Nobody reports in a run ahead.
        state.jobs.values_mut().for_each(|job| job.progress.stop_expecting_reports(now));
        let engine = Engine::restore(state);
        let now = now.max(engine.state().now);
        let seen = engine.state().jobs.iter().map(|(id, job)| (id, unseen(job))).collect();
        let mut ahead = Self {
            engine,
            from: now,
            now,
            agenda: Agenda::default(),
            ends: BTreeMap::new(),
            seen,
            guesses: Guesses::default(),
            events: 0,
        };
        ahead.take_over();
        ahead
    }

    /// What runs goes on, and what is under way goes to its end. A step's deadline tells when it began.
    fn take_over(&mut self) {
        let state = self.engine.state();
        let running = state.jobs.iter().filter(|(_, job)| matches!(job.life, Life::Running(_)));
        let running: Vec<JobId> = running.map(|(id, _)| id).collect();
        let (under_way, timeout) = (state.under_way.clone(), state.settings.step_timeout);
        running.into_iter().for_each(|id| self.runs(id));
        for (id, UnderWay { step, action, deadline }) in under_way {
            let began = Instant(deadline.0.saturating_sub(timeout.0));
            self.carry_out(id, step, &action, began.min(self.now));
        }
    }

    /// One more job comes before anything else happens.
    pub(super) fn submit(&mut self, spec: Arc<JobSpec>) -> JobId {
        let id = self.engine.submit(self.now, spec);
        if let Some(job) = self.engine.job(id) {
            self.seen.insert(id, unseen(job));
        }
        id
    }

    /// Goes on until it is decided whether a job with a deadline will be in time, and says so; who gives way for it is told
    /// by the bookings before and after.
    pub(super) fn until_judged(&mut self, job: JobId) -> Option<(DeadlinePrediction, Vec<GivesWay>)> {
        let before = self.engine.state().plan.timetable.clone();
        let looks = self.engine.policy().deadlines != Deadlines::Ignored;
        self.engine.job(job)?.spec.deadline.filter(|_| looks)?;
        while self.engine.state().plan.timetable.get(job).is_none() && self.events < MOST_EVENTS {
            self.now = self.next_instant()?;
            self.hear_what_happens();
            self.let_the_engine_act();
        }
        let due = self.engine.due_and_what_would_save_it(job)?;
        Some((due, gives_way(self.engine.state(), &before)))
    }

    /// Why a job that was just submitted was not taken in, if so.
    pub(super) fn refusal(&self, job: JobId) -> Option<Reason> {
        let (last, ended) = self.engine.state().over.back()?;
        ended.reason.clone().filter(|_| *last == job)
    }

    pub(super) fn until(mut self, sought: Sought) -> Outlook {
        let stopped = self.run(sought);
        Outlook { from: self.from, stopped, jobs: self.seen }
    }

    /// All that happens at one instant is heard before the engine acts; what its steps change at once is heard in a
    /// further round.
    fn run(&mut self, sought: Sought) -> Stopped {
        if self.engine.policy().gangs == Gangs::MemberByMember {
            return Stopped::MembersApart;
        }
        while !self.has_seen(sought) {
            if self.events >= MOST_EVENTS {
                return Stopped::TooFar;
            }
            let Some(next) = self.next_instant() else { return Stopped::NothingMore };
            self.now = next;
            self.hear_what_happens();
            self.let_the_engine_act();
        }
        Stopped::Seen
    }

    fn has_seen(&self, sought: Sought) -> bool {
        match sought {
            Sought::One(job) => self.engine.life(job).is_none(),
            Sought::Everybody => self.engine.state().jobs.is_empty(),
        }
    }

    fn next_instant(&self) -> Option<Instant> {
        let wakes = self.engine.next_wake().map(|wake| wake.max(self.now));
        [self.agenda.next_at(), wakes].into_iter().flatten().min()
    }

    fn hear_what_happens(&mut self) {
        while let Some(happening) = self.agenda.take(self.now) {
            self.events += 1;
            match happening {
                Happening::Ends(job) if self.ends.get(&job) == Some(&self.now) => self.completes(job),
                Happening::Ends(_) => {}
                Happening::Done { job, step, executed } => self.is_done(job, step, executed),
            }
        }
    }

    fn let_the_engine_act(&mut self) {
        self.events += 1;
        for step in self.engine.poll(self.now).into_inner() {
            self.carry_out(step.job, step.id, &step.action, self.now);
        }
    }

    fn completes(&mut self, job: JobId) {
        self.ends.remove(&job);
        if let Some(forecast) = self.seen.get_mut(&job) {
            forecast.end = Some(self.now);
        }
        self.engine.observe(self.now, Event::JobEnded { job, how: Ending::Completed });
    }

    fn carry_out(&mut self, id: JobId, step: StepId, action: &Action, began: Instant) {
        if matches!(action, Action::Direct { .. }) {
            return self.engine.observe(self.now, Event::StepDone { job: id, step });
        }
        let Some(job) = self.engine.job(id) else { return };
        let executed = (!matches!(action, Action::Start(_))).then(|| kept(job, action, began));
        let done = (began + takes(job, action, began)).max(self.now);
        self.agenda.add(done, Happening::Done { job: id, step, executed });
        if executed.is_some() {
            self.ends.remove(&id);
        }
    }

    fn is_done(&mut self, job: JobId, step: StepId, executed: Option<Duration>) {
        if let Some(executed) = executed {
            self.engine.observe(self.now, Event::Worked { job, executed });
        }
        self.engine.observe(self.now, Event::StepDone { job, step });
        if matches!(self.engine.life(job), Some(Life::Running(_))) {
            self.runs(job);
        }
    }

    /// From now on a job runs to its end, unless it is stopped.
    fn runs(&mut self, id: JobId) {
        let Some(job) = self.engine.job(id) else { return };
        let (time, length) = left(job, self.now);
        let since = job.runs_since.unwrap_or(self.now);
        let end = self.now + job.progress.pace().time(time);
        self.ends.insert(id, end);
        self.agenda.add(end, Happening::Ends(id));
        let Some(forecast) = self.seen.get_mut(&id) else { return };
        if forecast.start.is_none() {
            (forecast.start, forecast.guesses) = (Some(since), self.guesses);
        }
        if forecast.length.replace(length).is_none() {
            self.guesses.count(length);
        }
    }
}

impl Guesses {
    fn count(&mut self, length: Length) {
        match length {
            Length::Said | Length::Measured => {}
            Length::Overdue => self.overdue += 1,
            Length::Guessed => self.unknown += 1,
        }
    }
}

fn unseen(job: &Job) -> Forecast {
    let name = job.spec.name.clone();
    Forecast { name, start: None, end: None, length: None, guesses: Guesses::default() }
}

/// How long a step takes, by the job's own word.
fn takes(job: &Job, action: &Action, now: Instant) -> Duration {
    let Checkpointing { takes, restart, .. } = job.spec.checkpointing.unwrap_or_default();
    match action {
        Action::Start(_) if job.progress.executed(now).is_zero() => Duration::ZERO,
        Action::Start(_) => restart,
        Action::Move { .. } | Action::Rescale { .. } => takes + restart,
        Action::Preempt { .. } | Action::Suspend => takes,
        Action::Stop | Action::ResizeInPlace { .. } | Action::Direct { .. } => Duration::ZERO,
    }
}

/// How much of its work a job keeps when it is stopped: all of it if it can save it first, else what it has saved by
/// itself.
fn kept(job: &Job, action: &Action, now: Instant) -> Duration {
    let executed = job.progress.executed(now);
    let saves_first = job.spec.capabilities.suspend && !matches!(action, Action::Stop);
    let goes_on = matches!(action, Action::ResizeInPlace { .. });
    match job.spec.checkpointing.and_then(|saves| saves.every) {
        _ if saves_first || goes_on => executed,
        Some(every) if !every.is_zero() => Duration(executed.0 / every.0 * every.0),
        _ => Duration::ZERO,
    }
}
