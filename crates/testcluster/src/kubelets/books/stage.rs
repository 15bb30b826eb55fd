//! The life of a pod on its node.

use std::time::Duration;

use crate::kubelets::Pace;
use crate::kubelets::pod::{BoundPod, Phase};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Starting,
    Running,
    /// Asked to end, because it is to be deleted.
    Stopping,
    Over,
    /// Over, and to be deleted for good.
    Deleting,
}

impl Stage {
    /// The stage after the API server has shown the pod like this. There is no way back: what we have ended stays so
    /// even while the API server does not know it yet.
    pub(super) fn next(self, pod: &BoundPod) -> Self {
        let over = pod.phase == Phase::Over || matches!(self, Self::Over | Self::Deleting);
        match (self, over, pod.deleted_within.is_some()) {
            (_, true, true) => Self::Deleting,
            (_, true, false) => Self::Over,
            (_, false, true) => Self::Stopping,
            (Self::Starting, false, false) if pod.phase == Phase::Running => Self::Running,
            (stage, false, false) => stage,
        }
    }

    pub(super) fn takes_room(self) -> bool {
        matches!(self, Self::Starting | Self::Running | Self::Stopping)
    }

    /// How long until there is something to do, if there is.
    pub(super) fn delay(self, pod: &BoundPod, pace: &Pace) -> Option<Duration> {
        match self {
            Self::Starting => Some(pace.start_after),
            Self::Running => pod.ends.map(|(time, _)| time),
            Self::Stopping => Some(pace.stop_after.min(pod.deleted_within.unwrap_or_default())),
            Self::Over => None,
            Self::Deleting => Some(Duration::ZERO),
        }
    }
}
