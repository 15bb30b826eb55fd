//! An engine that keeps a journal, and a world that does what it is told at once.

use std::sync::{Arc, Mutex};

use metronome_core::engine::{Engine, Event, Settings};
use metronome_core::journal::{Journal, Record};
use metronome_core::model::cluster::{Cluster, NodeSpec, Vertex};
use metronome_core::model::id::{IdVec, JobId, NodeId, QueueId};
use metronome_core::model::job::{Gang, JobSpec};
use metronome_core::model::plan::Step;
use metronome_core::model::policy::Policy;
use metronome_core::model::queue::Queue;
use metronome_core::model::report::Reason;
use metronome_core::model::units::{Bandwidth, Duration, Gpus, Instant, Resources};

/// A journal in memory.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<String>>);

impl Journal for Lines {
    fn record(&mut self, record: &Record) {
        let mut text = self.0.lock().unwrap();
        text.push_str(&record.to_line());
        text.push('\n');
    }
}

pub(crate) struct Stage {
    pub(crate) engine: Engine,
    pub(crate) now: Instant,
    lines: Lines,
    asked: String,
}

pub(crate) fn gpus(count: u64) -> Resources {
    Resources { gpus: Gpus::whole(count), ..Resources::NONE }
}

/// Members of one GPU each for ten minutes.
pub(crate) fn gang(name: &str, members: u64) -> JobSpec {
    let mut spec = JobSpec::workers(name, Gang::rigid(members).unwrap(), gpus(1));
    spec.work.alone = Some(Duration::MINUTE.times(10));
    spec
}

/// Two racks of two nodes with four GPUs each.
fn racks() -> Cluster {
    let mut cluster = Cluster::new(&["rack"]).unwrap();
    for node in 0..4 {
        let (name, domains) = (format!("node-{node}"), vec![format!("rack-{}", node / 2)]);
        cluster.add_node(&NodeSpec { name, capacity: gpus(4), domains, ..NodeSpec::default() }).unwrap();
    }
    cluster
}

fn wired(mut cluster: Cluster) -> Cluster {
    let rate = Bandwidth(100_000_000_000);
    let name = |vertex: Vertex| format!("{vertex:?}");
    let top = cluster.fabric.add_switch("top");
    for rack in 0..2 {
        let above = cluster.fabric.add_switch(&format!("rack-{rack}"));
        cluster.fabric.connect(above, top, rate, name).unwrap();
        for node in [2 * rack, 2 * rack + 1] {
            cluster.fabric.connect(Vertex::Node(NodeId(node)), above, rate, name).unwrap();
        }
    }
    cluster
}

/// Beside the default queue, one that may never hold more than four GPUs.
pub(crate) const SMALL: QueueId = QueueId(1);

fn queues() -> IdVec<QueueId, Queue> {
    let small = Queue { quota: Some(gpus(4)), borrows: false, ..Queue::open("small") };
    IdVec::from_iter([Queue::open("default"), small])
}

impl Stage {
    pub(crate) fn new(policy: &str) -> Self {
        Self::with(Policy::named(policy).unwrap(), Settings::default())
    }

    /// The same, with links of 100 Gbps from each node to its rack and from each rack upwards.
    pub(crate) fn over_links(policy: &str) -> Self {
        Self::on(wired(racks()), Policy::named(policy).unwrap(), Settings::default())
    }

    pub(crate) fn with(policy: Policy, settings: Settings) -> Self {
        Self::on(racks(), policy, settings)
    }

    fn on(cluster: Cluster, policy: Policy, settings: Settings) -> Self {
        let lines = Lines::default();
        let mut engine = Engine::new(cluster, queues(), policy, settings);
        engine.keep_journal(Box::new(lines.clone()));
        Self { engine, now: Instant::START, lines, asked: String::new() }
    }

    pub(crate) fn wait(&mut self, minutes: u64) {
        self.now = self.now + Duration::MINUTE.times(minutes);
    }

    pub(crate) fn observe(&mut self, event: Event) {
        self.engine.observe(self.now, event);
    }

    /// Submits a job, and lets come what comes of it.
    pub(crate) fn submit(&mut self, spec: JobSpec) -> JobId {
        let job = self.engine.submit(self.now, Arc::new(spec));
        self.settle();
        job
    }

    pub(crate) fn poll(&mut self) -> Vec<Step> {
        self.engine.poll(self.now).into_inner()
    }

    pub(crate) fn settle(&mut self) {
        loop {
            let steps = self.poll();
            if steps.is_empty() {
                return;
            }
            for step in steps {
                self.observe(Event::StepDone { job: step.job, step: step.id });
            }
        }
    }

    /// This is the job that is asked about.
    pub(crate) fn asking(mut self, job: &str) -> Self {
        self.asked = job.to_owned();
        self
    }

    pub(crate) fn asked(&self) -> &str {
        &self.asked
    }

    pub(crate) fn journal(&self) -> String {
        self.lines.0.lock().unwrap().clone()
    }

    pub(crate) fn reason(&self) -> Reason {
        let job = self.engine.find_job(&self.asked).expect("a job of that name");
        self.engine.explain(job).and_then(|explanation| explanation.reason).expect("a reason")
    }
}
