//! Tiresias' traces: `job_id,num_gpu,submit_time,iterations,model_name,duration,interval`, times in seconds.

use std::path::Path;

use super::{ImportOptions, Imported, ImportedJob, Why, gpus, named_jobs};
use crate::scenario::InputError;
use crate::scenario::values::{check_name, whole_number};
use crate::trace::parse_seconds;
use crate::trace::table::{Cells, Column};

const COLUMNS: [Column; 6] = [
    Column::required("job_id"),
    Column::required("num_gpu"),
    Column::required("submit_time"),
    Column::required("duration"),
    Column::optional("iterations"),
    Column::optional("model_name"),
];

pub fn tiresias(path: &Path, options: ImportOptions) -> Result<Imported, InputError> {
    let (jobs, report) = named_jobs(path, COLUMNS, job)?;
    Imported::new(path, options, jobs, report)
}

fn job(cells: &Cells<'_, 6>) -> Result<Result<ImportedJob, Why>, String> {
    let [id, num_gpu, submit, duration, iterations, model] = cells.values;
    let id = id.ok_or("job_id is empty")?;
    check_name(id)?;
    let number = |text: Option<&str>, column: &str| {
        let text = text.ok_or_else(|| format!("{column} is empty"))?;
        parse_seconds(text).map_err(|error| format!("{column}: {error}"))
    };
    let (submit, duration) = (number(submit, "submit_time")?, number(duration, "duration")?);
    let Some(gpus) = gpus(num_gpu.unwrap_or("0"))? else { return Ok(Err(Why::NoGpus)) };
    if duration.is_zero() {
        return Ok(Err(Why::NoDuration));
    }
    let iterations = iterations.map(|text| whole_number(text, 1..=1_000_000_000_000)).transpose()?;
    let model = model.map(str::to_owned);
    Ok(Ok(ImportedJob { gpus, duration, iterations, model, ..ImportedJob::new(id, submit) }))
}
