//! Decisions and states as text, so that everything in them is compared, whatever is added to them later.

use std::collections::BTreeMap;

use metronome_core::decide::{Decision, decide};
use metronome_core::engine::{Engine, State};
use metronome_core::model::id::JobId;
use metronome_core::model::job::{ClassPosition, Life};
use metronome_core::model::report::{Reason, Report};

/// Everything that an engine would decide now but for the reasons of waiting jobs.
pub(crate) fn decision(engine: &Engine) -> String {
    let decision = decide(&engine.snapshot(), engine.policy());
    let report = Report { waiting: Vec::new(), ..decision.report.clone() };
    format!("{:#?}", Decision { report, ..decision })
}

/// Why jobs wait, as an engine would find out now. The report names classes of jobs by numbers that depend on the order in
/// which the engine met them: here each job has the reason of its class. Jobs of a class that is not looked at again are
/// left out: their reason stands.
pub(crate) fn reasons(engine: &Engine) -> BTreeMap<JobId, Reason> {
    let snapshot = engine.snapshot();
    let report = decide(&snapshot, engine.policy()).report;
    let classes =
        report.waiting.into_iter().filter_map(|(id, reason)| Some((snapshot.waiting.class(id)?, reason)));
    classes
        .flat_map(|(class, reason)| class.line.iter().map(move |place| (place.job, reason.clone())))
        .collect()
}

/// What an engine would do if it decided now, one line for each kind of change; empty where it would do nothing.
pub(crate) fn changes(engine: &Engine) -> Vec<String> {
    let Decision { amendment, report, .. } = decide(&engine.snapshot(), engine.policy());
    // Jobs that have nodes stay, whatever is found out about their deadlines: a refusal of them has no effect.
    let waits = |(job, _): &&(JobId, Reason)| engine.life(*job).is_some_and(Life::is_waiting);
    let refused: Vec<&(JobId, Reason)> = report.refused.iter().filter(waits).collect();
    let amended = (!amendment.is_empty()).then(|| format!("{amendment:?}"));
    let displaced = (!report.displaced.is_empty()).then(|| format!("displaced: {:?}", report.displaced));
    let reconfigured =
        (!report.reconfigured.is_empty()).then(|| format!("reconfigured: {:?}", report.reconfigured));
    let refused = (!refused.is_empty()).then(|| format!("refused: {refused:?}"));
    [amended, displaced, reconfigured, refused].into_iter().flatten().collect()
}

/// The state after a decision, without what counts decisions, what the last one did and when the next one is due. Orders
/// that rank all jobs together count passes, too: each pass gives those that held nodes before it a new place among equals.
pub(crate) fn settled(of: &State) -> String {
    let mut settled = State { cycles: 0, pass: 0, reconfigured: Vec::new(), wake: None, ..of.clone() };
    for (id, _) in of.jobs.iter() {
        settled.jobs[id].standing = ClassPosition::default();
    }
    state(&settled)
}

/// A state as it is written to a journal.
pub(crate) fn state(state: &State) -> String {
    serde_json::to_string_pretty(state).expect("a state is plain data")
}

/// An engine that knows only what a journal's state record says.
pub(crate) fn restored(engine: &Engine) -> Engine {
    let text = serde_json::to_string(engine.state()).expect("a state is plain data");
    Engine::restore(serde_json::from_str(&text).expect("a state that was written is read"))
}

/// The first lines in which two texts differ, with those before; none where they are equal.
pub(crate) fn difference(one: &str, other: &str) -> Option<String> {
    const LINES_BEFORE: usize = 12;
    const LINES_AFTER: usize = 6;
    if one == other {
        return None;
    }
    let equal = one.lines().zip(other.lines()).take_while(|(one, other)| one == other).count();
    let around = |text: &str| -> String {
        let first = equal.saturating_sub(LINES_BEFORE);
        let lines = text.lines().skip(first).take(equal - first + LINES_AFTER);
        lines.map(|line| format!("{line}\n")).collect()
    };
    Some(format!("from line {}:\n{}instead of\n{}", equal + 1, around(other), around(one)))
}
