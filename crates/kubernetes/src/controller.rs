//! The controller of `TrainingJob`s: it makes their pods, starts them again when they fail, and says what has become of
//! them. Pure, as the world is: changes come in by `apply`, outcomes of deeds by `heard`, and `turn` says what to do.
//!
//! What a job is to have follows from its object and its pods alone (`course`). What decides how to go on is written into
//! its status before it is acted upon, and every pod has a name of its own that no other can have at the same time: so
//! whoever takes the lead goes on where the one before was, and no member ever runs twice.

mod course;
mod environment;
mod errands;
mod failure;
mod places;
mod pods;
mod status;
#[cfg(test)]
mod tests;
mod turn;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::json;

use metronome_core::model::units::{Duration, Instant};

use crate::deed::{Deed, Kind, ObjectRef, Ticket};
use crate::objects::{Member, Phase, TrainingJob, TrainingJobStatus};
use crate::watch::{Change, Delta};
use crate::world::{Foresight, Interleaved, Sizes};

use course::{Course, Look};
use errands::{Errand, Refused};

/// A job by namespace and name.
type JobKey = (Arc<str>, Arc<str>);

/// What was asked for and has not been seen by then is asked for again.
const ASK_AGAIN: Duration = Duration::from_secs(10);

/// What the API server has made or deleted is seen in the end; in a rush that takes a while.
const SEEN_WITHIN: Duration = Duration::MINUTE;

/// Numbers alone are written at most this often.
const NUMBERS_EVERY: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub struct Controller {
    /// Jobs that name this scheduler are ours.
    scheduler: String,
    jobs: BTreeMap<JobKey, Known>,
    /// Pods by the job that their label names, and by their own name.
    members: BTreeMap<JobKey, BTreeMap<Arc<str>, Member>>,
    changed: BTreeSet<JobKey>,
    /// Jobs that are to be looked at again at some time, whatever happens.
    alarms: BTreeSet<(Instant, JobKey)>,
    foresight: Foresight,
    /// For how many members there is room, where a job is to have another number than it has.
    sizes: Sizes,
    on_links: Interleaved,
    errands: BTreeMap<Ticket, Errand>,
    next_ticket: u64,
    deeds: Vec<Deed>,
}

#[derive(Debug)]
struct Known {
    job: TrainingJob,
    /// What was asked for and has not been seen yet, by the name of the object, and since when.
    asked: BTreeMap<Arc<str>, Asked>,
    written: Option<(TrainingJobStatus, Instant)>,
    /// The status that is being written: what comes meanwhile waits for that.
    writing: Option<Ticket>,
    refused: Option<Refused>,
    /// What its pods share was made at this attempt.
    shared_at: Option<u32>,
    /// Some of that was asked for, and is not there.
    lacks_shared: bool,
}

/// Something that was asked for, when, and whether there was an answer: without one it is not asked for again, however
/// slow the API server is.
#[derive(Clone, Copy, Debug)]
struct Asked {
    at: Instant,
    is_answered: bool,
}

impl Known {
    fn new(job: TrainingJob) -> Self {
        Self {
            job,
            asked: BTreeMap::new(),
            written: None,
            writing: None,
            refused: None,
            shared_at: None,
            lacks_shared: false,
        }
    }

    fn ask(&mut self, now: Instant, name: &Arc<str>) {
        self.asked.insert(name.clone(), Asked { at: now, is_answered: false });
    }

    /// Whether something that was asked for may yet be seen.
    fn awaits(&self, now: Instant, name: &Arc<str>) -> bool {
        self.asked.get(name).is_some_and(|asked| !asked.is_answered || now < asked.at + SEEN_WITHIN)
    }
}

impl Controller {
    pub fn new(scheduler: &str) -> Self {
        Self {
            scheduler: scheduler.to_owned(),
            jobs: BTreeMap::new(),
            members: BTreeMap::new(),
            changed: BTreeSet::new(),
            alarms: BTreeSet::new(),
            foresight: Foresight::new(),
            sizes: Sizes::new(),
            on_links: Interleaved::new(),
            errands: BTreeMap::new(),
            next_ticket: 1,
            deeds: Vec::new(),
        }
    }

    /// Whether a change is of any use here.
    pub fn heeds(change: &Change) -> bool {
        matches!(change, Change::TrainingJob(_) | Change::Member(_))
    }

    /// Folds one change into what is known. Nothing is decided here.
    pub fn apply(&mut self, change: Change) {
        match change {
            Change::TrainingJob(delta) => self.jobs_changed(delta),
            Change::Member(delta) => self.members_changed(delta),
            _ => {}
        }
    }

