//! What a member is to do, as whoever starts it says.

use metronome_core::model::profile::Iteration;
use metronome_core::model::units::Duration;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Task {
    /// What one iteration computes and exchanges, in bytes as they go over the wire here.
    pub iteration: Iteration,
    pub iterations: u64,
    /// By how much the compute of each iteration is longer than usual, the same for all members of a job. After the last
    /// it begins again with the first; nothing varies where there is none.
    #[serde(default)]
    pub stretches: Vec<f64>,
    #[serde(default)]
    pub compute: Compute,
    #[serde(default)]
    pub learns: Curve,
    #[serde(default)]
    pub saves: Saves,
    #[serde(default)]
    pub notes: Notes,
}

impl Task {
    pub(crate) fn stretch(&self, iteration: u64) -> f64 {
        let count = self.stretches.len().max(1) as u64;
        self.stretches.get((iteration % count) as usize).copied().unwrap_or(1.0)
    }
}

/// How the time of compute passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Compute {
    /// As on a device of its own: the processor sleeps.
    #[default]
    Sleeps,
    /// On the processor: so much of an iteration is done by one core while the others wait, the rest by all there are.
    /// The iteration's time is that on one core.
    Burns { serial: f64, most_cores: f64 },
}

/// What is learned: the loss after `k` iterations is 1/(ak + b) + c, and a little noise.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Curve {
    pub a: f64,
    pub b: f64,
    pub c: f64,
    /// Training is over once the loss is so small.
    #[serde(default)]
    pub target: Option<f64>,
}

impl Default for Curve {
    fn default() -> Self {
        Self { a: 0.01, b: 0.4, c: 0.1, target: None }
    }
}

impl Curve {
    pub(crate) fn loss(&self, iterations: u64) -> f64 {
        1.0 / (self.a * iterations as f64 + self.b) + self.c
    }
}

/// What is written down of a training, where there is a place for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Notes {
    /// How long each iteration took.
    #[default]
    Iterations,
    /// Also when the bytes came over the wire that the first on the ring has sent: `heard.csv`, beside the iterations.
    Bytes,
}

/// When a job saves its work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Saves {
    /// Only when it is asked to leave, where nothing is said.
    #[serde(default)]
    pub every: Option<Duration>,
    /// All members wait for so long while it is written.
    #[serde(default)]
    pub takes: Duration,
}
