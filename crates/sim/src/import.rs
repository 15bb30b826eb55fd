//! Importers: public traces become scenarios that carry the rules of the simulator they come from.
//!
//! Preemption is free, and jobs keep their progress. `Rules` says what else a source has of its own: whole seconds, or
//! rounds and starts that take time. On one node the GPUs are one pool; on more, a job is made of members no larger
//! than a node. Where deadlines are met by changing sizes (elasticflow, pollux) members have one GPU, and tables say how
//! fast each size is. openb brings its own nodes, and jobs that share GPUs; lingjun brings nodes and links, and no jobs.

mod chronus;
mod elasticflow;
mod lingjun;
mod muri;
mod openb;
mod philly;
mod pollux;
mod specon;
mod testbed;
mod throughputs;
mod tiresias;
mod write;

use std::collections::HashSet;
use std::fmt;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use metronome_core::model::job::Binding;
use metronome_core::model::units::{Duration, Gpus};

use crate::scenario::curve::Curve;
use crate::scenario::error::{Position, Problem, quoted};
use crate::scenario::quality::Quality;
use crate::scenario::values::MOST_NODES;
use crate::scenario::{InputError, Rounds};
use crate::trace::parse_gpus;
use crate::trace::table::{Cells, Column, Strangers, Table};

pub use chronus::{CHRONUS_ROUND, chronus};
pub use elasticflow::{ElasticflowOptions, elasticflow};
pub use lingjun::{Lingjun, lingjun, write_lingjun};
pub use muri::{MuriOptions, TimeFrom, muri};
pub use openb::{Fill, Openb, OpenbOptions, openb, write_openb};
pub use philly::philly;
pub use pollux::{Batch, PolluxOptions, pollux};
pub use specon::{CompletionTimes, completion_times};
pub use testbed::testbed;
pub use tiresias::tiresias;
pub use write::{WriteError, write};

/// The cluster to run a trace on, and how much of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImportOptions {
    pub nodes: NonZeroU32,
    pub gpus_per_node: NonZeroU32,
    /// The first so many jobs, by submission.
    pub limit: Option<usize>,
}

/// What became of the rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportReport {
    pub jobs: usize,
    /// Rows that are no jobs, in the order of the file.
    pub dropped: Vec<Dropped>,
    pub blank_lines: u64,
    pub beyond_limit: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dropped {
    pub line: u64,
    pub why: Why,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    NoDuration,
    NoGpus,
}

/// `60 jobs; dropped: 2 rows without duration (first at line 7), 1 blank line`.
impl fmt::Display for ImportReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&counted(self.jobs, "job"))?;
        let mut parts = Vec::new();
        for (why, words) in [(Why::NoDuration, "without duration"), (Why::NoGpus, "without GPUs")] {
            let rows = self.dropped.iter().filter(|dropped| dropped.why == why);
            if let Some(first) = rows.clone().next() {
                parts.push(format!(
                    "{} {words} (first at line {})",
                    counted(rows.count(), "row"),
                    first.line
                ));
            }
        }
        if self.blank_lines > 0 {
            parts.push(counted(self.blank_lines as usize, "blank line"));
        }
        if self.beyond_limit > 0 {
            parts.push(format!("{} beyond the limit", counted(self.beyond_limit, "job")));
        }
        if parts.is_empty() { Ok(()) } else { write!(f, "; dropped: {}", parts.join(", ")) }
    }
}

fn counted(count: usize, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

/// A trace that has been read and can be written as a scenario.
#[derive(Clone, Debug)]
pub struct Imported {
    pub report: ImportReport,
    name: String,
    source: PathBuf,
    options: ImportOptions,
    rules: Rules,
    /// Tables that jobs name.
    scalings: Vec<Kind>,
    jobs: Vec<ImportedJob>,
}

/// What was measured of jobs of one kind: how fast they are at each size, and what they are worth by and by.
#[derive(Clone, Debug)]
struct Kind {
    name: String,
    curve: Curve,
    quality: Option<Quality>,
}

/// How time passes where a trace comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rules {
    /// Decisions fall on multiples of this, or are so far apart; zero for none.
    round: Duration,
    rounds: Rounds,
    /// What an order asks for by itself falls on multiples of this; zero for none.
    tick: Duration,
    /// From a start to the first iteration.
    start: Duration,
    /// What going on from saved work costs.
    restart: Duration,
    /// GPUs of a member; as many as a node has, if none is said.
    per_member: Option<NonZeroU32>,
}

