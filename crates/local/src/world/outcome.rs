//! What became of the jobs.

use std::path::PathBuf;

use metronome_core::engine::Ended;
use metronome_core::model::report::State;
use metronome_core::model::units::{Duration, Instant, Moment};
use serde::{Deserialize, Serialize};

use super::World;
use super::course::{Course, Doing};
use super::setup::Job;
use crate::logs::{SHOWN_LINES, last_lines};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Fate {
    Completed,
    Failed,
    Refused,
    /// The world ended first.
    Unfinished,
}

impl Fate {
    pub fn word(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Refused => "was refused",
            Self::Unfinished => "is unfinished",
        }
    }

    pub(super) fn of(ended: &Ended) -> Self {
        match ended.state {
            State::Done => Self::Completed,
            State::Refused => Self::Refused,
            _ => Self::Failed,
        }
    }
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Outcome {
    /// When the world began: times of jobs count from then.
    pub began: Moment,
    pub jobs: Vec<JobOutcome>,
    /// How often the agent had to be started again.
    pub agent_restarts: u32,
}

/// Times count from the beginning of the world.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JobOutcome {
    pub name: String,
    pub fate: Fate,
    pub why: Option<String>,
    /// The log of the member that last failed, and its last lines.
    pub log: Option<PathBuf>,
    pub last_lines: Vec<String>,
    pub submitted: Option<Duration>,
    pub started: Option<Duration>,
    pub ended: Option<Duration>,
    pub iterations: u64,
    pub starts: u32,
    pub restarts: u32,
    pub moves: u32,
    pub resizes: u32,
    /// What the agent has last learned of what it sends, as it says it.
    pub learned: Option<serde_json::Value>,
    /// The first such profile that decisions were made with.
    pub first_used: Option<serde_json::Value>,
    /// Traffic directives in the order in which they were given, each with the time since the world began; none where the
    /// job shares its links fairly from then on.
    pub directives: Vec<(Duration, Option<serde_json::Value>)>,
}

impl World<'_> {
    pub(super) fn outcome(&self) -> Outcome {
        let since_the_beginning = |at: Option<Instant>| at.map(|at| at.since(Instant::START));
        let outcome = |(job, course): (&Job, &Course)| {
            let tally = course.tally.clone();
            let log = tally.log.filter(|log| log.exists());
            JobOutcome {
                name: job.spec.name.to_string(),
                fate: match course.doing {
                    Doing::Over(fate) => fate,
                    _ => Fate::Unfinished,
                },
                why: tally.why,
                last_lines: log.as_ref().map(|log| last_lines(log, SHOWN_LINES)).unwrap_or_default(),
                log,
                submitted: since_the_beginning(tally.submitted),
                started: since_the_beginning(tally.started),
                ended: since_the_beginning(tally.ended),
                iterations: tally.iterations,
                starts: tally.starts,
                restarts: tally.restarts,
                moves: tally.moves,
                resizes: tally.resizes,
                learned: course.learned.clone(),
                first_used: course.first_used.clone(),
                directives: course
                    .directives
                    .iter()
                    .map(|(at, directive)| (at.since(Instant::START), directive.clone()))
                    .collect(),
            }
        };
        let jobs = self.setup.jobs.iter().zip(&self.courses).map(outcome);
        let agent_restarts = self.agent.as_ref().map_or(0, |agent| agent.restarts);
        Outcome { began: self.epoch, jobs: jobs.collect(), agent_restarts }
    }
}
