//! State of a job, from submission to its end.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::model::id::NodeId;
use crate::model::plan::Assignment;
use crate::model::report::{Failure, Reason, State};
use crate::model::units::Instant;

/// All states of a job. Only states that hold nodes carry assignments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Life {
    Queued,
    Starting(Arc<Assignment>),
    Running(Arc<Assignment>),
    /// One of its nodes failed; the remaining members are being stopped.
    Degraded {
        held: Arc<Assignment>,
        lost: NodeId,
    },
    Resizing {
        from: Arc<Assignment>,
        to: Arc<Assignment>,
    },
    Moving {
        from: Arc<Assignment>,
        to: Arc<Assignment>,
    },
    /// Being stopped: it holds its nodes until the world reports them free.
    Leaving {
        held: HeldAssignments,
        exit: ExitReason,
    },
    /// Stopped with its work saved; waits to continue.
    Preempted,
    Suspended,
    Refused(Reason),
    Failed(Reason),
    Done,
}

/// Assignments that a leaving job may still hold: one, or both ends of a migration whose outcome is unknown.
pub type HeldAssignments = Vec<Arc<Assignment>>;

/// Why a job leaves, which determines its next state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ExitReason {
    /// Preempted; waits to continue.
    Preempt,
    /// Suspended by its owner.
    Suspend,
    /// Cancelled by its owner.
    Cancel,
    /// It can no longer meet its deadline, and its owner chose failure.
    Miss(Instant),
    /// The outcome of its start or migration is unknown; its members are removed, then it is retried.
    Abort(Failure),
}

impl Life {
    /// Assignments whose capacity it physically holds.
    pub fn holds(&self) -> HeldAssignments {
        match self {
            Self::Starting(held) | Self::Running(held) | Self::Degraded { held, .. } => vec![held.clone()],
            Self::Resizing { from, to } => held_while_resizing(from, to),
            Self::Moving { from, to } => vec![from.clone(), to.clone()],
            Self::Leaving { held, .. } => held.clone(),
            Self::Queued
            | Self::Preempted
            | Self::Suspended
            | Self::Refused(_)
            | Self::Failed(_)
            | Self::Done => Vec::new(),
        }
    }

    /// Whether the job is on an assignment, or on the way from or to it.
    pub fn is_about(&self, assignment: &Arc<Assignment>) -> bool {
        self.ends().contains(assignment)
    }

    /// Assignments that it is on, or on the way from or to.
    pub(crate) fn ends(&self) -> HeldAssignments {
        match self {
            Self::Resizing { from, to } => vec![from.clone(), to.clone()],
            other => other.holds(),
        }
    }

    /// Replaces each of its assignments.
    pub(crate) fn with_each(&self, change: impl Fn(&Arc<Assignment>) -> Arc<Assignment>) -> Self {
        match self {
            Self::Starting(held) => Self::Starting(change(held)),
            Self::Running(held) => Self::Running(change(held)),
            Self::Degraded { held, lost } => Self::Degraded { held: change(held), lost: *lost },
            Self::Resizing { from, to } => Self::Resizing { from: change(from), to: change(to) },
            Self::Moving { from, to } => Self::Moving { from: change(from), to: change(to) },
            Self::Leaving { held, exit } => {
                Self::Leaving { held: held.iter().map(change).collect(), exit: *exit }
            }
            without => without.clone(),
        }
    }

    pub const fn is_waiting(&self) -> bool {
        matches!(self, Self::Queued | Self::Preempted)
    }

    pub fn state(&self) -> State {
        match self {
            Self::Queued => State::Queued,
            Self::Starting(_) => State::Starting,
            Self::Running(_) => State::Running,
            Self::Degraded { .. } => State::Degraded,
            Self::Resizing { .. } => State::Resizing,
            Self::Moving { .. } => State::Moving,
            Self::Leaving { .. } => State::Leaving,
            Self::Preempted => State::Preempted,
            Self::Suspended => State::Suspended,
            Self::Refused(_) => State::Refused,
            Self::Failed(_) => State::Failed,
            Self::Done => State::Done,
        }
    }
}

/// Capacity held during a resize. Members that stay hold their capacity once: the larger assignment if it contains
/// the other, otherwise both.
pub(crate) fn held_while_resizing(from: &Arc<Assignment>, to: &Arc<Assignment>) -> HeldAssignments {
    if to.covers(from) {
        vec![to.clone()]
    } else if from.covers(to) {
        vec![from.clone()]
    } else {
        vec![from.clone(), to.clone()]
    }
}
