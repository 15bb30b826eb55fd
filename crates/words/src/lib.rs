//! An explanation in words: one line for each fact, the reason as a sentence that says what is needed against what
//! there is. The command line and the events of a cluster say the same because both say it by this crate.

mod document;
mod forecast;
mod names;
#[cfg(test)]
mod tests;
mod what_if;

use std::fmt::Write;

use metronome_core::deadlines::DeadlineVerdict;
use metronome_core::model::cluster::Name;
use metronome_core::model::id::{JobId, NodeId};
use metronome_core::model::job::Priority;
use metronome_core::model::plan::Assignment;
use metronome_core::model::report::{
    AvoidedNode, BestDomain, DeadlinePrediction, Explanation, Failure, JobAhead, LearningReport,
    NodeCondition, NodeProblem, Reason, State, Unconfirmed,
};
use metronome_core::model::units::{Cpu, Duration, Gpus, Instant, Memory, Resources, Share};
use metronome_core::observe::progress::Category;
use metronome_core::observe::scaling::Speed;

pub use document::{Document, ForecastDocument, document, document_foreseeing};
pub use forecast::Foreseen;
pub use names::Names;
pub use what_if::{WhatIfDocument, what_if_document, what_if_lines};

pub fn lines(explanation: &Explanation, names: &impl Names) -> String {
    told(explanation, names, Some(after_the_beginning(explanation.submitted)))
}

/// The same, with what is foreseen of the job.
pub fn lines_foreseeing(explanation: &Explanation, names: &impl Names, foreseen: &Foreseen<'_>) -> String {
    let foreseen = match explanation.state {
        State::Running => foreseen.lines_of_end(),
        _ => foreseen.lines(),
    };
    lines(explanation, names) + &foreseen
}

/// The same for a job of a world whose time has no beginning.
pub fn lines_now(explanation: &Explanation, names: &impl Names) -> String {
    told(explanation, names, None)
}

fn after_the_beginning(at: Instant) -> String {
    format!("{} after the beginning", Duration(at.0))
}

/// No world with a beginning lasts so long: a time beyond is one of the calendar.
const LONGEST_WORLD: Instant = Instant(20 * 365 * 24 * Duration::HOUR.0);

/// Where a time is counted from a beginning that means something to people.
fn since_a_beginning(at: Instant) -> Option<String> {
    (at < LONGEST_WORLD).then(|| after_the_beginning(at))
}

/// One line: a word for what it is about, and what there is to say.
fn fact(text: &mut String, what: &str, words: &str) {
    writeln!(text, "{what:<10} {words}").expect("a string takes everything");
}

fn told(explanation: &Explanation, names: &impl Names, submitted: Option<String>) -> String {
    let mut text = String::new();
    let mut fact = |what: &str, words: String| fact(&mut text, what, &words);
    fact("job", explanation.job.to_string());
    fact("state", format!("{}: {}", state_name(explanation.state), state_words(explanation.state)));
    let over = matches!(explanation.state, State::Refused | State::Failed | State::Done);
    if let Some(submitted) = submitted {
        fact("submitted", submitted);
    }
    if !over {
        fact("waited", explanation.waited.to_string());
    }
    if let Some(reason) = &explanation.reason {
        fact("reason", sentence(reason, names));
    }
    if !explanation.awaits.is_empty() {
        fact("awaits", in_quotes(&explanation.awaits));
    }
    if !over {
        fact("need", format!("{}; free now: {}", explanation.need, explanation.free));
    }
    for (counter, need, free) in &explanation.lacks {
        fact("lacks", format!("{need} of {counter}; free where it may run: {free}"));
    }
    if let Some(best) = &explanation.best {
        fact("best", nearest_to_room(best, names));
    }
    for avoided in &explanation.avoided {
        fact("avoided", is_avoided(avoided, names));
    }
    if let Some(position) = explanation.position {
        let ahead: Vec<String> = explanation.ahead.iter().map(with_its_claim).collect();
        fact("line", place_in_line(position, Some(explanation.priority), &ahead));
    }
    if let Some(due) = explanation.due.as_ref().filter(|_| !over) {
        fact("deadline", will_be_in_time(due));
    }
    if let Some(learned) = explanation.learned.as_ref().filter(|_| !over) {
        fact("progress", what_it_learns(learned, explanation.need.gpus));
    }
    if let Some(assignment) = &explanation.assignment {
        fact("nodes", nodes(assignment, names));
    }
    for unwell in &explanation.unwell {
        fact("unwell", is_unwell(unwell, names));
    }
    for unconfirmed in &explanation.unconfirmed {
        fact("directive", is_unconfirmed(unconfirmed, names));
    }
    text
}

