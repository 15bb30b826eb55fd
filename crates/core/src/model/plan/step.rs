//! The steps that lead from what is to what is planned.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Assignment, Generation};
use crate::model::cpu_weight::CpuWeight;
use crate::model::id::{JobId, NodeId};
use crate::model::job::{Capabilities, Life};
use crate::traffic::TrafficPolicy;

/// Numbered in the order of issue, over the life of an engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StepId(pub u64);

/// One thing for a world to do, said in full. A world refuses a step for a job of which it has seen a newer one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    pub id: StepId,
    pub generation: Generation,
    pub job: JobId,
    pub action: Action,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Action {
    Start(Arc<Assignment>),
    /// Ends it, whatever state it is in; its unsaved work is lost.
    Stop,
    /// Saves its work and takes it off its nodes, to go on when its owner says so.
    Suspend,
    /// Takes it off its nodes, with its work saved if it can be, to go on when there is room; for the sake of
    /// `beneficiary`, where it is for one job's sake.
    Preempt {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        beneficiary: Option<JobId>,
    },
    Move {
        from: Arc<Assignment>,
        to: Arc<Assignment>,
    },
    /// Saves its work and goes on from there with more members or fewer.
    Rescale {
        from: Arc<Assignment>,
        to: Arc<Assignment>,
    },
    /// Gives it more or less of its node while it runs.
    ResizeInPlace {
        from: Arc<Assignment>,
        to: Arc<Assignment>,
    },
    /// Has these of its nodes apply its traffic policy and its CPU weight. The job goes on meanwhile, and so do its other steps.
    Direct {
        nodes: Vec<NodeId>,
        #[serde(default, skip_serializing_if = "TrafficPolicy::is_default")]
        traffic: TrafficPolicy,
        #[serde(default, skip_serializing_if = "CpuWeight::is_default")]
        weight: CpuWeight,
    },
}

impl Action {
    /// Where the job will be whose place this takes care of, if it takes anything there that it does not hold yet.
    pub fn takes(&self) -> Option<&Arc<Assignment>> {
        match self {
            Self::Rescale { from, to } | Self::ResizeInPlace { from, to } if from.covers(to) => None,
            Self::Start(to) | Self::Move { to, .. } => Some(to),
            Self::Rescale { to, .. } | Self::ResizeInPlace { to, .. } => Some(to),
            Self::Stop | Self::Suspend | Self::Preempt { .. } | Self::Direct { .. } => None,
        }
    }
}

/// What to do about one job so that its life follows the plan. `None` where nothing is to be done, or something is
/// under way already. A change of place that needs room which others still hold becomes a `Preempt`: two jobs that
/// change places would wait for each other for ever. Who only comes to have more members waits for their room where it is.
pub(crate) fn action_towards(
    life: &Life,
    intended: Option<&Arc<Assignment>>,
    may: Capabilities,
    beneficiary: Option<JobId>,
    has_room: impl Fn(&Assignment, Option<&Assignment>) -> bool,
) -> Option<Action> {
    match (life, intended) {
        (Life::Queued | Life::Preempted, Some(to)) if has_room(to, None) => Some(Action::Start(to.clone())),
        (Life::Running(_), None) => Some(Action::Preempt { beneficiary }),
        (Life::Running(from), Some(to)) if from != to => {
            let (from, to) = (from.clone(), to.clone());
            let in_place = may.resize_in_place && is_same_node(&from, &to);
            let rescales = from.members() != to.members() && (may.rescale || in_place);
            if rescales && in_place && (from.covers(&to) || has_room(&to, Some(&from))) {
                Some(Action::ResizeInPlace { from, to })
            } else if rescales && (from.covers(&to) || has_room(&to, Some(&from))) {
                Some(Action::Rescale { from, to })
            } else if rescales && to.covers(&from) {
                None
            } else if from.members() == to.members() && may.relocate && has_room(&to, None) {
                Some(Action::Move { from, to })
            } else {
                Some(Action::Preempt { beneficiary })
            }
        }
        _ => None,
    }
}

/// Whether somebody is on one node and stays there.
fn is_same_node(from: &Assignment, to: &Assignment) -> bool {
    from.nodes().len() == 1 && from.nodes().eq(to.nodes())
}
