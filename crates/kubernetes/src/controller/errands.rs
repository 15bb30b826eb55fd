//! What is made for jobs and removed again, each asked for once, and what the API server says to it.

use std::sync::Arc;

use metronome_core::model::units::{Duration, Instant};

use super::places::Place;
use super::{Asked, Controller, JobKey, SEEN_WITHIN, pods};
use crate::deed::{Kind, NewObject, ObjectRef, Outcome};

/// How long what the API server refused is left alone, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration(5 * Duration::MINUTE.0);

/// The API server did not take what was to be made.
#[derive(Clone, Debug)]
pub(super) struct Refused {
    pub(super) why: String,
    pub(super) until: Instant,
    pub(super) pause: Duration,
}

#[derive(Clone, Debug)]
pub(super) enum Errand {
    Write { job: JobKey },
    Make { job: JobKey, name: Arc<str>, what: Made },
    Remove { job: JobKey, name: Arc<str> },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Made {
    Pod,
    /// What all pods of a job share.
    Shared,
}

impl Controller {
    pub(super) fn make_what_is_shared(&mut self, now: Instant, key: &JobKey) {
        let known = &self.jobs[key];
        let attempt = known.job.status.attempt;
        if known.shared_at == Some(attempt) {
            return;
        }
        let objects = pods::shared(&known.job);
        let known = self.jobs.get_mut(key).expect("it was just there");
        known.shared_at = Some(attempt);
        known.lacks_shared = false;
        for object in objects {
            self.make(now, key, object, Made::Shared);
        }
    }

    pub(super) fn make_pod(&mut self, now: Instant, key: &JobKey, place: &Place) {
        let known = &self.jobs[key];
        if known.awaits(now, &place.name) {
            return;
        }
        let object = pods::pod(&known.job, place, &self.scheduler);
        self.make(now, key, object, Made::Pod);
    }

    pub(super) fn make(&mut self, now: Instant, key: &JobKey, object: NewObject, what: Made) {
        let name = object.name.clone();
        // What pods share is never seen here, and the service is called as its job is.
        if what == Made::Pod {
            self.jobs.get_mut(key).expect("only for jobs that are there").ask(now, &name);
        }
        let ticket = self.do_it(Kind::Make(object));
        self.errands.insert(ticket, Errand::Make { job: key.clone(), name, what });
    }

    pub(super) fn remove(&mut self, now: Instant, key: &JobKey, object: ObjectRef) {
        let known = self.jobs.get_mut(key).expect("only for jobs that are there");
        let name = object.name.clone();
        if known.awaits(now, &name) {
            return;
        }
        known.ask(now, &name);
        let ticket = self.do_it(Kind::Remove { object });
        self.errands.insert(ticket, Errand::Remove { job: key.clone(), name });
    }

    /// Folds what became of a deed into what is known.
    pub fn heard(&mut self, now: Instant, outcome: &Outcome) {
        let Some(errand) = self.errands.remove(&outcome.ticket()) else { return };
        self.was_answered(now, &errand);
        match (errand, outcome) {
            (Errand::Write { job }, _) => self.was_written(now, outcome.ticket(), job),
            (Errand::Make { job, what: Made::Pod, .. }, Outcome::Made { .. }) => self.was_taken(job),
            (Errand::Make { job, what: Made::Shared, .. }, Outcome::Made { .. }) => {
                self.changed.insert(job);
            }
            (Errand::Make { job, name, what }, Outcome::NotMade { refusal, .. }) => {
                self.was_refused(now, &job, (&name, what), refusal);
            }
            (Errand::Make { job, name, what }, Outcome::GivenUp { .. }) => {
                self.ask_again(&job, &name, what == Made::Shared);
            }
            (Errand::Remove { job, name }, Outcome::GivenUp { .. }) => self.ask_again(&job, &name, false),
            _ => {}
        }
    }

    /// What was done is to be seen from now on, or is asked for again.
    pub(super) fn was_answered(&mut self, now: Instant, errand: &Errand) {
        let (Errand::Make { job, name, .. } | Errand::Remove { job, name }) = errand else { return };
        let asked = self.jobs.get_mut(job).and_then(|known| known.asked.get_mut(name));
        if let Some(asked) = asked {
            *asked = Asked { at: now, is_answered: true };
            self.alarms.insert((now + SEEN_WITHIN, job.clone()));
        }
    }

    /// Whoever was refused before is no longer, and the others are asked for.
    pub(super) fn was_taken(&mut self, key: JobKey) {
        let known = self.jobs.get_mut(&key).filter(|known| !known.lacks_shared);
        if known.is_some_and(|known| known.refused.take().is_some()) {
            self.changed.insert(key);
        }
    }

    pub(super) fn was_refused(
        &mut self,
        now: Instant,
        key: &JobKey,
        (name, what): (&Arc<str>, Made),
        why: &str,
    ) {
        let Some(known) = self.jobs.get_mut(key) else { return };
        known.asked.remove(name);
        if what == Made::Shared {
            known.shared_at = None;
            known.lacks_shared = true;
        }
        // Members of a job are refused together, for one reason: they count as one.
        let is_new = known.refused.as_ref().is_none_or(|refused| refused.until <= now);
        if is_new {
            let longer = known.refused.as_ref().map_or(FIRST_PAUSE, |refused| refused.pause.times(2));
            let pause = longer.min(LONGEST_PAUSE);
            known.refused = Some(Refused { why: why.to_owned(), until: now + pause, pause });
        }
        self.changed.insert(key.clone());
    }

    pub(super) fn ask_again(&mut self, key: &JobKey, name: &Arc<str>, is_shared: bool) {
        if let Some(known) = self.jobs.get_mut(key) {
            known.asked.remove(name);
            known.shared_at = None;
            known.lacks_shared |= is_shared;
            self.changed.insert(key.clone());
        }
    }
}
