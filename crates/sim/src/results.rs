//! Figures from outcomes: what `sim compare` prints, as a table or as JSON.
//!
//! Every figure is defined here, once:
//!
//! - A job that was refused is counted, and has no other figure.
//! - `jct` runs from submission to completion. A job that never completes counts with the end of the run, also one
//!   that failed: giving up is no gain.
//! - `queueing` is all the time from submission to a job's own end in which it did not train.
//! - `slowdown` is, over completed jobs, iteration time over that of running alone at the same placement and size.
//!   Where the network is not modelled it is the time a job trained over the time its work takes alone. Waiting,
//!   saving and starting again are not in it; work that was lost and done twice is.
//! - `exchange` is, over completed jobs, the mean time of an iteration beside its compute: sending that compute did not
//!   hide, alone or because others sent, too. `null` where the network is not modelled.
//! - `quality` runs from submission to the time from which on a job was worth so many hundredths of what it is in the end;
//!   one that never was counts with the end of the run. `null` where it is not known what jobs learn.
//! - `makespan` is the last end minus the first submission.
//! - `link_utilisation` is bytes carried over what the same links could have carried from the first start to the last
//!   end, over the links that carried anything; `null` where the network is not modelled.
//! - `gpu_utilisation` is GPU-time spent training over capacity, from the first start to the last end.
//! - `gpu_allocated.peak` is the most GPUs that jobs held at once, over capacity. Where nobody leaves it is what the
//!   cluster holds when it is full.
//! - `cpu_allocated_utilisation` is, over jobs of one process, core-time in which cores computed over core-time in which
//!   the job had them while it trained: while one core does its part alone, the others are idle. `nearly_parallel` is
//!   the same over those of which one core does at most a hundredth.
//! - `deadlines` counts jobs that have one: met means completed by then; one that was refused, or failed, is missed.
//! - `best_effort` is about jobs without a deadline, or with one that binds nobody.
//! - `resizes` counts changes of size by saving and starting again, `resizes_in_place` those of jobs that went on.
//! - `reconfigurations` counts what was changed for running jobs because of links, cores or nodes, lanes and places, by what
//!   had become other than it was.
//! - `link_answer_s` runs from the change of a link to the first decision that knew of it, whatever it decided: `null`
//!   where no link changed.
//! - Percentiles are by nearest rank, the median too. What nothing was measured for is `null`.

mod figures;
mod measure;
mod per_job;
pub(crate) mod statistics;
mod summary;

use serde::{Deserialize, Serialize};

use crate::outcome::Outcome;

pub use figures::{
    Allocated, BestEffort, Bound, ByPriority, Class, CpuUtilisation, Deadlines, Decisions, ExchangeSeconds,
    Figures, JctSeconds, Jobs, LinkAnswerSeconds, QualitySeconds, QueueingSeconds, Reconfigurations,
    Slowdown, Utilisation,
};
pub(crate) use measure::queueing_time;
pub use per_job::per_job_csv;

/// The document of `sim compare --output json`. A change that removes or renames a key raises `version`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    pub version: u32,
    pub scenario: String,
    /// One entry for each run, by policy, then seed.
    pub results: Vec<RunResult>,
    /// One entry for each policy: means over its seeds.
    pub summary: Vec<PolicySummary>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    pub policy: String,
    pub seed: u64,
    #[serde(flatten)]
    pub figures: Figures<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PolicySummary {
    pub policy: String,
    #[serde(flatten)]
    pub figures: Figures<f64>,
}

impl Comparison {
    pub const VERSION: u32 = 1;

    pub fn of(scenario: &str, outcomes: &[Outcome]) -> Self {
        let results: Vec<RunResult> = outcomes.iter().map(RunResult::of).collect();
        let summary = summary::by_policy(&results);
        Self { version: Self::VERSION, scenario: scenario.to_owned(), results, summary }
    }

    /// The same without wall-clock times: equal inputs then give equal bytes, on any machine.
    #[must_use]
    pub fn without_times(mut self) -> Self {
        self.results.iter_mut().for_each(|result| result.figures.decisions.forget_times());
        self.summary.iter_mut().for_each(|summary| summary.figures.decisions.forget_times());
        self
    }
}

impl RunResult {
    pub fn of(outcome: &Outcome) -> Self {
        Self { policy: outcome.policy.clone(), seed: outcome.seed, figures: measure::figures(outcome) }
    }
}

#[cfg(test)]
mod tests;
