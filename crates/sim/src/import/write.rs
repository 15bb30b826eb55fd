//! Writing what was imported: the scenario, and its trace beside it.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use metronome_core::model::job::Binding;
use metronome_core::model::units::Duration;

use super::{Imported, ImportedJob, Kind, Rules};
use crate::scenario::Rounds;

/// Why a scenario cannot be written. The text fits after "cannot".
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    #[error("write {file}", file = .file.display())]
    Io { file: PathBuf, source: io::Error },
    #[error("write {file}: it is the trace that is being imported", file = .file.display())]
    OntoSource { file: PathBuf },
    #[error("write {file}: the trace beside it would have the same name", file = .file.display())]
    OntoItself { file: PathBuf },
    #[error("write {file}: it has no name that YAML can hold", file = .file.display())]
    NoName { file: PathBuf },
}

/// Writes `out` and the trace beside it, of the same stem with `.csv`; returns the path of the trace.
pub fn write(imported: &Imported, out: &Path) -> Result<PathBuf, WriteError> {
    let sources = std::slice::from_ref(&imported.source);
    write_both(out, sources, |trace| imported.yaml(trace), |to| imported.write_trace(to))
}

/// Writes a scenario that names the trace beside it. Neither takes the place of a source.
pub(super) fn write_both(
    out: &Path,
    sources: &[PathBuf],
    yaml: impl FnOnce(&str) -> String,
    write_trace: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<PathBuf, WriteError> {
    let trace = out.with_extension("csv");
    let name = trace.file_name().and_then(|name| name.to_str());
    let name = name.ok_or_else(|| WriteError::NoName { file: out.to_owned() })?;
    if trace == out {
        return Err(WriteError::OntoItself { file: out.to_owned() });
    }
    for file in [&trace, out] {
        if sources.iter().any(|source| same_file(file, source)) {
            return Err(WriteError::OntoSource { file: file.to_owned() });
        }
    }
    // The trace first: a scenario never names one that is not there.
    let at = |file: &Path| {
        let file = file.to_owned();
        move |source| WriteError::Io { file, source }
    };
    let mut writer = BufWriter::new(File::create(&trace).map_err(at(&trace))?);
    write_trace(&mut writer).and_then(|()| writer.flush()).map_err(at(&trace))?;
    std::fs::write(out, yaml(name)).map_err(at(out))?;
    Ok(trace)
}

/// Writes a scenario that needs nothing beside it. It does not take the place of a source.
pub(super) fn write_one(out: &Path, sources: &[PathBuf], yaml: &str) -> Result<PathBuf, WriteError> {
    if sources.iter().any(|source| same_file(out, source)) {
        return Err(WriteError::OntoSource { file: out.to_owned() });
    }
    std::fs::write(out, yaml).map_err(|source| WriteError::Io { file: out.to_owned(), source })?;
    Ok(out.to_owned())
}

fn same_file(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

impl Imported {
    /// The scenario, with its trace in the file `trace`.
    pub fn yaml(&self, trace: &str) -> String {
        let name = serde_json::Value::from(self.name.as_str());
        let trace = serde_json::Value::from(trace);
        let (nodes, gpus) = (self.options.nodes, self.options.gpus_per_node);
        let Rules { round, rounds, tick, start, restart, per_member } = self.rules;
        let (start, restart, per_member) = (seconds(start), seconds(restart), per_member.unwrap_or(gpus));
        let pace = [("round", round), ("tick", tick)].into_iter().filter(|(_, every)| !every.is_zero());
        let mut pace: String =
            pace.map(|(field, every)| format!("  {field}: {}s\n", seconds(every))).collect();
        if rounds == Rounds::FromLastDecision {
            pace.push_str("  rounds: fromLastDecision\n");
        }
        let scalings: String = self.scalings.iter().map(scaling).collect();
        format!(
            "apiVersion: metronome.dev/v1alpha1
kind: Cluster
metadata: {{name: {name}}}
spec:
  nodes: [{{count: {nodes}, gpus: {gpus}}}]
---
apiVersion: metronome.dev/v1alpha1
kind: Workload
metadata: {{name: {name}}}
spec:
  arrivals: {{trace: {trace}}}
  gpus: {{perMember: {per_member}}}
  checkpoint: {{takes: 0s, restart: {restart}s}}
  costs: {{start: {start}s, stop: 0s}}
{pace}{scalings}"
        )
    }

    /// The trace, row by row in the order of submission. A column that no job has is left out.
    pub fn write_trace(&self, to: &mut impl Write) -> io::Result<()> {
        let has = |(_, cell): &&(&str, Cell)| self.jobs.iter().any(|job| cell(job).is_some());
        let columns: Vec<&(&str, Cell)> = COLUMNS.iter().filter(has).collect();
        let mut writer = csv::Writer::from_writer(to);
        writer.write_record(columns.iter().map(|(title, _)| *title))?;
        for job in &self.jobs {
            writer.write_record(columns.iter().map(|(_, cell)| cell(job).unwrap_or_default()))?;
        }
        writer.flush()
    }
}

/// What a job has in a column.
type Cell = fn(&ImportedJob) -> Option<String>;

const COLUMNS: [(&str, Cell); 9] = [
    ("job", |job| Some(job.name.clone())),
    ("submit_s", |job| Some(seconds(job.submit))),
    ("gpus", |job| Some(job.gpus.to_string())),
    ("duration_s", |job| Some(seconds(job.duration))),
    ("model", |job| job.model.clone()),
    ("iterations", |job| job.iterations.map(|count| count.to_string())),
    ("deadline_s", |job| job.deadline.map(seconds)),
    ("binding", |job| job.binding.map(|binding| word(binding).to_owned())),
    ("scaling", |job| job.scaling.clone()),
];

fn word(binding: Binding) -> &'static str {
    match binding {
        Binding::Strict => "strict",
        Binding::Soft => "soft",
        Binding::BestEffort => "bestEffort",
    }
}

fn scaling(Kind { name, curve, quality }: &Kind) -> String {
    let name = serde_json::Value::from(name.as_str());
    let sizes = curve.written();
    let quality =
        quality.as_ref().map(|quality| format!(", quality: {}", quality.written())).unwrap_or_default();
    format!(
        "---\napiVersion: metronome.dev/v1alpha1\nkind: Scaling\nmetadata: {{name: {name}}}\nspec: {{sizes: {sizes}{quality}}}\n"
    )
}

/// Exact: as many decimals as there are.
pub(super) fn seconds(time: Duration) -> String {
    let (seconds, nanos) = (time.0 / Duration::SECOND.0, time.0 % Duration::SECOND.0);
    match format!("{nanos:09}").trim_end_matches('0') {
        "" => seconds.to_string(),
        decimals => format!("{seconds}.{decimals}"),
    }
}
