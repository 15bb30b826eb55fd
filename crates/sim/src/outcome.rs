//! What happened in one simulation, as facts; `results` makes figures of them.

use crate::encounter::Encounter;
use metronome_core::model::cluster::Name;
use metronome_core::model::id::NodeId;
use metronome_core::model::job::{Binding, Priority};
use metronome_core::model::report::Reason;
use metronome_core::model::units::{Bandwidth, Duration, GpuTime, Gpus, Instant, Share};
use metronome_core::traffic::decision_inputs::{What, Why};

/// How a job ended, if it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Completed,
    Refused,
    Failed,
    Unfinished,
    /// Unfinished, and it held what others needed while it waited for what they held.
    Deadlocked,
}

/// What a job did with the nodes it had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    Training,
    /// It waits for the rest of its gang, or starts, saves or stops.
    Holding,
}

/// A stretch of time in which a job had the same nodes and did the same with them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    pub kind: Use,
    pub from: Instant,
    pub to: Instant,
    pub nodes: Vec<NodeId>,
}

/// How a job with a deadline was taken on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Taken {
    /// Something was booked for it, which might have gone to others.
    Planned,
    /// It was promised to be in time.
    Promised,
}

/// The cores of a process, in core-seconds while it trained.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CpuUse {
    /// The part of its work that one core does while the others are idle.
    pub serial: Share,
    /// In which cores computed.
    pub used: f64,
    /// In which it had them.
    pub held: f64,
}

impl CpuUse {
    pub fn none(serial: Share) -> Self {
        Self { serial, used: 0.0, held: 0.0 }
    }
}

/// Shares of what a training is worth in the end, of which it is told when they are reached: in hundredths.
pub const MILESTONES: [u32; 3] = [90, 95, 99];

#[derive(Clone, Debug)]
pub struct JobOutcome {
    pub name: Name,
    /// The model it trains, where the scenario names one.
    pub model: Option<String>,
    pub priority: Priority,
    /// How much its user counts.
    pub user: Share,
    pub submit: Instant,
    /// When it first trained.
    pub start: Option<Instant>,
    /// When it completed, failed or was refused.
    pub end: Option<Instant>,
    /// The time in which it trained.
    pub ran: Duration,
    /// The time its work takes alone, at the size it asked for.
    pub alone: Duration,
    pub deadline: Option<Instant>,
    /// How much its deadline binds, where it has one.
    pub binding: Option<Binding>,
    /// Whether it was ever taken on to be in time.
    pub taken: Option<Taken>,
    /// What it used of its cores, where it is one process on several of them.
    pub cpu: Option<CpuUse>,
    pub gpus: Gpus,
    pub members: u32,
    /// The nodes of its last assignment.
    pub nodes: u32,
    pub fate: Fate,
    pub preemptions: u32,
    pub moves: u32,
    /// Changes of size by saving and starting again.
    pub resizes: u32,
    /// Changes of size while it ran.
    pub resizes_in_place: u32,
    /// When it was worth each of the `MILESTONES`, where it is known what it learns.
    pub reached: Option<[Option<Instant>; 3]>,
    /// Why it last waited.
    pub wait_reason: Option<Reason>,
    /// Its mean iteration time over that of running alone at the same placement and size, where the network is
    /// modelled.
    pub slowdown: Option<f64>,
    /// The seconds of an iteration in which it did not compute, on average, where the network is modelled.
    pub exchange: Option<f64>,
    /// In order of time, without overlap. Empty where nobody kept them.
    pub segments: Vec<Segment>,
}

/// What one directed link carried in a run.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkLoad {
    pub name: String,
    /// The level of the topology that it leaves: `node`, `rack`, …
    pub level: String,
    pub rate: Bandwidth,
    /// Bytes, over the whole run.
    pub carried: f64,
    /// The same, by stretches of `Outcome::bin` from the beginning of the run.
    pub bins: Vec<f64>,
}

/// How often something was changed for running jobs, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reconfigured {
    pub arrival: u64,
    pub departure: u64,
    pub link: u64,
    pub profile: u64,
    pub drift: u64,
    pub priorities: u64,
    pub room: u64,
    pub fragmentation: u64,
    pub slow_node: u64,
    pub drained: u64,
}

