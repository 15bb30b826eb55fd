//! Keeps state, and at its own pace turns it into decisions. Still no IO: events come in by `observe`, time by
//! `poll`, steps go out as its result.

mod adopt;
mod explain;
mod index;
mod outcomes;
mod state;
mod steps;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::check::{Checked, Violation};
use crate::cluster::{Cluster, NodeSpec, NodeState};
use crate::decide::{Decision, decide};
use crate::id::{IdVec, JobId, NodeId, QueueId};
use crate::job::{JobSpec, Life};
use crate::journal::{Decided, Journal, Polled, Record, VERSION};
use crate::plan::{Amendment, Plan, Step, StepId};
use crate::policy::Policy;
use crate::progress::Sample;
use crate::queue::Queue;
use crate::report::{Failure, Reason, Report};
use crate::snapshot::Snapshot;
use crate::units::{Duration, Instant};

use index::Index;
pub use state::{Ended, State};

/// What a world tells the engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Event {
    JobSubmitted(Arc<JobSpec>),
    JobCancelled(JobId),
    JobSuspended(JobId),
    JobResumed(JobId),
    /// It ended by itself.
    JobEnded {
        job: JobId,
        how: Ending,
    },
    StepDone {
        job: JobId,
        step: StepId,
    },
    StepFailed {
        job: JobId,
        step: StepId,
        failure: Failure,
    },
    /// How much work is done and safe, when the world knows better than the clock.
    Worked {
        job: JobId,
        executed: Duration,
    },
    /// What training code reported.
    Progress {
        job: JobId,
        sample: Sample,
    },
    NodeAdded(NodeSpec),
    NodeLost(NodeId),
    NodeBack(NodeId),
    NodeCordoned(NodeId),
    PolicyChanged(Policy),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Ending {
    Completed,
    Failed,
}

/// How an engine paces itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Settings {
    /// Decisions are at least this far apart.
    pub spacing: Duration,
    /// Wake-ups that the order of jobs asks for fall on multiples of this; zero for none.
    pub tick: Duration,
    /// A step of which nothing is heard for so long is taken for lost.
    pub step_timeout: Duration,
    /// After a first failed start; doubled for each further one, at most 64 times.
    pub back_off: Duration,
    /// A job that could not be taken off its nodes is left alone for so long.
    pub cool_down: Duration,
    /// The whole plan is checked from nothing at every so-many-th decision.
    pub full_check_every: u64,
    /// A state record is written after so many others.
    pub state_record_every: u64,
    /// More live jobs than this are refused.
    pub most_jobs: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            spacing: Duration::ZERO,
            tick: Duration::ZERO,
            step_timeout: Duration::MINUTE,
            back_off: Duration::from_secs(10),
            cool_down: Duration::MINUTE,
            full_check_every: 1000,
            state_record_every: 50_000,
            most_jobs: 1_000_000,
        }
    }
}

pub struct Engine {
    state: State,
    index: Index,
    journal: Option<Box<dyn Journal + Send>>,
    recorded: u64,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("state", &self.state).finish_non_exhaustive()
    }
}

impl Engine {
    /// An engine over a cluster where nothing runs. The first queue is the default one.
    pub fn new(cluster: Cluster, queues: IdVec<QueueId, Queue>, policy: Policy, settings: Settings) -> Self {
        Self::restore(State::new(cluster, queues, policy, settings))
    }

    /// The engine whose state this was.
    pub fn restore(mut state: State) -> Self {
        state.cluster.fabric.reindex();
        let index = Index::of(&mut state);
        Self { state, index, journal: None, recorded: 0 }
    }

    /// From now on everything is recorded, beginning with all that is known.
    pub fn keep_journal(&mut self, journal: Box<dyn Journal + Send>) {
        self.journal = Some(journal);
        self.write(&Record::Journal { version: VERSION });
        self.write(&Record::State(Box::new(self.state.clone())));
    }

    /// Takes note of a submission and says under which id. A job that can never run is refused at once.
    pub fn submit(&mut self, now: Instant, spec: Arc<JobSpec>) -> JobId {
        let id = self.state.jobs.next_id();
        self.observe(now, Event::JobSubmitted(spec));
        id
    }

    /// Folds an event into the state. Nothing is decided here. Events about jobs that are over, and outcomes of
    /// steps that no longer matter, change nothing.
    pub fn observe(&mut self, now: Instant, event: Event) {
        self.advance(now);
        if self.journal.is_some() {
            self.write(&Record::Event { at: now, event: event.clone() });
        }
        match event {
            Event::JobSubmitted(spec) => self.submitted(spec),
            Event::JobCancelled(job) => self.cancelled(job),
            Event::JobSuspended(job) => self.suspended(job),
            Event::JobResumed(job) => self.resumed(job),
            Event::JobEnded { job, how } => self.ended(job, how),
            Event::StepDone { job, step } => self.step_done(job, step),
            Event::StepFailed { job, step, failure } => self.step_failed(job, step, failure),
            Event::Worked { job, executed } => self.worked(job, executed),
            Event::Progress { job, sample } => self.reported(job, sample),
            Event::NodeAdded(spec) => self.node_added(&spec),
            Event::NodeLost(node) => self.node_changed(node, NodeState::Gone),
            Event::NodeBack(node) => self.node_changed(node, NodeState::Ready),
            Event::NodeCordoned(node) => self.node_changed(node, NodeState::Cordoned),
            Event::PolicyChanged(policy) => self.policy_changed(policy),
        }
    }

