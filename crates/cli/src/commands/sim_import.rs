//! `metronome sim import`

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use metronome_sim::import::{self, ImportOptions};

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
    /// Nodes of the cluster
    #[arg(long, value_name = "N", default_value = "16")]
    nodes: NonZeroU32,
    /// GPUs on each node
    #[arg(long, value_name = "G", default_value = "8")]
    gpus_per_node: NonZeroU32,
    /// Take the first N jobs only
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TraceFormat {
    /// The CSV of the Tiresias simulator: GPUs as one pool, whole seconds, free preemption
    Tiresias,
    /// The job log of Microsoft's Philly cluster
    Philly,
}

pub(crate) fn run(args: &SimImport) -> Result<Reply, Failure> {
    let options = ImportOptions { nodes: args.nodes, gpus_per_node: args.gpus_per_node, limit: args.limit };
    let imported = match args.format {
        TraceFormat::Tiresias => import::tiresias(&args.file, options)?,
        TraceFormat::Philly => import::philly(&args.file, options)?,
    };
    import::write(&imported, &args.out).map_err(|error| Failure::from_world(&error))?;
    Ok(Reply::nothing().remarking(format!("{}: {}", args.out.display(), imported.report)))
}
