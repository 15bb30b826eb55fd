//! Says of jobs with deadlines whether they will be in time, on the first pod of each.

use metronome_core::deadlines::DeadlineVerdict;
use metronome_core::model::id::JobId;
use metronome_core::model::report::DeadlinePrediction;
use metronome_core::model::units::{Duration, Instant};
use metronome_words::will_be_in_time;

use super::World;
use super::gangs::rank;
use super::pods::Uid;
use crate::deed::{Certainty, Foretold, Kind};

/// What was last said of a job.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told {
    certainty: Certainty,
    ends: Option<Instant>,
    at: Instant,
}

/// An end that is this much earlier or later is worth another word.
const NOTICEABLE: Duration = Duration::MINUTE;

impl World {
    pub(super) fn say_who_is_in_time(&mut self, now: Instant) {
        let timed: Vec<JobId> = self.crews.keys().copied().filter(|job| self.has_a_deadline(*job)).collect();
        self.told.retain(|job, _| self.crews.contains_key(job));
        for job in timed {
            self.say_whether_in_time(now, job);
        }
    }

    fn has_a_deadline(&self, job: JobId) -> bool {
        self.engine.job(job).is_some_and(|job| job.spec.deadline.is_some())
    }

    fn say_whether_in_time(&mut self, now: Instant, job: JobId) {
        let Some(due) = self.engine.due(job) else { return };
        let is = Told { certainty: certainty(&due, now), ends: due.ends, at: now };
        let refresh = self.settings.refresh;
        if self.told.get(&job).is_some_and(|was| !is.is_news_after(was, refresh)) {
            return;
        }
        let Some(first) = self.first_of(job) else { return };
        let pod = self.pods[&first].reference();
        self.told.insert(job, is);
        let foretold = Foretold { certainty: is.certainty, message: will_be_in_time(&due) };
        self.do_it(Kind::Foretell { pod, foretold });
    }

    /// The one that speaks for all of its gang.
    pub(super) fn first_of(&self, job: JobId) -> Option<Uid> {
        let members = self.crews.get(&job)?.members().map(|member| &member.uid);
        let known = members.filter(|uid| self.pods.contains_key(*uid));
        known.min_by_key(|uid| (rank(&self.pods[*uid].pod), (*uid).clone())).cloned()
    }
}

impl Told {
    fn is_news_after(&self, was: &Self, refresh: Duration) -> bool {
        let moved = |one: Instant, other: Instant| one.since(other).max(other.since(one)) >= NOTICEABLE;
        let otherwise = match (was.ends, self.ends) {
            (Some(one), Some(other)) => moved(one, other),
            (one, other) => one != other,
        };
        was.certainty != self.certainty || otherwise && self.at.since(was.at) >= refresh
    }
}

fn certainty(due: &DeadlinePrediction, now: Instant) -> Certainty {
    let too_late =
        due.deadline <= now || due.enough.is_none() && due.ends.is_some_and(|ends| ends > due.deadline);
    match due.verdict {
        Some(DeadlineVerdict::Promised) => Certainty::Promised,
        Some(DeadlineVerdict::Planned) => Certainty::Planned,
        _ if too_late => Certainty::TooLate,
        _ => Certainty::NotBooked,
    }
}
