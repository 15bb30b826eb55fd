//! Muri's traces: `job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,iteration_time,…`,
//! times in milliseconds.
//!
//! Decisions fall on rounds, and every start takes time before the first iteration. Muri's own simulator has a table of
//! that time by model, from 4 to 46 s; here it is one constant for all. Stopping is free.

use std::path::Path;

use metronome_core::model::units::Duration;
use serde::Deserialize;

use super::{ImportOptions, Imported, ImportedJob, Rules, Why, gpus, named_jobs};
use crate::scenario::InputError;
use crate::scenario::values::{check_name, whole_number};
use crate::trace::parse_millis;
use crate::trace::table::{Cells, Column};

/// What jobs that started once took on the testbed beyond their iterations, on average: see `tests/muri_testbed.rs`.
const START: Duration = Duration::from_secs(30);

/// What Muri's traces leave open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MuriOptions {
    /// Decisions fall on multiples of this; zero for none.
    pub round: Duration,
    pub time: TimeFrom,
}

/// A row says twice how long a job takes, and the two differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TimeFrom {
    /// From `duration`, as schedulers are told.
    #[default]
    Duration,
    /// From `iterations` times `iteration_time`, as a testbed carries them out.
    Iterations,
}

impl MuriOptions {
    /// The rounds of the publication, and the durations of the trace.
    pub const PUBLISHED: Self = Self { round: Duration::from_secs(360), time: TimeFrom::Duration };
}

/// Whoever has all of these is no other trace: in those of Tiresias the same names hold seconds.
const COLUMNS: [Column; 6] = [
    Column::required("job_id"),
    Column::required("num_gpu"),
    Column::required("submit_time"),
    Column::required("duration"),
    Column::required("iterations"),
    Column::required("iteration_time"),
];

pub fn muri(path: &Path, options: ImportOptions, muri: MuriOptions) -> Result<Imported, InputError> {
    let (jobs, report) = named_jobs(path, COLUMNS, |cells| job(cells, muri.time))?;
    let rules = Rules { round: muri.round, start: START, ..Rules::FREE };
    Ok(Imported { rules, ..Imported::new(path, options, jobs, report)? })
}

fn job(cells: &Cells<'_, 6>, time: TimeFrom) -> Result<Result<ImportedJob, Why>, String> {
    let [id, num_gpu, submit, duration, iterations, iteration_time] = cells.values;
    let id = id.ok_or("job_id is empty")?;
    check_name(id)?;
    let submit = millis(submit, "submit_time")?;
    let duration = millis(duration, "duration")?;
    let iterations = iterations.ok_or("iterations is empty")?;
    let iterations =
        whole_number(iterations, 1..=1_000_000_000_000).map_err(|error| format!("iterations: {error}"))?;
    let duration = match time {
        TimeFrom::Duration => duration,
        TimeFrom::Iterations => together(millis(iteration_time, "iteration_time")?, iterations)?,
    };
    let Some(gpus) = gpus(num_gpu.unwrap_or("0"))? else { return Ok(Err(Why::NoGpus)) };
    if duration.is_zero() {
        return Ok(Err(Why::NoDuration));
    }
    // The name of the model is left out: with it the scenario would ask for links that the trace knows nothing of.
    Ok(Ok(ImportedJob { gpus, duration, iterations: Some(iterations), ..ImportedJob::new(id, submit) }))
}

fn millis(text: Option<&str>, column: &str) -> Result<Duration, String> {
    let text = text.ok_or_else(|| format!("{column} is empty"))?;
    parse_millis(text).map_err(|error| format!("{column}: {error}"))
}

fn together(each: Duration, count: u64) -> Result<Duration, String> {
    // Half of what fits, so that sums of two times still do.
    let total = each.0.checked_mul(count).filter(|total| *total <= u64::MAX / 2);
    total.map(Duration).ok_or_else(|| "its iterations take longer than can be counted".to_owned())
}