impl Rules {
    /// At any time, and free.
    const FREE: Self = Self {
        round: Duration::ZERO,
        rounds: Rounds::OnMultiples,
        tick: Duration::ZERO,
        start: Duration::ZERO,
        restart: Duration::ZERO,
        per_member: None,
    };
    const WHOLE_SECONDS: Self = Self { tick: Duration::SECOND, ..Self::FREE };
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct ImportedJob {
    name: String,
    submit: Duration,
    gpus: Gpus,
    duration: Duration,
    iterations: Option<u64>,
    model: Option<String>,
    /// Counted from submission.
    deadline: Option<Duration>,
    binding: Option<Binding>,
    /// The table that says how fast it is at each size.
    scaling: Option<String>,
}

impl ImportedJob {
    /// Nothing but its name and when it comes.
    fn new(name: &str, submit: Duration) -> Self {
        Self {
            name: name.to_owned(),
            submit,
            gpus: Gpus::ZERO,
            duration: Duration::ZERO,
            iterations: None,
            model: None,
            deadline: None,
            binding: None,
            scaling: None,
        }
    }
}

/// So many seconds; at least something.
fn nanoseconds(seconds: f64) -> Duration {
    Duration((seconds * Duration::SECOND.0 as f64).round() as u64).max(Duration(1))
}

impl Imported {
    /// Puts the jobs in the order of submission and cuts them to the limit. A file without a job is the wrong file.
    fn new(
        path: &Path,
        options: ImportOptions,
        mut jobs: Vec<ImportedJob>,
        mut report: ImportReport,
    ) -> Result<Self, InputError> {
        let refused = |message: String| Err(Problem::whole(message).in_file(&path.display().to_string()));
        if jobs.is_empty() {
            return refused("there are no jobs in it".into());
        }
        if u64::from(options.nodes.get()) > MOST_NODES {
            return refused(format!("a cluster has at most {MOST_NODES} nodes, not {}", options.nodes));
        }
        jobs.sort_by_key(|job| job.submit);
        let kept = options.limit.unwrap_or(usize::MAX).min(jobs.len());
        report.beyond_limit = jobs.len() - kept;
        report.jobs = kept;
        jobs.truncate(kept);
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("trace");
        let name = name.trim_end_matches(".gz").trim_end_matches(".csv").to_owned();
        Ok(Self {
            report,
            name,
            source: path.to_owned(),
            options,
            rules: Rules::WHOLE_SECONDS,
            scalings: Vec::new(),
            jobs,
        })
    }
}

/// All jobs of a file whose rows have a name of their own, and what became of the other rows.
fn named_jobs<const N: usize>(
    path: &Path,
    columns: [Column; N],
    job: impl Fn(&Cells<'_, N>) -> Result<Result<ImportedJob, Why>, String>,
) -> Result<(Vec<ImportedJob>, ImportReport), InputError> {
    let mut table = Table::open(path, columns, Strangers::Ignored)?;
    let file = table.file().to_owned();
    let (mut jobs, mut report) = (Vec::new(), ImportReport::default());
    let mut names = HashSet::new();
    while let Some(cells) = table.next()? {
        let wrong = at_line(cells.line, &file);
        match job(&cells).map_err(&wrong)? {
            Ok(job) if !names.insert(job.name.clone()) => {
                return Err(wrong(format!("a second job is called {}", quoted(&job.name))));
            }
            Ok(job) => jobs.push(job),
            Err(why) => report.dropped.push(Dropped { line: cells.line, why }),
        }
    }
    report.blank_lines = table.blank_lines();
    Ok((jobs, report))
}

fn at_line<'a>(line: u64, file: &'a str) -> impl Fn(String) -> InputError + 'a {
    move |message| Problem::at(Position::line(line), message).in_file(file)
}

/// A number of GPUs as traces write it; none where a job ran on CPUs alone.
fn gpus(text: &str) -> Result<Option<Gpus>, String> {
    match text.parse::<f64>() {
        Ok(0.0) => Ok(None),
        _ => parse_gpus(text).map(Some),
    }
}
