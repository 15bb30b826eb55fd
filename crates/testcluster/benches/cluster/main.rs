//! `cargo xtask bench cluster`: schedulers side by side, as processes, against one real API server and etcd with
//! simulated nodes. Prints one JSON line a trial, then a table of medians with ratios, then which bars are met.
//!
//! What makes the figures comparable:
//! - The schedulers take turns within a round, and the first of a round is another in the next, so that a machine that
//!   grows slower or busier is so for all. What is reported is the median of the rounds.
//! - Every trial has a control plane of its own: nothing of an earlier one is left in etcd, in the watch cache or in
//!   memory. To start one takes no longer than to delete thousands of pods. Only the restarts share one, because its
//!   pods take longest to create and are not touched.
//! - Pods are created before a scheduler starts, except where it is measured how soon it reacts: on a small machine
//!   the creation of pods is slower than every scheduler, and would be what is measured.
//! - Nodes are objects only. No kubelet runs a pod, so that the API server works for the scheduler alone. Jobs are the
//!   exception: their controllers write about pods that run, so kubelets run them. What these write is not counted.
//! - Jobs are measured with everything that they need: a `TrainingJob` needs Metronome; a JobSet needs JobSet's
//!   controller, of kube-controller-manager the one for jobs, and kube-scheduler; a job of Volcano's needs its
//!   controllers and its scheduler. All three give their members names to find one another by. What else a
//!   kube-controller-manager does is the same for all and left out. JobSets are placed pod by pod, the others as gangs.
//! - All serve the same `schedulerName`, as the same user, with leader election off, client limits raised as far as
//!   nobody meets them, and an API server without flow control. All else is as each ships it.
//! - Times are when a watch of ours saw a pod bound, with a selector that passes nothing else.
//! - CPU time and writes are counted until the API server has gone a second without a write, for at most a quarter of
//!   a minute: the events that trail behind the last bind are part of the cost of scheduling. See [`cost`] for what
//!   counts as a write.
//! - A trial whose scheduler puts more on a node than it has is no result.

mod bars;
mod cast;
mod cost;
mod figures;
mod jobs;
mod options;
mod results;
mod scenarios;
mod schedulers;
mod sightings;
mod stage;
mod table;
mod work;

use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use clap::Parser;

use options::{Options, Sizes};
use results::{Results, Trial};
use scenarios::{Ground, Scenario};
use schedulers::Contestant;

#[tokio::main]
async fn main() -> ExitCode {
    match run(&Options::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: cannot {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(options: &Options) -> Result<()> {
    let sizes = options.sizes();
    let contestants = schedulers::contestants(options);
    let mut results = Results::default();
    for scenario in options.scenarios() {
        let ground = scenario.ground(&sizes, &contestants).await?;
        for round in 0..sizes.rounds {
            play(scenario, round, &ground, &contestants, &sizes, &mut results).await;
        }
    }
    table::print(&results, &sizes);
    bars::print(&results);
    Ok(())
}

/// One trial of each scheduler. One that fails is a result, too.
async fn play(
    scenario: Scenario,
    round: usize,
    ground: &Ground,
    contestants: &[Contestant],
    sizes: &Sizes,
    results: &mut Results,
) {
    for turn in 0..contestants.len() {
        let contestant = &contestants[(round + turn) % contestants.len()];
        if scenario.sits_out(contestant.scheduler, round) {
            continue;
        }
        let begin = Instant::now();
        let outcome = scenario.trial(round, ground, contestant, sizes).await;
        let took = begin.elapsed();
        results.note(Trial { scenario, round, scheduler: contestant.scheduler, took, outcome });
    }
}
