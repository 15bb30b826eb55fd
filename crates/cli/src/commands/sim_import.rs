//! `metronome sim import`

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use metronome_core::units::Duration;
use metronome_sim::import::{
    self, Fill, ImportOptions, ImportReport, Imported, MuriOptions, OpenbOptions, TimeFrom,
};
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
    /// Nodes of the cluster; 16 if not given, 8 for muri; openb has its own
    #[arg(long, value_name = "N")]
    nodes: Option<NonZeroU32>,
    /// GPUs on each node; openb has its own
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
    /// openb: draw pods until they ask for this share of the cluster's GPUs, such as 1.3 or 130%
    #[arg(long, value_name = "SHARE")]
    fill: Option<String>,
    /// openb: which pods are drawn; 1 if not given
    #[arg(long, value_name = "SEED", requires = "fill")]
    seed: Option<u64>,
    /// openb: nobody leaves, so that the cluster fills up
    #[arg(long)]
    no_departures: bool,
    /// lingjun: documents of jobs to run there, which the scenario then has after its cluster
    #[arg(long, value_name = "FILE")]
    jobs: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TraceFormat {
    /// The CSV of the Tiresias simulator: GPUs as one pool, whole seconds, free preemption
    Tiresias,
    /// The job log of Microsoft's Philly cluster
    Philly,
    /// The CSV of Muri's simulator and testbed: rounds of 360 s, 30 s for every start, free preemption
    Muri,
    /// Alibaba's openb: nodes and pods with CPU, memory and shares of GPUs
    Openb,
    /// Alibaba's Lingjun: the hosts and switches of a training cluster, without jobs
    Lingjun,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Time {
    /// `duration`: what schedulers are told
    Duration,
    /// `iterations` times `iteration_time`: what a testbed carries out
    Iterations,
}

pub(crate) fn run(args: &SimImport) -> Result<Reply, Failure> {
    refuse_options_elsewhere(args)?;
    let options = args.options();
    let report = match args.format {
        TraceFormat::Tiresias => written(&import::tiresias(&args.file, options)?, args)?,
        TraceFormat::Philly => written(&import::philly(&args.file, options)?, args)?,
        TraceFormat::Muri => written(&import::muri(&args.file, options, args.muri())?, args)?,
        TraceFormat::Openb => openb(args)?,
        TraceFormat::Lingjun => return lingjun(args),
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

fn lingjun(args: &SimImport) -> Result<Reply, Failure> {
    let imported = import::lingjun(&args.file, args.jobs.as_deref())?;
    import::write_lingjun(&imported, &args.out).map_err(|error| Failure::from_world(&error))?;
    let (hosts, racks) = (imported.hosts(), imported.racks());
    Ok(Reply::nothing().remarking(format!("{}: {hosts} hosts in {racks} racks", args.out.display())))
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
fn refuse_options_elsewhere(args: &SimImport) -> Result<(), Failure> {
    use TraceFormat::{Lingjun, Muri, Openb};
    let given = [
        ("--round", args.round.is_some(), Muri, "muri"),
        ("--time", args.time.is_some(), Muri, "muri"),
        ("--fill", args.fill.is_some(), Openb, "openb"),
        ("--no-departures", args.no_departures, Openb, "openb"),
        ("--jobs", args.jobs.is_some(), Lingjun, "lingjun"),
    ];
    let lost = given.into_iter().find(|(_, given, format, _)| *given && args.format != *format);
    lost.map_or(Ok(()), |(option, _, _, format)| {
        Err(Failure::input(format!("use `{option}` here: it is for traces of {format}")))
    })
}
