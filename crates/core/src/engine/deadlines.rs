//! Jobs with deadlines: why they wait, and what becomes of those who cannot be in time.

use super::state::State;
use super::{Ending, Engine};
use crate::decide::{Advice, advise};
use crate::model::id::JobId;
use crate::model::job::{Deadline, ExitReason, Job, Life, OnMiss};
use crate::model::policy::Deadlines;
use crate::model::report::{DeadlinePrediction, Reason};
use crate::model::units::{Duration, Instant, Share};
use crate::observe::progress::WorkPace;
use crate::observe::scaling::{Speed, useful};

impl Engine {
    /// Those were refused in a decision who came since the last.
    pub(super) fn turn_away(&mut self, refused: Vec<(JobId, Reason)>) {
        for (id, reason) in refused {
            if self.state.jobs.get(id).is_some_and(|job| job.life.is_waiting()) {
                self.over(id, Life::Refused(reason));
            }
        }
    }

    /// How well it was said how long a job takes, where that matters.
    pub(super) fn judge_prediction(&mut self, id: JobId, how: Ending) {
        let (job, now) = (&self.state.jobs[id], self.state.now);
        let looks = self.state.policy.deadlines != Deadlines::Ignored;
        let counts = looks && self.index.timed.contains(&id) && how == Ending::Completed;
        if let Some(said) = job.spec.work.alone.filter(|_| counts && job.runs_since.is_some()) {
            let tuning = &self.state.policy.tuning.deadlines;
            self.state.plan.timetable.record_prediction_error(said, job.progress.executed(now), tuning);
        }
    }

    /// Those who can no longer be in time are stopped, to go on when their owner says so, or have failed, as they wished.
    pub(super) fn let_go_of_the_late(&mut self) {
        let now = self.state.now;
        let late: Vec<(JobId, Deadline)> = self
            .unbooked_who_mind()
            .filter(|(.., latest)| *latest < now)
            .map(|(id, due, _)| (id, due))
            .collect();
        for (id, deadline) in late {
            match deadline.on_miss {
                OnMiss::Run => {}
                OnMiss::Suspend => self.suspended(id),
                OnMiss::Fail => self.leave_by_owners_will(id, ExitReason::Miss(deadline.at)),
            }
        }
    }

    /// Decides again when the first of those without a booking can no longer be in time.
    pub(super) fn look_out_for_the_late(&mut self) {
        // Who runs comes nearer to its end meanwhile, and is looked at again.
        let late = |latest: Instant| (latest + Duration::SECOND).max(self.state.now);
        let latest = self.unbooked_who_mind().map(|(.., latest)| late(latest)).min();
        self.state.wake = self.state.wake.into_iter().chain(latest).min();
    }

    /// Who has no booking and does not want to run on when it is late, with the latest time at which it might be in time
    /// from then on.
    fn unbooked_who_mind(&self) -> impl Iterator<Item = (JobId, Deadline, Instant)> {
        let state = &self.state;
        let looks = state.policy.deadlines == Deadlines::Promised;
        let timed = self.index.timed.iter().filter(move |id| looks && !state.plan.timetable.governs(**id));
        timed.filter_map(move |id| {
            let job = state.jobs.get(*id).filter(|job| !job.spec.suspended && !is_leaving(&job.life))?;
            let deadline = job.spec.deadline.filter(|deadline| deadline.on_miss != OnMiss::Run)?;
            let (_, fastest) = *sizes(job).last()?;
            let takes = WorkPace::at(fastest).time(job.foreseen(state.now)?);
            Some((*id, deadline, Instant(deadline.at.0.saturating_sub(takes.0))))
        })
    }
}

/// Whether it is on its way out for good.
fn is_leaving(life: &Life) -> bool {
    matches!(
        life,
        Life::Suspended
            | Life::Leaving { exit: ExitReason::Cancel | ExitReason::Miss(_) | ExitReason::Suspend, .. }
    )
}

impl Engine {
    /// How a job stands to its deadline.
    pub fn due(&self, id: JobId) -> Option<DeadlinePrediction> {
        let (state, job) = (&self.state, self.state.jobs.get(id)?);
        let deadline = job.spec.deadline?.at;
        let entry = state.plan.timetable.get(id);
        let booked = entry.and_then(|entry| entry.booking.as_ref()).map(|booking| booking.ends);
        let ends = |speed: Speed| Some(state.now + WorkPace::at(speed).time(job.foreseen(state.now)?));
        let sizes = sizes(job);
        let enough = sizes.iter().find(|(_, speed)| ends(*speed).is_some_and(|ends| ends <= deadline));
        Some(DeadlinePrediction {
            deadline,
            verdict: entry.map(|entry| entry.verdict),
            ends: booked.or_else(|| sizes.last().and_then(|(_, speed)| ends(*speed))),
            enough: enough.map(|(members, _)| *members),
            error: job
                .fit()
                .map_or(Share::NONE, |fit| fit.error())
                .max(state.plan.timetable.error(&state.policy.tuning.deadlines)),
            earliest: None,
            in_the_way: Vec::new(),
        })
    }
}

impl Engine {
    /// The same, and for a job for which nothing is booked what would save it: that takes as long as a decision.
    pub(crate) fn due_and_what_would_save_it(&self, id: JobId) -> Option<DeadlinePrediction> {
        let due = self.due(id)?;
        let snapshot = self.snapshot();
        let Some(Advice { earliest, in_the_way }) = advise(&snapshot, self.state.policy.deadlines, id) else {
            return Some(due);
        };
        let name = |id: &JobId| self.state.jobs.get(*id).map(|job| job.spec.name.clone());
        Some(DeadlinePrediction { earliest, in_the_way: in_the_way.iter().filter_map(name).collect(), ..due })
    }
}

/// The sizes of a job that are of use; the least and the most, where it is not known how it scales.
fn sizes(job: &Job) -> Vec<(u32, Speed)> {
    if let Some(scaling) = &job.spec.scaling {
        return useful(&job.corrected_by_measurements(scaling.sizes().to_vec())).to_vec();
    }
    let elastic = job.spec.roles.iter().find(|role| role.gang.is_elastic());
    let (least, most) = elastic.map_or((1, 1), |role| (role.gang.min(), role.gang.max()));
    let in_proportion = |members: u32| Speed(Speed::PLAIN.0 * u64::from(members) / u64::from(least.max(1)));
    match elastic {
        Some(_) => job.corrected_by_measurements(vec![(least, Speed::PLAIN), (most, in_proportion(most))]),
        None => vec![(job.spec.members(), Speed::PLAIN)],
    }
}

/// That a job could not be done by then.
pub(super) fn late(deadline: Instant) -> Reason {
    Reason::DeadlineInfeasible { deadline, earliest: None }
}

/// When a job with a booking will have its members.
pub(super) fn booked(state: &State, id: JobId) -> Option<Reason> {
    let booking = state.plan.timetable.get(id)?.booking.as_ref()?;
    let from = booking.starts(state.now)?;
    let deadline = state.jobs.get(id)?.spec.deadline?;
    let margin = deadline.at.since(booking.ends);
    Some(Reason::BookedFrom { from, members: booking.members_at(from), margin })
}