    /// Decides if there is reason to, and returns the steps that can be carried out now.
    pub fn poll(&mut self, now: Instant) -> Checked<Vec<Step>> {
        let (polled, steps) = self.poll_once(now);
        if let Some(polled) = polled
            && self.journal.is_some()
        {
            self.write(&Record::Polled(polled));
            if self.recorded >= self.state.settings.state_record_every {
                self.recorded = 0;
                self.write(&Record::State(Box::new(self.state.clone())));
            }
        }
        steps
    }

    /// As `poll`, but returns the record: for replay.
    pub(crate) fn poll_recorded(&mut self, now: Instant) -> Polled {
        let (polled, _) = self.poll_once(now);
        polled.unwrap_or(Polled { at: now, decision: None, steps: Vec::new() })
    }

    fn poll_once(&mut self, now: Instant) -> (Option<Polled>, Checked<Vec<Step>>) {
        self.advance(now);
        let expired = self.expire_steps();
        let woken = self.end_back_offs();
        let decision = self.is_due().then(|| self.cycle());
        let steps = self.ready_steps();
        let acted = expired || woken || decision.is_some() || !steps.is_empty();
        let polled = acted.then(|| Polled { at: now, decision, steps: steps.to_vec() });
        (polled, steps)
    }

    /// When `poll` has something to do even if no event comes.
    pub fn next_wake(&self) -> Option<Instant> {
        let due = self.state.dirty.then(|| self.earliest_cycle());
        let timers = [due, self.state.wake, self.index.next_timer()];
        timers.into_iter().flatten().min()
    }

    fn advance(&mut self, now: Instant) {
        self.state.now = self.state.now.max(now);
    }

    fn earliest_cycle(&self) -> Instant {
        let spaced = self.state.last_pass.map(|last| last + self.state.settings.spacing);
        spaced.map_or(self.state.now, |spaced| spaced.max(self.state.now))
    }

    fn is_due(&self) -> bool {
        let woken = self.state.wake.is_some_and(|wake| wake <= self.state.now);
        (self.state.dirty || woken) && self.earliest_cycle() <= self.state.now
    }

    /// One decision: snapshot, decide, check, adopt. A plan that breaks a rule is thrown away, and the previous one
    /// stays.
    fn cycle(&mut self) -> Decided {
        let Decision { amendment, report, standings, wake } = decide(&self.snapshot(), &self.state.policy);
        self.state.cycles += 1;
        self.state.dirty = report.cut_short;
        self.state.wake = wake;
        let blocked_by = report.blocked_by;
        match self.check(amendment) {
            Ok(checked) => {
                let amendment = Checked::clone(&checked).into_inner();
                self.adopt(checked, standings, report);
                self.check_all_at_times();
                Decided { amendment, blocked_by, refused: None }
            }
            Err(violation) => {
                self.alarm(violation.to_string());
                self.state.dirty = false;
                self.finish_pass(report);
                Decided::refusal(violation)
            }
        }
    }

    /// What the next decision would see.
    pub fn snapshot(&self) -> Snapshot<'_> {
        Snapshot {
            now: self.state.now,
            cluster: &self.state.cluster,
            queues: &self.state.queues,
            jobs: &self.state.jobs,
            plan: &self.state.plan,
            room: &self.index.room,
            waiting: &self.index.waiting,
            held: &self.index.held,
            priorities: &self.index.priorities,
            pass: self.state.pass,
            last_pass: self.state.last_pass,
            tick: self.state.settings.tick,
        }
    }

    /// Whether the checker would pass this change of the plan now.
    pub fn check(&self, amendment: Amendment) -> Result<Checked<Amendment>, Violation> {
        self.index.checker.check(&self.snapshot(), amendment)
    }

    fn finish_pass(&mut self, report: Report) {
        self.state.last_pass = Some(self.state.now);
        self.state.pass += 1;
        let growth = self.index.room.growth();
        for (class, reason) in report.waiting {
            self.index.waiting.close(class, growth, reason);
        }
        self.state.blocked_by = report.blocked_by;
    }

    fn write(&mut self, record: &Record) {
        if let Some(journal) = &mut self.journal {
            journal.record(record);
            self.recorded += 1;
        }
    }

    pub fn state(&self) -> &State {
        &self.state
    }

    pub fn plan(&self) -> &Plan {
        &self.state.plan
    }

    pub fn policy(&self) -> &Policy {
        &self.state.policy
    }

    fn alarm(&mut self, what: String) {
        self.state.alarms += 1;
        self.state.last_alarm = Some(what);
    }

    pub fn life(&self, job: JobId) -> Option<&Life> {
        self.state.jobs.get(job).map(|job| &job.life)
    }

    /// Why a waiting job is not in the plan, as of the last decision.
    pub fn verdict(&self, job: JobId) -> Option<Reason> {
        explain::verdict(&self.state, &self.index, job)
    }
}
