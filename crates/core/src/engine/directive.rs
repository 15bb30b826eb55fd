//! A directive: what the plan asks of the nodes of a job, and what each node has made of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::cluster::Name;
use crate::model::cpu_weight::CpuWeight;
use crate::model::id::NodeId;
use crate::model::plan::{Generation, StepId};
use crate::model::units::Instant;
use crate::traffic::TrafficPolicy;

/// The traffic policy and the CPU weight of a job, and which of its nodes have applied them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Directive {
    /// The plan that asked for it first.
    pub generation: Generation,
    pub traffic: TrafficPolicy,
    pub weight: CpuWeight,
    /// The latest step that asked for it.
    pub step: StepId,
    pub nodes: BTreeMap<NodeId, NodeOutcome>,
}

/// What a node has made of a directive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum NodeOutcome {
    Applied,
    Awaited {
        since: Instant,
        attempts: u32,
        /// When the engine asks again.
        retry: Instant,
        /// Why the latest attempt failed, if the node has said so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<Name>,
    },
}

impl Directive {
    pub(super) fn is_default(&self) -> bool {
        self.traffic.is_default() && self.weight.is_default()
    }

    pub(super) fn is_confirmed(&self) -> bool {
        self.nodes.values().all(|outcome| *outcome == NodeOutcome::Applied)
    }

    pub(super) fn next_retry(&self) -> Option<Instant> {
        let retry = |outcome: &NodeOutcome| match outcome {
            NodeOutcome::Applied => None,
            NodeOutcome::Awaited { retry, .. } => Some(*retry),
        };
        self.nodes.values().filter_map(retry).min()
    }
}
