//! Whose work a gang is: its queue and its user, and what queues say of themselves.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::json;

use metronome_core::model::cluster::Name;
use metronome_core::model::id::{JobId, QueueId};
use metronome_core::model::job::Job;
use metronome_core::model::queue::lineage;
use metronome_core::model::units::{Duration, Instant, Resources, Share};

use super::World;
use super::describe::Urgency;
use super::gangs::{GangKey, HeldUp};
use crate::border::DEFAULT_QUEUE;
use crate::deed::{About, EventReason, Kind, ObjectRef, Telling};
use crate::objects::{Pod, Queue, QueueKind, QueueStatus};
use crate::rules::load::GPU;
use crate::watch::Delta;

/// Labels or annotations, of a pod or of the object that declares its gang.
const QUEUE: &str = "metronome.dev/queue";
const USER: &str = "metronome.dev/user";
const VOLCANO_QUEUE: &str = "scheduling.volcano.sh/queue-name";
const KUEUE_QUEUE: &str = "kueue.x-k8s.io/queue-name";

/// The status of a queue is written at most this often.
const STATUS_EVERY: Duration = Duration::from_secs(5);

/// Where a job stands in line, as whose.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Enrolment {
    pub(super) queue: QueueId,
    pub(super) owner: Option<Name>,
    pub(super) user: Share,
}

/// What was last written to each object, by its uid, and when.
pub(super) type Written = BTreeMap<Name, (QueueStatus, Instant)>;

impl World {
    pub(super) fn queues_changed(&mut self, now: Instant, kind: QueueKind, delta: Delta<Queue>) {
        match delta {
            Delta::Applied(queue) => self.queues.apply(queue),
            Delta::Deleted(queue) => self.queues.remove(kind, queue.name()),
            Delta::Reset(all) => self.queues.replace(kind, all),
        }
        if self.queues.settle(&mut self.engine, now) {
            self.enrol_anew(now);
        }
    }

    /// A moment after a change: a queue that came just before its parent makes sense by then.
    pub(super) fn complain_of_queues(&mut self) {
        for (object, message) in self.queues.complaints() {
            tracing::warn!(queue = %object.name, message, "a queue is refused");
            let about = About::Object(object);
            self.do_it(Kind::Tell(Telling { about, reason: EventReason::QueueRefused, message }));
        }
    }

    /// Queues come, change and go rarely, so all that wait are asked whether they would stand elsewhere now.
    fn enrol_anew(&mut self, now: Instant) {
        let waiting: Vec<JobId> = self.crews.keys().copied().filter(|job| self.waits(*job)).collect();
        for job in waiting {
            let Some(pod) = self.crews[&job].members().find_map(|member| self.pods.get(&member.uid)) else {
                continue;
            };
            let (key, pod) = (pod.gang.clone(), pod.pod.clone());
            let enrolled = self.engine.job(job).map(enrolment_of);
            if self.enrol(now, &key, &pod, Urgency::Usual).ok() != enrolled {
                self.describe_anew(&key);
            }
        }
        let without = |held_up: &Option<HeldUp>| matches!(held_up, Some(HeldUp::NoQueue(_)));
        let held_up = self.gangs.iter().filter(|(_, gang)| without(&gang.held_up));
        self.changed.extend(held_up.map(|(key, _)| key.clone()));
        let declared = self.gangs.iter().filter(|(_, gang)| gang.declared.is_some());
        let declared: Vec<GangKey> = declared.map(|(key, _)| key.clone()).collect();
        declared.iter().for_each(|key| self.write_phase(key));
    }

    /// What waits of a gang is described to the engine anew.
    pub(super) fn describe_anew(&mut self, key: &GangKey) {
        for job in self.gangs.get(key).into_iter().flat_map(|gang| &gang.jobs) {
            if let Some(crew) = self.crews.get_mut(job) {
                crew.outdated = true;
            }
        }
        self.changed.insert(key.clone());
    }

