//! ElasticFlow's traces: jobs with a deadline and a number of iterations, `job_id,submission_time,num_iteration,
//! model_name,deadline,batch_size,num_gpu,duration`, or in those that were generated `submit_time,iteration,ddl,
//! best_effort`; times in whole seconds since the beginning of the trace. How fast a job is at each size is in tables.
//!
//! The work of a job is its iterations; its own duration is not used. A change of size takes 10 s here, whatever the
//! size: ElasticFlow's simulator has 4 to 16 s, and 5 s more on 256 GPUs and beyond. GPUs are one pool.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use metronome_core::model::job::Binding;
use metronome_core::model::units::{Duration, Gpus};
use serde::Deserialize;

use super::throughputs::Throughputs;
use super::{ImportOptions, Imported, ImportedJob, Kind, Rules, Why, gpus, named_jobs, nanoseconds};
use crate::scenario::values::{check_name, whole_number};
use crate::scenario::{InputError, Rounds};
use crate::trace::parse_seconds;
use crate::trace::table::{Cells, Column};

/// Between 4 s on one GPU and 16 s on 64.
const RESTART: Duration = Duration::from_secs(10);

/// What the traces leave open.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ElasticflowOptions {
    /// The type of GPU, of which there is a folder of tables `throughputs_TYPE` beside the trace; or such a folder.
    pub scaling: String,
    /// Decisions fall on multiples of this; zero for none.
    pub round: Duration,
    /// How much deadlines bind.
    pub binding: Binding,
}

impl ElasticflowOptions {
    /// As published: A100, slots of 240 s. Soft, so that a job may give way to others of which more are in time.
    pub fn published() -> Self {
        Self { scaling: "A100".into(), round: Duration::from_secs(240), binding: Binding::Soft }
    }

    /// The folder of tables for a trace.
    fn folder(&self, trace: &Path) -> PathBuf {
        let beside = trace.with_file_name(format!("throughputs_{}", self.scaling));
        let given = Path::new(&self.scaling);
        if given.is_dir() && !beside.is_dir() { given.to_owned() } else { beside }
    }
}

const COLUMNS: [Column; 11] = [
    Column::required("job_id"),
    Column::required("model_name"),
    Column::required("batch_size"),
    Column::required("num_gpu"),
    Column::optional("submission_time"),
    Column::optional("submit_time"),
    Column::optional("num_iteration"),
    Column::optional("iteration"),
    Column::optional("deadline"),
    Column::optional("ddl"),
    Column::optional("best_effort"),
];

pub fn elasticflow(
    path: &Path,
    options: ImportOptions,
    elasticflow: &ElasticflowOptions,
) -> Result<Imported, InputError> {
    let tables = Throughputs::read(&elasticflow.folder(path))?;
    let (jobs, report) = named_jobs(path, COLUMNS, |cells| job(cells, &tables, elasticflow.binding))?;
    let used: BTreeSet<&String> = jobs.iter().filter_map(|job| job.scaling.as_ref()).collect();
    let scalings = used.into_iter().filter_map(|name| {
        Some(Kind { name: name.clone(), curve: tables.named(name)?.clone(), quality: None })
    });
    let scalings = scalings.collect();
    let rules = Rules {
        round: elasticflow.round,
        rounds: Rounds::FromLastDecision,
        restart: RESTART,
        per_member: Some(NonZeroU32::MIN),
        ..Rules::FREE
    };
    Ok(Imported { rules, scalings, ..Imported::new(path, options, jobs, report)? })
}

fn job(
    cells: &Cells<'_, 11>,
    tables: &Throughputs,
    binding: Binding,
) -> Result<Result<ImportedJob, Why>, String> {
    let [id, model, batch, num_gpu, submission, submit, iterations, iteration, deadline, ddl, free] =
        cells.values;
    let id = id.ok_or("job_id is empty")?;
    check_name(id)?;
    let submit = time(submission.or(submit), "submission_time")?;
    let deadline = deadline.or(ddl).filter(|_| free != Some("1"));
    let deadline = deadline.map(|text| time(Some(text), "deadline")).transpose()?;
    let iterations = iterations.or(iteration).ok_or("num_iteration is empty")?;
    let iterations =
        whole_number(iterations, 0..=1_000_000_000_000).map_err(|why| format!("num_iteration: {why}"))?;
    let Some(asked) = gpus(num_gpu.unwrap_or("0"))? else { return Ok(Err(Why::NoGpus)) };
    if iterations == 0 {
        return Ok(Err(Why::NoDuration));
    }
    if deadline.is_some_and(|deadline| deadline <= submit) {
        return Err("the deadline is over when the job is submitted".into());
    }
    let name = format!("{}/{}", model.ok_or("model_name is empty")?, batch.ok_or("batch_size is empty")?);
    let curve = tables.named(&name).ok_or_else(|| format!("there is no table of throughputs for {name}"))?;
    let asked = u32::try_from(asked.0 / Gpus::whole(1).0).unwrap_or(u32::MAX);
    let asked = asked.clamp(curve.least(), curve.most());
    Ok(Ok(ImportedJob {
        gpus: Gpus::whole(u64::from(asked)),
        duration: nanoseconds(iterations as f64 / curve.speed(asked)),
        iterations: Some(iterations),
        deadline: deadline.map(|deadline| deadline - submit),
        binding: deadline.map(|_| binding),
        scaling: Some(name),
        ..ImportedJob::new(id, submit)
    }))
}

fn time(text: Option<&str>, column: &str) -> Result<Duration, String> {
    let text = text.ok_or_else(|| format!("{column} is empty"))?;
    parse_seconds(text).map_err(|error| format!("{column}: {error}"))
}
