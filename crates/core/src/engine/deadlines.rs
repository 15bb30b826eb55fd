//! Jobs with deadlines: why they wait, and what becomes of those who cannot be in time.

use super::Engine;
use super::state::State;
use crate::decide::Missed;
use crate::id::JobId;
use crate::job::{Exit, Life, OnMiss};
use crate::report::Reason;
use crate::units::Instant;

impl Engine {
    /// Those were refused in a decision who came since the last.
    pub(super) fn turn_away(&mut self, refused: Vec<(JobId, Reason)>) {
        for (id, reason) in refused {
            if self.state.jobs.get(id).is_some_and(|job| job.life.is_waiting()) {
                self.over(id, Life::Refused(reason));
            }
        }
    }

    /// They are stopped, to go on when their owner says so, or have failed.
    pub(super) fn let_miss(&mut self, missed: Vec<Missed>) {
        for Missed { job, then, deadline } in missed {
            match then {
                OnMiss::Run => {}
                OnMiss::Suspend => self.suspended(job),
                OnMiss::Fail => self.leave_by_owners_will(job, Exit::Miss(deadline)),
            }
        }
    }
}

/// That a job could not be done by then.
pub(super) fn late(deadline: Instant) -> Reason {
    Reason::DeadlineInfeasible { deadline, earliest: None }
}

/// When a job with a booking will have its members.
pub(super) fn booked(state: &State, id: JobId) -> Option<Reason> {
    let booking = state.timetable.get(id)?.booking.as_ref()?;
    let from = booking.starts(state.now)?;
    let deadline = state.jobs.get(id)?.spec.deadline?;
    let margin = deadline.at.since(booking.ends);
    Some(Reason::BookedFrom { from, members: booking.members_at(from), margin })
}
