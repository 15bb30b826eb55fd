//! How an engine paces itself, and what it puts up with.

use serde::{Deserialize, Serialize};

use crate::model::units::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Settings {
    /// Decisions are at least this far apart.
    pub spacing: Duration,
    /// Decisions fall on multiples of this; zero for none.
    #[serde(default)]
    pub round: Duration,
    /// Wake-ups that the order of jobs asks for fall on multiples of this; zero for none.
    pub tick: Duration,
    /// A step of which nothing is heard for so long is taken for lost.
    pub step_timeout: Duration,
    /// After a first failed start; doubled for each further one, at most 64 times.
    pub back_off: Duration,
    /// A job that could not be taken off its nodes is left alone for so long.
    pub cool_down: Duration,
    /// The whole plan is checked from nothing at every so-many-th decision.
    pub full_check_every: u64,
    /// A state record is written after so many others.
    pub state_record_every: u64,
    /// More live jobs than this are refused.
    pub most_jobs: usize,
    /// A job that would not fit if every node were well and free, or that is larger than its queue may ever hold, is
    /// not refused but waits: nodes may come, and queues change.
    #[serde(default)]
    pub keeps_hopeless: bool,
    /// A job is not stopped for another's sake before it has run for so long.
    #[serde(default)]
    pub min_run: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            spacing: Duration::ZERO,
            round: Duration::ZERO,
            tick: Duration::ZERO,
            step_timeout: Duration::MINUTE,
            back_off: Duration::from_secs(10),
            cool_down: Duration::MINUTE,
            full_check_every: 1000,
            state_record_every: 50_000,
            most_jobs: 1_000_000,
            keeps_hopeless: false,
            min_run: Duration::ZERO,
        }
    }
}
