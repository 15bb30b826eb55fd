//! Says why what waits does: a condition on each pod, and one line for people.

use std::collections::BTreeMap;
use std::mem::{Discriminant, discriminant};
use std::sync::Arc;

use serde_json::json;

use metronome_core::model::id::JobId;
use metronome_core::model::report::Reason;
use metronome_core::model::units::{Duration, Instant};
use metronome_words::{document, lines_now, one_line, sentence, state_name};

use super::gangs::{self, GangKey, HeldUp};
use super::pods::{Known, Uid};
use super::{World, words};
use crate::deed::{About, EventReason, Kind, Telling, Verdict, Why};
use crate::metrics::Metrics;
use crate::watch::Binding;

/// What was last said about a gang.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Said {
    about: Subject,
    message: String,
    at: Instant,
    /// To whom: pods that come later have yet to be told.
    pods: usize,
}

/// What must change for a message to be worth writing at once, rather than at the next refresh.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Subject {
    Waits(Option<Discriminant<Reason>>),
    HeldUp(Discriminant<HeldUp>),
}

/// Conditions are written to at most so many gangs in one sweep: a flood of unschedulable pods must not become a
/// flood of writes.
const MOST_PER_SWEEP: usize = 1_000;

impl World {
    /// Whether all was said that there is to say.
    pub(super) fn say_what_waits(&mut self, now: Instant) -> bool {
        let line = self.engine.line();
        self.count_what_waits(&line);
        let mut written = 0;
        let keys: Vec<GangKey> = self.gangs.keys().cloned().collect();
        for key in keys {
            if written >= MOST_PER_SWEEP {
                return false;
            }
            written += usize::from(self.say_of(now, &key, &line));
        }
        true
    }

    fn say_of(&mut self, now: Instant, key: &GangKey, line: &[JobId]) -> bool {
        let gang = &self.gangs[key];
        let waiting: Vec<Uid> = gang.pods.iter().filter(|uid| self.pods[*uid].waits()).cloned().collect();
        let job = gang.jobs.iter().copied().find(|job| self.waits(*job));
        let subject = match (&gang.held_up, job) {
            (Some(held_up), _) => Subject::HeldUp(discriminant(held_up)),
            (None, Some(job)) => {
                // Nothing has been decided about it yet, or it is about to start.
                let Some(reason) = self.engine.verdict(job) else { return false };
                Subject::Waits(Some(discriminant(&reason)))
            }
            (None, None) => return false,
        };
        if waiting.is_empty() || !self.is_worth_saying(now, key, subject, waiting.len()) {
            return false;
        }
        let (why, message) = match (&self.gangs[key].held_up, job) {
            (Some(held_up), _) => words::held_up(held_up),
            (None, Some(job)) => (Why::Unschedulable, self.line_about(job, line)),
            (None, None) => return false,
        };
        let unchanged = self.gangs[key]
            .said
            .as_ref()
            .is_some_and(|said| said.message == message && said.pods == waiting.len());
        let said = Said { about: subject, message: message.clone(), at: now, pods: waiting.len() };
        self.gang_mut(key).said = Some(said);
        if unchanged {
            return false;
        }
        self.say(&waiting, why, &message);
        true
    }

    fn is_worth_saying(&self, now: Instant, key: &GangKey, subject: Subject, pods: usize) -> bool {
        self.gangs[key].said.as_ref().is_none_or(|said| {
            said.about != subject || said.pods != pods || now.since(said.at) >= self.settings.refresh
        })
    }

    fn say(&mut self, waiting: &[Uid], why: Why, message: &str) {
        for uid in waiting {
            let known = &self.pods[uid];
            let (pod, nominated) = (known.reference(), self.nominated(uid));
            let verdict = Verdict { why, message: message.to_owned(), nominated };
            self.do_it(Kind::Explain { pod, verdict });
        }
        // One of them speaks for all: the first, so that people know where to look.
        let by_rank = |known: &&Known| (gangs::rank(&known.pod), known.reference().name);
        let Some(first) = waiting.iter().map(|uid| &self.pods[uid]).min_by_key(by_rank) else { return };
        let mut abouts = vec![About::Pod(first.reference())];
        let group = self.gangs[&first.gang].declared.as_ref();
        abouts.extend(group.map(|group| About::Object(group.reference.clone())));
        for about in abouts {
            let message = message.to_owned();
            self.do_it(Kind::Tell(Telling { about, reason: EventReason::FailedScheduling, message }));
        }
    }

