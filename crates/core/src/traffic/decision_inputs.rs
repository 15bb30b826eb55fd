//! The inputs of a decision about traffic policies, and the reasons for which running jobs are reconfigured.
//!
//! Traffic policies of a component are decided again only if their inputs have changed: the jobs that share links, the rates of
//! the links, the patterns of the jobs and their weights. The difference between recorded and current inputs is the reason
//! for a change.

use serde::{Deserialize, Serialize};

use crate::model::id::{JobId, LinkId, NodeId};
use crate::model::units::{Bandwidth, Duration, Instant};

/// A change for running jobs, because of links, cores, nodes or free capacity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reconfiguration {
    pub why: Why,
    pub what: What,
    /// The running jobs that change, in order of id.
    pub jobs: Vec<JobId>,
    /// The training time that all jobs together are predicted to save, weighted by priority.
    pub saves: Duration,
}

/// The input that changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Why {
    /// A job began to share links with the others.
    Arrival { job: JobId },
    /// A job with which they shared links has left.
    Departure { job: JobId },
    /// The rate of a link on their routes changed.
    Link { link: LinkId, was: Bandwidth, is: Bandwidth },
    /// The pattern of a job was measured and differs from the declared one.
    Profile { job: JobId },
    /// The pattern of a job differs from the one measured before.
    Drift { job: JobId },
    /// A job was measured to be slower than under fair sharing.
    SlowerThanFair { job: JobId },
    /// Priorities of jobs came or went, which changes all weights.
    Priorities,
    /// A better place became free.
    Room,
    /// A gang waited that fits once they are closer together.
    Fragmentation { job: JobId },
    /// Members on a node fall behind their peers and delay the whole gang.
    SlowNode { node: NodeId },
    /// A node of the job is being drained.
    Drained { node: NodeId },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum What {
    /// Their traffic policies.
    Lanes,
    /// The nodes of one of them.
    Place,
}

/// The inputs from which the traffic policies of a component were decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DecisionInputs {
    /// In order of id.
    pub jobs: Vec<Party>,
    /// The rates of the links on their routes, in order of id.
    pub rates: Vec<(LinkId, Bandwidth)>,
    /// When traffic policies among them were last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<Instant>,
}

/// One job of the component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Party {
    pub job: JobId,
    /// The fingerprint of its pattern.
    pub does: u64,
    /// Its weight in thousandths.
    pub counts: u32,
    /// The number of priorities above its own.
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

    /// The same inputs, with traffic policies changed at this time.
    #[must_use]
    pub fn changed_at(self, at: Instant) -> Self {
        Self { changed: Some(at), ..self }
    }

    /// Whether the inputs are equal, apart from the time of the last change.
    pub fn is_still(&self, other: &Self) -> bool {
        self.jobs == other.jobs && self.rates == other.rates
    }
}