    fn jobs_changed(&mut self, delta: Delta<TrainingJob>) {
        match delta {
            Delta::Applied(job) => self.job_applied(job),
            Delta::Deleted(job) => self.job_gone(&key_of(&job.reference)),
            Delta::Reset(jobs) => {
                let there: BTreeSet<JobKey> = jobs.iter().map(|job| key_of(&job.reference)).collect();
                let gone: Vec<JobKey> =
                    self.jobs.keys().filter(|key| !there.contains(*key)).cloned().collect();
                gone.iter().for_each(|key| self.job_gone(key));
                jobs.into_iter().for_each(|job| self.job_applied(job));
            }
        }
    }

    fn job_applied(&mut self, job: TrainingJob) {
        let key = key_of(&job.reference);
        if !job.is_of(&self.scheduler) {
            return self.job_gone(&key);
        }
        self.changed.insert(key.clone());
        match self.jobs.get_mut(&key) {
            // Another of the same name begins anew.
            Some(known) if known.job.reference.uid == job.reference.uid => known.job = job,
            _ => drop(self.jobs.insert(key, Known::new(job))),
        }
    }

    /// What it had made goes with it: the API server sees to that.
    fn job_gone(&mut self, key: &JobKey) {
        self.jobs.remove(key);
        self.changed.remove(key);
    }

    fn members_changed(&mut self, delta: Delta<Member>) {
        match delta {
            Delta::Applied(member) => self.member_applied(member),
            Delta::Deleted(member) => self.member_gone(&member),
            Delta::Reset(members) => {
                let before = std::mem::take(&mut self.members);
                self.changed.extend(before.into_keys().filter(|key| self.jobs.contains_key(key)));
                members.into_iter().for_each(|member| self.member_applied(member));
            }
        }
    }

    fn member_applied(&mut self, member: Member) {
        let Some(key) = job_of(&member) else { return };
        let name: Arc<str> = member.name().into();
        if let Some(known) = self.jobs.get_mut(&key) {
            // Whoever is on its way out was asked to, or need not be asked.
            known.asked.remove(&name);
            self.changed.insert(key.clone());
        }
        self.members.entry(key).or_default().insert(name, member);
    }

    fn member_gone(&mut self, member: &Member) {
        let Some(key) = job_of(member) else { return };
        if let Some(known) = self.jobs.get_mut(&key) {
            known.asked.remove(member.name());
            self.changed.insert(key.clone());
        }
        let Some(members) = self.members.get_mut(&key) else { return };
        members.remove(member.name());
        if members.is_empty() {
            self.members.remove(&key);
        }
    }

    /// What the scheduler foresees of jobs, all at once.
    pub fn foresee(&mut self, foresight: Foresight) {
        let before = std::mem::replace(&mut self.foresight, foresight);
        let news = self.foresight.iter().filter(|(key, foreseen)| before.get(*key) != Some(foreseen));
        let gone = before.keys().filter(|key| !self.foresight.contains_key(*key));
        self.changed.extend(news.map(|(key, _)| key).chain(gone).cloned());
    }

    /// For how many members of jobs that may have more there is room, all at once.
    pub fn resize(&mut self, sizes: &Sizes) {
        if *sizes == self.sizes {
            return;
        }
        let before = std::mem::replace(&mut self.sizes, sizes.clone());
        let news = self.sizes.iter().filter(|(key, members)| before.get(*key) != Some(members));
        self.changed.extend(news.map(|(key, _)| key.clone()));
    }

    /// How jobs stand among each other on links, all at once.
    pub fn interleave(&mut self, on_links: Interleaved) {
        let before = std::mem::replace(&mut self.on_links, on_links);
        let news = self.on_links.iter().filter(|(key, stands)| before.get(*key) != Some(stands));
        let gone = before.keys().filter(|key| !self.on_links.contains_key(*key));
        self.changed.extend(news.map(|(key, _)| key).chain(gone).cloned());
    }

    /// Looks at every job of which something has changed, or for which it is time, and says what is to be done.
    pub fn turn(&mut self, now: Instant) -> Vec<Deed> {
        while let Some((_, key)) = self.alarms.first().filter(|(at, _)| *at <= now).cloned() {
            self.alarms.pop_first();
            self.changed.insert(key);
        }
        while let Some(key) = self.changed.pop_first() {
            self.see_to(now, &key);
        }
        std::mem::take(&mut self.deeds)
    }

    /// When `turn` has something to do even if nothing comes in.
    pub fn next_wake(&self) -> Option<Instant> {
        self.alarms.first().map(|(at, _)| *at)
    }

