//! Tables of a trace: figures by job, directives with their reasons, profiles as they were learned.

use metronome_core::model::units::Bandwidth;
use metronome_sim::report::text::{count, escape, percent, short_time, time};

use super::crowding::Crowding;
use super::{Drawn, DrawnLink, at, bands, bytes, section};
use crate::trace::document::{Directive, Job, Profile, Trace};
use crate::trace::page::shades::hue;

/// More rows are left to the data.
const MOST_ROWS: usize = 60;

pub(super) fn summary(trace: &Trace) -> String {
    let rows: String = trace.jobs.iter().enumerate().map(|(index, job)| row(index, job)).collect();
    let head = [
        "job",
        "iterations",
        "mean before the first directive",
        "mean after it",
        "change",
        "profile first used",
        "bytes in an iteration",
        "directives",
        "held",
    ];
    let says = "Means of iterations count only while another job that shares a link was sending. They are counted by the \
                trainer's own record where there is one, otherwise by bytes: every iteration sends the same number.";
    section("Jobs", says, &table(&head, &rows))
}

fn row(index: usize, job: &Job) -> String {
    let figures = &job.iterations;
    let ms = |value: Option<f64>| value.map_or_else(none, |ms| short_time(ms / 1e3));
    let change = figures.before_ms.zip(figures.after_ms).map(|(before, after)| signed(after / before - 1.0));
    let held: u64 = job.held.iter().map(|held| held.to_ns.saturating_sub(held.from_ns)).sum();
    let held = match job.held.len() {
        0 => none(),
        times => format!("{}, {}", count(times as f64, "time"), time(held as f64 / 1e9)),
    };
    let about = match figures.source {
        Some("bytes") => figures.count.map_or_else(none, |count| format!("about {count}")),
        _ => figures.count.map_or_else(none, |count| count.to_string()),
    };
    let cells = [
        about,
        ms(figures.before_ms),
        ms(figures.after_ms),
        change.unwrap_or_else(none),
        job.profile_used_ns.map_or_else(none, at),
        job.bytes_per_iteration.map_or_else(none, bytes),
        job.directives.iter().filter(|one| one.directive.is_some()).count().to_string(),
        held,
    ];
    let cells: String = cells.iter().map(|cell| format!("<td>{}</td>", escape(cell))).collect();
    format!("<tr class=\"{}\"><th>{}</th>{cells}</tr>\n", hue(index), escape(&job.name))
}

/// How busy links were, and whether classes had the effect that they are for.
pub(super) fn links(drawn: &Drawn) -> String {
    if drawn.links.is_empty() {
        return String::new();
    }
    let row = |link: &DrawnLink| {
        let crowding = Crowding::of(drawn, link);
        let divided = crowding.divided_part().map_or_else(none, percent);
        format!(
            "<tr><th>{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{divided}</td></tr>\n",
            escape(&link.link.name),
            Bandwidth(link.link.rate_bps),
            bytes(link.link.bytes.total() as f64),
            percent(crowding.part(crowding.full)),
            percent(crowding.part(crowding.ranked)),
        )
    };
    let rows: String = drawn.links.iter().take(MOST_ROWS).map(row).collect();
    let head = ["link", "rate", "carried", "full", "full, with jobs of several classes", "of that: divided"];
    let says = "Parts of the time in which several jobs were active. A link is divided where a job of a lower class has more \
                than 30 % of it although a job of a higher class sends, too: then the priority had no effect.";
    section("Links", says, &(table(&head, &rows) + &more(drawn.links.len())))
}

pub(super) fn directives(trace: &Trace) -> String {
    let moments = bands::moments(trace);
    let mut all: Vec<(u64, usize, &Directive)> = Vec::new();
    for (index, job) in trace.jobs.iter().enumerate() {
        all.extend(job.directives.iter().map(|one| (one.at_ns, index, one)));
    }
    all.sort_by_key(|(at, index, _)| (*at, *index));
    let row = |(given, index, one): &(u64, usize, &Directive)| {
        let saves = one.saves_ns.map_or_else(none, |saves| time(saves as f64 / 1e9));
        format!(
            "<tr class=\"{}\"><td>{}</td><td>{}</td><th>{}</th><td class=\"words\">{}</td>\
             <td class=\"words\">{}</td><td>{saves}</td></tr>\n",
            hue(*index),
            bands::number_of(&moments, *given),
            at(*given),
            escape(&trace.jobs[*index].name),
            escape(&one.in_words),
            escape(&one.reason),
        )
    };
    if all.is_empty() {
        return section("Directives", "No job was given a traffic directive.", "");
    }
    let rows: String = all.iter().take(MOST_ROWS).map(row).collect();
    let head = ["", "given", "job", "directive", "because", "predicted to save"];
    let says = "Numbers are those at the lines in the pictures. What is predicted to be saved is the training time of all \
                jobs of a change together.";
    section("Directives", says, &(table(&head, &rows) + &more(all.len())))
}

pub(super) fn profiles(trace: &Trace) -> String {
    if trace.profiles.is_empty() {
        return section("Learned profiles", "The agent has told no profile of traffic in this run.", "");
    }
    let row = |profile: &Profile| {
        let ms = |ms: f64| short_time(ms / 1e3);
        let index = trace.jobs.iter().position(|job| job.name == profile.job).unwrap_or(0);
        format!(
            "<tr class=\"{}\"><td>{}</td><th>{}</th><td>{}</td><td>{}</td><td>{}</td><td>{:.2}</td><td>{}</td><td>{}</td></tr>\n",
            hue(index),
            at(profile.at_ns),
            escape(&profile.job),
            ms(profile.period_ms),
            profile.uncontended_ms.map_or_else(none, ms),
            profile.bytes.map_or_else(none, bytes),
            profile.confidence,
            profile.iterations,
            if profile.is_alone { "alone" } else { "beside others" },
        )
    };
    let rows: String = trace.profiles.iter().take(MOST_ROWS).map(row).collect();
    let head =
        ["told", "job", "period", "period without others", "bytes", "confidence", "iterations", "seen"];
    let says = "Profiles as the agent told them. A profile of little confidence is not used.";
    section("Learned profiles", says, &(table(&head, &rows) + &more(trace.profiles.len())))
}

fn table(head: &[&str], rows: &str) -> String {
    let cell = |name: &&str| match *name {
        "job" | "directive" | "because" => format!("<th class=\"words\">{name}</th>"),
        name => format!("<th>{name}</th>"),
    };
    let head: String = head.iter().map(cell).collect();
    format!(
        "<div class=\"wide\"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table></div>\n"
    )
}

fn more(rows: usize) -> String {
    match rows.saturating_sub(MOST_ROWS) {
        0 => String::new(),
        more => format!("<p class=\"says\">{more} more are in the data.</p>\n"),
    }
}

fn none() -> String {
    "–".to_owned()
}

/// A change in percent, with its sign.
fn signed(change: f64) -> String {
    let sign = if change < 0.0 { "−" } else { "+" };
    format!("{sign}{}", percent(change.abs()))
}
