//! What one more job would change, in words: when it would start and end, and whom it would delay.

use std::fmt::Write;

use serde::Serialize;

use metronome_core::forecast::{Change, Forecast, MOST_EVENTS, Shift, Stopped, WhatIf};
use metronome_core::units::Instant;

use crate::document::{ForecastDocument, ReasonText};
use crate::{Foreseen, Names, after_the_beginning, count, fact, sentence};

/// How many of those who would be delayed are named to people; programs get all.
const MOST_NAMED: usize = 20;

/// The answer to people. `job` is what the job would be called, `at` when it would be submitted.
pub fn what_if_lines(job: &str, at: Instant, answer: &WhatIf, names: &impl Names) -> String {
    let mut text = String::new();
    fact(&mut text, "job", job);
    fact(&mut text, "submitted", &after_the_beginning(at));
    match answer {
        WhatIf::Refused(reason) => fact(&mut text, "refused", &sentence(reason, names)),
        WhatIf::Taken { job, outlook, changes, without } => {
            text.extend(Foreseen::of(outlook, *job).map(|foreseen| foreseen.lines()));
            text.push('\n');
            text.push_str(&others(changes));
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
    let (refused, forecast, changes) = match answer {
        WhatIf::Refused(reason) => (Some(ReasonText::of(reason, names)), None, Vec::new()),
        WhatIf::Taken { job, outlook, changes, .. } => {
            let forecast = Foreseen::of(outlook, *job).map(|foreseen| foreseen.document());
            (None, forecast, changes.iter().map(change_document).collect())
        }
    };
    WhatIfDocument { version: 1, job, submitted_s: at.as_secs_f64(), refused, forecast, changes }
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
