//! One CSV row for each job of each run, for those who want to draw their own conclusions.

use std::io::Write;

use metronome_core::model::job::Binding;
use metronome_core::model::report::Reason;
use metronome_core::model::units::Instant;

use super::measure::is_in_time;
use crate::outcome::{Fate, JobOutcome, Outcome, Taken};

const HEADER: [&str; 22] = [
    "policy",
    "seed",
    "job",
    "submit_s",
    "start_s",
    "end_s",
    "ran_s",
    "gpus",
    "members",
    "nodes",
    "fate",
    "preemptions",
    "wait_reason",
    "priority",
    "user",
    "deadline_s",
    "binding",
    "taken",
    "in_time",
    "resizes",
    "resizes_in_place",
    "cpu_used",
];

/// What did not happen, a start or an end, is an empty field.
pub fn per_job_csv(outcomes: &[Outcome], out: impl Write) -> Result<(), csv::Error> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(HEADER)?;
    for outcome in outcomes {
        for job in &outcome.jobs {
            writer.write_record(row(outcome, job))?;
        }
    }
    Ok(writer.flush()?)
}

fn row(outcome: &Outcome, job: &JobOutcome) -> [String; HEADER.len()] {
    let seconds = |at: Option<Instant>| at.map(|at| at.as_secs_f64().to_string()).unwrap_or_default();
    [
        outcome.policy.clone(),
        outcome.seed.to_string(),
        job.name.to_string(),
        seconds(Some(job.submit)),
        seconds(job.start),
        seconds(job.end),
        job.ran.as_secs_f64().to_string(),
        job.gpus.to_string(),
        job.members.to_string(),
        job.nodes.to_string(),
        fate_name(job.fate).to_owned(),
        job.preemptions.to_string(),
        job.wait_reason.as_ref().map(Reason::name).unwrap_or_default().to_owned(),
        job.priority.0.to_string(),
        job.user.as_f64().to_string(),
        seconds(job.deadline),
        job.deadline.map(|_| binding_name(job.binding.unwrap_or_default())).unwrap_or_default().to_owned(),
        job.taken.map(taken_name).unwrap_or_default().to_owned(),
        job.deadline.map(|_| is_in_time(job).to_string()).unwrap_or_default(),
        job.resizes.to_string(),
        job.resizes_in_place.to_string(),
        job.cpu.filter(|cpu| cpu.held > 0.0).map(|cpu| (cpu.used / cpu.held).to_string()).unwrap_or_default(),
    ]
}

fn taken_name(taken: Taken) -> &'static str {
    match taken {
        Taken::Planned => "planned",
        Taken::Promised => "promised",
    }
}

fn binding_name(binding: Binding) -> &'static str {
    match binding {
        Binding::Strict => "strict",
        Binding::Soft => "soft",
        Binding::BestEffort => "bestEffort",
    }
}

fn fate_name(fate: Fate) -> &'static str {
    match fate {
        Fate::Completed => "completed",
        Fate::Refused => "refused",
        Fate::Failed => "failed",
        Fate::Unfinished => "unfinished",
        Fate::Deadlocked => "deadlocked",
    }
}
