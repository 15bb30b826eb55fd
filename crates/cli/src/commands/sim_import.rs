//! `metronome sim import`

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use metronome_core::model::job::Binding;
use metronome_core::model::units::Duration;
use metronome_sim::import::{
    self, Batch, ElasticflowOptions, Fill, ImportOptions, ImportReport, Imported, MuriOptions, OpenbOptions,
    PolluxOptions, TimeFrom,
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
    /// Nodes of the cluster; 16 if not given, 8 for muri, 120 for chronus; openb has its own
    #[arg(long, value_name = "N")]
    nodes: Option<NonZeroU32>,
    /// GPUs on each node; 8 if not given, 4 for pollux; openb has its own
    #[arg(long, value_name = "G")]
    gpus_per_node: Option<NonZeroU32>,
    /// Take the first N jobs only
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// muri, elasticflow, chronus, pollux: decide at multiples of TIME only; 360s, 240s, 60s and 60s if not given, 0s for at any time
    #[arg(long, value_name = "TIME")]
    round: Option<Duration>,
    /// elasticflow: the type of GPU whose throughputs lie beside the trace, or a folder of throughputs; A100 if not given
    #[arg(long, value_name = "TYPE")]
    scaling: Option<String>,
    /// elasticflow: how much deadlines bind; soft if not given
    #[arg(long, value_enum, value_name = "BINDING")]
    binding: Option<Bound>,
    /// pollux: the folder of measurements; traces beside that of the workload, if not given
    #[arg(long, value_name = "FOLDER")]
    traces: Option<PathBuf>,
    /// pollux: the batch size of jobs; given if not given
    #[arg(long, value_enum, value_name = "RULE")]
    batch: Option<BatchRule>,
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
    /// ElasticFlow's traces: deadlines, sizes by tables of throughput, rounds of 240 s, 10 s for a change of size
    Elasticflow,
    /// Chronus' traces of Philly: deadlines that bind strictly or not at all, in minutes
    Chronus,
    /// Pollux' workloads: goodput by size, rounds of 60 s, 30 s for a change of size
    Pollux,
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Bound {
    /// Whoever is taken on is kept
    Strict,
    /// Whoever is taken on may give way to others of whom more can be in time
    Soft,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum BatchRule {
    /// What the workload says
    Given,
    /// In each epoch the one of the best goodput
    Adaptive,
}

pub(crate) fn run(args: &SimImport) -> Result<Reply, Failure> {
    refuse_options_elsewhere(args)?;
    let options = args.options();
    let report = match args.format {
        TraceFormat::Tiresias => written(&import::tiresias(&args.file, options)?, args)?,
        TraceFormat::Philly => written(&import::philly(&args.file, options)?, args)?,
        TraceFormat::Muri => written(&import::muri(&args.file, options, args.muri())?, args)?,
        TraceFormat::Elasticflow => {
            written(&import::elasticflow(&args.file, options, &args.elasticflow())?, args)?
        }
        TraceFormat::Chronus => {
            let round = args.round.unwrap_or(import::CHRONUS_ROUND);
            written(&import::chronus(&args.file, options, round)?, args)?
        }
        TraceFormat::Pollux => written(&import::pollux(&args.file, options, &args.pollux())?, args)?,
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
        let (nodes, gpus) = match self.format {
            TraceFormat::Muri => (8, 8),
            TraceFormat::Chronus => (120, 8),
            TraceFormat::Pollux => (16, 4),
            _ => (16, 8),
        };
        let usual = |count| NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN);
        ImportOptions {
            nodes: self.nodes.unwrap_or(usual(nodes)),
            gpus_per_node: self.gpus_per_node.unwrap_or(usual(gpus)),
            limit: self.limit,
        }
    }

    fn elasticflow(&self) -> ElasticflowOptions {
        let published = ElasticflowOptions::published();
        ElasticflowOptions {
            scaling: self.scaling.clone().unwrap_or(published.scaling),
            round: self.round.unwrap_or(published.round),
            binding: match self.binding {
                Some(Bound::Strict) => Binding::Strict,
                Some(Bound::Soft) | None => published.binding,
            },
        }
    }

    fn pollux(&self) -> PolluxOptions {
        let batch = match self.batch {
            Some(BatchRule::Adaptive) => Batch::Adaptive,
            Some(BatchRule::Given) | None => Batch::Given,
        };
        let round = self.round.unwrap_or(PolluxOptions::PUBLISHED.round);
        PolluxOptions { traces: self.traces.clone(), batch, round }
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
    use TraceFormat::{Chronus, Elasticflow, Lingjun, Muri, Openb, Pollux};
    let rounds: &[TraceFormat] = &[Muri, Elasticflow, Chronus, Pollux];
    let given = [
        ("--round", args.round.is_some(), rounds, "muri, elasticflow, chronus or pollux"),
        ("--time", args.time.is_some(), &[Muri], "muri"),
        ("--scaling", args.scaling.is_some(), &[Elasticflow], "elasticflow"),
        ("--binding", args.binding.is_some(), &[Elasticflow], "elasticflow"),
        ("--traces", args.traces.is_some(), &[Pollux], "pollux"),
        ("--batch", args.batch.is_some(), &[Pollux], "pollux"),
        ("--fill", args.fill.is_some(), &[Openb], "openb"),
        ("--no-departures", args.no_departures, &[Openb], "openb"),
        ("--jobs", args.jobs.is_some(), &[Lingjun], "lingjun"),
    ];
    let lost = given.into_iter().find(|(_, given, formats, _)| *given && !formats.contains(&args.format));
    lost.map_or(Ok(()), |(option, _, _, format)| {
        Err(Failure::input(format!("use `{option}` here: it is for traces of {format}")))
    })
}
