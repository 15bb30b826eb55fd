//! What a world is to be, and what is to run in it.

use std::path::PathBuf;
use std::sync::Arc;

use metronome_core::model::cluster::Cluster;
use metronome_core::model::id::{IdVec, LinkId, NodeId, QueueId};
use metronome_core::model::job::JobSpec;
use metronome_core::model::policy::Policy;
use metronome_core::model::queue::Queue;
use metronome_core::model::units::{Bandwidth, Duration};

use crate::links::Scale;
use crate::names::WorldName;
use crate::process::Launcher;

#[derive(Clone, Debug)]
pub struct Setup {
    pub world: WorldName,
    /// The folder in which worlds have theirs.
    pub root: PathBuf,
    pub cluster: Cluster,
    pub queues: IdVec<QueueId, Queue>,
    pub policy: Policy,
    pub scale: Scale,
    pub jobs: Vec<Job>,
    /// What is arranged to go wrong, in order of time.
    pub mishaps: Vec<(Duration, Mishap)>,
    pub programs: Programs,
}

impl Setup {
    /// Nothing takes longer than to save, to leave and to begin again.
    pub(super) fn longest_step(&self) -> Duration {
        let costs = self.jobs.iter().filter_map(|job| job.spec.checkpointing);
        let longest = costs.map(|costs| costs.takes.times(3) + costs.restart).max().unwrap_or_default();
        longest + Duration::MINUTE
    }
}

/// What this executable does in other roles.
#[derive(Clone, Debug)]
pub struct Programs {
    pub shim: Launcher,
    /// The words that start an agent, before `--dir`; none, if there is to be no agent.
    pub agent: Option<Vec<String>>,
}

#[derive(Clone, Debug)]
pub struct Job {
    /// When it is submitted, after the world began.
    pub at: Duration,
    pub spec: Arc<JobSpec>,
    /// What the members of each role run.
    pub programs: Vec<Program>,
    /// What they are to do, for those who read it: the file is named by `METRONOME_TASK`.
    pub task: Option<serde_json::Value>,
    /// Its members are the cores of one process.
    pub is_one_process: bool,
    /// How often in a row it may fail before it has failed for good.
    pub failures: u32,
}

impl Job {
    /// What it is called everywhere: its namespace and its name.
    pub fn key(&self) -> String {
        let name = &*self.spec.name;
        if name.contains('/') { name.to_owned() } else { format!("default/{name}") }
    }

    /// The table of its iterations, in the folder of its world.
    pub fn record(&self) -> PathBuf {
        PathBuf::from("jobs").join(self.key()).join("iterations.csv")
    }
}

#[derive(Clone, Debug, Default)]
pub struct Program {
    pub command: Vec<String>,
    /// It waits for its turn by itself, as the SDK does; others are frozen until it comes.
    pub keeps_turns: bool,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mishap {
    Vanishes(NodeId),
    IsBack(NodeId),
    Carries(LinkId, Bandwidth),
}
