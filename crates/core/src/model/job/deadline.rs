//! Deadline of a job, and what happens when it cannot be met.

use serde::{Deserialize, Serialize};

use crate::model::units::Instant;

/// A deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Deadline {
    pub at: Instant,
    #[serde(default)]
    pub binding: Binding,
    /// Value of meeting it relative to other soft deadlines; at least one.
    #[serde(default = "one")]
    pub value: u32,
    #[serde(default)]
    pub on_miss: OnMiss,
}

fn one() -> u32 {
    1
}

impl Deadline {
    /// A soft deadline of value one.
    pub const fn soft(at: Instant) -> Self {
        Self { at, binding: Binding::Soft, value: 1, on_miss: OnMiss::Run }
    }
}

/// How strictly a deadline binds the scheduler after it accepted the job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Binding {
    /// Capacity is reserved; later jobs cannot take it.
    Strict,
    /// Capacity is booked, but may go to other jobs if more deadlines are met that way.
    #[default]
    Soft,
    /// No capacity is booked; the job is informed of its prediction only.
    BestEffort,
}

/// What happens to a job that can no longer meet its deadline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum OnMiss {
    /// It runs on leftover capacity.
    #[default]
    Run,
    /// It is suspended until its owner resumes it.
    Suspend,
    /// It fails.
    Fail,
}
