//! The figures of every policy, one row each. A figure that nobody measured has no column.

use super::legend;
use super::text::{Unit, escape, number, percent};
use crate::results::{Figures, PolicySummary};

struct Column {
    name: &'static str,
    of: fn(&Figures<f64>) -> Option<f64>,
    kind: Kind,
}

enum Kind {
    Count,
    Time,
    Share,
    Ratio,
}

const COLUMNS: [Column; 12] = [
    Column { name: "done", of: |figures| Some(figures.jobs.completed), kind: Kind::Count },
    Column { name: "deadlocked", of: |figures| Some(figures.jobs.deadlocked), kind: Kind::Count },
    Column { name: "never completed", of: |figures| Some(figures.jobs.unfinished), kind: Kind::Count },
    Column { name: "mean JCT", of: |figures| figures.jct_s.mean, kind: Kind::Time },
    Column { name: "median JCT", of: |figures| figures.jct_s.median, kind: Kind::Time },
    Column { name: "p99 JCT", of: |figures| figures.jct_s.p99, kind: Kind::Time },
    Column { name: "mean queueing", of: |figures| figures.queueing_s.mean, kind: Kind::Time },
    Column { name: "makespan", of: |figures| figures.makespan_s, kind: Kind::Time },
    Column { name: "mean slowdown", of: |figures| figures.slowdown.mean, kind: Kind::Ratio },
    Column { name: "p99 slowdown", of: |figures| figures.slowdown.p99, kind: Kind::Ratio },
    Column { name: "GPU use", of: |figures| figures.gpu_utilisation.mean, kind: Kind::Share },
    Column { name: "link use", of: |figures| figures.link_utilisation.mean, kind: Kind::Share },
];

pub(super) fn section(summary: &[PolicySummary]) -> String {
    let unit = Unit::of_all(summary.iter().filter_map(|row| row.figures.jct_s.mean));
    let measured = |column: &&Column| summary.iter().any(|row| (column.of)(&row.figures).is_some());
    let columns: Vec<&Column> = COLUMNS.iter().filter(measured).collect();
    let head: String = columns.iter().map(|column| heading(column, unit)).collect();
    let rows: String = summary.iter().enumerate().map(|(index, of)| row(index, of, &columns, unit)).collect();
    let table = format!(
        "<div class=\"wide\"><table>\n<thead><tr><th>policy</th>{head}</tr></thead>\n<tbody>\n{rows}</tbody>\n\
         </table></div>\n"
    );
    super::section("Figures", SAYS, &table)
}

const SAYS: &str = "JCT is the time from submission to completion; queueing all of it in which a job did not train; \
     slowdown its iteration time over that of running alone at the same place.";

fn heading(column: &Column, unit: Unit) -> String {
    let unit = if matches!(column.kind, Kind::Time) { unit.name } else { "" };
    format!("<th>{} <small>{unit}</small></th>", column.name)
}

fn row(index: usize, row: &PolicySummary, columns: &[&Column], unit: Unit) -> String {
    let cells: String = columns.iter().map(|column| cell(column, &row.figures, unit)).collect();
    let class = legend::class(&row.policy, index);
    format!("<tr class=\"{class}\"><th>{}</th>{cells}</tr>\n", escape(&row.policy))
}

fn cell(column: &Column, figures: &Figures<f64>, unit: Unit) -> String {
    let text = (column.of)(figures).map_or("–".to_owned(), |value| match column.kind {
        Kind::Count => number(value, 1),
        Kind::Time => format!("{:.*}", unit.decimals(), value / unit.seconds),
        Kind::Share => percent(value),
        Kind::Ratio => format!("{value:.2}"),
    });
    format!("<td>{text}</td>")
}