    /// Where it will go once its victims have left.
    fn nominated(&self, uid: &Uid) -> Option<Arc<str>> {
        let job = self.pods[uid].job?;
        let plan = self.engine.plan().get(job)?;
        let mut crew = self.crews.get(&job)?.clone();
        crew.sit_down(plan);
        let member = crew.members().find(|member| &member.uid == uid)?.node?;
        Some(self.node_name(member))
    }

    fn line_about(&self, job: JobId, line: &[JobId]) -> String {
        let explanation = self.engine.explain_in(job, line);
        explanation.map_or_else(String::new, |it| one_line(&it, self.engine.state()))
    }

    /// Everything there is to say about the gang or pod of that name, for people and programs.
    pub fn explain(&self, name: &str) -> Option<serde_json::Value> {
        let explanation = self.engine.explain(self.engine.find_job(name)?)?;
        let names = self.engine.state();
        let mut facts = serde_json::to_value(document(&explanation, names)).ok()?;
        facts["line"] = one_line(&explanation, names).into();
        facts["text"] = lines_now(&explanation, names).into();
        Some(facts)
    }

    /// Every job there is: its name, state and, if it waits, why.
    pub fn jobs(&self) -> Vec<serde_json::Value> {
        let names = self.engine.state();
        let jobs = self.engine.state().jobs.iter();
        let one = |(id, job): (JobId, &metronome_core::model::job::Job)| {
            let reason = self.engine.verdict(id);
            json!({
                "job": &*job.spec.name,
                "state": state_name(job.life.state()),
                "members": job.spec.members(),
                "reason": reason.as_ref().map(Reason::name),
                "sentence": reason.as_ref().map(|reason| sentence(reason, names)),
            })
        };
        jobs.map(one).collect()
    }

    /// How many wait for each reason, as of the last sweep.
    pub fn measure(&mut self, metrics: &Metrics) {
        if let Some(waiting) = self.counted.take() {
            metrics.waiting(waiting.iter().map(|(reason, (jobs, gangs))| (*reason, *jobs, *gangs)));
            metrics.binding_enabled.set((self.binding == Binding::On).into());
            metrics.avoided_nodes.set(self.avoided.len().try_into().unwrap_or(i64::MAX));
            metrics.stalled_jobs.set(self.stalled.len().try_into().unwrap_or(i64::MAX));
            self.measure_trouble(metrics);
        }
    }

    /// What somebody is woken for.
    fn measure_trouble(&self, metrics: &Metrics) {
        let state = self.engine.state();
        let oldest = self.recorded.values().map(|(_, since)| state.now.since(*since)).max();
        let seconds = oldest.unwrap_or_default().0 / Duration::from_secs(1).0;
        metrics.intents_open.set(self.recorded.len().try_into().unwrap_or(i64::MAX));
        metrics.oldest_intent_seconds.set(seconds.try_into().unwrap_or(i64::MAX));
        metrics.alarms.set(state.alarms.try_into().unwrap_or(i64::MAX));
    }

    fn count_what_waits(&mut self, line: &[JobId]) {
        let mut waiting: BTreeMap<&'static str, (usize, usize)> = BTreeMap::new();
        for job in line {
            let reason = self.engine.verdict(*job).map_or("NotDecided", |reason| reason.name());
            let (jobs, gangs) = waiting.entry(reason).or_default();
            *jobs += 1;
            *gangs += usize::from(self.crews.get(job).is_some_and(|crew| !crew.gang.is_single()));
        }
        self.counted = Some(waiting);
    }
}
