//! Why what running jobs do on links is changed, and what that was decided on.
//!
//! Traffic policies are looked at again only where something has become other than it was when they were decided: who meets, what
//! links carry, what jobs do in an iteration, how much each counts. That is the *ground* of a decision about traffic policies. What
//! is different from it is the reason for a change.

use serde::{Deserialize, Serialize};

use crate::model::id::{JobId, LinkId, NodeId};
use crate::model::units::{Bandwidth, Duration, Instant};

/// A change for running jobs: because of links, cores or nodes, or of where there is room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reconfiguration {
    pub why: Why,
    pub what: What,
    /// Those that run and for whom something changes, in order of id.
    pub jobs: Vec<JobId>,
    /// Training time that all are predicted to save together, each counted by its priority.
    pub saves: Duration,
}

/// What has become other than it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Why {
    /// Somebody came to meet the others.
    Arrival { job: JobId },
    /// Somebody they met has left.
    Departure { job: JobId },
    /// A link on their way carries more or less than it did.
    Link { link: LinkId, was: Bandwidth, is: Bandwidth },
    /// What a job does in an iteration was measured, and is not what was declared.
    Profile { job: JobId },
    /// What a job does in an iteration is no longer what was measured before.
    Drift { job: JobId },
    /// A job was measured to be slower than under fair sharing.
    SlowerThanFair { job: JobId },
    /// Priorities came or went, so that each counts for more or less.
    Priorities,
    /// A better place came free.
    Room,
    /// Somebody waited who fits once they are closer together.
    Fragmentation { job: JobId },
    /// Members on a node fall behind their peers, and the whole gang with them.
    SlowNode { node: NodeId },
    /// A node under it is about to go.
    Drained { node: NodeId },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum What {
    /// How they stand among each other.
    Lanes,
    /// Where one of them is.
    Place,
}

/// What was known when it was decided what those who meet on links may do there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DecisionInputs {
    /// In order of id.
    pub jobs: Vec<Party>,
    /// What the links on their way carry, in order of id.
    pub rates: Vec<(LinkId, Bandwidth)>,
    /// When traffic policies among them were last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<Instant>,
}

/// One of those who meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Party {
    pub job: JobId,
    /// A number for what it does in an iteration.
    pub does: u64,
    /// How much it counts, in thousandths, and how many priorities are higher than its own.
    pub counts: u32,
    pub tier: u8,
    /// Whether it was measured to be slower with a traffic directive than under fair sharing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_harmed: bool,
}

impl DecisionInputs {
    pub fn has(&self, job: JobId) -> bool {
        self.party(job).is_some()
    }

    pub fn party(&self, job: JobId) -> Option<&Party> {
        let at = self.jobs.binary_search_by_key(&job, |party| party.job).ok()?;
        Some(&self.jobs[at])
    }

    pub fn rate(&self, link: LinkId) -> Option<Bandwidth> {
        let at = self.rates.binary_search_by_key(&link, |(link, _)| *link).ok()?;
        Some(self.rates[at].1)
    }

    /// The same, with traffic policies changed then.
    #[must_use]
    pub fn changed_at(self, at: Instant) -> Self {
        Self { changed: Some(at), ..self }
    }

    /// Whether nothing is different but when traffic policies were changed.
    pub fn is_still(&self, other: &Self) -> bool {
        self.jobs == other.jobs && self.rates == other.rates
    }
}
