//! What is written on pods of what was observed of them, and when: only what is new beyond noise, not often, and never
//! much at once. Whatever is written wakes the scheduler, and thousands of nodes write.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::Instant;

use metronome_core::model::profile::Traffic;
use metronome_core::model::units;

use super::members::Member;
use super::observed::{Company, Measured, Progress};
use crate::bucket::{Bucket, Limit};
use crate::objects::TrafficSpec;
use crate::world::{PROGRESS, TRAFFIC, has_drifted};

/// What is less sure is not said.
const SURE: f64 = 0.5;

/// How often the same pod says something of the same kind.
const TRAFFIC_EVERY: Duration = Duration::from_secs(30);
const PROGRESS_EVERY: Duration = Duration::from_secs(10);

/// All that one node writes.
const OF_A_NODE: Limit = Limit { per_second: 2.0, burst: 20 };

/// A report is at most so long, as text.
const LONGEST: usize = 4096;

/// An annotation to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub uid: Arc<str>,
    pub namespace: String,
    pub pod: String,
    pub key: &'static str,
    pub value: String,
}

/// What is known of one pod.
#[derive(Debug, Default)]
struct Page {
    /// What it says by now, and what it is to say instead.
    traffic: Line<Traffic>,
    progress: Line<String>,
}

#[derive(Debug)]
struct Line<T> {
    said: Option<T>,
    next: Option<(T, String)>,
    at: Option<Instant>,
}

impl<T> Default for Line<T> {
    fn default() -> Self {
        Self { said: None, next: None, at: None }
    }
}

#[derive(Debug)]
pub struct Notes {
    pages: BTreeMap<Arc<str>, Page>,
    bucket: Bucket,
}

impl Notes {
    pub fn new(now: Instant) -> Self {
        Self { pages: BTreeMap::new(), bucket: Bucket::new(OF_A_NODE, now) }
    }

    /// Only these are there. What a pod says already was said by one of us before.
    pub fn keep(&mut self, members: &BTreeMap<Arc<str>, Member>) {
        self.pages.retain(|uid, _| members.contains_key(uid));
    }

    /// What a pod that is new to us says already.
    pub fn meet(&mut self, uid: &Arc<str>, traffic: Option<&str>) {
        let page = self.pages.entry(uid.clone()).or_default();
        if page.traffic.said.is_none() {
            page.traffic.said = traffic.and_then(|text| TrafficSpec::read(text).ok());
        }
    }

    /// Of each job the member that leads speaks for all. How long an iteration takes beside others says nothing of the
    /// job alone.
    pub fn measured(&mut self, member: &Member, measured: &Measured) {
        let is_sure = measured.confidence >= SURE;
        if !member.leads || measured.company == Company::Contending || !is_sure {
            return;
        }
        let text = written(measured);
        let Ok(traffic) = TrafficSpec::read(&text) else { return };
        let line = &mut self.pages.entry(member.uid.clone()).or_default().traffic;
        let is_news = line.said.as_ref().is_none_or(|said| has_drifted(said, &traffic));
        line.next = is_news.then_some((traffic, text));
    }

    pub fn reported(&mut self, member: &Member, progress: &Progress) {
        let text = Value::Object(without_nothing(&progress.said)).to_string();
        if text.len() > LONGEST {
            return;
        }
        let line = &mut self.pages.entry(member.uid.clone()).or_default().progress;
        let is_news = line.said.as_ref() != Some(&text);
        line.next = is_news.then(|| (text.clone(), text));
    }

    /// What is to be written now. What has to wait is replaced by what is newer.
    pub fn due(&mut self, now: Instant, members: &BTreeMap<Arc<str>, Member>) -> Vec<Note> {
        let mut notes = Vec::new();
        for (uid, page) in &mut self.pages {
            let Some(member) = members.get(uid) else { continue };
            let mut note = |key, value| {
                let Member { namespace, pod, .. } = member.clone();
                notes.push(Note { uid: uid.clone(), namespace, pod, key, value });
            };
            if let Some(value) = page.traffic.take(now, TRAFFIC_EVERY, &mut self.bucket) {
                note(TRAFFIC, value);
            }
            if let Some(value) = page.progress.take(now, PROGRESS_EVERY, &mut self.bucket) {
                note(PROGRESS, value);
            }
        }
        notes
    }

    /// It could not be written: it is said again when there is something new to say.
    pub fn was_not_written(&mut self, note: &Note) {
        if let Some(page) = self.pages.get_mut(&note.uid) {
            match note.key {
                TRAFFIC => page.traffic.said = None,
                _ => page.progress.said = None,
            }
        }
    }
}

impl<T> Line<T> {
    fn take(&mut self, now: Instant, every: Duration, bucket: &mut Bucket) -> Option<String> {
        let is_time = self.at.is_none_or(|at| at + every <= now);
        if self.next.is_none() || !is_time || !bucket.take(now) {
            return None;
        }
        let (said, text) = self.next.take()?;
        self.said = Some(said);
        self.at = Some(now);
        Some(text)
    }
}

/// As the annotation has it.
fn written(measured: &Measured) -> String {
    let time = |ns: u64| format!("{ns}ns");
    let phases = measured.phases.iter().map(|phase| {
        let rate = units::Bandwidth(phase.rate_bps).to_string();
        json!({"offset": time(phase.offset_ns), "length": time(phase.length_ns), "rate": rate})
    });
    json!({"period": time(measured.period_ns), "phases": phases.collect::<Vec<_>>()}).to_string()
}