    fn see_to(&mut self, now: Instant, key: &JobKey) {
        let Some(known) = self.jobs.get(key).filter(|known| !known.job.is_leaving()) else { return };
        let nobody = BTreeMap::new();
        let members = self.members.get(key).unwrap_or(&nobody);
        let refusal = known.refused.as_ref().map(|refused| refused.why.as_str());
        let room_for = self.sizes.get(key).copied();
        let known_of = Look { job: &known.job, members, asked: &known.asked, refusal, room_for, now };
        let course = course::course(&known_of, self.foresight.get(key));
        let Course { mut status, make, remove, removes_itself, wake } = course;
        status.interleave(self.on_links.get(key), now);
        // Members may be there and not find each other; of a job that is over nobody looks for anybody.
        let lacks_shared = known.lacks_shared && !known.job.status.phase.is_some_and(Phase::is_over);
        if make.is_empty() && !lacks_shared && known.refused.is_some() {
            // Nothing is missing any more.
            return self.was_taken(key.clone());
        }
        let paused_until = known.refused.as_ref().map(|refused| refused.until).filter(|until| now < *until);
        // What was refused is tried with one pod before the others are asked for again.
        let most = if known.refused.is_some() && !lacks_shared { 1 } else { make.len() };
        self.write(now, key, status);
        if removes_itself {
            let object = self.jobs[key].job.reference.clone();
            self.remove(now, key, object);
        }
        for object in remove {
            self.remove(now, key, object);
        }
        if paused_until.is_none() && (lacks_shared || !make.is_empty()) {
            self.make_what_is_shared(now, key);
            for place in make.iter().take(most) {
                self.make_pod(now, key, place);
            }
        }
        for at in wake.into_iter().chain(paused_until) {
            self.alarms.insert((at, key.clone()));
        }
    }

    /// Writes what has become of a job, where that is not what its object says.
    fn write(&mut self, now: Instant, key: &JobKey, status: TrainingJobStatus) {
        let Some(known) = self.jobs.get_mut(key) else { return };
        if status == known.job.status || known.writing.is_some() {
            return;
        }
        let wait = match &known.written {
            Some((before, at)) if *before == status => Some(*at + ASK_AGAIN),
            Some((before, at)) if status::differ_in_numbers_alone(before, &status) => {
                Some(*at + NUMBERS_EVERY)
            }
            _ => None,
        };
        if let Some(at) = wait.filter(|at| now < *at) {
            self.alarms.insert((at, key.clone()));
            return;
        }
        let object = known.job.reference.clone();
        let patch = status::patch(&status);
        known.written = Some((status, now));
        let ticket = self.do_it(Kind::Status { object, status: patch });
        self.errands.insert(ticket, Errand::Write { job: key.clone() });
        self.jobs.get_mut(key).expect("it was just there").writing = Some(ticket);
    }

    /// What has changed meanwhile is written next, and what was written is to be seen from now on.
    fn was_written(&mut self, now: Instant, ticket: Ticket, key: JobKey) {
        let Some(known) = self.jobs.get_mut(&key).filter(|known| known.writing == Some(ticket)) else {
            return;
        };
        known.writing = None;
        if let Some((_, at)) = &mut known.written {
            *at = now;
        }
        self.alarms.insert((now + ASK_AGAIN, key.clone()));
        self.changed.insert(key);
    }

    fn do_it(&mut self, kind: Kind) -> Ticket {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        self.deeds.push(Deed { ticket, kind });
        ticket
    }
}

fn key_of(reference: &ObjectRef) -> JobKey {
    (reference.namespace.clone(), reference.name.clone())
}

fn job_of(member: &Member) -> Option<JobKey> {
    Some((member.metadata.namespace.as_deref()?.into(), member.job()?.into()))
}

/// A member as an object to be removed.
fn reference(member: &Member) -> ObjectRef {
    let text = |text: &Option<String>| Arc::from(text.as_deref().unwrap_or_default());
    ObjectRef {
        api_version: "v1".into(),
        kind: "Pod".into(),
        plural: "pods".into(),
        namespace: text(&member.metadata.namespace),
        name: text(&member.metadata.name),
        uid: text(&member.metadata.uid),
    }
}

/// Who owns what is made for a job: it goes with the job.
fn owned_by(job: &TrainingJob) -> serde_json::Value {
    let ObjectRef { api_version, kind, name, uid, .. } = &job.reference;
    json!([{"apiVersion": &**api_version, "kind": &**kind, "name": &**name, "uid": &**uid, "controller": true}])
}
