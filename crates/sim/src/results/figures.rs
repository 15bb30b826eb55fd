//! The shape of the figures. Counts are whole numbers in a run and means in a summary, hence `C`; the keys are the
//! same in both. Names are a contract with scripts: see `docs/reference/compare.schema.json`.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures<C> {
    pub jobs: Jobs<C>,
    pub jct_s: JctSeconds,
    pub makespan_s: Option<f64>,
    /// Nothing where it is not known what jobs learn.
    #[serde(default)]
    pub quality_s: QualitySeconds,
    pub queueing_s: QueueingSeconds,
    pub slowdown: Slowdown,
    /// Nothing where the network is not modelled.
    pub exchange_s: ExchangeSeconds,
    /// Nothing where the network is not modelled.
    pub link_utilisation: Utilisation,
    pub gpu_utilisation: Utilisation,
    #[serde(default)]
    pub gpu_allocated: Allocated,
    /// Nothing where no job is one process on several cores.
    pub cpu_allocated_utilisation: CpuUtilisation,
    pub deadlines: Deadlines<C>,
    /// Jobs without a deadline, or with one that binds nobody.
    #[serde(default)]
    pub best_effort: BestEffort<C>,
    pub by_priority: ByPriority,
    pub moves: C,
    /// By saving and starting again.
    pub resizes: C,
    /// While jobs ran.
    #[serde(default)]
    pub resizes_in_place: C,
    pub preemptions: C,
    /// What was changed for running jobs because of links, cores or nodes, by reason.
    #[serde(default)]
    pub reconfigurations: Reconfigurations<C>,
    /// From the change of a link to the first decision that knew of it; nothing where no link changed.
    #[serde(default)]
    pub link_answer_s: LinkAnswerSeconds,
    pub decisions: Decisions<C>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Jobs<C> {
    pub submitted: C,
    pub completed: C,
    pub refused: C,
    pub failed: C,
    /// Those of the unfinished that held what others needed.
    pub deadlocked: C,
    /// Neither completed nor refused nor failed when the run ended; the deadlocked are among them.
    pub unfinished: C,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JctSeconds {
    pub mean: Option<f64>,
    pub median: Option<f64>,
    pub p90: Option<f64>,
    pub p99: Option<f64>,
}

/// Means of the time from submission to such a share, in hundredths, of what a training is worth in the end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct QualitySeconds {
    pub to_90: Option<f64>,
    pub to_95: Option<f64>,
    pub to_99: Option<f64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct QueueingSeconds {
    pub mean: Option<f64>,
    pub p99: Option<f64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Slowdown {
    pub mean: Option<f64>,
    pub p99: Option<f64>,
    pub max: Option<f64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExchangeSeconds {
    pub mean: Option<f64>,
    pub p99: Option<f64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Utilisation {
    pub mean: Option<f64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuUtilisation {
    pub mean: Option<f64>,
    /// Of the jobs of which one core does at most a hundredth.
    #[serde(default)]
    pub nearly_parallel: Option<f64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Allocated {
    pub peak: Option<f64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Deadlines<C> {
    pub total: C,
    pub met: C,
    /// The part of them that were met.
    #[serde(default)]
    pub share: Option<f64>,
    /// The same by how much they bind.
    #[serde(default)]
    pub strict: Bound<C>,
    #[serde(default)]
    pub soft: Bound<C>,
    #[serde(default)]
    pub best_effort: Bound<C>,
    /// Of jobs for which something was booked at some time.
    #[serde(default)]
    pub admitted: Bound<C>,
    /// Of jobs that were promised to be in time.
    #[serde(default)]
    pub promised: Bound<C>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bound<C> {
    pub total: C,
    pub met: C,
    pub missed: C,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BestEffort<C> {
    pub jobs: C,
    pub jct_mean_s: Option<f64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ByPriority {
    pub high: Class,
    pub normal: Class,
    pub low: Class,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Class {
    pub jct_mean_s: Option<f64>,
    pub slowdown_mean: Option<f64>,
    pub slowdown_p99: Option<f64>,
}

/// By what had become other than it was: see `metronome_core::traffic::decision_inputs`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reconfigurations<C> {
    pub arrival: C,
    pub departure: C,
    pub link: C,
    pub profile: C,
    pub drift: C,
    pub priorities: C,
    pub room: C,
    #[serde(default)]
    pub fragmentation: C,
    #[serde(default)]
    pub slow_node: C,
    #[serde(default)]
    pub drained: C,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkAnswerSeconds {
    pub mean: Option<f64>,
    pub max: Option<f64>,
}

/// The times are wall-clock times of this machine; they never enter a committed result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Decisions<C> {
    pub count: C,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_ms: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_ms: Option<f64>,
}

impl<C> Decisions<C> {
    pub(super) fn forget_times(&mut self) {
        (self.p50_ms, self.p99_ms) = (None, None);
    }
}
