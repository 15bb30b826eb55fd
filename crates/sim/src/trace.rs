//! Traces: jobs as rows of a CSV, read one by one.
//!
//! The header is `job,submit_s,gpus,duration_s` and optionally `model,iterations,priority,user,queue,deadline_s,
//! min_gpus,max_gpus,cpu,memory,gpu_types,binding,value,scaling`, in any order. The name of a model that is not known is accepted and not used.

mod guard;
pub(crate) mod table;

use std::path::Path;
use std::str::FromStr;

use metronome_core::model::job::{Binding, Priority};
use metronome_core::model::units::{Cpu, Duration, Gpus, Iterations, Memory, QuantityError};

use crate::scenario::InputError;
use crate::scenario::error::{Position, Problem, quoted};
use crate::scenario::values::{check_name, whole_number};
use table::{Cells, Column, Strangers, Table};

const COLUMNS: [Column; 18] = [
    Column::required("job"),
    Column::required("submit_s"),
    Column::required("gpus"),
    Column::required("duration_s"),
    Column::optional("model"),
    Column::optional("iterations"),
    Column::optional("priority"),
    Column::optional("user"),
    Column::optional("queue"),
    Column::optional("deadline_s"),
    Column::optional("min_gpus"),
    Column::optional("max_gpus"),
    Column::optional("cpu"),
    Column::optional("memory"),
    Column::optional("gpu_types"),
    Column::optional("binding"),
    Column::optional("value"),
    Column::optional("scaling"),
];

/// One job, as its row says it; names are not yet looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row<'a> {
    pub line: u64,
    pub job: &'a str,
    pub submit: Duration,
    pub gpus: Gpus,
    pub duration: Option<Duration>,
    pub model: Option<&'a str>,
    pub iterations: Option<Iterations>,
    pub priority: Option<Priority>,
    pub user: Option<&'a str>,
    pub queue: Option<&'a str>,
    /// Counted from submission.
    pub deadline: Option<Duration>,
    pub min_gpus: Option<Gpus>,
    pub max_gpus: Option<Gpus>,
    /// What each member takes beside its GPUs.
    pub cpu: Option<Cpu>,
    pub memory: Option<Memory>,
    /// Any of these, with `|` between them.
    pub gpu_types: Option<&'a str>,
    /// How much the deadline binds, and what meeting it is worth.
    pub binding: Option<Binding>,
    pub value: Option<u32>,
    /// The table that says how fast it is at each size.
    pub scaling: Option<&'a str>,
}

/// A trace that is being read.
#[derive(Debug)]
pub struct Trace {
    table: Table<18>,
}

impl Trace {
    pub fn open(path: &Path) -> Result<Self, InputError> {
        Ok(Self { table: Table::open(path, COLUMNS, Strangers::Refused)? })
    }

    pub fn file(&self) -> &str {
        self.table.file()
    }

    /// The next job, in the order of the file.
    #[expect(
        clippy::should_implement_trait,
        reason = "a row borrows from the reader, which no iterator allows"
    )]
    pub fn next(&mut self) -> Result<Option<Row<'_>>, InputError> {
        let file = self.table.file().to_owned();
        let Some(cells) = self.table.next()? else { return Ok(None) };
        row(&cells)
            .map(Some)
            .map_err(|message| Problem::at(Position::line(cells.line), message).in_file(&file))
    }
}

