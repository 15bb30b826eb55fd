//! Writing what was imported: the scenario, and its trace beside it.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use metronome_core::units::Duration;

use super::{Imported, ImportedJob, Rules};

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
        let Rules { round, tick, start } = self.rules;
        let start = seconds(start);
        let pace = [("round", round), ("tick", tick)].into_iter().filter(|(_, every)| !every.is_zero());
        let pace: String = pace.map(|(field, every)| format!("  {field}: {}s\n", seconds(every))).collect();
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
  gpus: {{perMember: {gpus}}}
  checkpoint: {{takes: 0s, restart: 0s}}
  costs: {{start: {start}s, stop: 0s}}
{pace}"
        )
    }

    /// The trace, row by row in the order of submission.
    pub fn write_trace(&self, to: &mut impl Write) -> io::Result<()> {
        let models = self.jobs.iter().any(|job| job.model.is_some());
        let iterations = self.jobs.iter().any(|job| job.iterations.is_some());
        let mut writer = csv::Writer::from_writer(to);
        let mut row = vec!["job", "submit_s", "gpus", "duration_s"];
        row.extend(models.then_some("model"));
        row.extend(iterations.then_some("iterations"));
        writer.write_record(&row)?;
        let mut cells: Vec<String> = vec![String::new(); row.len()];
        for job in &self.jobs {
            fill(&mut cells, job);
            if models {
                cells[4].push_str(job.model.as_deref().unwrap_or_default());
            }
            if let (true, Some(count), Some(cell)) = (iterations, job.iterations, cells.last_mut()) {
                write!(cell, "{count}").expect("writing to a string");
            }
            writer.write_record(&cells)?;
        }
        writer.flush()
    }
}

/// The four columns that every row has; the others are left empty.
fn fill(cells: &mut [String], job: &ImportedJob) {
    cells.iter_mut().for_each(String::clear);
    cells[0].push_str(&job.name);
    cells[1].push_str(&seconds(job.submit));
    write!(cells[2], "{}", job.gpus).expect("writing to a string");
    cells[3].push_str(&seconds(job.duration));
}

/// Exact: as many decimals as there are.
pub(super) fn seconds(time: Duration) -> String {
    let (seconds, nanos) = (time.0 / Duration::SECOND.0, time.0 % Duration::SECOND.0);
    match format!("{nanos:09}").trim_end_matches('0') {
        "" => seconds.to_string(),
        decimals => format!("{seconds}.{decimals}"),
    }
}
