//! Drives an engine by hand: applies one operation after another, and remembers which steps are under way.

use std::collections::BTreeMap;
use std::sync::Arc;

use metronome_core::engine::{Ending, Engine, Event, Settings};
use metronome_core::model::cluster::{Cluster, Name, NodeSpec};
use metronome_core::model::id::{
    BudgetId, DeviceId, GroupId, IdVec, JobId, LinkId, NodeId, NodeSetId, PartitionId, QueueId,
};
use metronome_core::model::job::{JobSpec, Life};
use metronome_core::model::plan::{Part, Step, StepId};
use metronome_core::model::policy::Policy;
use metronome_core::model::profile::Profile;
use metronome_core::model::queue::Queue;
use metronome_core::model::report::Failure;
use metronome_core::model::units::{Bandwidth, Duration, Instant, Iterations, Share};
use metronome_core::observe::progress::Sample;

use crate::build;

/// An event or a command. A number `n` names the n-th job, node or link, modulo how many there are.
#[derive(Clone, Debug)]
pub enum Op {
    Submit(Box<JobSpec>),
    Cancel(usize),
    Suspend(usize),
    Resume(usize),
    /// A running job completes.
    End(usize),
    StepSucceeds(usize),
    StepFails(usize),
    NodeGoes(usize),
    NodeComes(usize),
    Pass(Duration),
    /// The world finds a running job of one role: one member on each node from this one on.
    Found(Box<JobSpec>, usize),
    /// Some members of the n-th part of an assigned job end.
    MembersLeave(usize, usize),
    JobChanges(usize, Box<JobSpec>),
    /// A node has this number of GPUs, and this amount of every counter, from now on.
    NodeChanges(usize, u64, u64),
    SetChanges(u32, usize, bool),
    DomainChanges(u32, usize, Option<u32>),
    OthersChange(u32, usize, u32),
    /// A job's first role belongs to a group from now on.
    Joins(u32, usize),
    BudgetChanges(u32, u32),
    /// A queue is added or replaced.
    QueueChanges(u32, Box<Queue>),
    /// A job reports iterations, a metric and seconds of CPU time, with a time stamp this many seconds ahead.
    Reports {
        which: usize,
        iterations: u64,
        metric: f64,
        used: u64,
        ahead: u64,
    },
    /// A member of job `job-N` fails on a node.
    MemberFails(usize, u32),
    /// A node is drained: until this many seconds from now, or until it is empty.
    NodeIsDrained(usize, Option<u64>),
    /// Members of the n-th part of a running job take this many milliseconds for an iteration, as reported several times in
    /// this many seconds.
    MembersTake {
        which: usize,
        part: usize,
        millis: u64,
        over: u64,
    },
    /// A link carries this rate from now on; nothing if the rate is zero.
    LinkChanges(usize, Bandwidth),
    /// The world measures what a job does in each iteration.
    LoopIsMeasured(usize, Box<Profile>),
    /// A job is measured to be slower by this share than under fair sharing.
    SlowerThanFair(usize, Share),
    PolicyChanges(Box<Policy>),
    /// Every step that the engine asks for succeeds, until it asks for no more.
    AllStepsSucceed,
}

/// The number of reports about members in one operation.
const TOLD_TIMES: u64 = 10;

#[derive(Debug)]
pub struct Driver {
    pub engine: Engine,
    pub now: Instant,
    pub under_way: BTreeMap<StepId, JobId>,
    pub steps: Vec<Step>,
}

impl Driver {
    pub fn new(cluster: Cluster, policy: Policy) -> Self {
        Self {
            engine: build::engine(cluster, policy),
            now: Instant::START,
            under_way: BTreeMap::new(),
            steps: Vec::new(),
        }
    }

    /// A driver whose engine has these queues.
    pub fn sharing(cluster: Cluster, policy: Policy, queues: IdVec<QueueId, Queue>) -> Self {
        let settings = Settings { full_check_every: 1, ..Settings::default() };
        Self {
            engine: Engine::new(cluster.clone(), queues, policy.clone(), settings),
            ..Self::new(cluster, policy)
        }
    }

    /// A driver whose engine keeps jobs that fit on no present node.
    pub fn patient(cluster: Cluster, policy: Policy) -> Self {
        let settings = Settings { full_check_every: 1, keeps_hopeless: true, ..Settings::default() };
        let queues = IdVec::from_iter([Queue::open("default")]);
        Self {
            engine: Engine::new(cluster.clone(), queues, policy.clone(), settings),
            ..Self::new(cluster, policy)
        }
    }