fn row<'a>(cells: &Cells<'a, 18>) -> Result<Row<'a>, String> {
    let [
        job,
        submit,
        gpus,
        duration,
        model,
        iterations,
        priority,
        user,
        queue,
        deadline,
        min,
        max,
        beside @ ..,
    ] = cells.values;
    let [cpu, memory, gpu_types, binding, value, scaling] = beside;
    let job = job.unwrap_or_default();
    check_name(job)?;
    let duration = seconds(duration, "duration_s")?;
    if duration.is_some_and(Duration::is_zero) {
        return Err(format!("job {} has no duration", quoted(job)));
    }
    Ok(Row {
        line: cells.line,
        job,
        submit: seconds(submit, "submit_s")?.ok_or_else(|| "submit_s is empty".to_owned())?,
        gpus: match gpus.filter(|_| cpu.is_some() || memory.is_some()) {
            Some(text) if is_nothing(text) => Gpus::ZERO,
            _ => gpu_count(gpus, "gpus")?.ok_or_else(|| "gpus is empty".to_owned())?,
        },
        duration,
        model,
        iterations: iterations
            .map(|text| named("iterations", whole_number(text, 1..=1_000_000_000_000)))
            .transpose()?
            .map(Iterations),
        priority: priority.map(priority_of).transpose()?,
        user,
        queue,
        deadline: deadline_of(deadline)?,
        min_gpus: gpu_count(min, "min_gpus")?,
        max_gpus: gpu_count(max, "max_gpus")?,
        cpu: amount(cpu, "cpu")?,
        memory: amount(memory, "memory")?,
        gpu_types,
        binding: binding.map(binding_of).transpose()?,
        value: value
            .map(|text| named("value", whole_number(text, 1..=1_000_000)))
            .transpose()?
            .map(|value| value as u32),
        scaling,
    })
}

fn deadline_of(text: Option<&str>) -> Result<Option<Duration>, String> {
    match seconds(text, "deadline_s")? {
        Some(Duration::ZERO) => Err("deadline_s: the deadline is over when the job is submitted".into()),
        deadline => Ok(deadline),
    }
}

fn named<T>(column: &str, result: Result<T, String>) -> Result<T, String> {
    result.map_err(|message| format!("{column}: {message}"))
}

fn seconds(text: Option<&str>, column: &str) -> Result<Option<Duration>, String> {
    text.map(|text| parse_seconds(text).map_err(|error| format!("{column}: {error}"))).transpose()
}

/// Seconds with or without decimals, exact to the nanosecond.
pub(crate) fn parse_seconds(text: &str) -> Result<Duration, QuantityError> {
    parse_time(text, "s")
}

/// The same in thousandths of a second.
pub(crate) fn parse_millis(text: &str) -> Result<Duration, QuantityError> {
    parse_time(text, "ms")
}

/// The same in minutes.
pub(crate) fn parse_minutes(text: &str) -> Result<Duration, QuantityError> {
    parse_time(text, "m")
}

fn parse_time(text: &str, unit: &str) -> Result<Duration, QuantityError> {
    // A unit of its own would change the meaning: `5m` is no number of seconds.
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
    if !plain {
        return Err(QuantityError::NotANumber(text.chars().take(40).collect()));
    }
    format!("{text}{unit}").parse()
}

fn amount<T: FromStr<Err = QuantityError>>(text: Option<&str>, column: &str) -> Result<Option<T>, String> {
    let parse = |text: &str| text.parse().map_err(|error: QuantityError| format!("{column}: {error}"));
    text.map(parse).transpose()
}

/// Who takes CPU or memory may do without GPUs.
fn is_nothing(gpus: &str) -> bool {
    gpus.parse::<f64>() == Ok(0.0)
}

fn gpu_count(text: Option<&str>, column: &str) -> Result<Option<Gpus>, String> {
    text.map(|text| named(column, parse_gpus(text))).transpose()
}

/// More than nothing, and no more than any cluster has.
pub(crate) fn parse_gpus(text: &str) -> Result<Gpus, String> {
    const MOST: Gpus = Gpus::whole(1_000_000);
    let gpus: Gpus = text.parse().map_err(|error: QuantityError| error.to_string())?;
    if gpus.is_zero() {
        return Err("a job has more than 0 GPUs".into());
    }
    if gpus > MOST {
        return Err(format!("{} is more than {MOST} GPUs", quoted(text)));
    }
    Ok(gpus)
}

fn binding_of(text: &str) -> Result<Binding, String> {
    match text {
        "strict" => Ok(Binding::Strict),
        "soft" => Ok(Binding::Soft),
        "bestEffort" => Ok(Binding::BestEffort),
        other => Err(format!("binding: {} is none of strict, soft, bestEffort", quoted(other))),
    }
}

fn priority_of(text: &str) -> Result<Priority, String> {
    match text {
        "high" => Ok(Priority::HIGH),
        "normal" => Ok(Priority::NORMAL),
        "low" => Ok(Priority::LOW),
        other => Err(format!("priority: {} is none of high, normal, low", quoted(other))),
    }
}