/// All that matters of a job that waits, in one line: why, need against free, who is ahead.
pub fn one_line(explanation: &Explanation, names: &impl Names) -> String {
    let reason = explanation.reason.as_ref().map(|reason| sentence(reason, names));
    let mut text = reason.unwrap_or_else(|| state_words(explanation.state).to_owned());
    write!(text, "; need {}, free now {}", explanation.need, explanation.free)
        .expect("a string takes everything");
    if let Some(position) = explanation.position {
        // Without the waits of others, which would make another text of it at every look.
        let ahead: Vec<String> = explanation.ahead.iter().map(|ahead| ahead.job.to_string()).collect();
        write!(text, "; {}", place_in_line(position, None, &ahead)).expect("a string takes everything");
    }
    text
}

fn place_in_line(position: usize, claim: Option<Priority>, ahead: &[String]) -> String {
    if ahead.is_empty() {
        return format!("place {position}, nobody ahead");
    }
    let claim = claim.map(|own| format!(" with priority {}", priority_name(own))).unwrap_or_default();
    let more = (position - 1).saturating_sub(ahead.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("place {position}{claim}, behind {}{more}", ahead.join(", "))
}

/// `bert (high, waited 8m)`: the job, and what puts it where it stands.
fn with_its_claim(ahead: &JobAhead) -> String {
    let JobAhead { job, priority, waited, left } = ahead;
    let left = left.map(|left| format!(", {left} left")).unwrap_or_default();
    format!("{job} ({}, waited {waited}{left})", priority_name(*priority))
}

/// The three that scenarios know by their names, others by their number.
pub fn priority_name(priority: Priority) -> String {
    match priority {
        Priority::HIGH => "high".into(),
        Priority::NORMAL => "normal".into(),
        Priority::LOW => "low".into(),
        Priority(number) => number.to_string(),
    }
}

/// How much a job still learns, what is left of it, and what is odd about its reports.
fn what_it_learns(learned: &LearningReport, gpus: Gpus) -> String {
    let mut text = match learned.category {
        Category::Progressing => "it learns",
        Category::Watching => "it learns little",
        Category::Converged => "it hardly learns any more",
    }
    .to_owned();
    if let Some(gains) = learned.gains_in_an_hour {
        text += &format!("; another hour alone would take {:.1} % off its metric", gains.as_f64() * 100.0);
        if let Some(each) = gain_for_a_gpu_hour(gains, gpus) {
            text += &format!(", {:.2} % for each GPU-hour", each * 100.0);
        }
    }
    if is_worth_stopping(learned) {
        text += ": it is nearly as good as it will be, and its owner may want to stop it";
    }
    if let Some(left) = learned.left {
        text += &format!("; {left} of work left");
    }
    if !learned.is_believed {
        text += ", which is not believed: it has used more than twice what it was to need";
    }
    if learned.odd > 0 {
        text += &format!("; {} made no sense", count(learned.odd, "report"));
    }
    text
}

/// The part of its metric that a GPU takes off in another hour.
pub(crate) fn gain_for_a_gpu_hour(in_an_hour: Share, gpus: Gpus) -> Option<f64> {
    let gpus = gpus.0 as f64 / Gpus::whole(1).0 as f64;
    (gpus > 0.0).then(|| in_an_hour.as_f64() / gpus)
}

/// Less than this of its metric in an hour is hardly worth its place.
const HARDLY_ANYTHING: Share = Share(Share::WHOLE.0 / 200);

/// Whether its owner may want to stop it. Nobody else does.
pub(crate) fn is_worth_stopping(learned: &LearningReport) -> bool {
    let gains_little = learned.gains_in_an_hour.is_some_and(|gains| gains < HARDLY_ANYTHING);
    learned.category == Category::Converged && gains_little
}

/// Which node takes nothing new, for how long, and why.
pub fn is_avoided(avoided: &AvoidedNode, names: &impl Names) -> String {
    let AvoidedNode { node, failed, lasts } = avoided;
    let (node, failed) = (names.node(*node), in_quotes(failed));
    format!("node `{node}` takes nothing new for {lasts}: these failed there and nowhere else: {failed}")
}

fn in_quotes(jobs: &[Name]) -> String {
    let quoted: Vec<String> = jobs.iter().map(|job| format!("`{job}`")).collect();
    quoted.join(", ")
}

/// A node that has not applied the traffic policy or the CPU weight of a job.
pub fn is_unconfirmed(unconfirmed: &Unconfirmed, names: &impl Names) -> String {
    let Unconfirmed { node, lasts, failure, .. } = unconfirmed;
    let node = names.node(*node);
    let why = failure.as_ref().map(|failure| format!(": {failure}")).unwrap_or_default();
    format!("node `{node}` has not applied the traffic policy and CPU weight for {lasts}{why}")
}

/// What is not well with a node under a job.
pub fn is_unwell(unwell: &NodeProblem, names: &impl Names) -> String {
    let node = names.node(unwell.node);
    match unwell.is {
        NodeCondition::Slow { speed } => {
            let times = Speed::PLAIN.0 as f64 / speed.0.max(1) as f64;
            format!(
                "node `{node}` is slow: members there take {times:.2} times as long for an iteration as others; it goes \
                 elsewhere where that pays"
            )
        }
        NodeCondition::Draining { within: Some(within) } => {
            format!("node `{node}` goes in {within}; whoever can be moved leaves it before")
        }
        NodeCondition::Draining { within: None } => {
            format!("node `{node}` is about to go; whoever can be moved leaves it before")
        }
    }
}

/// Whether a job will be in time, by how much, and how sure that is.
pub fn will_be_in_time(due: &DeadlinePrediction) -> String {
    let DeadlinePrediction { deadline, verdict, ends, enough, error, .. } = due;
    let end = ends.map(|ends| match ends <= *deadline {
        true => format!("done {} before it", deadline.since(ends)),
        false => format!("done {} after it", ends.since(*deadline)),
    });
    let off = match error.0 {
        0 => String::new(),
        _ => format!("; predictions were off by up to {:.0} %", error.as_f64() * 100.0),
    };
    let saved = || match enough {
        Some(members) => format!("in time with {} from now on", count(*members, "member")),
        None => format!("at its fastest {}", end.clone().unwrap_or_else(|| "nobody knows when".into())),
    };
    match (verdict, &end) {
        (Some(DeadlineVerdict::Promised), Some(end)) => format!("promised: {end}, whoever comes{off}"),
        (Some(DeadlineVerdict::Planned), Some(end)) => {
            format!("planned: {end}, unless others need its place{off}")
        }
        (Some(_), _) => format!("nothing is booked for it: {}{}{off}", saved(), what_would_save(due)),
        (None, _) => format!("nobody sees to it: {}", saved()),
    }
}

/// A later deadline, or that another were not there.
fn what_would_save(due: &DeadlinePrediction) -> String {
    let DeadlinePrediction { deadline, earliest, in_the_way, .. } = due;
    let later = earliest.filter(|earliest| earliest > deadline);
    let later = later.map(|earliest| format!("; a deadline {} later can be kept", earliest.since(*deadline)));
    let names: Vec<String> = in_the_way.iter().map(|name| format!("`{name}`")).collect();
    let without = (!names.is_empty()).then(|| format!("; so can its own without {}", names.join(" or ")));
    [later, without].into_iter().flatten().collect()
}

fn nearest_to_room(best: &BestDomain, names: &impl Names) -> String {
    let BestDomain { level, domain, fit, members } = best;
    let (level, members) = (names.level(*level), count(*members, "member"));
    format!("{level} `{domain}`, with room for {fit} of its {members}")
}

fn nodes(assignment: &Assignment, names: &impl Names) -> String {
    let on = |(node, members)| format!("{} ({})", names.node(node), count(members, "member"));
    members_by_node(assignment).map(on).collect::<Vec<_>>().join(", ")
}

fn members_by_node(assignment: &Assignment) -> impl Iterator<Item = (NodeId, u32)> {
    let on = |node| assignment.parts().iter().filter(move |part| part.node == node).map(|part| part.members);
    assignment.nodes().map(move |node| (node, on(node).sum()))
}

pub fn state_name(state: State) -> &'static str {
    match state {
        State::Queued => "queued",
        State::Starting => "starting",
        State::Running => "running",
        State::Degraded => "degraded",
        State::Resizing => "resizing",
        State::Moving => "moving",
        State::Leaving => "leaving",
        State::Preempted => "preempted",
        State::Suspended => "suspended",
        State::Refused => "refused",
        State::Failed => "failed",
        State::Done => "done",
    }
}

