//! Objects that say how many pods a gang takes, and the phase that is written back to them.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::json;

use metronome_core::model::id::JobId;
use metronome_core::model::units::{Duration, Instant};

use super::World;
use super::crew::Stage;
use super::gangs::{Gang, GangKey};
use crate::deed::Kind;
use crate::objects::{Group, GroupKind, Job};
use crate::watch::{Delta, Recorded};

/// An intent that is still there so long after its gang was bound is left over.
const LEFT_OVER_AFTER: Duration = Duration::from_secs(10);

impl World {
    pub(super) fn groups_changed(&mut self, now: Instant, kind: GroupKind, delta: Delta<Group>) {
        match delta {
            Delta::Applied(group) => self.group_applied(now, group),
            Delta::Deleted(group) => self.group_gone(&key_of(&group)),
            Delta::Reset(groups) => {
                let there: BTreeSet<GangKey> = groups.iter().map(key_of).collect();
                let of_kind =
                    |key: &GangKey| matches!(key, GangKey::Declared { kind: of, .. } if *of == kind);
                let known = self.gangs.iter().filter(|(key, gang)| of_kind(key) && gang.declared.is_some());
                let gone: Vec<GangKey> =
                    known.map(|(key, _)| key.clone()).filter(|key| !there.contains(key)).collect();
                gone.iter().for_each(|key| self.group_gone(key));
                groups.into_iter().for_each(|group| self.group_applied(now, group));
            }
        }
    }

    fn group_applied(&mut self, now: Instant, group: Group) {
        let key = key_of(&group);
        let gang = self.gang_mut(&key);
        let before = gang.declared.as_ref();
        let same = before.is_some_and(|before| is_same(before, &group));
        let asks_anew = before.is_some_and(|before| asks_for_something_else(before, &group));
        gang.declared = Some(group);
        if !same {
            let jobs: Vec<JobId> = gang.jobs.iter().copied().collect();
            self.describe_anew(&key);
            jobs.into_iter().for_each(|job| self.learn_what_it_sends(now, job));
        }
        if asks_anew {
            self.take_in_again(now, &key);
        }
        self.write_phase(&key);
    }

    /// Who runs goes on where it is, and is described anew.
    pub(super) fn take_in_again(&mut self, now: Instant, key: &GangKey) {
        let jobs = self.gangs[key].jobs.iter().copied();
        let running = jobs.filter(|job| self.crews.get(job).is_some_and(|crew| crew.stage == Stage::Running));
        for job in running.collect::<Vec<_>>() {
            self.dissolve(now, job);
        }
    }

    fn group_gone(&mut self, key: &GangKey) {
        if let Some(gang) = self.gangs.get_mut(key) {
            gang.declared = None;
            self.changed.insert(key.clone());
        }
    }

    pub(super) fn jobs_changed(&mut self, delta: Delta<Job>) {
        let (jobs, gone) = match delta {
            Delta::Applied(job) => (vec![job], Vec::new()),
            Delta::Deleted(job) => (Vec::new(), vec![key_of_job(&job)]),
            Delta::Reset(jobs) => {
                let there: BTreeSet<GangKey> = jobs.iter().map(key_of_job).collect();
                let known = self.gangs.keys().filter(|key| matches!(key, GangKey::Job { .. }));
                let gone = known.filter(|key| !there.contains(key)).cloned().collect();
                (jobs, gone)
            }
        };
        for job in jobs {
            let parallelism = job.spec.parallelism.map(|pods| u32::try_from(pods).unwrap_or(0));
            self.set_parallelism(key_of_job(&job), parallelism.or(Some(1)));
        }
        for key in gone {
            self.set_parallelism(key, None);
        }
    }

    fn set_parallelism(&mut self, key: GangKey, parallelism: Option<u32>) {
        let gang = self.gang_mut(&key);
        if gang.parallelism != parallelism {
            gang.parallelism = parallelism;
            self.changed.insert(key);
        }
    }

    /// Intents are written by the leader alone. What is left of one that we no longer bind, because it could not be
    /// deleted then, is deleted when it is seen again.
    pub(super) fn intents_changed(&mut self, now: Instant, delta: Delta<Recorded>) {
        let came = match delta {
            Delta::Applied(record) => vec![record],
            Delta::Reset(records) => {
                self.recorded.clear();
                records
            }
            Delta::Deleted(record) => {
                self.recorded.remove(&record.name);
                Vec::new()
            }
        };
        for record in came {
            let generation = record.intent.as_ref().ok().map(|intent| intent.generation);
            self.recorded.insert(record.name, (generation, now));
        }
    }

    pub(super) fn forget_what_is_left_over(&mut self, now: Instant) {
        let mut left = Vec::new();
        for (name, (generation, since)) in &mut self.recorded {
            if !self.open_intents.contains(name) && now.since(*since) >= LEFT_OVER_AFTER {
                *since = now;
                left.push((name.clone(), *generation));
            }
        }
        for (intent, generation) in left {
            self.do_it(Kind::Forget { intent, generation });
        }
    }

    /// Volcano's own controllers make pods only once their group is let into the queue, and show its phase to users.
    pub(super) fn write_phase(&mut self, key: &GangKey) {
        let Some(Gang { declared: Some(group), was_whole, .. }) = self.gangs.get(key) else { return };
        if group.kind != GroupKind::Volcano || !(*was_whole || self.is_let_in(key)) {
            return;
        }
        let phase = if *was_whole { "Running" } else { "Inqueue" };
        let is = group.phase.as_deref().unwrap_or("Pending");
        let advances = matches!((is, phase), ("Pending" | "", _) | ("Inqueue", "Running"));
        if advances {
            let group = group.reference.clone();
            self.do_it(Kind::Status { object: group, status: json!({ "phase": phase }) });
        }
    }
}

/// Whether nothing differs that scheduling looks at.
fn is_same(before: &Group, group: &Group) -> bool {
    before.min_members == group.min_members
        && before.elastic == group.elastic
        && before.queue == group.queue
        && before.metadata.labels == group.metadata.labels
        && before.metadata.annotations == group.metadata.annotations
}

/// Whether a job says something else of time or of how many members it may have than it did; once some of them have ended,
/// nothing is left to say of that.
fn asks_for_something_else(before: &Group, group: &Group) -> bool {
    group.kind == GroupKind::Training
        && (before.metadata.annotations != group.metadata.annotations
            || group.elastic.is_some() && before.elastic != group.elastic)
}

fn key_of(group: &Group) -> GangKey {
    GangKey::Declared {
        kind: group.kind,
        namespace: group.reference.namespace.clone(),
        name: group.reference.name.clone(),
    }
}

fn key_of_job(job: &Job) -> GangKey {
    let part = |text: &Option<String>| Arc::from(text.as_deref().unwrap_or_default());
    GangKey::Job { namespace: part(&job.metadata.namespace), name: part(&job.metadata.name) }
}
