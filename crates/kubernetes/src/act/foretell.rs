//! Saying on a pod whether its job will be in time: a condition of its own, which nothing waits for.

use super::explain::Condition;
use super::hands::Hands;
use crate::deed::{Certainty, Foretold, PodRef};
use crate::request::Answer;

impl Hands {
    /// The next one says more: nothing is tried for long.
    pub(super) async fn foretell(&self, pod: &PodRef, foretold: &Foretold) {
        let call = Condition::in_time(foretold).patch(pod);
        match self.settle(&self.quiet, &call).await {
            Ok(Answer::Done(_)) => {}
            other => tracing::debug!(pod = %pod.name, ?other, "what was foretold was not written"),
        }
    }
}

impl Certainty {
    /// As conditions have it: `True`, `False`, or not known.
    pub(super) fn status(self) -> &'static str {
        match self {
            Self::Promised | Self::Planned => "True",
            Self::NotBooked => "Unknown",
            Self::TooLate => "False",
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Promised => "Promised",
            Self::Planned => "Planned",
            Self::NotBooked => "NotBooked",
            Self::TooLate => "TooLate",
        }
    }
}