    /// Who runs already, or completes a gang that does, stays where it is whatever has become of its queue.
    pub(super) fn enrol(
        &mut self,
        now: Instant,
        key: &GangKey,
        pod: &Pod,
        urgency: Urgency,
    ) -> Result<Enrolment, HeldUp> {
        let name = self.queue_of(key, Some(pod));
        let owner = self.said(key, Some(pod), USER).map(Name::from);
        let queue = match urgency {
            Urgency::Usual => self.queues.admits(&name).map_err(HeldUp::NoQueue)?,
            Urgency::Runs | Urgency::Repair => self.queues.holds(&mut self.engine, now, &name),
        };
        let user = self.queues.standing(&name, owner.as_deref());
        Ok(Enrolment { queue, owner, user })
    }

    /// Whether the queue of a declared gang takes it in, by the word of its object alone: it may have no pods yet.
    pub(super) fn is_let_in(&self, key: &GangKey) -> bool {
        self.queues.admits(&self.queue_of(key, None)).is_ok()
    }

    /// Kueue holds back what is its own by itself: its queues count only where there is one of that name here, too.
    fn queue_of(&self, key: &GangKey, pod: Option<&Pod>) -> Name {
        let group = self.gangs.get(key).and_then(|gang| gang.declared.as_ref());
        let named = self.said(key, pod, QUEUE);
        let named = named.or_else(|| group.and_then(|group| group.queue.as_deref()));
        let named = named.or_else(|| self.said(key, pod, VOLCANO_QUEUE));
        let named =
            named.or_else(|| self.said(key, pod, KUEUE_QUEUE).filter(|name| self.queues.is_known(name)));
        Name::from(named.unwrap_or(DEFAULT_QUEUE))
    }

    /// What the object that declares a gang says, or else its pod.
    pub(super) fn said<'a>(&'a self, gang: &GangKey, pod: Option<&'a Pod>, key: &str) -> Option<&'a str> {
        let group = self.gangs.get(gang).and_then(|gang| gang.declared.as_ref());
        group.and_then(|group| said_by(&group.metadata, key)).or_else(|| said_by(&pod?.metadata, key))
    }

    /// Whether all was written that there is to write.
    pub(super) fn write_queue_statuses(&mut self, now: Instant) -> bool {
        let statuses = self.queue_statuses();
        let is_there = |uid: &Name| statuses.iter().any(|(object, _)| object.uid == *uid);
        self.written.retain(|uid, _| is_there(uid));
        let mut all = true;
        for (object, status) in statuses {
            match self.written.get(&object.uid) {
                Some((before, _)) if *before == status => continue,
                Some((_, at)) if now.since(*at) < STATUS_EVERY => all = false,
                _ => {
                    self.written.insert(object.uid.clone(), (status.clone(), now));
                    self.do_it(Kind::Status { object, status: json!(status) });
                }
            }
        }
        all
    }

    fn queue_statuses(&self) -> Vec<(ObjectRef, QueueStatus)> {
        let mut counts: BTreeMap<QueueId, (u32, u32)> = BTreeMap::new();
        let own: Vec<_> = self.queues.own().collect();
        let jobs = self.engine.state().jobs.iter().filter(|_| !own.is_empty());
        for (_, job) in jobs {
            for queue in lineage(&self.engine.state().queues, job.spec.queue) {
                let (running, waiting) = counts.entry(queue).or_default();
                let counted = if job.life.is_waiting() { waiting } else { running };
                *counted += 1;
            }
        }
        let status = |(object, id): (&ObjectRef, QueueId)| {
            let (running, waiting) = counts.get(&id).copied().unwrap_or_default();
            let held = self.engine.snapshot().held.by_queue()[id];
            (object.clone(), QueueStatus { held: amounts(held), running, waiting })
        };
        own.into_iter().map(status).collect()
    }
}

fn enrolment_of(job: &Job) -> Enrolment {
    Enrolment { queue: job.spec.queue, owner: job.spec.owner.clone(), user: job.spec.user }
}

fn said_by<'a>(metadata: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    let annotation = metadata.annotations.as_ref().and_then(|all| all.get(key));
    let said = annotation.or_else(|| metadata.labels.as_ref()?.get(key));
    said.map(String::as_str).filter(|value| !value.is_empty())
}

/// As quantities are written.
fn amounts(held: Resources) -> BTreeMap<String, String> {
    let amounts = [
        ("cpu", format!("{}m", held.cpu.0)),
        ("memory", held.memory.0.to_string()),
        (GPU, (held.gpus.0 / 1000).to_string()),
    ];
    amounts.into_iter().map(|(name, amount)| (name.to_owned(), amount)).collect()
}
