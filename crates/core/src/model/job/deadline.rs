//! By when a job is to be done, and what becomes of it when that cannot be.

use serde::{Deserialize, Serialize};

use crate::model::units::Instant;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Deadline {
    pub at: Instant,
    #[serde(default)]
    pub binding: Binding,
    /// What meeting it is worth beside other soft deadlines; at least one.
    #[serde(default = "one")]
    pub value: u32,
    #[serde(default)]
    pub on_miss: OnMiss,
}

fn one() -> u32 {
    1
}

impl Deadline {
    /// Until then, worth as much as any other.
    pub const fn soft(at: Instant) -> Self {
        Self { at, binding: Binding::Soft, value: 1, on_miss: OnMiss::Run }
    }
}

/// How much a deadline binds the scheduler once it has taken the job on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Binding {
    /// What it needs is kept for it, whoever comes.
    Strict,
    /// What it needs may go to others of whom more can be in time.
    #[default]
    Soft,
    /// Nothing is kept for it: it is told how it stands, and no more.
    BestEffort,
}

/// What becomes of a job that can no longer be in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum OnMiss {
    /// It runs on what others leave.
    #[default]
    Run,
    /// It is stopped, to go on when its owner says so.
    Suspend,
    /// It has failed.
    Fail,
}
