//! `metronome sim import`

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use metronome_core::units::Duration;
use metronome_sim::import::{self, ImportOptions, MuriOptions, TimeFrom};

use crate::failure::Failure;
use crate::reply::Reply;

/// Turn a published trace into a scenario, with the semantics of the simulator it comes from
#[derive(Debug, Args)]
pub(crate) struct SimImport {
    /// Where the trace comes from
    format: TraceFormat,
    /// Trace to read
    file: PathBuf,
    /// Where to write the scenario
    #[arg(short, long, value_name = "SCENARIO")]
    out: PathBuf,
    /// Nodes of the cluster; 16 if not given, 8 for muri
    #[arg(long, value_name = "N")]
    nodes: Option<NonZeroU32>,
    /// GPUs on each node
    #[arg(long, value_name = "G", default_value = "8")]
    gpus_per_node: NonZeroU32,
    /// Take the first N jobs only
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// muri: decide at multiples of TIME only; 360s if not given, 0s for at any time
    #[arg(long, value_name = "TIME")]
    round: Option<Duration>,
    /// muri: which columns say how long a job takes; duration if not given
    #[arg(long, value_enum, value_name = "COLUMNS")]
    time: Option<Time>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TraceFormat {
    /// The CSV of the Tiresias simulator: GPUs as one pool, whole seconds, free preemption
    Tiresias,
    /// The job log of Microsoft's Philly cluster
    Philly,
    /// The CSV of Muri's simulator and testbed: rounds of 360 s, 30 s for every start, free preemption
    Muri,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Time {
    /// `duration`: what schedulers are told
    Duration,
    /// `iterations` times `iteration_time`: what a testbed carries out
    Iterations,
}

pub(crate) fn run(args: &SimImport) -> Result<Reply, Failure> {
    refuse_rounds_elsewhere(args)?;
    let options = args.options();
    let imported = match args.format {
        TraceFormat::Tiresias => import::tiresias(&args.file, options)?,
        TraceFormat::Philly => import::philly(&args.file, options)?,
        TraceFormat::Muri => import::muri(&args.file, options, args.muri())?,
    };
    import::write(&imported, &args.out).map_err(|error| Failure::from_world(&error))?;
    Ok(Reply::nothing().remarking(format!("{}: {}", args.out.display(), imported.report)))
}

impl SimImport {
    fn options(&self) -> ImportOptions {
        let usual = NonZeroU32::new(if self.format == TraceFormat::Muri { 8 } else { 16 });
        let nodes = self.nodes.or(usual).unwrap_or(NonZeroU32::MIN);
        ImportOptions { nodes, gpus_per_node: self.gpus_per_node, limit: self.limit }
    }

    fn muri(&self) -> MuriOptions {
        let time = match self.time.unwrap_or(Time::Duration) {
            Time::Duration => TimeFrom::Duration,
            Time::Iterations => TimeFrom::Iterations,
        };
        MuriOptions { round: self.round.unwrap_or(MuriOptions::PUBLISHED.round), time }
    }
}

/// Options that would do nothing are a misunderstanding.
fn refuse_rounds_elsewhere(args: &SimImport) -> Result<(), Failure> {
    let given = [("--round", args.round.is_some()), ("--time", args.time.is_some())];
    match given.into_iter().find(|(_, given)| *given && args.format != TraceFormat::Muri) {
        Some((option, _)) => Err(Failure::input(format!("use `{option}` here: it is for traces of muri"))),
        None => Ok(()),
    }
}
