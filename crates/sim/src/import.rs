//! Importers: public traces become scenarios that carry the rules of the simulator they come from.
//!
//! Tiresias and Philly have the same semantics: whole seconds, free preemption, nothing taken by starts and stops. On one node the
//! GPUs are one pool; on more, a job is made of members no larger than a node. openb brings its own nodes, and jobs that
//! share GPUs.

mod openb;
mod philly;
mod tiresias;
mod write;

use std::fmt;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use metronome_core::units::{Duration, Gpus};

use crate::scenario::InputError;
use crate::scenario::error::{Position, Problem};
use crate::scenario::values::MOST_NODES;
use crate::trace::parse_gpus;

pub use openb::{Fill, Openb, OpenbOptions, openb, write_openb};
pub use philly::philly;
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
    jobs: Vec<ImportedJob>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct ImportedJob {
    name: String,
    submit: Duration,
    gpus: Gpus,
    duration: Duration,
    iterations: Option<u64>,
    model: Option<String>,
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
        Ok(Self { report, name, source: path.to_owned(), options, jobs })
    }
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
