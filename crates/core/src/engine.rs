//! Keeps state, and at its own pace turns it into decisions. Still no IO: events come in by `observe`, time by
//! `poll`, steps go out as its result.

mod adopt;
mod deadlines;
mod directive;
mod directives;
mod event;
mod explain;
pub mod forecast;
mod found_jobs;
mod groups;
mod index;
mod links;
mod node_failures;
mod nodes;
mod outcomes;
mod progress;
mod queues;
mod settings;
mod slow_nodes;
mod state;
mod steps;
#[cfg(test)]
mod untrusted_input;

use std::sync::Arc;

use crate::check::{Checked, Violation};
use crate::decide::snapshot::Snapshot;
use crate::decide::{Decision, decide, feasible};
use crate::journal::{Decided, Journal, Polled, Record, VERSION};
use crate::model::cluster::{Cluster, Name, NodeState};
use crate::model::groups::Domain;
use crate::model::id::{
    BudgetId, ClassId, CounterId, GroupId, IdVec, JobId, NodeId, NodeSetId, PartitionId, QueueId,
};
use crate::model::job::{Job, JobSpec, Life};
use crate::model::plan::{Amendment, Part, Plan, Step};
use crate::model::policy::Policy;
use crate::model::queue::Queue;
use crate::model::report::{Reason, Report};
use crate::model::units::Instant;
use crate::traffic::TrafficPolicy;

