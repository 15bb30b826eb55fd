//! What was observed and not yet fetched: bounded, and of each member the newest.

use std::collections::{BTreeMap, VecDeque};
use std::time::SystemTime;

use serde::Serialize;

/// One observation, with its number.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Observation {
    pub seq: u64,
    #[serde(flatten)]
    pub what: What,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum What {
    Progress(Progress),
    Traffic(Traffic),
    Slower(Slower),
}

/// What a member reports of itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    pub job: String,
    pub member: String,
    /// None where a job says only how much of it is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u64>,
    /// When, by the clock of whoever reports; ours, if that says nothing.
    pub time: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<String, f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compute_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throughput: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percent: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remaining_seconds: Option<f64>,
}

/// What a member was seen to send. Rates are as measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Traffic {
    pub job: String,
    pub member: String,
    pub period_ns: u64,
    pub phases: Vec<Phase>,
    pub noise: f64,
    pub confidence: f64,
    /// From how many iterations, seen from when to when, in nanoseconds since 1970.
    pub iterations: usize,
    pub from_ns: u64,
    pub until_ns: u64,
    #[serde(rename = "while")]
    pub during: During,
    /// What it would do without others on its links.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uncontended: Option<Uncontended>,
}

/// The iteration of a job that has its links to itself, as far as it follows from counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Uncontended {
    pub period_ns: u64,
    /// Bounds of the period: the error that it may have.
    pub period_at_least_ns: u64,
    pub period_at_most_ns: u64,
    /// From the first byte to the last, at the end of the period: longer than the bytes take where buckets are sent during
    /// the backward pass.
    pub sends_for_ns: u64,
    /// How long all bytes take at the rate of the narrowest link.
    pub burst_ns: u64,
    /// Bits a second while it sends.
    pub rate_bps: u64,
    pub bytes: u64,
}

/// A job that is slower with its traffic directive than in fair windows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Slower {
    pub job: String,
    pub member: String,
    /// How much longer an iteration takes, as a part of its time in fair windows: at least, and as measured.
    pub at_least: f64,
    pub measured: f64,
    /// Iterations counted in fair windows and in the others.
    pub fair_iterations: f64,
    pub directed_iterations: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Phase {
    pub offset_ns: u64,
    pub length_ns: u64,
    pub rate_bps: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum During {
    /// Nobody else crossed its links.
    Alone,
    Contending,
}

/// Of each member so many of each kind are kept, and so many in all.
const MOST_OF_A_MEMBER: usize = 32;
const MOST: usize = 8192;
/// So many are told at once.
const MOST_TOLD: usize = 1024;

#[derive(Debug, Default)]
pub struct Observed {
    /// In the order of their numbers.
    kept: BTreeMap<u64, What>,
    of: BTreeMap<(String, String, u8), VecDeque<u64>>,
    last: u64,
    pub dropped: u64,
}

impl Observed {
    pub fn note(&mut self, what: What) {
        self.last += 1;
        let numbers = self.of.entry(what.whose()).or_default();
        numbers.push_back(self.last);
        if numbers.len() > MOST_OF_A_MEMBER
            && let Some(oldest) = numbers.pop_front()
        {
            self.kept.remove(&oldest);
            self.dropped += 1;
        }
        self.kept.insert(self.last, what);
        while self.kept.len() > MOST {
            let Some((number, what)) = self.kept.pop_first() else { break };
            self.forget(number, &what);
            self.dropped += 1;
        }
    }

    /// Numbers begin where no agent before us can have come: whoever asks may have seen theirs.
    pub fn go_on_after_earlier_agents(&mut self, now: SystemTime) {
        let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.last = self.last.max(u64::try_from(since.as_millis()).unwrap_or(0).saturating_mul(1000));
    }

    /// What came after a number. Whoever asks has seen everything up to there, so that is forgotten.
    pub fn after(&mut self, seen: u64) -> (u64, Vec<Observation>) {
        while let Some((number, what)) =
            self.kept.first_key_value().map(|(number, what)| (*number, what.clone()))
            && number <= seen
        {
            self.kept.remove(&number);
            self.forget(number, &what);
        }
        let told: Vec<Observation> = self
            .kept
            .iter()
            .take(MOST_TOLD)
            .map(|(seq, what)| Observation { seq: *seq, what: what.clone() })
            .collect();
        let next = told.last().map_or(self.last, |last| last.seq);
        (next, told)
    }

    fn forget(&mut self, number: u64, what: &What) {
        let whose = what.whose();
        if let Some(numbers) = self.of.get_mut(&whose) {
            numbers.retain(|kept| *kept != number);
            if numbers.is_empty() {
                self.of.remove(&whose);
            }
        }
    }
}

impl What {
    /// The member, and which kind of observation it is.
    fn whose(&self) -> (String, String, u8) {
        match self {
            Self::Progress(progress) => (progress.job.clone(), progress.member.clone(), 0),
            Self::Traffic(traffic) => (traffic.job.clone(), traffic.member.clone(), 1),
            Self::Slower(slower) => (slower.job.clone(), slower.member.clone(), 2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(member: usize, iteration: u64) -> What {
        let member = format!("worker-{member}");
        What::Progress(Progress {
            job: "a/b".into(),
            member,
            iteration: Some(iteration),
            ..Progress::default()
        })
    }

    #[test]
    fn of_a_flood_the_newest_of_each_member_are_kept() {
        let mut observed = Observed::default();
        observed.note(progress(1, 7));
        (0..100_000).for_each(|iteration| observed.note(progress(0, iteration)));
        let (next, told) = observed.after(0);
        assert_eq!((next, told.len()), (100_001, MOST_OF_A_MEMBER + 1));
        assert_eq!(told[0].what, progress(1, 7));
        assert_eq!(told.last().unwrap().what, progress(0, 99_999));
        assert_eq!(observed.after(next), (next, vec![]));
        assert!(observed.kept.is_empty() && observed.of.is_empty());
    }

    #[test]
    fn however_many_members_there_are_what_is_kept_is_bounded() {
        let mut observed = Observed::default();
        (0..20_000).for_each(|member| observed.note(progress(member, 1)));
        assert_eq!((observed.kept.len(), observed.of.len()), (MOST, MOST));
        let (next, told) = observed.after(0);
        assert_eq!((told.len(), observed.after(next).1.len()), (MOST_TOLD, MOST_TOLD));
    }

    #[test]
    fn observations_are_written_as_agreed() {
        let traffic = What::Traffic(Traffic {
            job: "a/b".into(),
            member: "worker-0".into(),
            period_ns: 5,
            phases: vec![Phase { offset_ns: 0, length_ns: 2, rate_bps: 9 }],
            noise: 0.5,
            confidence: 1.0,
            iterations: 40,
            from_ns: 100,
            until_ns: 300,
            during: During::Contending,
            uncontended: None,
        });
        let text = serde_json::to_string(&Observation { seq: 3, what: traffic }).unwrap();
        assert_eq!(
            text,
            r#"{"seq":3,"traffic":{"job":"a/b","member":"worker-0","period_ns":5,"phases":[{"offset_ns":0,"length_ns":2,"rate_bps":9}],"noise":0.5,"confidence":1.0,"iterations":40,"from_ns":100,"until_ns":300,"while":"contending"}}"#
        );
        let Observation { what, .. } = Observation { seq: 1, what: progress(0, 4) };
        let text = serde_json::to_string(&Observation { seq: 1, what }).unwrap();
        assert_eq!(text, r#"{"seq":1,"progress":{"job":"a/b","member":"worker-0","iteration":4,"time":""}}"#);
    }
}
