//! Whose booking another takes something from.

use crate::deadlines::{DeadlineEntry, Timetable};
use crate::engine::State;
use crate::model::cluster::Name;
use crate::model::id::JobId;
use crate::model::units::{Duration, Instant};

/// A job with a deadline that has less than before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivesWay {
    pub job: Name,
    pub how: Gives,
}

/// What it gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gives {
    /// All: nothing is booked for it any more.
    Everything,
    /// It has fewer members now, and is in time nevertheless.
    Members { from: u32, to: u32 },
    /// It will be done later, and in time nevertheless.
    Time(Duration),
}

/// Those who had more by an earlier timetable, in the order of their ids.
pub(super) fn gives_way(state: &State, before: &Timetable) -> Vec<GivesWay> {
    let still = before.iter().filter_map(|(id, entry)| Some((id, entry, state.jobs.get(id)?)));
    let less = still.filter_map(|(id, entry, job)| {
        let how = gives(entry, id, state)?;
        Some(GivesWay { job: job.spec.name.clone(), how })
    });
    less.collect()
}

fn gives(before: &DeadlineEntry, id: JobId, state: &State) -> Option<Gives> {
    let before = before.booking.as_ref()?;
    let Some(after) = state.plan.timetable.get(id).and_then(|entry| entry.booking.as_ref()) else {
        return Some(Gives::Everything);
    };
    let (from, to) = (before.members_at(state.now), after.members_at(state.now));
    let later = |at: Instant| Some(at.since(before.ends)).filter(|later| !later.is_zero());
    match to < from {
        true => Some(Gives::Members { from, to }),
        false => later(after.ends).map(Gives::Time),
    }
}
