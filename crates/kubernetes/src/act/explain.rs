//! Saying on a pod why it waits: the condition that other tools read, and the node it will go to.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use serde::Serialize;

use super::hands::{Hands, Stop};
use super::seen::{Seen, path};
use crate::deed::{Foretold, PodRef, Verdict, Why};
use crate::request::{Answer, Call, Verb};

/// A verdict that meets a pod which keeps changing is given up; another will follow.
const ATTEMPTS: usize = 3;

impl Hands {
    pub(super) async fn explain(&self, pod: &PodRef, verdict: &Verdict) {
        if self.memory.says(pod, verdict) {
            return;
        }
        if let Err(stop) = self.write_verdict(pod, verdict).await {
            tracing::debug!(pod = %pod.name, ?stop, "a verdict was not written");
        }
    }

    /// Writes only to the version that was looked at: a pod that was bound meanwhile must not be told that it waits.
    async fn write_verdict(&self, pod: &PodRef, verdict: &Verdict) -> Result<(), Stop> {
        let mut ground = match self.memory.knows(pod) {
            true => Some(Ground { version: pod.version.clone(), says_no: true }),
            false => self.ground(pod, verdict).await?,
        };
        for _ in 0..ATTEMPTS {
            let Some(stands_on) = ground else { return Ok(()) };
            match self.settle(&self.quiet, &patch(pod, verdict, &stands_on)).await? {
                Answer::Conflict => ground = self.ground(pod, verdict).await?,
                Answer::Done(_) => {
                    self.memory.keep(pod, verdict);
                    return Ok(());
                }
                _ => return Ok(()),
            }
        }
        Ok(())
    }

    /// What there is to write on; nothing where the pod is bound or gone, or says the same already.
    async fn ground(&self, pod: &PodRef, verdict: &Verdict) -> Result<Option<Ground>, Stop> {
        let Some(seen) = self.see(&self.quiet, pod).await? else { return Ok(None) };
        if seen.node().is_some() {
            return Ok(None);
        }
        if says(&seen, verdict) {
            self.memory.keep(pod, verdict);
            return Ok(None);
        }
        let says_no = seen.condition(SCHEDULED).is_some_and(|condition| condition.status == "False");
        Ok(Some(Ground { version: seen.version().into(), says_no }))
    }
}

const SCHEDULED: &str = "PodScheduled";

struct Ground {
    version: Arc<str>,
    /// The condition is there and false: the time of its last transition stays.
    says_no: bool,
}

fn says(seen: &Seen, verdict: &Verdict) -> bool {
    let condition = seen.condition(SCHEDULED);
    seen.nominated() == verdict.nominated.as_deref()
        && condition.is_some_and(|condition| {
            condition.status == "False"
                && condition.reason == verdict.why.name()
                && condition.message == verdict.message
        })
}

#[derive(Debug, Serialize)]
struct Patch<'a> {
    metadata: AsSeen<'a>,
    status: Status<'a>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct AsSeen<'a> {
    uid: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_version: Option<&'a str>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Status<'a> {
    conditions: [&'a Condition<'a>; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    nominated_node_name: Option<Nominated<'a>>,
}

/// Nothing takes back what was said before.
#[derive(Debug, Serialize)]
struct Nominated<'a>(Option<&'a str>);

/// A pod's condition as it is merged in: among those of other types, over the one of its own.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Condition<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    status: &'static str,
    reason: &'static str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_transition_time: Option<String>,
}

impl<'a> Condition<'a> {
    /// As kube-scheduler marks what it preempts.
    pub(super) fn disruption(message: &'a str) -> Self {
        Self {
            kind: "DisruptionTarget",
            status: "True",
            reason: "PreemptionByScheduler",
            message,
            last_transition_time: Some(now()),
        }
    }

    pub(super) fn in_time(foretold: &'a Foretold) -> Self {
        Self {
            kind: "metronome.dev/InTime",
            status: foretold.certainty.status(),
            reason: foretold.certainty.name(),
            message: &foretold.message,
            last_transition_time: Some(now()),
        }
    }

    fn waits(verdict: &'a Verdict, ground: &Ground) -> Self {
        Self {
            kind: SCHEDULED,
            status: "False",
            reason: verdict.why.name(),
            message: &verdict.message,
            last_transition_time: (!ground.says_no).then(now),
        }
    }

    /// Sets this condition on a pod, if it still is this very pod.
    pub(super) fn patch(&self, pod: &PodRef) -> Call {
        let metadata = AsSeen { uid: &pod.uid, resource_version: None };
        status(pod, &Patch { metadata, status: Status { conditions: [self], nominated_node_name: None } })
    }
}

fn patch(pod: &PodRef, verdict: &Verdict, ground: &Ground) -> Call {
    let condition = Condition::waits(verdict, ground);
    let metadata = AsSeen { uid: &pod.uid, resource_version: Some(&ground.version) };
    let nominated_node_name = Some(Nominated(verdict.nominated.as_deref()));
    status(pod, &Patch { metadata, status: Status { conditions: [&condition], nominated_node_name } })
}

fn status(pod: &PodRef, patch: &Patch<'_>) -> Call {
    Call::with(Verb::StrategicPatch, "pods/status", format!("{}/status", path(pod)), patch)
}

fn now() -> String {
    format!("{:.0}", Timestamp::now())
}

impl Why {
    fn name(self) -> &'static str {
        match self {
            Self::Unschedulable => "Unschedulable",
            Self::SchedulerError => "SchedulerError",
        }
    }
}

/// What was last said on each pod, so that it is not said again. Bounded: of two generations the older is dropped
/// whole when the younger is full.
#[derive(Default)]
pub(super) struct Memory(Mutex<Generations>);

#[derive(Default)]
struct Generations {
    young: HashMap<Arc<str>, Verdict>,
    old: HashMap<Arc<str>, Verdict>,
}

const GENERATION: usize = 20_000;

impl Memory {
    fn knows(&self, pod: &PodRef) -> bool {
        self.said(pod, |_| true)
    }

    fn says(&self, pod: &PodRef, verdict: &Verdict) -> bool {
        self.said(pod, |said| said == verdict)
    }

    fn said(&self, pod: &PodRef, is: impl Fn(&Verdict) -> bool) -> bool {
        let all = self.0.lock().expect("nobody panics while holding it");
        all.young.get(&pod.uid).or_else(|| all.old.get(&pod.uid)).is_some_and(is)
    }

    fn keep(&self, pod: &PodRef, verdict: &Verdict) {
        let mut all = self.0.lock().expect("nobody panics while holding it");
        if all.young.len() >= GENERATION {
            all.old = std::mem::take(&mut all.young);
        }
        all.young.insert(pod.uid.clone(), verdict.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(number: usize) -> PodRef {
        let uid = Arc::from(number.to_string());
        PodRef { namespace: "a".into(), name: "p".into(), uid, version: "1".into() }
    }

    #[test]
    fn the_memory_of_what_was_said_is_bounded_and_keeps_the_latest() {
        let verdict = Verdict { why: Why::Unschedulable, message: "waits".into(), nominated: None };
        let memory = Memory::default();
        for number in 0..5 * GENERATION {
            memory.keep(&pod(number), &verdict);
        }
        let kept = memory.0.lock().unwrap();
        assert!(kept.young.len() + kept.old.len() <= 2 * GENERATION);
        drop(kept);
        assert!(memory.says(&pod(5 * GENERATION - 1), &verdict));
        assert!(!memory.knows(&pod(0)));
    }
}
