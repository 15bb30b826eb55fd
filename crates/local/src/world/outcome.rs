//! What became of the jobs.

use metronome_core::engine::Ended;
use metronome_core::report::State;
use metronome_core::units::Duration;
use serde::{Deserialize, Serialize};

use super::World;

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
}

impl World<'_> {
    pub(super) fn outcome(&self) -> Outcome {
        let since_the_beginning = |at: metronome_core::units::Instant| Duration(at.0);
        let jobs = self.setup.jobs.iter().zip(&self.courses).map(|(job, course)| JobOutcome {
            name: job.spec.name.to_string(),
            fate: match course.doing {
                super::Doing::Over(fate) => fate,
                _ => Fate::Unfinished,
            },
            why: course.why_failed.clone(),
            submitted: course.submitted.map(since_the_beginning),
            started: course.started.map(since_the_beginning),
            ended: course.ended.map(since_the_beginning),
            iterations: course.iterations,
            starts: course.starts,
            restarts: course.restarts,
            moves: course.moves,
            resizes: course.resizes,
            learned: course.learned.clone(),
        });
        let agent_restarts = self.agent.as_ref().map_or(0, |agent| agent.restarts);
        Outcome { jobs: jobs.collect(), agent_restarts }
    }
}
