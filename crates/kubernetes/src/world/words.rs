//! What conditions and events say.

use jiff::Timestamp;

use metronome_core::model::units::Instant;

use super::gangs::HeldUp;
use crate::deed::Why;

/// A time in whole seconds, as conditions say it.
pub(super) fn time(at: Instant) -> String {
    format!("{:.0}", Timestamp::from_nanosecond(i128::from(at.0)).unwrap_or(Timestamp::MAX))
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
