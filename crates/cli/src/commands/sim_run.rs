//! `metronome sim run`

use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;

use metronome_core::journal::Journal;
use metronome_core::model::policy::Policy;
use metronome_sim::outcome::{Fate, JobOutcome, Outcome};
use metronome_sim::scenario::Scenario;
use metronome_sim::world::{self, RunOptions};

use crate::commands::sim_compare::{FigureOptions, watched};
use crate::failure::Failure;
use crate::input::ScenarioFile;
use crate::journal::JournalFile;
use crate::names::InScenario;
use crate::policies;
use crate::progress::Progress;
use crate::reply::{Format, Reply};
use crate::table;
use metronome_words::sentence;

/// Simulate a scenario once and print its figures, and why jobs did not complete
#[derive(Debug, Args)]
pub(crate) struct SimRun {
    #[command(flatten)]
    scenario: ScenarioFile,
    /// Policy to decide by; `sim policies` lists them
    #[arg(long, value_name = "NAME", default_value = "metronome")]
    policy: String,
    /// Seed of everything that is left to chance
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Record events and decisions in FILE, for `explain` and `replay`
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    #[command(flatten)]
    figures: FigureOptions,
}

pub(crate) fn run(args: &SimRun) -> Result<Reply, Failure> {
    let scenario = args.scenario.read()?;
    let policy = policies::find(&args.policy, &scenario)?;
    let per_job = args.figures.open_per_job()?;
    let journal = args.journal.as_deref().map(JournalFile::create).transpose()?;
    let outcomes = [simulate(&scenario, policy, args.seed, journal.clone())];
    journal.map_or(Ok(()), JournalFile::finish)?;
    per_job.write(&outcomes)?;
    let comparison = args.figures.figures(&scenario.name, &outcomes);
    let reply = match args.figures.output {
        Format::Json => Reply::json(&comparison),
        Format::Human => Reply::text(table::single(&comparison) + &left_behind(&scenario, &outcomes[0])),
    };
    Ok(watched(reply, &outcomes))
}

fn simulate(scenario: &Scenario, policy: Policy, seed: u64, journal: Option<JournalFile>) -> Outcome {
    let progress = Progress::of(1, scenario.job_count());
    let journal = journal.map(|file| Box::new(file) as Box<dyn Journal + Send>);
    let options = RunOptions { seed, journal, ..RunOptions::new(policy) };
    world::run(scenario, options, &|at| progress.step(0, at))
}

/// The jobs that did not complete, with the reason each gave last.
fn left_behind(scenario: &Scenario, outcome: &Outcome) -> String {
    const MOST: usize = 10;
    let left: Vec<&JobOutcome> = outcome.jobs.iter().filter(|job| job.fate != Fate::Completed).collect();
    let mut text = String::new();
    if !left.is_empty() {
        text.push_str("\nnot completed:\n");
    }
    for job in left.iter().take(MOST) {
        let reason =
            job.wait_reason.as_ref().map(|reason| format!(": {}", sentence(reason, &InScenario(scenario))));
        writeln!(text, "  {} {}{}", job.name, verdict(job.fate), reason.unwrap_or_default())
            .expect("a string");
    }
    if left.len() > MOST {
        writeln!(text, "  … and {} more", left.len() - MOST).expect("a string takes everything");
    }
    text
}

fn verdict(fate: Fate) -> &'static str {
    match fate {
        Fate::Completed => "completed",
        Fate::Refused => "was refused",
        Fate::Failed => "failed",
        Fate::Unfinished => "is unfinished",
        Fate::Deadlocked => "is deadlocked, holding what others need",
    }
}