pub use directive::{Directive, NodeOutcome};
pub use event::{Ending, Event};
use index::Index;
pub use settings::Settings;
pub use state::{Ended, State, UnderWay};

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

    /// Takes note of a job that runs already and says under which id.
    pub fn found(&mut self, now: Instant, spec: Arc<JobSpec>, parts: Vec<Part>, since: Instant) -> JobId {
        let id = self.state.jobs.next_id();
        self.observe(now, Event::JobFound { spec, parts, since });
        id
    }

    pub fn add_counter(&mut self, now: Instant, name: &str, each: u64) -> CounterId {
        let id = self.state.cluster.counters().next_id();
        self.observe(now, Event::CounterAdded { name: Name::from(name), each });
        id
    }

    pub fn add_node_set(&mut self, now: Instant, nodes: Vec<NodeId>) -> NodeSetId {
        let set = self.state.cluster.sets().next_id();
        self.observe(now, Event::NodeSet { set, nodes });
        set
    }

    pub fn add_partition(&mut self, now: Instant, domains: Vec<(NodeId, Domain)>) -> PartitionId {
        let partition = self.state.groups.partitions.next_id();
        self.observe(now, Event::Partition { partition, domains });
        partition
    }

    pub fn add_group(
        &mut self,
        now: Instant,
        partition: PartitionId,
        others: Vec<(NodeId, u32)>,
        members: Vec<(JobId, u8)>,
    ) -> GroupId {
        let group = self.state.groups.groups.next_id();
        self.observe(now, Event::Group { group, partition, others, members });
        group
    }

    pub fn add_queue(&mut self, now: Instant, described: Queue) -> QueueId {
        let queue = self.state.queues.next_id();
        self.observe(now, Event::Queue { queue, described });
        queue
    }

    pub fn add_budget(&mut self, now: Instant, allowed: u32) -> BudgetId {
        let budget = self.state.budgets.next_id();
        self.observe(now, Event::Budget { budget, allowed });
        budget
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
            Event::JobFound { spec, parts, since } => self.was_found(spec, parts, since),
            Event::JobChanged { job, spec } => self.job_changed(job, spec),
            Event::MembersLeft { job, role, node, device, members } => {
                self.members_left(job, Part { role, node, device, members });
            }
            Event::JobCancelled(job) => self.cancelled(job),
            Event::JobSuspended(job) => self.suspended(job),
            Event::JobResumed(job) => self.resumed(job),
            Event::JobEnded { job, how } => self.ended(job, how),
            Event::StepDone { job, step } => self.step_done(job, step),
            Event::StepFailed { job, step, failure } => self.step_failed(job, step, failure),
            Event::DirectiveApplied { job, node, generation } => {
                self.directive_applied(job, node, generation);
            }
            Event::DirectiveFailed { job, node, generation, reason } => {
                self.directive_failed(job, node, generation, reason);
            }
            Event::Worked { job, executed } => self.worked(job, executed),
            Event::Progress { job, sample } => self.reported(job, sample),
            Event::MemberFailed { node, of } => self.member_failed(node, of),
            Event::MemberTook { job, role, node, iteration } => self.member_took(job, role, node, iteration),
            Event::NodeAdded(spec) => self.node_added(&spec),
            Event::NodeChanged { node, spec } => self.node_changed(node, &spec),
            Event::NodeLost(node) => self.node_turned(node, NodeState::Gone),
            Event::NodeBack(node) => self.node_back(node),
            Event::NodeCordoned(node) => self.node_turned(node, NodeState::Cordoned),
            Event::NodeDrained { node, until } => self.node_turned(node, NodeState::Draining { until }),
            Event::LinkChanged { link, rate } => self.link_changed(link, rate),
            Event::LoopMeasured { job, profile } => self.loop_measured(job, profile),
            Event::SlowerThanFair { job, by } => self.slower_than_fair(job, by),
            Event::PolicyChanged(policy) => self.policy_changed(*policy),
            Event::CounterAdded { name, each } => self.counter_added(name, each),
            Event::NodeSet { set, nodes } => self.node_set(set, nodes),
            Event::NodeSetChanged { set, node, allowed } => self.node_set_changed(set, node, allowed),
            Event::Partition { partition, domains } => self.partition(partition, domains),
            Event::PartitionChanged { partition, node, domain } => {
                self.partition_changed(partition, node, domain);
            }
            Event::Group { group, partition, others, members } => {
                self.group(group, partition, others, &members);
            }
            Event::OthersChanged { group, node, count } => self.others_changed(group, node, count),
            Event::Queue { queue, described } => self.queue(queue, described),
            Event::Budget { budget, allowed } => self.budget(budget, allowed),
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
        let woken = self.end_back_offs()
            | self.ripen()
            | self.end_reservations()
            | self.miss_the_silent()
            | self.end_avoidance()
            | self.end_slowness();
        let decision = self.is_due().then(|| self.cycle());
        let steps = self.ready_steps();
        let acted = expired || woken || decision.is_some() || !steps.is_empty();
        let polled = acted.then(|| Polled { at: now, decision, steps: steps.to_vec() });
        (polled, steps)
    }

    /// When `poll` has something to do even if no event comes.
    pub fn next_wake(&self) -> Option<Instant> {
        let due = self.state.dirty.then(|| self.earliest_cycle());
        let woken = self.state.wake.map(|wake| self.not_too_soon(wake));
        let retry = self.index.directive_retries.first().map(|(at, _)| *at);
        let ends = [self.state.node_failures.next_end(), self.state.slow_nodes.next_end(), retry];
        let timers = [due, woken, self.index.next_timer()].into_iter().chain(ends);
        timers.flatten().min()
    }

    fn advance(&mut self, now: Instant) {
        self.state.pasts.go_on(&self.state.queues, &self.index.held, now.max(self.state.now));
        self.state.now = self.state.now.max(now);
    }

    fn earliest_cycle(&self) -> Instant {
        self.not_too_soon(self.state.now)
    }

    /// The first time from then on at which there may be a decision.
    fn not_too_soon(&self, at: Instant) -> Instant {
        let spaced = self.state.last_pass.map(|last| last + self.state.settings.spacing);
        spaced.map_or(at, |spaced| spaced.max(at)).rounded_up(self.state.settings.round)
    }

    fn is_due(&self) -> bool {
        let woken = self.state.wake.is_some_and(|wake| wake <= self.state.now);
        (self.state.dirty || woken) && self.earliest_cycle() <= self.state.now
    }

    /// One decision: snapshot, decide, check, adopt. An amendment that breaks a rule is thrown away, and the previous plan stays.
    fn cycle(&mut self) -> Decided {
        self.let_go_of_the_late();
        self.note_usual_learning();
        let Decision { amendment, mut report, wake } = decide(&self.snapshot(), &self.state.policy);
        self.state.cycles += 1;
        self.state.dirty = report.cut_short;
        self.state.wake = wake;
        let blocked_by = report.blocked_by;
        match self.check(amendment) {
            Ok(checked) => {
                let amendment = Checked::clone(&checked).into_inner();
                let reconfigured = std::mem::take(&mut report.reconfigured);
                let refused = std::mem::take(&mut report.refused);
                self.adopt(checked, report);
                self.state.reconfigured.clone_from(&reconfigured);
                self.turn_away(refused);
                self.look_out_for_the_late();
                self.check_all_at_times();
                Decided { amendment, reconfigured, blocked_by, refused: None }
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
            tuning: &self.state.policy.tuning,
            elastic: &self.index.elastic,
            room: &self.index.room,
            waiting: &self.index.waiting,
            groups: &self.state.groups,
            tallies: &self.index.tallies,
            budgets: &self.state.budgets,
            displaced: &self.state.displaced,
            held: &self.index.held,
            pasts: &self.state.pasts,
            contention: &self.index.contention,
            decision_inputs: &self.state.decision_inputs,
            unconfirmed: &self.index.unconfirmed,
            slow: self.state.slow_nodes.slow(),
            timed: &self.index.timed,
            priorities: &self.index.priorities,
            pass: self.state.pass,
            last_pass: self.state.last_pass,
            tick: self.state.settings.tick,
            round: self.state.settings.round,
            spacing: self.state.settings.spacing,
            min_run: self.state.settings.min_run,
            keeps_hopeless: self.state.settings.keeps_hopeless,
        }
    }

    /// Whether the checker would pass this amendment now.
    pub fn check(&self, amendment: Amendment) -> Result<Checked<Amendment>, Violation> {
        self.index.checker.check(&self.snapshot(), amendment)
    }

    fn finish_pass(&mut self, report: Report) {
        self.state.last_pass = Some(self.state.now);
        self.state.pass += 1;
        for (class, reason) in report.waiting {
            if let Some(stamp) = self.stamp(class, report.cut_short) {
                self.index.waiting.close(class, stamp, reason);
            }
        }
        self.state.blocked_by = report.blocked_by;
    }

    /// What a class is closed with. Where a pass was cut short, those that look at others may have been looked at too
    /// early: they are closed with what has passed already.
    fn stamp(&self, class: ClassId, cut_short: bool) -> Option<u64> {
        let class = self.index.waiting.class(class)?;
        let stamp = self.snapshot().stamp(class);
        Some(if cut_short && !class.watches.is_empty() { stamp.wrapping_sub(1) } else { stamp })
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

    /// The traffic policy of a job, as of the last decision. Every change of it is also a step (`Action::Direct`), of which a world
    /// reports what became on each node.
    pub fn traffic_policy(&self, job: JobId) -> TrafficPolicy {
        self.state.plan.traffic_policy(job)
    }

    pub fn policy(&self) -> &Policy {
        &self.state.policy
    }

    fn alarm(&mut self, what: String) {
        self.state.alarms += 1;
        self.state.last_alarm = Some(what);
    }

    pub fn job(&self, job: JobId) -> Option<&Job> {
        self.state.jobs.get(job)
    }

    /// The nodes on which a job of one member could be placed now, with room and rules counted; none for a gang.
    pub fn feasible_nodes(&self, job: JobId) -> Vec<NodeId> {
        self.job(job).map_or_else(Vec::new, |job| feasible(&self.snapshot(), &self.state.policy, job))
    }

    pub fn life(&self, job: JobId) -> Option<&Life> {
        self.state.jobs.get(job).map(|job| &job.life)
    }

    /// Why a waiting job is not in the plan, as of the last decision.
    pub fn verdict(&self, job: JobId) -> Option<Reason> {
        explain::verdict(&self.state, &self.index, job)
    }
}
