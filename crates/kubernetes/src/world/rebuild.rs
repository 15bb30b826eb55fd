//! Everything from the API objects, before the first cycle: what runs is found running, what was half bound when its
//! leader was lost is completed as that leader meant it, and what waits stands in line since it was made.

use std::collections::BTreeSet;

use metronome_core::model::plan::Action;
use metronome_core::model::units::Instant;

use super::crew::Stage;
use super::fabrics::Fabrics;
use super::gangs::GangKey;
use super::pods::created;
use super::{Settings, World};
use crate::deed::{Intent, Kind, Seat, Verdict, Why};
use crate::watch::{Change, Delta};

/// The first full list of every kind.
#[derive(Debug, Default)]
pub struct Initial {
    /// And what changed while others were still being listed. In any order of kinds.
    pub lists: Vec<Change>,
}

impl World {
    pub fn rebuild(settings: Settings, now: Instant, initial: Initial) -> Self {
        let mut world = Self::empty(settings, Fabrics::among(&initial.lists));
        let (pods, rest): (Vec<Change>, Vec<Change>) =
            initial.lists.into_iter().partition(|change| matches!(change, Change::Pod(_)));
        let (nodes, rest): (Vec<Change>, Vec<Change>) =
            rest.into_iter().partition(|change| matches!(change, Change::Node(_)));
        let (intents, rest): (Vec<Change>, Vec<Change>) =
            rest.into_iter().partition(|change| matches!(change, Change::Intent(_)));
        for change in rest.into_iter().chain(nodes) {
            world.apply(Instant::START, change);
        }
        world.take_pods_in(pods);
        world.resume_intents(now, intents);
        world.line_up_by_age(now);
        world
    }

    /// Nothing is mustered yet, so it does not matter when pods are said to have come.
    fn take_pods_in(&mut self, pods: Vec<Change>) {
        for change in pods {
            self.apply(Instant::START, change);
        }
    }

    /// Whoever is older is described to the engine first, as of when it was made: a restart costs nobody its place.
    fn line_up_by_age(&mut self, now: Instant) {
        let mut by_age: BTreeSet<(Instant, GangKey)> = BTreeSet::new();
        for key in std::mem::take(&mut self.changed) {
            let pods = self.gangs.get(&key).into_iter().flat_map(|gang| &gang.pods);
            let oldest = pods.map(|uid| created(&self.pods[uid].pod)).min().unwrap_or(Instant::START);
            // Another's clock may be ahead of ours.
            by_age.insert((oldest.min(now), key));
        }
        for (since, key) in by_age {
            self.changed.insert(key);
            self.muster_the_changed(since);
        }
    }

    fn resume_intents(&mut self, now: Instant, intents: Vec<Change>) {
        for change in intents {
            let Change::Intent(Delta::Reset(recorded)) = change else { continue };
            for record in recorded {
                // What cannot be read is left over, and forgotten as such.
                self.recorded.insert(record.name.clone(), (None, now));
                if let Ok(intent) = record.intent {
                    self.recorded.insert(record.name.clone(), (Some(intent.generation), now));
                    if intent.leaves.is_empty() {
                        self.resume(now, Intent { name: Some(record.name), ..intent });
                    } else {
                        self.resume_departure(record.name, intent);
                    }
                }
            }
        }
    }

    /// Completes a recorded intent where that is still possible, and gives it up where it is not: then every pod it
    /// names is written to, so that a late bind of the old leader finds another version and fails.
    ///
    /// Where some are on their nodes, those that are gone do not stand in its way: they were bound and have ended since,
    /// and the others belong to them; or they were deleted, and their gang is repaired like any that has lost a member.
    fn resume(&mut self, now: Instant, mut intent: Intent) {
        if intent.seats.iter().any(|seat| self.is_placed(seat)) {
            intent.seats.retain(|seat| self.pods.contains_key(&seat.pod.uid));
        }
        let open: Vec<&Seat> = intent.seats.iter().filter(|seat| !self.is_placed(seat)).collect();
        if open.is_empty() {
            return self.forget(Some(intent));
        }
        let possible = open.iter().all(|seat| self.can_still_be_bound(seat));
        let key = open.iter().find_map(|seat| Some(self.pods.get(&seat.pod.uid)?.gang.clone()));
        match key.filter(|_| possible) {
            Some(key) => self.complete(now, &key, intent),
            None => self.give_up(intent),
        }
    }

    fn is_placed(&self, seat: &Seat) -> bool {
        self.pods.get(&seat.pod.uid).is_some_and(|known| known.node() == Some(&*seat.node))
    }

    fn can_still_be_bound(&self, seat: &Seat) -> bool {
        self.pods.get(&seat.pod.uid).is_some_and(super::pods::Known::waits)
            && self.border.node_id(&seat.node).is_some()
    }

    fn complete(&mut self, now: Instant, key: &GangKey, intent: Intent) {
        for seat in &intent.seats {
            if let Some(known) = self.pods.get_mut(&seat.pod.uid) {
                known.assumed = Some(seat.node.clone());
            }
        }
        self.changed.insert(key.clone());
        self.muster_the_changed(now);
        let Some(job) = self.pods.get(&intent.seats[0].pod.uid).and_then(|known| known.job) else { return };
        let open: Vec<Seat> =
            intent.seats.iter().filter(|seat| !self.is_really_placed(seat)).cloned().collect();
        for seat in &open {
            if let Some(known) = self.pods.get_mut(&seat.pod.uid) {
                known.assumed = None;
            }
        }
        let members = self.seats(job);
        let ours = Intent { epoch: self.settings.epoch, ..intent };
        self.bind(job, None, members, Some(ours));
        debug_assert!(matches!(self.crews[&job].stage, Stage::Binding(_)));
    }

    fn is_really_placed(&self, seat: &Seat) -> bool {
        self.pods
            .get(&seat.pod.uid)
            .is_some_and(|known| known.pod.spec.node_name.as_deref() == Some(&*seat.node))
    }

    fn give_up(&mut self, intent: Intent) {
        for seat in &intent.seats {
            let Some(known) = self.pods.get(&seat.pod.uid).filter(|known| known.waits()) else { continue };
            let (pod, gang) = (known.reference(), known.gang.clone());
            let message =
                "the placement that was under way can no longer be completed; it is placed anew".into();
            let verdict = Verdict { why: Why::Unschedulable, message, nominated: None };
            self.do_it(Kind::Explain { pod, verdict });
            self.changed.insert(gang);
        }
        self.forget(Some(intent));
    }
}

impl World {
    /// What the first plan would do to jobs that run: for a version that has not led before.
    pub fn would_disturb(&mut self, now: Instant) -> Vec<String> {
        self.muster_the_changed(now);
        let steps = self.engine.poll(now);
        let disturbs = |action: &Action| !matches!(action, Action::Start(_) | Action::Direct { .. });
        let disturbed = steps.iter().filter(|step| disturbs(&step.action));
        disturbed.filter_map(|step| Some(self.engine.job(step.job)?.spec.name.to_string())).collect()
    }
}
