//! Completion times of jobs as SpeCon's authors drew them, read off their chart: `job,default_s,specon_s`.

use std::path::Path;

use super::at_line;
use crate::scenario::InputError;
use crate::scenario::error::Problem;
use crate::trace::parse_seconds;
use crate::trace::table::{Column, Strangers, Table};

const COLUMNS: [Column; 3] =
    [Column::required("job"), Column::required("default_s"), Column::required("specon_s")];

/// Times in seconds, job by job, under the default scheduler and under theirs.
#[derive(Clone, Debug, PartialEq)]
pub struct CompletionTimes {
    pub default: Vec<f64>,
    pub specon: Vec<f64>,
}

pub fn completion_times(path: &Path) -> Result<CompletionTimes, InputError> {
    let mut table = Table::open(path, COLUMNS, Strangers::Ignored)?;
    let file = table.file().to_owned();
    let (mut default, mut specon) = (Vec::new(), Vec::new());
    while let Some(cells) = table.next()? {
        let wrong = at_line(cells.line, &file);
        let [_, first, second] = cells.values;
        default.push(time(first, "default_s").map_err(&wrong)?);
        specon.push(time(second, "specon_s").map_err(&wrong)?);
    }
    if default.is_empty() {
        return Err(Problem::whole("there are no jobs in it").in_file(&file));
    }
    Ok(CompletionTimes { default, specon })
}

fn time(text: Option<&str>, column: &str) -> Result<f64, String> {
    let text = text.ok_or_else(|| format!("{column} is empty"))?;
    Ok(parse_seconds(text).map_err(|error| format!("{column}: {error}"))?.as_secs_f64())
}
