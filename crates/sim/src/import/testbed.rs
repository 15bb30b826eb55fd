//! What became of the jobs of a trace on a real testbed, as Muri's authors published it: one row a job,
//! `job_id,num_gpu,submit_time,start_time,end_time,real_executed_time,duration,job_counter,…`, times in seconds. Read
//! as the outcome of a run, so that the same figures come of both.

use std::collections::HashSet;
use std::path::Path;

use metronome_core::model::cluster::Name;
use metronome_core::model::job::Priority;
use metronome_core::model::units::{Duration, Gpus, Instant, Share};

use super::{at_line, gpus};
use crate::outcome::{Fate, JobOutcome, Outcome};
use crate::scenario::InputError;
use crate::scenario::error::{Problem, quoted};
use crate::scenario::values::{check_name, whole_number};
use crate::trace::parse_seconds;
use crate::trace::table::{Cells, Column, Strangers, Table};

const COLUMNS: [Column; 8] = [
    Column::required("job_id"),
    Column::required("num_gpu"),
    Column::required("submit_time"),
    Column::required("start_time"),
    Column::required("end_time"),
    Column::required("real_executed_time"),
    Column::required("duration"),
    Column::required("job_counter"),
];

/// More starts than any job has; above it a count is a mistake.
const MOST_STARTS: u64 = 1_000_000;

/// The outcome is called `name`; nothing in it was left to chance, so its seed is zero.
pub fn testbed(path: &Path, name: &str, gpu_capacity: Gpus) -> Result<Outcome, InputError> {
    let mut table = Table::open(path, COLUMNS, Strangers::Ignored)?;
    let file = table.file().to_owned();
    let (mut jobs, mut names) = (Vec::new(), HashSet::new());
    while let Some(cells) = table.next()? {
        let wrong = at_line(cells.line, &file);
        let job = job(&cells).map_err(&wrong)?;
        if !names.insert(job.name.clone()) {
            return Err(wrong(format!("a second job is called {}", quoted(&job.name))));
        }
        jobs.push(job);
    }
    if jobs.is_empty() {
        return Err(Problem::whole("there are no jobs in it").in_file(&file));
    }
    Ok(Outcome::of_jobs(name, jobs, gpu_capacity))
}

fn job(cells: &Cells<'_, 8>) -> Result<JobOutcome, String> {
    let [id, num_gpu, submit, start, end, ran, duration, starts] = cells.values;
    let id = id.ok_or("job_id is empty")?;
    check_name(id)?;
    let time = |text: Option<&str>, column: &str| {
        let text = text.ok_or_else(|| format!("{column} is empty"))?;
        parse_seconds(text).map_err(|error| format!("{column}: {error}"))
    };
    let at = |text, column| time(text, column).map(|since| Instant::START + since);
    let (submit, start) = (at(submit, "submit_time")?, at(start, "start_time")?);
    let end = at(end, "end_time")?;
    if !(submit <= start && start <= end) {
        return Err(format!("job {} is not submitted, started and ended in this order", quoted(id)));
    }
    let ran = time(ran, "real_executed_time")?;
    // Each of the three times is rounded by itself.
    if ran > end.since(start) + Duration::from_millis(1) {
        return Err(format!("job {} ran for longer than from its start to its end", quoted(id)));
    }
    let starts = whole_number(starts.unwrap_or_default(), 1..=MOST_STARTS);
    let starts = starts.map_err(|error| format!("job_counter: {error}"))?;
    Ok(JobOutcome {
        name: Name::from(id),
        model: None,
        priority: Priority::NORMAL,
        user: Share(Share::WHOLE.0 / 2),
        submit,
        start: Some(start),
        end: Some(end),
        ran,
        alone: time(duration, "duration")?,
        deadline: None,
        binding: None,
        taken: None,
        cpu: None,
        gpus: gpus(num_gpu.unwrap_or_default())?.ok_or("num_gpu is 0")?,
        members: 1,
        nodes: 0,
        fate: Fate::Completed,
        preemptions: u32::try_from(starts - 1).unwrap_or(u32::MAX),
        moves: 0,
        resizes: 0,
        resizes_in_place: 0,
        reached: None,
        wait_reason: None,
        slowdown: None,
        exchange: None,
        segments: Vec::new(),
    })
}
