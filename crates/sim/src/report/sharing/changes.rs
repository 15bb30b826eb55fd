//! What was changed for running jobs because of links, cores or nodes, each with its reason.

use metronome_core::traffic::decision_inputs::What;

use crate::outcome::{Because, Change, Outcome};
use crate::report::text::{count, escape, time};

/// So many are told of one by one.
const MOST_ROWS: usize = 100;

/// So many jobs of a change are named.
const MOST_NAMES: usize = 3;

pub(super) fn of(outcome: &Outcome) -> String {
    let lanes = match outcome.lane_changes {
        0 => String::new(),
        changes => {
            format!("<p class=\"says\">Lanes changed {} in this run.</p>\n", count(changes as f64, "time"))
        }
    };
    lanes + &table(&outcome.changes)
}

fn table(changes: &[Change]) -> String {
    if changes.is_empty() {
        return String::new();
    }
    let rows: String = changes.iter().take(MOST_ROWS).map(row).collect();
    let more = match changes.len().saturating_sub(MOST_ROWS) {
        0 => String::new(),
        more => format!("<p class=\"says\">And {more} more later.</p>\n"),
    };
    format!(
        "<details><summary>{} of running jobs, with reasons</summary>\n<div class=\"wide\">\
         <table class=\"sharers\">\n<thead><tr><th>after</th><th class=\"lane\">because</th>\
         <th class=\"lane\">what</th><th class=\"lane\">for</th><th>saves</th></tr></thead>\n\
         <tbody>\n{rows}</tbody>\n</table></div>\n{more}</details>\n",
        count(changes.len() as f64, "change"),
    )
}

fn row(change: &Change) -> String {
    let what = match change.what {
        What::Lanes => "how they stand on links",
        What::Place => "its place",
    };
    format!(
        "<tr><th>{}</th><td class=\"lane\">{}</td><td class=\"lane\">{what}</td><td class=\"lane\">{}</td>\
         <td>{}</td></tr>\n",
        time(change.at.as_secs_f64()),
        escape(&because(&change.because)),
        escape(&names(change)),
        time(change.saves.as_secs_f64()),
    )
}

fn because(because: &Because) -> String {
    match because {
        Because::Arrival(job) => format!("{job} came"),
        Because::Departure(job) => format!("{job} has left"),
        Because::Link { name, was, is } => format!("{name} carries {is} instead of {was}"),
        Because::Profile(job) => format!("{job} was measured, and is not what was declared"),
        Because::Drift(job) => format!("{job} no longer does what it did"),
        Because::Priorities => "priorities came or went".to_owned(),
        Because::Room => "a better place came free".to_owned(),
        Because::Fragmentation(job) => format!("{job} fits once they are closer together"),
        Because::SlowNode(node) => format!("its members on {node} fell behind the others"),
        Because::Drained(node) => format!("{node} is about to go"),
    }
}

fn names(change: &Change) -> String {
    let named: Vec<&str> = change.jobs.iter().take(MOST_NAMES).map(|name| &**name).collect();
    match change.jobs.len().saturating_sub(MOST_NAMES) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}