fn state_words(state: State) -> &'static str {
    match state {
        State::Queued => "it waits for its turn and for room",
        State::Starting => "it has its nodes, and its members are being started",
        State::Running => "all its members run",
        State::Degraded => "a node under it is gone; what is left of it is being stopped",
        State::Resizing => "its number of members is being changed",
        State::Moving => "it is on its way to other nodes",
        State::Leaving => "it is being stopped and holds its nodes until it has",
        State::Preempted => "it was stopped with its work kept, and waits to go on",
        State::Suspended => "its owner has taken it off the line",
        State::Refused => "it will not be run",
        State::Failed => "it will not be tried again",
        State::Done => "its work is complete",
    }
}

/// The reason as a sentence without a capital or a full stop.
pub fn sentence(reason: &Reason, names: &impl Names) -> String {
    match reason {
        Reason::Gated => "its owner has not released it yet".into(),
        Reason::ExceedsQuota { queue, need, quota } => {
            let quota = bounded(*quota);
            format!("it needs {need}, and queue `{}` may never hold more than {quota}", names.queue(*queue))
        }
        Reason::NoMatchingNode { each, members, fit } => {
            format!("it needs {}, and even if all nodes were free {} fit", gang(*members, *each), few(*fit))
        }
        Reason::WaitingForQuota { queue, user, need, left } => {
            let (queue, left) = (names.queue(*queue), bounded(*left));
            match user {
                Some(user) => format!("it needs {need}, and `{user}` has {left} left in queue `{queue}`"),
                None => format!("it needs {need}, and queue `{queue}` has {left} left of its quota"),
            }
        }
        Reason::InsufficientResources { each, members, fit } => {
            format!("it needs {}, and {} fit now", gang(*members, *each), few(*fit))
        }
        Reason::TopologyUnsatisfied { level, members, best } => {
            let (level, members) = (names.level(*level), count(*members, "member"));
            format!("its {members} must share one {level}, and {} fit into the best {level} now", few(*best))
        }
        Reason::AffinityUnsatisfied { members, fit } => {
            let members = count(*members, "member");
            format!("its {members} must be near others, and {} find room there now", few(*fit))
        }
        Reason::AntiAffinityUnsatisfied { members, fit } => {
            let members = count(*members, "member");
            format!("its {members} must keep away from others, and {} find room elsewhere now", few(*fit))
        }
        Reason::SpreadUnsatisfied { members, fit } => {
            let members = count(*members, "member");
            format!("its {members} must be spread evenly, and {} find room where that is so now", few(*fit))
        }
        Reason::WaitingForVictims => "its place is chosen, and others have yet to leave it".into(),
        Reason::BandwidthContended { patience: Some(patience) } => format!(
            "there is room for it, but over links that others use: starting there would cost it and them more than \
             waiting for a better place, which it does until it has waited {patience} in all"
        ),
        Reason::BandwidthContended { patience: None } => {
            "there is room for it, but others use the links there so much that too little is left for what it sends".into()
        }
        Reason::BookedFrom { members, margin, .. } => format!(
            "{} booked for it later, with which it will be done {margin} before its deadline",
            match members {
                1 => "one member is".into(),
                members => format!("{members} members are"),
            }
        ),
        Reason::DeadlineInfeasible { deadline, earliest: Some(earliest) } => format!(
            "it cannot be done by its deadline beside those who were taken on before: at the earliest {} after it",
            earliest.since(*deadline)
        ),
        Reason::DeadlineInfeasible { earliest: None, .. } => {
            "it can no longer be done by its deadline".into()
        }
        Reason::ReservedUntil { ahead, .. } => {
            format!(
                "there is room for it, but that is kept for {}, which is ahead of it and has waited long",
                job(*ahead, names)
            )
        }
        Reason::BehindHigherPriority { ahead } => {
            format!("the line is served in order, and {} ahead of it still waits", job(*ahead, names))
        }
        Reason::StartFailed { times, failure } => {
            format!(
                "starting it failed {}, the last time because {}",
                count(*times, "time"),
                because(*failure)
            )
        }
        Reason::NodeLost { node } => format!("node `{}` under it is gone", names.node(*node)),
        Reason::Stalled { silent, .. } => format!(
            "nothing was heard of it for {silent}, longer than ten of its iterations take: it seems to hang, and nobody counts \
             on it until it reports again; see what its members do, and stop it if they do nothing"
        ),
        Reason::TrainingFailed => "it started, and its training code failed".into(),
        Reason::TooManyJobs { most } => {
            format!("there are {most} jobs already, as many as can be kept track of")
        }
        Reason::SchedulerError => {
            "the last plan broke a rule and was thrown away: a bug, please report it".into()
        }
    }
}

