//! Our pods, and the load that everybody else's are.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use metronome_core::model::id::JobId;
use metronome_core::model::units::Instant;

use super::World;
use super::gangs::{Gang, GangKey};
use super::moves::{CHECKPOINTED, REQUEST};
use super::reports::PROGRESS;
use super::traffic::TRAFFIC;
use super::turns::TURN;
use super::weights::CPU_WEIGHT;
use crate::border::Facts;
use crate::deed::PodRef;
use crate::objects::Pod;
use crate::watch::Delta;

pub(super) type Uid = Arc<str>;

/// A pod of ours that is not over.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) pod: Arc<Pod>,
    pub(super) gang: GangKey,
    /// The job of the engine that it is a member of.
    pub(super) job: Option<JobId>,
    /// The node it was bound to, before the watch says so.
    pub(super) assumed: Option<Arc<str>>,
    /// What it needs, once that was asked.
    pub(super) facts: Option<Arc<Facts>>,
    /// What it last said of its progress.
    pub(super) reported: Option<Arc<str>>,
    /// What it last said that it sends.
    pub(super) sends: Option<Arc<str>>,
    /// What it was last told to be wrong with what it allows.
    pub(super) complaint: Option<String>,
}

impl Known {
    fn new(pod: Pod, gang: GangKey) -> Self {
        Self {
            pod: Arc::new(pod),
            gang,
            job: None,
            assumed: None,
            facts: None,
            reported: None,
            sends: None,
            complaint: None,
        }
    }

    pub(super) fn node(&self) -> Option<&str> {
        self.pod.spec.node_name.as_deref().or(self.assumed.as_deref())
    }

    pub(super) fn is_leaving(&self) -> bool {
        self.pod.metadata.deletion_timestamp.is_some()
    }

    /// To be placed: not bound, not held back by a gate.
    pub(super) fn waits(&self) -> bool {
        self.node().is_none() && !self.is_leaving() && !is_gated(&self.pod)
    }

    /// Bound, and to stay.
    pub(super) fn is_placed(&self) -> bool {
        self.node().is_some() && !self.is_leaving()
    }

    pub(super) fn reference(&self) -> PodRef {
        let text = |text: &Option<String>| Arc::from(text.as_deref().unwrap_or_default());
        let meta = &self.pod.metadata;
        PodRef {
            namespace: text(&meta.namespace),
            name: text(&meta.name),
            uid: text(&meta.uid),
            version: text(&meta.resource_version),
        }
    }
}

pub(super) fn uid(pod: &Pod) -> Uid {
    Arc::from(pod.metadata.uid.as_deref().unwrap_or_default())
}

pub(super) fn created(pod: &Pod) -> Instant {
    let nanos = pod.metadata.creation_timestamp.as_ref().map_or(0, |time| time.0.as_nanosecond());
    Instant(u64::try_from(nanos).unwrap_or(0))
}

fn is_gated(pod: &Pod) -> bool {
    pod.spec.scheduling_gates.as_ref().is_some_and(|gates| !gates.is_empty())
}

fn is_over(pod: &Pod) -> bool {
    matches!(pod.status.phase.as_deref(), Some("Succeeded" | "Failed"))
}

/// Whether anything changed that scheduling looks at. Our own conditions on a pod come back as changes of it.
fn differs(old: &Pod, new: &Pod) -> bool {
    let (was, is) = (&old.metadata, &new.metadata);
    was.generation != is.generation
        || was.labels != is.labels
        || lasting(was) != lasting(is)
        || was.deletion_timestamp.is_some() != is.deletion_timestamp.is_some()
        || old.spec.node_name != new.spec.node_name
        || is_gated(old) != is_gated(new)
}

/// Those by which a pod is talked to while it runs, and answers.
const TALK: [&str; 6] = [PROGRESS, REQUEST, CHECKPOINTED, CPU_WEIGHT, TRAFFIC, TURN];

