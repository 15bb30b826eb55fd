//! Microsoft's Philly trace: `timestamp,duration,num_gpus,…`, one row a job, in no order.
//!
//! Timestamps are local time without a zone; the seconds between them are counted as if no clock had been changed.
//! A job is called `philly-` and its row in the file, counted from one.

use std::path::Path;

use jiff::civil::DateTime;
use metronome_core::model::units::Duration;

use super::{Dropped, ImportOptions, ImportReport, Imported, ImportedJob, Why, at_line, gpus};
use crate::scenario::InputError;
use crate::scenario::error::quoted;
use crate::trace::parse_seconds;
use crate::trace::table::{Cells, Column, Strangers, Table};

const COLUMNS: [Column; 3] =
    [Column::required("timestamp"), Column::required("duration"), Column::required("num_gpus")];

pub fn philly(path: &Path, options: ImportOptions) -> Result<Imported, InputError> {
    let mut table = Table::open(path, COLUMNS, Strangers::Ignored)?;
    let file = table.file().to_owned();
    let (mut jobs, mut report) = (Vec::new(), ImportReport::default());
    let mut row = 0;
    while let Some(cells) = table.next()? {
        row += 1;
        match job(&cells, row).map_err(at_line(cells.line, &file))? {
            Ok(job) => jobs.push(job),
            Err(why) => report.dropped.push(Dropped { line: cells.line, why }),
        }
    }
    report.blank_lines = table.blank_lines();
    count_from_first(&mut jobs);
    Imported::new(path, options, jobs, report)
}

fn count_from_first(jobs: &mut [ImportedJob]) {
    let first = jobs.iter().map(|job| job.submit).min().unwrap_or_default();
    for job in jobs {
        job.submit -= first;
    }
}

fn job(cells: &Cells<'_, 3>, row: u64) -> Result<Result<ImportedJob, Why>, String> {
    let [timestamp, duration, num_gpus] = cells.values;
    let submit = since_1970(timestamp.ok_or("timestamp is empty")?)?;
    let duration = duration.ok_or("duration is empty")?;
    let duration = parse_seconds(duration).map_err(|error| format!("duration: {error}"))?;
    let Some(gpus) = gpus(num_gpus.unwrap_or("0"))? else { return Ok(Err(Why::NoGpus)) };
    if duration.is_zero() {
        return Ok(Err(Why::NoDuration));
    }
    Ok(Ok(ImportedJob { gpus, duration, ..ImportedJob::new(&format!("philly-{row}"), submit) }))
}

/// Seconds on the local calendar.
fn since_1970(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{} is not a time such as 2017-10-09 07:01:55", quoted(text));
    let time: DateTime = text.parse().map_err(|_| wrong())?;
    let span = time.duration_since(DateTime::constant(1970, 1, 1, 0, 0, 0, 0));
    u64::try_from(span.as_secs()).map(Duration::from_secs).map_err(|_| wrong())
}
