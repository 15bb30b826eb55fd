//! `metronome sim import`

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use metronome_sim::import::{self, Fill, ImportOptions, ImportReport, Imported, OpenbOptions};
use metronome_sim::scenario::Departures;

use crate::failure::Failure;
use crate::reply::Reply;

/// Turn a published trace into a scenario, with the semantics of the simulator it comes from
#[derive(Debug, Args)]
pub(crate) struct SimImport {
    /// Where the trace comes from
    format: TraceFormat,
    /// Trace to read; for openb the folder of its lists
    file: PathBuf,
    /// Where to write the scenario
    #[arg(short, long, value_name = "SCENARIO")]
    out: PathBuf,
    /// Nodes of the cluster; openb has its own
    #[arg(long, value_name = "N", default_value = "16")]
    nodes: NonZeroU32,
    /// GPUs on each node; openb has its own
    #[arg(long, value_name = "G", default_value = "8")]
    gpus_per_node: NonZeroU32,
    /// Take the first N jobs only
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// openb: draw pods until they ask for this share of the cluster's GPUs, such as 1.3 or 130%
    #[arg(long, value_name = "SHARE")]
    fill: Option<String>,
    /// openb: which pods are drawn; 1 if not given
    #[arg(long, value_name = "SEED", requires = "fill")]
    seed: Option<u64>,
    /// openb: nobody leaves, so that the cluster fills up
    #[arg(long)]
    no_departures: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TraceFormat {
    /// The CSV of the Tiresias simulator: GPUs as one pool, whole seconds, free preemption
    Tiresias,
    /// The job log of Microsoft's Philly cluster
    Philly,
    /// Alibaba's openb: nodes and pods with CPU, memory and shares of GPUs
    Openb,
}

pub(crate) fn run(args: &SimImport) -> Result<Reply, Failure> {
    refuse_fill_elsewhere(args)?;
    let options = ImportOptions { nodes: args.nodes, gpus_per_node: args.gpus_per_node, limit: args.limit };
    let report = match args.format {
        TraceFormat::Tiresias => written(&import::tiresias(&args.file, options)?, args)?,
        TraceFormat::Philly => written(&import::philly(&args.file, options)?, args)?,
        TraceFormat::Openb => openb(args)?,
    };
    Ok(Reply::nothing().remarking(format!("{}: {report}", args.out.display())))
}

fn written(imported: &Imported, args: &SimImport) -> Result<ImportReport, Failure> {
    import::write(imported, &args.out).map_err(|error| Failure::from_world(&error))?;
    Ok(imported.report.clone())
}

fn openb(args: &SimImport) -> Result<ImportReport, Failure> {
    let fill = |text: &String| {
        let fill = Fill::parse(text, args.seed.unwrap_or(1));
        fill.map_err(|why| Failure::input(format!("use `--fill {text}`: {why}")))
    };
    let options = OpenbOptions {
        fill: args.fill.as_ref().map(fill).transpose()?,
        limit: args.limit,
        departures: if args.no_departures { Departures::Never } else { Departures::WhenDone },
    };
    let imported = import::openb(&args.file, options)?;
    import::write_openb(&imported, &args.out).map_err(|error| Failure::from_world(&error))?;
    Ok(imported.report)
}

/// Options that would do nothing are a misunderstanding.
fn refuse_fill_elsewhere(args: &SimImport) -> Result<(), Failure> {
    let given = [("--fill", args.fill.is_some()), ("--no-departures", args.no_departures)];
    match given.into_iter().find(|(_, given)| *given && args.format != TraceFormat::Openb) {
        Some((option, _)) => Err(Failure::input(format!("use `{option}` here: it is for traces of openb"))),
        None => Ok(()),
    }
}