    pub fn submit(&mut self, spec: JobSpec) -> JobId {
        self.engine.submit(self.now, Arc::new(spec))
    }

    /// Applies an operation, if it makes sense now. The engine is polled only in operations that take time.
    pub fn apply(&mut self, op: &Op) {
        let event = match op {
            Op::Submit(spec) => Some(Event::JobSubmitted(Arc::new((**spec).clone()))),
            Op::Cancel(which) => self.job(*which, |_| true).map(Event::JobCancelled),
            Op::Suspend(which) => self.job(*which, |_| true).map(Event::JobSuspended),
            Op::Resume(which) => self.job(*which, |life| *life == Life::Suspended).map(Event::JobResumed),
            Op::End(which) => self
                .job(*which, |life| matches!(life, Life::Running(_)))
                .map(|job| Event::JobEnded { job, how: Ending::Completed }),
            Op::StepSucceeds(which) => self.step(*which).map(|(step, job)| Event::StepDone { job, step }),
            Op::StepFails(which) => {
                self.step(*which).map(|(step, job)| Event::StepFailed { job, step, failure: Failure::Other })
            }
            Op::NodeGoes(which) => Some(Event::NodeLost(self.node(*which))),
            Op::NodeComes(which) => Some(Event::NodeBack(self.node(*which))),
            Op::Pass(time) => {
                self.now = self.now + *time;
                None
            }
            Op::Found(spec, first) => Some(self.found(spec, *first)),
            Op::MembersLeave(which, part) => self.members_leave(*which, *part),
            Op::JobChanges(which, spec) => {
                let spec = Arc::new((**spec).clone());
                self.job(*which, |_| true).map(|job| Event::JobChanged { job, spec })
            }
            Op::NodeChanges(which, gpus, count) => Some(self.node_changes(*which, *gpus, *count)),
            Op::SetChanges(set, node, allowed) => {
                let (set, node) = (NodeSetId(*set), self.node(*node));
                Some(Event::NodeSetChanged { set, node, allowed: *allowed })
            }
            Op::DomainChanges(partition, node, domain) => {
                let (partition, node) = (PartitionId(*partition), self.node(*node));
                Some(Event::PartitionChanged { partition, node, domain: *domain })
            }
            Op::OthersChange(group, node, count) => {
                let (group, node) = (GroupId(*group), self.node(*node));
                Some(Event::OthersChanged { group, node, count: *count })
            }
            Op::Joins(group, which) => self.joins(*group, *which),
            Op::BudgetChanges(budget, allowed) => {
                Some(Event::Budget { budget: BudgetId(*budget), allowed: *allowed })
            }
            Op::Reports { which, iterations, metric, used, ahead } => self.job(*which, |_| true).map(|job| {
                let (at, used) = (self.now + Duration::from_secs(*ahead), Some(Duration::from_secs(*used)));
                let (iterations, loss) = (Iterations(*iterations), Some(*metric));
                Event::Progress { job, sample: Sample { at, iterations, loss, used } }
            }),
            Op::MemberFails(which, of) => {
                Some(Event::MemberFailed { node: self.node(*which), of: Name::from(format!("job-{of}")) })
            }
            Op::NodeIsDrained(which, after) => {
                let until = after.map(|after| self.now + Duration::from_secs(after));
                Some(Event::NodeDrained { node: self.node(*which), until })
            }
            Op::MembersTake { which, part, millis, over } => {
                self.members_take((*which, *part), *millis, *over);
                None
            }
            Op::QueueChanges(queue, described) => {
                Some(Event::Queue { queue: QueueId(*queue), described: (**described).clone() })
            }
            Op::LinkChanges(which, rate) => {
                self.link(*which).map(|link| Event::LinkChanged { link, rate: *rate })
            }
            Op::LoopIsMeasured(which, profile) => {
                let profile = Arc::new((**profile).clone());
                self.job(*which, |_| true).map(|job| Event::LoopMeasured { job, profile })
            }
            Op::SlowerThanFair(which, by) => {
                let job = self.job(*which, |life| matches!(life, Life::Running(_)));
                job.map(|job| Event::SlowerThanFair { job, by: *by })
            }
            Op::PolicyChanges(policy) => Some(Event::PolicyChanged(policy.clone())),
            Op::AllStepsSucceed => {
                self.settle();
                None
            }
        };
        if let Some(event) = event {
            self.engine.observe(self.now, event);
        }
    }