fn job(id: JobId, names: &impl Names) -> String {
    names.job(id).map_or("a job".into(), |name| format!("`{name}`"))
}

/// A quota without what it does not bound: that is kept as more than there can ever be.
fn bounded(quota: Resources) -> Resources {
    const UNBOUNDED: u64 = u64::MAX / 2;
    let known = |amount: u64| if amount > UNBOUNDED { 0 } else { amount };
    Resources {
        cpu: Cpu(known(quota.cpu.0)),
        memory: Memory(known(quota.memory.0)),
        gpus: Gpus(known(quota.gpus.0)),
    }
}

fn gang(members: u32, each: Resources) -> String {
    match members {
        1 => format!("one member of {each}"),
        _ => format!("{members} members of {each} each"),
    }
}

fn few(fit: u32) -> String {
    match fit {
        0 => "none would".into(),
        _ => format!("only {fit} would"),
    }
}

fn because(failure: Failure) -> &'static str {
    match failure {
        Failure::Stale => "a newer step came first",
        Failure::NodeGone => "a node was gone",
        Failure::NoRoom => "there was no room",
        Failure::WouldNotStop => "the job would not let go",
        Failure::TimedOut => "nothing was heard in time",
        Failure::Rejected => "the scheduler's own checker rejected the step, which is a bug",
        Failure::Other => "the world gave no reason",
    }
}

fn count(number: u32, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
