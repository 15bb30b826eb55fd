//! Drives an engine by hand: one operation after another, with a world that does what it is told and remembers what
//! is under way.

use std::collections::BTreeMap;
use std::sync::Arc;

use metronome_core::cluster::Cluster;
use metronome_core::engine::{Ending, Engine, Event};
use metronome_core::id::{JobId, NodeId};
use metronome_core::job::{JobSpec, Life};
use metronome_core::plan::{Step, StepId};
use metronome_core::policy::Policy;
use metronome_core::report::Failure;
use metronome_core::units::{Duration, Instant};

use crate::build;

/// One thing that happens. Numbers name the n-th of what there is, counted round.
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
}

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

    pub fn submit(&mut self, spec: JobSpec) -> JobId {
        self.engine.submit(self.now, Arc::new(spec))
    }

    /// Lets one operation happen, as far as it makes sense now. The engine is not polled.
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
        };
        if let Some(event) = event {
            self.engine.observe(self.now, event);
        }
    }

    /// Polls the engine and takes note of the steps it wants.
    pub fn poll(&mut self) {
        let steps = self.engine.poll(self.now).into_inner();
        self.under_way.extend(steps.iter().map(|step| (step.id, step.job)));
        self.steps.extend(steps);
    }

    /// Carries out everything that is asked for until nothing more is.
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

    fn node(&self, which: usize) -> NodeId {
        NodeId((which % self.engine.state().cluster.nodes().len()) as u32)
    }
}
