//! `metronome local run`

mod table;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use metronome_core::journal::Journal;
use metronome_local::world::{self, Fate, Told};
use metronome_sim::scenario::Scenario;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::ScenarioFile;
use crate::journal::JournalFile;
use crate::local::{Asked, WorldArgs, setup};
use crate::policies;
use crate::reply::{Format, Reply};
use table::Comparison;
pub(crate) use table::Measured;

/// Run the jobs of a scenario for real on this machine, under one policy or several, one after the other
///
/// Nodes are network namespaces, links are shaped, members are processes: the trainer that comes with Metronome, or the
/// job's own `command`. One factor divides all rates and bytes; times stay as they are, so that iteration times are those
/// that the simulator predicts for the same file, which are printed beside them. Without root, members are plain processes
/// without shaped links. A run that was killed is taken up by the same command. When a member fails, the last lines of its
/// log are printed, and where the log lies.
#[derive(Debug, Args)]
pub(crate) struct LocalRun {
    #[command(flatten)]
    scenario: ScenarioFile,
    /// Policies to run, separated by commas; `sim policies` lists them
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "metronome")]
    policies: Vec<String>,
    #[command(flatten)]
    world: WorldArgs,
    /// Record events and decisions of the last run in FILE, for `explain` and `replay`
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// How to print it
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    output: Format,
}

pub(crate) fn run(args: &LocalRun) -> Result<Reply, Failure> {
    let scenario = args.scenario.read()?;
    let asked = args.world.asked();
    let stop = stopped_by_signals()?;
    let mut comparison = Comparison::of(&scenario, asked.scale, asked.seed);
    for name in &args.policies {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        if args.policies.len() > 1 {
            let _ = writeln!(std::io::stderr().lock(), "{name}:");
        }
        comparison.runs.push(measure(&scenario, name, &asked, args.journal.as_deref(), &stop)?);
    }
    let is_done =
        comparison.runs.iter().flat_map(|run| &run.outcome.jobs).all(|job| job.fate == Fate::Completed);
    let reply = match args.output {
        Format::Json => Reply::json(&comparison.document()),
        Format::Human => Reply::text(comparison.text()),
    };
    Ok(if is_done { reply } else { reply.ending(Exit::FellShort) })
}

/// Runs a scenario under one policy.
pub(crate) fn measure(
    scenario: &Scenario,
    name: &str,
    asked: &Asked,
    journal: Option<&Path>,
    stop: &AtomicBool,
) -> Result<Measured, Failure> {
    let policy = policies::find(name, scenario)?;
    let setup = setup(scenario, policy.clone(), asked)?;
    let folder = asked.root.join(&asked.world);
    let records: Vec<PathBuf> = setup.jobs.iter().map(|job| folder.join(job.record())).collect();
    let journal = journal.map(JournalFile::create).transpose()?;
    let kept = journal.clone().map(|file| Box::new(file) as Box<dyn Journal + Send>);
    let outcome = world::run(setup, kept, stop, &mut |told| say(&told));
    let outcome = outcome.map_err(|error| Failure::from_world(&error))?;
    journal.map_or(Ok(()), JournalFile::finish)?;
    Ok(Measured::read(name, outcome, records, scenario, policy, asked.seed))
}

pub(crate) fn stopped_by_signals() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT] {
        signal_hook::flag::register(signal, stop.clone())
            .map_err(|error| Failure::world("listen to signals").because(&error))?;
    }
    Ok(stop)
}

/// If nobody listens there is nobody to tell.
pub(crate) fn say(told: &Told<'_>) {
    let text = match told {
        Told::Missing { what, follows } => format!("{what} is missing: {follows}"),
        Told::Adopted { jobs } => format!("an earlier run goes on: {jobs} jobs run"),
        Told::Started { job, nodes } => format!("{job} runs on {}", nodes.join(", ")),
        Told::MemberFailed { job, why, log, last_lines } => {
            table::failure_text(&format!("{job}: {why}"), *log, last_lines).trim_end().to_owned()
        }
        Told::Restarted { job, why } => format!("{job} is started again: {why}"),
        Told::Moved { job, nodes } => format!("{job} moves to {}", nodes.join(", ")),
        Told::Resized { job, cores } => format!("{job} has {cores} cores now"),
        Told::Ended { job, how } => format!("{job} {how}"),
        Told::Trouble { job: Some(job), what } => format!("{job}: {what}"),
        Told::Trouble { job: None, what } => format!("warning: {what}"),
        Told::AgentRestarted => "the agent had ended and was started again".to_owned(),
        Told::Observed { .. } => return,
    };
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}
