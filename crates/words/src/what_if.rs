//! What one more job would change, in words: when it would start and end, and whom it would delay.

use std::fmt::Write;

use serde::Serialize;

use metronome_core::engine::forecast::{
    Change, Forecast, Gives, GivesWay, MOST_EVENTS, Shift, Stopped, WhatIf,
};
use metronome_core::model::units::Instant;

use crate::document::{DeadlineText, ForecastDocument, ReasonText, deadline};
use crate::{Foreseen, Names, count, fact, sentence, since_a_beginning, will_be_in_time};

/// How many of those who would be delayed are named to people; programs get all.
const MOST_NAMED: usize = 20;

/// The answer to people. `job` is what the job would be called, `at` when it would be submitted.
pub fn what_if_lines(job: &str, at: Instant, answer: &WhatIf, names: &impl Names) -> String {
    let mut text = String::new();
    fact(&mut text, "job", job);
    fact(&mut text, "submitted", &since_a_beginning(at).unwrap_or_else(|| "now".into()));
    match answer {
        WhatIf::Refused(reason) => fact(&mut text, "refused", &sentence(reason, names)),
        WhatIf::Taken { job, outlook, changes, without, due, gives_way } => {
            text.extend(Foreseen::of(outlook, *job).map(|foreseen| foreseen.lines()));
            if let Some(due) = due {
                fact(&mut text, "deadline", &will_be_in_time(due));
            }
            text.push('\n');
            text.push_str(&others(changes));
            text.push_str(&bookings(gives_way));
            if [outlook.stopped, *without].contains(&Stopped::TooFar) {
                writeln!(text, "what lies more than {MOST_EVENTS} events ahead was not looked at")
                    .expect("a string takes everything");
            }
        }
    }
    text
}

fn others(changes: &[Change]) -> String {
    let (later, sooner): (Vec<_>, Vec<_>) = changes.iter().partition(|change| is_delayed(change));
    if changes.is_empty() {
        return "nobody else would start or end at another time\n".into();
    }
    let mut text = listed("would be delayed", &later);
    text.push_str(&listed("would come sooner", &sooner));
    text
}

/// Whose bookings would have less in them.
fn bookings(gives_way: &[GivesWay]) -> String {
    let mut text = String::new();
    if !gives_way.is_empty() {
        let jobs = count(u32::try_from(gives_way.len()).unwrap_or(u32::MAX), "job");
        writeln!(text, "{jobs} with a deadline would give way:").expect("a string takes everything");
    }
    for GivesWay { job, how } in gives_way.iter().take(MOST_NAMED) {
        let how = match how {
            Gives::Everything => "nothing would be booked for it any more".into(),
            Gives::Members { to: 0, .. } => "it would be stopped for now, and be in time".into(),
            Gives::Members { from, to } => {
                format!("it would have {to} instead of {} now, and be in time", count(*from, "member"))
            }
            Gives::Time(later) => format!("it would be done {later} later, and be in time"),
        };
        writeln!(text, "  {job}: {how}").expect("a string takes everything");
    }
    text
}

fn is_delayed(change: &Change) -> bool {
    let later = |shift| matches!(shift, Shift::Later(_) | Shift::Lost);
    later(change.end()) || change.end() == Shift::Same && later(change.start())
}

fn listed(what: &str, changes: &[&Change]) -> String {
    let mut text = String::new();
    if !changes.is_empty() {
        let jobs = count(u32::try_from(changes.len()).unwrap_or(u32::MAX), "job");
        writeln!(text, "{jobs} {what}:").expect("a string takes everything");
    }
    for change in changes.iter().take(MOST_NAMED) {
        let (start, end) = (moved("starts", change.start()), moved("ends", change.end()));
        let both: Vec<String> = [start, end].into_iter().flatten().collect();
        writeln!(text, "  {}: {}", change.before.name, both.join(", ")).expect("a string takes everything");
    }
    if changes.len() > MOST_NAMED {
        writeln!(text, "  … and {} more", changes.len() - MOST_NAMED).expect("a string takes everything");
    }
    text
}

fn moved(what: &str, shift: Shift) -> Option<String> {
    match shift {
        Shift::Same => None,
        Shift::Sooner(by) => Some(format!("{what} {by} sooner")),
        Shift::Later(by) => Some(format!("{what} {by} later")),
        Shift::Lost => Some(format!("{what} later than can be foreseen")),
        Shift::Found => Some(format!("{what} within what can be foreseen")),
    }
}

/// The answer to programs: `what-if --output json`, described by `docs/reference/what-if.schema.json`.
#[derive(Debug, Serialize)]
pub struct WhatIfDocument<'a> {
    version: u32,
    job: &'a str,
    submitted_s: f64,
    refused: Option<ReasonText>,
    forecast: Option<ForecastDocument>,
    changes: Vec<ChangeDocument<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline: Option<DeadlineText>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    gives_way: Vec<GivesWayDocument<'a>>,
}

/// A job with a deadline from whose booking something would be taken.
#[derive(Debug, Serialize)]
struct GivesWayDocument<'a> {
    job: &'a str,
    /// Members it has now, and would have; null where that would not change.
    members: Option<[u32; 2]>,
    /// How much later it would be done; null where nothing would be booked for it any more.
    later_s: Option<f64>,
}

#[derive(Debug, Serialize)]
struct ChangeDocument<'a> {
    job: &'a str,
    before: Times,
    after: Times,
    /// How much later it would end; negative if sooner, null where one of the two was not foreseen.
    delay_s: Option<f64>,
}

#[derive(Debug, Serialize)]
struct Times {
    start_s: Option<f64>,
    end_s: Option<f64>,
}

pub fn what_if_document<'a>(
    job: &'a str,
    at: Instant,
    answer: &'a WhatIf,
    names: &impl Names,
) -> WhatIfDocument<'a> {
    let empty = WhatIfDocument {
        version: 1,
        job,
        submitted_s: at.as_secs_f64(),
        refused: None,
        forecast: None,
        changes: Vec::new(),
        deadline: None,
        gives_way: Vec::new(),
    };
    match answer {
        WhatIf::Refused(reason) => WhatIfDocument { refused: Some(ReasonText::of(reason, names)), ..empty },
        WhatIf::Taken { job, outlook, changes, due, gives_way, .. } => WhatIfDocument {
            forecast: Foreseen::of(outlook, *job).map(|foreseen| foreseen.document()),
            changes: changes.iter().map(change_document).collect(),
            deadline: due.as_ref().map(deadline),
            gives_way: gives_way.iter().map(gives_way_document).collect(),
            ..empty
        },
    }
}

fn gives_way_document(gives: &GivesWay) -> GivesWayDocument<'_> {
    let (members, later_s) = match gives.how {
        Gives::Everything => (None, None),
        Gives::Members { from, to } => (Some([from, to]), Some(0.0)),
        Gives::Time(later) => (None, Some(later.as_secs_f64())),
    };
    GivesWayDocument { job: &gives.job, members, later_s }
}

fn change_document(change: &Change) -> ChangeDocument<'_> {
    let delay_s = match change.end() {
        Shift::Same => Some(0.0),
        Shift::Later(by) => Some(by.as_secs_f64()),
        Shift::Sooner(by) => Some(-by.as_secs_f64()),
        Shift::Lost | Shift::Found => None,
    };
    let Change { before, after } = change;
    ChangeDocument { job: &before.name, before: times(before), after: times(after), delay_s }
}

fn times(forecast: &Forecast) -> Times {
    Times { start_s: forecast.start.map(Instant::as_secs_f64), end_s: forecast.end.map(Instant::as_secs_f64) }
}
