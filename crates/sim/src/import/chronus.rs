//! Chronus' traces: `job_id,user,num_gpu,submit_time,iterations,model_name,duration,interval,expect_time_list,
//! expect_value_list,best_effort,job_type`, times in minutes.
//!
//! A job has the size it asks for. `expect_time_list` is how long after submission a job is to be done; of several times
//! the first counts. It means nothing where `best_effort` is 1. Preemption is free and GPUs are one pool: Chronus' own
//! simulator charges half a minute, and slows jobs that are spread over nodes.

use std::num::NonZeroU32;
use std::path::Path;

use metronome_core::model::job::Binding;
use metronome_core::model::units::Duration;

use super::{ImportOptions, Imported, ImportedJob, Rules, Why, gpus, named_jobs};
use crate::scenario::InputError;
use crate::scenario::values::check_name;
use crate::trace::parse_minutes;
use crate::trace::table::{Cells, Column};

/// Decisions fall on whole minutes, as times do.
pub const CHRONUS_ROUND: Duration = Duration::from_secs(60);

const COLUMNS: [Column; 7] = [
    Column::required("job_id"),
    Column::required("num_gpu"),
    Column::required("submit_time"),
    Column::required("duration"),
    Column::required("expect_time_list"),
    Column::required("best_effort"),
    Column::optional("job_type"),
];

pub fn chronus(path: &Path, options: ImportOptions, round: Duration) -> Result<Imported, InputError> {
    let (jobs, report) = named_jobs(path, COLUMNS, job)?;
    let rules = Rules { round, per_member: Some(NonZeroU32::MIN), ..Rules::FREE };
    Ok(Imported { rules, ..Imported::new(path, options, jobs, report)? })
}

fn job(cells: &Cells<'_, 7>) -> Result<Result<ImportedJob, Why>, String> {
    let [id, num_gpu, submit, duration, expected, best_effort, kind] = cells.values;
    let id = id.ok_or("job_id is empty")?;
    check_name(id)?;
    let (submit, duration) = (minutes(submit, "submit_time")?, minutes(duration, "duration")?);
    let Some(gpus) = gpus(num_gpu.unwrap_or("0"))? else { return Ok(Err(Why::NoGpus)) };
    if duration.is_zero() {
        return Ok(Err(Why::NoDuration));
    }
    let within = match best_effort {
        Some("1") => None,
        _ => Some(minutes(expected.and_then(|list| list.split('-').next()), "expect_time_list")?),
    };
    if within.is_some_and(Duration::is_zero) {
        return Err("the deadline is over when the job is submitted".into());
    }
    let binding = if kind == Some("soft") { Binding::Soft } else { Binding::Strict };
    Ok(Ok(ImportedJob {
        gpus,
        duration,
        deadline: within,
        binding: within.map(|_| binding),
        ..ImportedJob::new(id, submit)
    }))
}

fn minutes(text: Option<&str>, column: &str) -> Result<Duration, String> {
    let text = text.ok_or_else(|| format!("{column} is empty"))?;
    parse_minutes(text).map_err(|error| format!("{column}: {error}"))
}
