//! A scenario: a cluster, queues, policies and the jobs that arrive, as YAML documents say them.

mod cores;
pub(crate) mod curve;
mod documents;
mod draw;
pub(crate) mod error;
mod learners;
mod members;
mod one_job;
mod priorities;
pub(crate) mod quality;
pub(crate) mod source;
mod training;
mod translate;
mod users;
pub(crate) mod values;

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use metronome_core::model::cluster::{Cluster, Name};
use metronome_core::model::id::{IdVec, LinkId, NodeId, QueueId};
use metronome_core::model::job::{Capabilities, Checkpointing, JobSpec};
use metronome_core::model::policy::Policy;
use metronome_core::model::queue::Queue;
use metronome_core::model::units::{Bandwidth, Duration, Instant, Share};

use crate::model::TrainingModel;
use crate::world::Estimates;

pub use draw::Drawn;
pub(crate) use draw::gaussian;
pub use error::{InputError, Position};
pub use learners::{Learners, Lesson};
pub use one_job::Setting;
pub use quality::Quality;
pub(crate) use training::profile;

#[derive(Clone, Debug)]
pub struct Scenario {
    pub name: String,
    pub cluster: Cluster,
    /// Queue 0 is `default`.
    pub queues: IdVec<QueueId, Queue>,
    /// Policies that the file itself defines; they come before the built-in ones of the same name.
    pub policies: Vec<Policy>,
    /// Where jobs come from, in the order of appearance; `arrivals` merges them.
    pub sources: Vec<Source>,
    /// The rate at which the GPUs of one node talk to each other; free, if none is said.
    pub within_node: Option<Bandwidth>,
    /// Decisions fall on multiples of this, or are so far apart; zero for none.
    pub round: Duration,
    pub rounds: Rounds,
    /// When the order of jobs asks to be looked at again falls on multiples of this; zero for none.
    pub tick: Duration,
    pub costs: Costs,
    pub departures: Departures,
    /// How well the scheduler knows how long jobs take, unless a run says otherwise.
    pub estimates: Estimates,
    pub faults: Vec<Fault>,
    /// What members run where they are processes, for each role, of the jobs that say so.
    pub commands: BTreeMap<Name, Vec<Vec<String>>>,
}

impl Scenario {
    /// Reads a file of YAML documents; a trace is looked for beside it.
    pub fn read(path: &Path) -> Result<Self, InputError> {
        let folder = path.parent().unwrap_or(Path::new(""));
        Self::read_from(source::open(path)?, &path.display().to_string(), folder)
    }

    /// Reads a file in which each of some texts, which stand there once, is taken for another.
    pub fn read_varied(path: &Path, instead: &BTreeMap<String, String>) -> Result<Self, InputError> {
        let (name, folder) = (path.display().to_string(), path.parent().unwrap_or(Path::new("")));
        let text = source::text(source::open(path)?, &name)?;
        let varied = instead.iter().try_fold(text, |text, (old, new)| source::replaced(&text, old, new));
        let varied = varied.map_err(|problem| problem.in_file(&name))?;
        Self::read_from(varied.as_bytes(), &name, folder)
    }

    /// Reads documents from anywhere: `name` is what errors call it, relative paths start from `folder`.
    pub fn read_from(reader: impl Read, name: &str, folder: &Path) -> Result<Self, InputError> {
        let text = source::text(reader, name)?;
        let documents = documents::parse(&text).map_err(|problem| problem.in_file(name))?;
        translate::scenario(documents, translate::Origin { file: name, folder })
    }

    /// The jobs of a run with this seed, in the order of submission, then of appearance. Every policy sees the same.
    pub fn arrivals(&self, seed: u64) -> Vec<Arrival> {
        let mut arrivals: Vec<Arrival> = Vec::with_capacity(self.job_count());
        for source in &self.sources {
            match source {
                Source::Listed(listed) => arrivals.extend(listed.iter().cloned()),
                Source::Learners(learners) => arrivals.extend(learners.arrivals(seed)),
                Source::Drawn(drawn) => {
                    arrivals.extend(drawn.arrivals(seed, &self.cluster, self.within_node));
                }
            }
        }
        arrivals.sort_by_key(|arrival| arrival.at);
        arrivals
    }

    /// How many jobs there are, whatever the seed.
    pub fn job_count(&self) -> usize {
        self.sources.iter().map(Source::len).sum()
    }
}