fn without_nothing(said: &Map<String, Value>) -> Map<String, Value> {
    said.iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::members::Gate;
    use super::super::observed::MeasuredPhase;
    use super::*;

    fn member(uid: &str, leads: bool) -> Member {
        Member {
            uid: uid.into(),
            namespace: "a".into(),
            pod: format!("pod-{uid}"),
            job: "a/job".into(),
            name: format!("worker-{uid}"),
            leads,
            turn: None,
            gate: Gate::Own,
            address: None,
            is_of_node: false,
            listens: true,
        }
    }

    fn measured(period_ms: u64) -> Measured {
        let phase = MeasuredPhase { offset_ns: 80_000_000, length_ns: 60_000_000, rate_bps: 40_000_000_000 };
        Measured {
            job: "a/job".into(),
            member: "worker-0".into(),
            period_ns: period_ms * 1_000_000,
            phases: vec![phase],
            confidence: 0.9,
            company: Company::Alone,
        }
    }

    fn progress(iteration: u64) -> Progress {
        let Value::Object(said) = json!({"iteration": iteration, "metrics": null}) else { unreachable!() };
        Progress { job: "a/job".into(), member: "worker-0".into(), said }
    }

    struct Desk {
        notes: Notes,
        members: BTreeMap<Arc<str>, Member>,
        begin: Instant,
    }

    impl Desk {
        fn new(members: u32) -> Self {
            let all = (0..members).map(|at| member(&at.to_string(), at == 0));
            let members = all.map(|member| (member.uid.clone(), member)).collect();
            let begin = Instant::now();
            Self { notes: Notes::new(begin), members, begin }
        }

        fn at(&mut self, seconds: u64) -> Vec<(String, &'static str, String)> {
            let notes = self.notes.due(self.begin + Duration::from_secs(seconds), &self.members);
            notes.into_iter().map(|note| (note.pod, note.key, note.value)).collect()
        }
    }

    #[test]
    fn what_was_measured_is_said_as_the_scheduler_reads_it_and_noise_is_not() {
        let mut desk = Desk::new(1);
        let leader = desk.members["0"].clone();
        desk.notes.measured(&leader, &measured(210));
        let said = desk.at(0);
        assert_eq!((said.len(), &*said[0].0, said[0].1), (1, "pod-0", TRAFFIC));
        let traffic = TrafficSpec::read(&said[0].2).unwrap();
        assert_eq!(traffic.period(), units::Duration::from_millis(210));
        assert_eq!(traffic.phases()[0].rate, units::Bandwidth(40_000_000_000));
        desk.notes.measured(&leader, &measured(211));
        assert_eq!(desk.at(60), [], "half a percent is noise");
        desk.notes.measured(&leader, &measured(230));
        assert_eq!(desk.at(61).len(), 1);
        desk.notes.measured(&leader, &measured(210));
        assert_eq!(desk.at(80), [], "not so soon");
        assert_eq!(desk.at(91).len(), 1);
    }

    #[test]
    fn who_does_not_lead_contends_or_is_not_sure_says_nothing() {
        let mut desk = Desk::new(2);
        let (leader, other) = (desk.members["0"].clone(), desk.members["1"].clone());
        desk.notes.measured(&other, &measured(210));
        desk.notes.measured(&leader, &Measured { company: Company::Contending, ..measured(210) });
        for confidence in [0.2, f64::NAN] {
            desk.notes.measured(&leader, &Measured { confidence, ..measured(210) });
        }
        desk.notes.measured(&leader, &Measured { period_ns: 0, ..measured(210) });
        assert_eq!(desk.at(0), []);
    }

    #[test]
    fn what_a_pod_says_already_is_not_said_again() {
        let mut desk = Desk::new(1);
        let leader = desk.members["0"].clone();
        desk.notes.meet(&leader.uid, Some(&written(&measured(210))));
        desk.notes.measured(&leader, &measured(210));
        assert_eq!(desk.at(0), []);
        desk.notes.measured(&leader, &measured(300));
        assert_eq!(desk.at(0).len(), 1);
    }

    #[test]
    fn the_newest_report_is_written_and_not_often() {
        let mut desk = Desk::new(1);
        let leader = desk.members["0"].clone();
        for iteration in 1..100 {
            desk.notes.reported(&leader, &progress(iteration));
        }
        assert_eq!(desk.at(0), [("pod-0".to_owned(), PROGRESS, r#"{"iteration":99}"#.to_owned())]);
        desk.notes.reported(&leader, &progress(100));
        assert_eq!(desk.at(9), []);
        desk.notes.reported(&leader, &progress(101));
        assert_eq!(desk.at(10)[0].2, r#"{"iteration":101}"#);
        desk.notes.reported(&leader, &progress(101));
        assert_eq!(desk.at(30), [], "nothing is new");
    }

    #[test]
    fn a_node_with_many_pods_writes_no_more_than_it_may() {
        let mut desk = Desk::new(100);
        for member in desk.members.clone().values() {
            desk.notes.reported(member, &progress(1));
        }
        assert_eq!(desk.at(0).len(), 20);
        assert_eq!(desk.at(10).len(), 20);
        assert_eq!(
            (20..200).map(|second| desk.at(second).len()).sum::<usize>(),
            60,
            "in the end all are heard"
        );
    }

    #[test]
    fn what_could_not_be_written_is_said_again() {
        let mut desk = Desk::new(1);
        let leader = desk.members["0"].clone();
        desk.notes.reported(&leader, &progress(5));
        let note = desk.notes.due(desk.begin, &desk.members).remove(0);
        desk.notes.was_not_written(&note);
        desk.notes.reported(&leader, &progress(5));
        assert_eq!(desk.at(10).len(), 1);
    }
}
