//! The life of a job, from the line to the end.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::model::id::NodeId;
use crate::model::plan::Assignment;
use crate::model::report::{Failure, Reason, State};
use crate::model::units::Instant;

/// The whole life of a job. Only the states that hold nodes carry an assignment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Life {
    Queued,
    Starting(Arc<Assignment>),
    Running(Arc<Assignment>),
    /// A node under it is gone; what is left of it is being stopped.
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
    /// On its way out: it holds its nodes until the world says that they are free.
    Leaving {
        held: Held,
        exit: Exit,
    },
    /// Stopped with its work kept; waits to go on.
    Preempted,
    Suspended,
    Refused(Reason),
    Failed(Reason),
    Done,
}

/// What a leaving job may still hold: its nodes, or those of both ends of a move that was never heard of again.
pub type Held = Vec<Arc<Assignment>>;

/// Why a job leaves, and so what becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Exit {
    /// It makes room and waits to go on.
    Preempt,
    /// Its owner wants it to pause.
    Suspend,
    /// Its owner wants it to end.
    Cancel,
    /// It can no longer be done by then, and its owner wants it to fail.
    Miss(Instant),
    /// It is not known to have started or moved; it is cleared away and tried again.
    Abort(Failure),
}

impl Life {
    /// The assignments whose room it physically holds.
    pub fn holds(&self) -> Held {
        match self {
            Self::Starting(held) | Self::Running(held) | Self::Degraded { held, .. } => vec![held.clone()],
            Self::Resizing { from, to } => while_resizing(from, to),
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

    /// Whether it is at an assignment, or on its way from or to it.
    pub fn is_about(&self, assignment: &Arc<Assignment>) -> bool {
        self.ends().contains(assignment)
    }

    /// The assignments it is at, or on its way from or to.
    pub(crate) fn ends(&self) -> Held {
        match self {
            Self::Resizing { from, to } => vec![from.clone(), to.clone()],
            other => other.holds(),
        }
    }

    /// The same life, with another assignment in place of each it has.
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

/// Members that stay where they are hold their room once: in all it is the larger of both, where that has the other.
pub(crate) fn while_resizing(from: &Arc<Assignment>, to: &Arc<Assignment>) -> Held {
    if to.covers(from) {
        vec![to.clone()]
    } else if from.covers(to) {
        vec![from.clone()]
    } else {
        vec![from.clone(), to.clone()]
    }
}