/// Where jobs come from.
#[derive(Clone, Debug)]
pub enum Source {
    /// The same jobs for every seed: documents, traces, fixed times.
    Listed(Vec<Arrival>),
    /// Other jobs for every seed.
    Drawn(Box<Drawn>),
    /// The same, of jobs that share the cores of their nodes.
    Learners(Box<Learners>),
}

impl Source {
    fn len(&self) -> usize {
        match self {
            Self::Listed(arrivals) => arrivals.len(),
            Self::Drawn(drawn) => drawn.len(),
            Self::Learners(learners) => learners.len(),
        }
    }

    /// The names of its jobs, which no seed changes.
    fn names(&self) -> Vec<Name> {
        match self {
            Self::Listed(arrivals) => arrivals.iter().map(|arrival| arrival.spec.name.clone()).collect(),
            Self::Drawn(drawn) => drawn.names().collect(),
            Self::Learners(learners) => learners.names().collect(),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Arrival {
    pub at: Instant,
    pub spec: Arc<JobSpec>,
    /// What it computes and sends. Without it the job works for `spec.work.alone` and sends nothing.
    pub training: Option<Arc<TrainingModel>>,
    /// What its owner asked for, where the scheduler may choose.
    pub asks: Option<Asks>,
    /// What it does in fact, where it shares cores and tells the scheduler nothing but what it reports.
    pub learning: Option<Arc<Lesson>>,
    /// What it is worth after each part of its work, where that was measured.
    pub quality: Option<Arc<Quality>>,
}

/// What the owner of a job asks for that may have other sizes, too: whoever ignores deadlines gives it that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asks {
    /// Members of the role that may have more or fewer.
    pub members: u32,
    /// The part of an iteration that one core does, where members are the cores of one process.
    pub serial: Option<Share>,
}

/// What the world itself takes, whatever the job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// From a start step to the first iteration.
    pub start: Duration,
    /// From a stop or preempt step to free nodes, beside the job's own checkpoint.
    pub stop: Duration,
}

/// How `round` is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rounds {
    /// From the beginning: decisions fall on multiples.
    #[default]
    OnMultiples,
    /// From the decision before: what happens after a quiet time is decided upon at once.
    FromLastDecision,
}

/// When jobs that are not trained on links free what they hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Departures {
    #[default]
    WhenDone,
    /// The cluster fills up until nothing fits any more, which is when the run ends.
    Never,
}

/// What goes wrong, on demand.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// A node is gone at `at`, which is said so long before, and comes back after `lasts`, if it does.
    Node { node: NodeId, at: Instant, lasts: Option<Duration>, notice: Duration },
    /// Members that are started on a node fail from `at` on, for so long or for ever.
    Spoilt { node: NodeId, at: Instant, lasts: Option<Duration> },
    /// Everything on a node takes `slowdown` times as long from `at` on, for so long or for ever.
    Slow { node: NodeId, at: Instant, lasts: Option<Duration>, slowdown: f64 },
    /// A cable carries only `rate` in each direction from `at` on, for so long or for ever; nothing, if no rate is said.
    Link { links: [LinkId; 2], at: Instant, lasts: Option<Duration>, rate: Option<Bandwidth> },
    /// A job does and says nothing from `at` on, if it trains then, for so long or until it is started anew.
    Hang { job: Name, at: Instant, lasts: Option<Duration> },
    /// The agent of a node handles traffic policies in this way from `at` on, for so long or for ever.
    Agent { node: NodeId, at: Instant, lasts: Option<Duration>, what: AgentFault },
    /// Each step fails, comes late by up to `delay`, or is lost, with these chances.
    Steps { fail: Share, late: Share, lost: Share, delay: Duration },
}

/// What is wrong with an agent that is asked for a traffic policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentFault {
    /// It applies the policy after this time.
    Late(Duration),
    /// It neither applies it nor answers.
    Deaf,
    /// It says that it has applied it, and has not.
    Wrong,
    /// It says that it cannot.
    Fails,
}

/// A job that saves its work may be stopped and moved; another is left alone.
fn capabilities(checkpointing: Option<Checkpointing>) -> Capabilities {
    if checkpointing.is_some() { Capabilities::CHECKPOINTED } else { Capabilities::START_ONLY }
}
