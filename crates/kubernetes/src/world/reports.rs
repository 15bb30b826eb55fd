//! How far jobs are by their own word: the annotation `metronome.dev/progress` of one of their pods, or the status of the
//! `TrainJob` they belong to. Whatever is reported, nothing but the engine's view of that one job changes, and of nodes on
//! which its pods fall behind.

use std::collections::BTreeSet;
use std::sync::Arc;

use metronome_core::engine::Event;
use metronome_core::model::id::JobId;
use metronome_core::model::units::{Instant, Iterations};
use metronome_core::observe::progress::Sample;

use super::World;
use super::gangs::{JOB_SET_LABEL, annotation, label};
use super::pods::Uid;
use crate::deed::{About, EventReason, Kind, Telling};
use crate::objects::{Done, Pod, Report, TrainJob};
use crate::watch::Delta;

pub(crate) const PROGRESS: &str = "metronome.dev/progress";

/// Who says how far it is in percent has so many iterations.
pub(super) const PERCENT: u64 = 100;

/// A `TrainJob`, by its namespace and its name.
pub(super) type TrainKey = (Arc<str>, Arc<str>);

impl World {
    /// A pod of ours has changed: perhaps it says something new of its progress.
    pub(super) fn read_report(&mut self, now: Instant, uid: &Uid) {
        let Some(known) = self.pods.get_mut(uid) else { return };
        let said = annotation(&known.pod, PROGRESS);
        if said == known.reported.as_deref() {
            return;
        }
        known.reported = said.map(Arc::from);
        let (job, read) = (known.job, said.map(Report::read));
        match read {
            Some(Ok(report)) => {
                self.report(now, job, &report);
                self.member_took(now, uid, job, &report);
            }
            Some(Err(error)) => self.complain_of_report(uid, &error.to_string()),
            None => {}
        }
    }

    /// What was said of a job's progress before it was known as one that runs.
    pub(super) fn hear_again(&mut self, now: Instant, job: JobId) {
        let Some(crew) = self.crews.get(&job) else { return };
        let members: Vec<Uid> = crew.members().map(|member| member.uid.clone()).collect();
        let keys: BTreeSet<TrainKey> =
            members.iter().filter_map(|uid| key_of(&self.pods.get(uid)?.pod)).collect();
        let reports: Vec<Report> = keys.iter().filter_map(|key| self.train_jobs.get(key)).cloned().collect();
        reports.iter().for_each(|report| self.report(now, Some(job), report));
        for uid in members {
            if let Some(known) = self.pods.get_mut(&uid) {
                known.reported = None;
            }
            self.read_report(now, &uid);
        }
    }

    /// A pod says how long it computes in an iteration: whoever falls behind its peers is noticed by that.
    fn member_took(&mut self, now: Instant, uid: &Uid, job: Option<JobId>, report: &Report) {
        let (Some(job), Some(iteration)) = (job, report.computes) else { return };
        let Some(crew) = self.crews.get(&job) else { return };
        let sits = crew.roles.iter().zip(0u8..).find_map(|(members, role)| {
            let member = members.iter().find(|member| member.uid == *uid)?;
            Some((role, member.node?))
        });
        if let Some((role, node)) = sits {
            self.engine.observe(now, Event::MemberTook { job, role, node, iteration });
        }
    }

    fn complain_of_report(&mut self, uid: &Uid, error: &str) {
        let about = About::Pod(self.pods[uid].reference());
        let message = format!("its annotation {PROGRESS} makes no sense: {error}");
        self.do_it(Kind::Tell(Telling { about, reason: EventReason::ProgressIgnored, message }));
    }

    /// What is from the future was said just now: clocks differ.
    fn report(&mut self, now: Instant, job: Option<JobId>, report: &Report) {
        let Some((id, job)) = job.and_then(|id| Some((id, self.engine.job(id)?))) else { return };
        let Some(done) = report.done else { return };
        let iterations = match (done, job.spec.work.iterations) {
            (Done::Iterations(done), _) => Iterations(done),
            (Done::Percent(percent), all) => {
                let all = u128::from(all.map_or(PERCENT, |all| all.0));
                Iterations(u64::try_from(all * u128::from(percent) / u128::from(PERCENT)).unwrap_or(u64::MAX))
            }
        };
        let at = report.at.unwrap_or(now).min(now);
        let sample = Sample { at, iterations, loss: report.loss, used: None };
        self.engine.observe(now, Event::Progress { job: id, sample });
    }

    pub(super) fn train_jobs_changed(&mut self, now: Instant, delta: Delta<TrainJob>) {
        match delta {
            Delta::Applied(train) => self.train_job_applied(now, train),
            Delta::Deleted(train) => {
                self.train_jobs.remove(&(train.namespace, train.name));
            }
            Delta::Reset(all) => {
                let there: BTreeSet<TrainKey> =
                    all.iter().map(|train| (train.namespace.clone(), train.name.clone())).collect();
                self.train_jobs.retain(|key, _| there.contains(key));
                all.into_iter().for_each(|train| self.train_job_applied(now, train));
            }
        }
    }

    fn train_job_applied(&mut self, now: Instant, TrainJob { namespace, name, report }: TrainJob) {
        let key = (namespace, name);
        if self.train_jobs.get(&key) == Some(&report) {
            return;
        }
        let of_it = |pod: &Pod| key_of(pod).as_ref() == Some(&key);
        let jobs = self.pods.values().filter(|known| of_it(&known.pod)).filter_map(|known| known.job);
        let jobs: BTreeSet<JobId> = jobs.collect();
        for job in jobs {
            self.report(now, Some(job), &report);
        }
        self.train_jobs.insert(key, report);
    }

    /// Whether a pod belongs to somebody who reports in percent.
    pub(super) fn is_reported_in_percent(&self, pod: &Pod) -> bool {
        key_of(pod).is_some_and(|key| self.train_jobs.contains_key(&key))
    }
}

fn key_of(pod: &Pod) -> Option<TrainKey> {
    let namespace = pod.metadata.namespace.as_deref()?;
    Some((Arc::from(namespace), Arc::from(label(pod, JOB_SET_LABEL)?)))
}