/// Annotations but for those, which change often.
fn lasting(meta: &ObjectMeta) -> BTreeMap<&str, &str> {
    let all = meta.annotations.iter().flatten().map(|(key, value)| (key.as_str(), value.as_str()));
    all.filter(|(key, _)| !TALK.contains(key)).collect()
}

impl World {
    pub(super) fn pods_changed(&mut self, now: Instant, delta: Delta<Pod>) {
        match delta {
            Delta::Applied(pod) => self.pod_applied(now, pod),
            Delta::Deleted(pod) => self.pod_gone(now, &uid(&pod)),
            Delta::Reset(pods) => {
                let there: BTreeSet<Uid> = pods.iter().map(uid).collect();
                let known = self.pods.keys().chain(&self.others);
                let gone: Vec<Uid> = known.filter(|uid| !there.contains(*uid)).cloned().collect();
                gone.iter().for_each(|uid| self.pod_gone(now, uid));
                pods.into_iter().for_each(|pod| self.pod_applied(now, pod));
            }
        }
    }

    fn is_ours(&self, pod: &Pod) -> bool {
        pod.spec.scheduler_name.as_deref() == Some(&*self.settings.scheduler)
    }

    pub(super) fn pod_applied(&mut self, now: Instant, pod: Pod) {
        let uid = uid(&pod);
        let never_bound = pod.spec.node_name.is_none() && pod.metadata.deletion_timestamp.is_some();
        if is_over(&pod) || never_bound {
            self.note_failure(now, &uid, &pod);
            self.note_end(&uid, &pod);
            self.pod_gone(now, &uid);
        } else if self.is_ours(&pod) {
            self.ours_applied(now, &uid, pod);
        } else if pod.spec.node_name.is_some() {
            self.border.other_applied(&mut self.engine, now, &pod);
            self.others.insert(uid);
        }
    }

    fn ours_applied(&mut self, now: Instant, uid: &Uid, pod: Pod) {
        let key = GangKey::of(&pod);
        let Some(known) = self.pods.get_mut(uid) else {
            self.gangs.entry(key.clone()).or_default().pods.insert(uid.clone());
            self.changed.insert(key.clone());
            self.note_old_sayings(uid, &pod);
            self.pods.insert(uid.clone(), Known::new(pod, key));
            return self.read_traffic(now, uid);
        };
        let changed = differs(&known.pod, &pod);
        known.pod = Arc::new(pod);
        if changed {
            known.facts = None;
        }
        self.look_at_cores(now, uid);
        self.read_report(now, uid);
        self.read_traffic(now, uid);
        let Some(known) = self.pods.get_mut(uid) else { return };
        if known.gang != key {
            let old = std::mem::replace(&mut known.gang, key.clone());
            self.leave_gang(uid, &old);
            self.gangs.entry(key.clone()).or_default().pods.insert(uid.clone());
        }
        if changed {
            self.note_real_start(now, uid);
            self.pods_job_changed(uid);
            self.changed.insert(key);
        }
    }

    pub(super) fn pod_gone(&mut self, now: Instant, uid: &Uid) {
        if self.others.remove(uid) {
            self.border.other_gone(&mut self.engine, now, uid);
        }
        let Some(known) = self.pods.remove(uid) else { return };
        if let Some(job) = known.job {
            self.member_gone(now, job, uid);
        }
        self.leave_gang(uid, &known.gang);
    }

    /// Once a member is done, those who are not go on as they are.
    fn note_end(&mut self, uid: &Uid, pod: &Pod) {
        let key = self.pods.get(uid).map(|known| known.gang.clone());
        if let Some(key) = key.filter(|_| pod.status.phase.as_deref() == Some("Succeeded")) {
            self.gang_mut(&key).some_are_done = true;
        }
    }

    fn leave_gang(&mut self, uid: &Uid, key: &GangKey) {
        let Some(gang) = self.gangs.get_mut(key) else { return };
        gang.pods.remove(uid);
        self.changed.insert(key.clone());
    }

    pub(super) fn gang_mut(&mut self, key: &GangKey) -> &mut Gang {
        self.gangs.entry(key.clone()).or_default()
    }
}
