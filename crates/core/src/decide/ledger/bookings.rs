//! What the timetable of this decision books for jobs with deadlines, and what that leaves to other jobs.

use super::Ledger;
use crate::deadlines::Timetable;
use crate::decide::deadlines::{BookedSize, DeadlineJob, Pools, Schedule, makes_room};
use crate::decide::view::View;
use crate::model::id::JobId;
use crate::model::job::Job;
use crate::model::report::Reason;

#[derive(Debug, Default)]
pub(in crate::decide) struct Bookings<'a> {
    pub(in crate::decide) timetable: Timetable,
    /// Free capacity beside the bookings.
    pub(in crate::decide) pools: Option<Pools>,
    /// Jobs that will never run.
    pub(in crate::decide) refused: Vec<(JobId, Reason)>,
    /// The jobs with deadlines, by deadline.
    pub(in crate::decide) jobs: Vec<DeadlineJob<'a>>,
    /// Whether the timetable is that of an earlier decision, which put it into the plan as far as it could.
    pub(in crate::decide) stands: bool,
    /// Bookings of waiting jobs whose quotas hold them up.
    pub(in crate::decide) over_quota: Vec<BookedSize<'a>>,
}

impl<'a> Bookings<'a> {
    pub(super) fn of(schedule: Schedule<'a>) -> Self {
        let Schedule { timetable, jobs, stands, pools, refused } = schedule;
        Self { timetable, pools, refused, jobs, stands, over_quota: Vec::new() }
    }

    /// Whether the timetable decides what a job has.
    pub(in crate::decide) fn govern(&self, job: JobId) -> bool {
        self.timetable.governs(job)
    }

    /// Whether a job may have more than its minimum: beside bookings, only if it can be stopped for them.
    pub(in crate::decide) fn allow_extra_members(&self, job: &Job) -> bool {
        self.pools.is_none() || makes_room(job)
    }
}

impl Ledger<'_> {
    /// Whether a job that cannot be stopped would have ended before its capacity is booked.
    pub(in crate::decide) fn bookings_allow(&self, view: &View<'_>, job: JobId) -> Result<(), Reason> {
        match &self.bookings.pools {
            Some(pools) => pools.allow_start(view.snapshot, &self.bookings.timetable, job),
            None => Ok(()),
        }
    }

    /// Takes what a job without a booking was given off what can be booked, if the job cannot be stopped.
    pub(super) fn book_start(&mut self, view: &View<'_>, job: JobId) {
        let Some(held) = self.draft.assigned(job).cloned() else { return };
        if let Some(pools) = &mut self.bookings.pools {
            pools.take_for_starting_job(view.snapshot, job, &held);
        }
    }
}
