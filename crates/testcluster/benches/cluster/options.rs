//! What to measure, and how much of it.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};

use crate::scenarios::Scenario;
use crate::schedulers::Scheduler;

/// Measure schedulers side by side on a real API server
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench cluster")]
pub(crate) struct Options {
    /// Measure only this; may be given several times
    #[arg(long = "scenario", value_enum)]
    scenarios: Vec<Scenario>,
    /// Measure only this one; may be given several times
    #[arg(long = "scheduler", value_enum)]
    schedulers: Vec<Scheduler>,
    /// How many trials of each scheduler the medians are of [default: 5, or 1 with --quick]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: Option<u16>,
    /// How many jobs are created at once [default: 2000, or 50 with --quick]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// The binary to measure [default: that of the same build]
    #[arg(long, value_name = "FILE")]
    pub(crate) metronome: Option<PathBuf>,
    /// A tenth of everything: to see that it works, not to measure
    #[arg(long)]
    quick: bool,
    /// Cargo gives it to every benchmark
    #[arg(long = "bench", hide = true)]
    _bench: bool,
}

/// How much of everything there is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) rounds: usize,
    pub(crate) nodes: usize,
    pub(crate) singles: usize,
    pub(crate) gangs: usize,
    pub(crate) members: usize,
    pub(crate) large_gang: usize,
    pub(crate) unschedulable: usize,
    /// How long a scheduler is watched that can do nothing.
    pub(crate) idle: Duration,
    /// Pods that run already when a scheduler is restarted.
    pub(crate) bound: usize,
    /// Jobs whose pods their controllers make, and members of each.
    pub(crate) jobs: usize,
    pub(crate) job_members: usize,
}

const FULL: Sizes = Sizes {
    rounds: 5,
    nodes: 1_000,
    singles: 5_000,
    gangs: 200,
    members: 16,
    large_gang: 512,
    unschedulable: 2_000,
    idle: Duration::from_secs(30),
    bound: 20_000,
    jobs: 2_000,
    job_members: 8,
};

const QUICK: Sizes = Sizes {
    rounds: 1,
    nodes: 100,
    singles: 500,
    gangs: 20,
    members: 16,
    large_gang: 64,
    unschedulable: 200,
    idle: Duration::from_secs(5),
    bound: 2_000,
    jobs: 50,
    job_members: 8,
};

impl Options {
    pub(crate) fn sizes(&self) -> Sizes {
        let sizes = if self.quick { QUICK } else { FULL };
        Sizes {
            rounds: self.rounds.map_or(sizes.rounds, usize::from),
            jobs: self.jobs.map_or(sizes.jobs, usize::from),
            ..sizes
        }
    }

    pub(crate) fn scenarios(&self) -> Vec<Scenario> {
        or_all(&self.scenarios)
    }

    pub(crate) fn schedulers(&self) -> Vec<Scheduler> {
        or_all(&self.schedulers)
    }
}

fn or_all<T: ValueEnum + Copy>(chosen: &[T]) -> Vec<T> {
    let source = if chosen.is_empty() { T::value_variants() } else { chosen };
    source.to_vec()
}