impl Reconfigured {
    pub fn add(&mut self, why: Why) {
        *match why {
            Why::Arrival { .. } => &mut self.arrival,
            Why::Departure { .. } => &mut self.departure,
            Why::Link { .. } => &mut self.link,
            Why::Profile { .. } => &mut self.profile,
            // No agent measures a simulated job, so the second does not occur here.
            Why::Drift { .. } | Why::SlowerThanFair { .. } => &mut self.drift,
            Why::Priorities => &mut self.priorities,
            Why::Room => &mut self.room,
            Why::Fragmentation { .. } => &mut self.fragmentation,
            Why::SlowNode { .. } => &mut self.slow_node,
            Why::Drained { .. } => &mut self.drained,
        } += 1;
    }
}

/// Something that was changed for running jobs, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    pub at: Instant,
    pub because: Because,
    pub what: What,
    /// For whom.
    pub jobs: Vec<Name>,
    /// Training time that all are predicted to save together.
    pub saves: Duration,
}

/// What had become other than it was, by name: see `metronome_core::traffic::decision_inputs::Why`.
#[derive(Clone, Debug, PartialEq)]
pub enum Because {
    Arrival(Name),
    Departure(Name),
    Link { name: String, was: Bandwidth, is: Bandwidth },
    Profile(Name),
    Drift(Name),
    Priorities,
    Room,
    Fragmentation(Name),
    SlowNode(Name),
    Drained(Name),
}

#[derive(Clone, Debug)]
pub struct Outcome {
    pub policy: String,
    pub seed: u64,
    /// In the order of the scenario.
    pub jobs: Vec<JobOutcome>,
    /// When no event could change anything any more.
    pub ended: Instant,
    pub gpu_capacity: Gpus,
    /// The most GPUs that jobs held at once, where that is known.
    pub gpu_peak: Option<Gpus>,
    /// GPU-time spent training.
    pub gpu_busy: GpuTime,
    /// Empty where the network is not modelled.
    pub links: Vec<LinkLoad>,
    /// How long each bin of a link is.
    pub bin: Duration,
    /// How jobs met on a link when it mattered most, where the network is modelled and somebody kept it.
    pub encounter: Option<Encounter>,
    /// How often jobs were given other lanes.
    pub lane_changes: u64,
    /// What was changed for running jobs, in order of time. Empty where nobody kept it.
    pub changes: Vec<Change>,
    pub events: u64,
    /// Plans that the engine's checker refused. Anything but zero is a bug.
    pub alarms: u64,
    pub last_alarm: Option<String>,
    /// What the world itself caught: nodes that held too much, gangs that were not whole.
    pub violations: Vec<String>,
    /// From each change of a link to the first decision that knew of it.
    pub link_answers: Vec<Duration>,
    /// What was changed for running jobs, by reason.
    pub reconfigured: Reconfigured,
    /// Wall-clock time of each decision, in nanoseconds. Never part of a committed result.
    pub decision_nanos: Vec<u64>,
}

impl Outcome {
    /// What is known where only the jobs were watched: the run ends with the last of them.
    pub fn of_jobs(policy: &str, jobs: Vec<JobOutcome>, gpu_capacity: Gpus) -> Self {
        let busy = jobs.iter().map(|job| GpuTime::of(job.gpus, job.ran));
        Self {
            policy: policy.to_owned(),
            seed: 0,
            gpu_busy: busy.fold(GpuTime::default(), |a, b| a + b),
            ended: jobs.iter().filter_map(|job| job.end).max().unwrap_or_default(),
            jobs,
            gpu_capacity,
            gpu_peak: None,
            links: Vec::new(),
            bin: Duration::ZERO,
            encounter: None,
            lane_changes: 0,
            changes: Vec::new(),
            events: 0,
            alarms: 0,
            last_alarm: None,
            violations: Vec::new(),
            link_answers: Vec::new(),
            reconfigured: Reconfigured::default(),
            decision_nanos: Vec::new(),
        }
    }
}