    /// Members of one part take this long, and those of the other parts a hundred milliseconds.
    fn members_take(&mut self, (which, part): (usize, usize), millis: u64, over: u64) {
        let Some(job) = self.job(which, |life| matches!(life, Life::Running(_))) else { return };
        let Some(held) = self.engine.life(job).map(|life| life.holds().remove(0)) else { return };
        let slow = part % held.parts().len();
        for _ in 0..TOLD_TIMES {
            for (index, Part { role, node, .. }) in held.parts().iter().copied().enumerate() {
                let iteration = Duration::from_millis(if index == slow { millis } else { 100 });
                self.engine.observe(self.now, Event::MemberTook { job, role, node, iteration });
            }
            self.now = self.now + Duration::from_secs(over / TOLD_TIMES);
            self.poll();
        }
    }

    fn found(&self, spec: &JobSpec, first: usize) -> Event {
        let members = spec.roles[0].gang.min() as usize;
        let nodes = self.engine.state().cluster.nodes().len();
        let mut on = vec![0; nodes];
        (first..first + members).for_each(|at| on[at % nodes] += 1);
        // A job that is found shares the first device of each node, even if that is full.
        let device = spec.roles[0].shape.each.gpus.is_share().then_some(DeviceId(0));
        let part =
            |(node, members): (usize, &u32)| Part { device, ..Part::of(0, NodeId(node as u32), *members) };
        let parts = on.iter().enumerate().filter(|(_, members)| **members > 0).map(part).collect();
        Event::JobFound { spec: Arc::new(spec.clone()), parts, since: self.now }
    }

    fn members_leave(&self, which: usize, part: usize) -> Option<Event> {
        let job = self.job(which, |life| !life.holds().is_empty())?;
        let held = self.engine.life(job)?.holds().remove(0);
        let Part { role, node, device, members } = held.parts()[part % held.parts().len()];
        Some(Event::MembersLeft { job, role, node, device, members: 1 + part as u32 % members })
    }

    fn node_changes(&self, which: usize, gpus: u64, count: u64) -> Event {
        let node = self.node(which);
        let cluster = &self.engine.state().cluster;
        let here = cluster.node(node);
        let domains = here.domains.iter().map(|domain| cluster.domain_name(*domain).to_owned());
        let spec = NodeSpec {
            name: here.name.to_string(),
            capacity: build::gpu_node(gpus),
            counters: cluster.counters().ids().map(|counter| (counter, count)).collect(),
            domains: domains.collect(),
            ..NodeSpec::default()
        };
        Event::NodeChanged { node, spec }
    }

    fn joins(&self, group: u32, which: usize) -> Option<Event> {
        let group = GroupId(group);
        let described = self.engine.state().groups.groups.get(group)?;
        let (partition, others) = (described.partition, described.others.clone());
        let members = vec![(self.job(which, |_| true)?, 0)];
        Some(Event::Group { group, partition, others, members })
    }

    /// Polls the engine and notes its steps.
    pub fn poll(&mut self) {
        let steps = self.engine.poll(self.now).into_inner();
        self.under_way.extend(steps.iter().map(|step| (step.id, step.job)));
        self.steps.extend(steps);
    }

    /// Carries out all steps until the engine asks for none.
    pub fn settle(&mut self) {
        for _ in 0..1000 {
            self.poll();
            let Some((step, job)) = self.under_way.pop_first() else { return };
            self.engine.observe(self.now, Event::StepDone { job, step });
        }
        panic!("the engine keeps asking for steps");
    }

    fn job(&self, which: usize, wanted: impl Fn(&Life) -> bool) -> Option<JobId> {
        let jobs: Vec<JobId> =
            self.engine.state().jobs.iter().filter(|(_, job)| wanted(&job.life)).map(|(id, _)| id).collect();
        (!jobs.is_empty()).then(|| jobs[which % jobs.len()])
    }

    fn step(&mut self, which: usize) -> Option<(StepId, JobId)> {
        let count = self.under_way.len();
        let step = *self.under_way.keys().nth(which.checked_rem(count)?)?;
        self.under_way.remove_entry(&step)
    }

    fn link(&self, which: usize) -> Option<LinkId> {
        let count = self.engine.state().cluster.fabric.links().len();
        Some(LinkId(which.checked_rem(count)? as u32))
    }

    fn node(&self, which: usize) -> NodeId {
        NodeId((which % self.engine.state().cluster.nodes().len()) as u32)
    }
}
