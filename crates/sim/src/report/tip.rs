//! What is said about one job while the pointer is on it.

use metronome_core::model::job::Priority;
use metronome_core::model::report::Reason;
use metronome_core::model::units::Instant;

use super::text::{tidy, time};
use crate::outcome::{Fate, JobOutcome};

/// Several lines: who it is, how it fared, why it last waited.
pub(super) fn of(job: &JobOutcome, ended: Instant) -> String {
    let lines = [Some(who(job)), Some(how(job, ended)), why(job)];
    lines.into_iter().flatten().collect::<Vec<_>>().join("\n")
}

fn who(job: &JobOutcome) -> String {
    let model = job.model.as_ref().map(|model| format!(" · {model}")).unwrap_or_default();
    let size = format!("{} GPUs in {} members", job.gpus, job.members);
    format!("{}{model}\n{size} · {} priority", job.name, class(job.priority))
}

fn how(job: &JobOutcome, ended: Instant) -> String {
    let end = job.end.unwrap_or(ended);
    let waited = (end.since(job.submit) - job.ran).as_secs_f64();
    let slowdown = job.slowdown.map(|slowdown| format!(" at {} × alone", tidy(slowdown))).unwrap_or_default();
    let trained = time(job.ran.as_secs_f64());
    format!("{}: waited {}, trained {trained}{slowdown}", fate(job.fate), time(waited))
}

fn why(job: &JobOutcome) -> Option<String> {
    job.wait_reason.as_ref().map(|reason| format!("last waited because {}", because(reason)))
}

pub(super) fn class(priority: Priority) -> &'static str {
    match priority {
        priority if priority >= Priority::HIGH => "high",
        priority if priority <= Priority::LOW => "low",
        _ => "normal",
    }
}

fn fate(fate: Fate) -> &'static str {
    match fate {
        Fate::Completed => "completed",
        Fate::Refused => "refused",
        Fate::Failed => "failed",
        Fate::Unfinished => "never completed",
        Fate::Deadlocked => "deadlocked",
    }
}

fn because(reason: &Reason) -> String {
    match reason {
        Reason::Gated => "its owner had not released it".into(),
        Reason::ExceedsQuota { .. } => "it is larger than its queue may ever hold".into(),
        Reason::NoMatchingNode { .. } => "no set of nodes could ever hold it".into(),
        Reason::WaitingForQuota { .. } => "its queue held as much as it may".into(),
        Reason::InsufficientResources { members, fit, .. } => {
            format!("only {fit} of its {members} members would fit")
        }
        Reason::TopologyUnsatisfied { members, best, .. } => {
            format!("its {members} members must be close together, and only {best} would fit")
        }
        Reason::AffinityUnsatisfied { members, fit } => {
            format!("its {members} members must be near others, and only {fit} would fit there")
        }
        Reason::AntiAffinityUnsatisfied { members, fit } => {
            format!("its {members} members must keep away from others, and only {fit} would fit elsewhere")
        }
        Reason::SpreadUnsatisfied { members, fit } => {
            format!("its {members} members must be spread evenly, and only {fit} would fit so")
        }
        Reason::WaitingForVictims => "others had yet to leave its nodes".into(),
        Reason::BandwidthContended { patience: Some(_) } => {
            "a better place on the links was worth waiting for".into()
        }
        Reason::BandwidthContended { patience: None } => "too little was left of the links".into(),
        Reason::BookedFrom { .. } => "its members were booked for later".into(),
        Reason::DeadlineInfeasible { .. } => "it could not be in time beside those taken on".into(),
        Reason::ReservedUntil { .. } => "room was kept for somebody ahead of it".into(),
        Reason::BehindHigherPriority { .. } => "the line is served in order".into(),
        Reason::StartFailed { times, .. } => format!("starting it failed, {times} times so far"),
        Reason::NodeLost { .. } => "a node under it was gone".into(),
        Reason::Stalled { silent, .. } => format!("nothing was heard of it for {silent}"),
        Reason::TrainingFailed => "its training code failed".into(),
        Reason::TooManyJobs { most } => format!("there were {most} jobs already"),
        Reason::SchedulerError => "the scheduler made a mistake".into(),
    }
}
