//! What conditions and events say.

use jiff::Timestamp;

use metronome_core::cluster::{Level, Name};
use metronome_core::engine::Engine;
use metronome_core::id::{JobId, NodeId, QueueId};
use metronome_core::report::Explanation;
use metronome_core::units::Instant;
use metronome_words::{Names, one_line};

use super::gangs::HeldUp;
use crate::deed::Why;

/// Things are called what the engine was told they are called.
pub(super) struct InEngine<'a>(pub(super) &'a Engine);

impl Names for InEngine<'_> {
    fn job(&self, id: JobId) -> Option<Name> {
        self.0.job(id).map(|job| job.spec.name.clone())
    }
    fn node(&self, id: NodeId) -> Name {
        self.0.state().cluster.node(id).name.clone()
    }
    fn queue(&self, id: QueueId) -> Name {
        self.0.state().queues[id].name.clone()
    }
    fn level(&self, level: Level) -> Name {
        Name::from(self.0.state().cluster.level_name(level))
    }
}

pub(super) fn line(explanation: &Explanation, names: &impl Names) -> String {
    one_line(explanation, names)
}

/// A time in whole seconds, as conditions say it.
pub(super) fn time(at: Instant) -> String {
    format!("{:.0}", timestamp(at))
}

fn timestamp(at: Instant) -> Timestamp {
    Timestamp::from_nanosecond(i128::from(at.0)).unwrap_or(Timestamp::MAX)
}

/// Waiting for members is what autoscalers should see; what cannot be understood is not for them.
pub(super) fn held_up(held_up: &HeldUp) -> (Why, String) {
    match held_up {
        HeldUp::Incomplete { have, least } => (
            Why::Unschedulable,
            format!("waiting for members: {have} of the {least} pods that must start together exist"),
        ),
        HeldUp::Undeclared => {
            (Why::Unschedulable, "waiting for the object that says how many pods must start together".into())
        }
        HeldUp::NoQueue(why) => (Why::Unschedulable, format!("waiting for its queue: {why}")),
        HeldUp::ForNow(why) => (Why::Unschedulable, format!("waiting: {why}")),
        HeldUp::Refused(why) => (Why::SchedulerError, format!("cannot be scheduled: {why}")),
    }
}
