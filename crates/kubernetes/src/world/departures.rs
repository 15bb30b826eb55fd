//! Pods that leave so that others come in their place. Who leaves is recorded before the first is told to, as a gang's
//! intent is: whoever leads next tells the rest. Until all are gone, nobody who comes for them is bound.

use std::collections::BTreeSet;
use std::sync::Arc;

use metronome_core::model::id::JobId;
use metronome_core::model::job::RoleKind;
use metronome_core::model::plan::Generation;
use metronome_core::model::units::Instant;

use super::World;
use super::gangs::{self, GangKey};
use super::pods::Uid;
use super::steps::{Errand, intent_name};
use crate::deed::{Intent, IntentName, Kind, PodRef, Ticket};
use crate::objects::Pod;

/// By what pods are known that come in the place of others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Lineage {
    Gang(GangKey),
    /// A pod on its own, by whoever makes it anew and its place among those.
    Heir {
        owner: Arc<str>,
        index: Option<Arc<str>>,
    },
}

impl Lineage {
    /// Nothing for a pod on its own that nobody makes anew.
    pub(super) fn of(key: &GangKey, pod: &Pod) -> Option<Self> {
        if !key.is_single() {
            return Some(Self::Gang(key.clone()));
        }
        let index = gangs::index(pod).map(Arc::from);
        Some(Self::Heir { owner: Arc::from(gangs::owner(pod)?), index })
    }
}

/// Who leaves, and whether they have.
#[derive(Clone, Debug)]
pub(super) struct Departure {
    lineage: Lineage,
    intent: Intent,
    pods: BTreeSet<Uid>,
}

const WHY: &str =
    "it goes on elsewhere, where it is done sooner; it is evicted so that its owner makes it anew";

impl World {
    /// Sends pods of a gang away.
    pub(super) fn depart(
        &mut self,
        key: &GangKey,
        lineage: Lineage,
        job: JobId,
        generation: Generation,
        leaves: Vec<PodRef>,
    ) -> IntentName {
        let name = IntentName(format!("{}-leaves", intent_name(key).0));
        let intent = Intent {
            name: Some(name.clone()),
            gang: key.full_name(),
            generation: generation.0,
            epoch: self.settings.epoch,
            seats: Vec::new(),
            leaves,
        };
        self.begin_departure(name.clone(), lineage, intent, Some(job));
        name
    }

    fn begin_departure(&mut self, name: IntentName, lineage: Lineage, intent: Intent, job: Option<JobId>) {
        let pods = intent.leaves.iter().map(|pod| pod.uid.clone()).collect();
        self.open_intents.insert(name.clone());
        self.departures.insert(name.clone(), Departure { lineage, intent, pods });
        self.tell_them_to_leave(name, job);
    }

    /// Those who are still to stay; who is on its way out already needs no word.
    pub(super) fn tell_them_to_leave(&mut self, name: IntentName, job: Option<JobId>) {
        let Some(Departure { intent, pods, .. }) = self.departures.get(&name) else { return };
        let staying = pods.iter().filter_map(|uid| self.pods.get(uid)).filter(|known| known.is_placed());
        let victims: Vec<PodRef> = staying.map(super::pods::Known::reference).collect();
        if victims.is_empty() {
            return;
        }
        let kind = Kind::Evict { victims, why: WHY.into(), intent: Some(intent.clone()) };
        let ticket = self.do_it(kind);
        self.errands.insert(ticket, Errand::SendAway { departure: name, job });
    }

    pub(super) fn is_sending_away(&self, ticket: Ticket) -> bool {
        matches!(self.errands.get(&ticket), Some(Errand::SendAway { .. }))
    }

    /// One of them may not be evicted, and so nobody was: all stay.
    pub(super) fn not_sent_away(&mut self, now: Instant, ticket: Ticket, why: &str) {
        let Some(Errand::SendAway { departure, job }) = self.errands.remove(&ticket) else { return };
        self.end_departure(&departure);
        if let Some(job) = job {
            self.call_off(now, job, why);
        }
    }

    /// Takes note of those who are all gone.
    pub(super) fn go_on_with_departures(&mut self) {
        let gone = |departure: &Departure| departure.pods.iter().all(|uid| !self.pods.contains_key(uid));
        let over = self.departures.iter().filter(|(_, departure)| gone(departure));
        let over: Vec<IntentName> = over.map(|(name, _)| name.clone()).collect();
        over.iter().for_each(|name| self.end_departure(name));
    }

    fn end_departure(&mut self, name: &IntentName) {
        let Some(Departure { intent, .. }) = self.departures.remove(name) else { return };
        self.forget(Some(intent));
        // Whoever came for them has been kept waiting.
        self.volumes_differ();
    }

    /// An earlier leader has told some of them to leave, or was about to.
    pub(super) fn resume_departure(&mut self, name: IntentName, intent: Intent) {
        let known = intent.leaves.iter().find_map(|pod| self.pods.get(&pod.uid));
        let lineage = known.and_then(|known| Lineage::of(&known.gang, &known.pod));
        let intent = Intent { name: Some(name.clone()), epoch: self.settings.epoch, ..intent };
        match lineage {
            Some(lineage) => self.begin_departure(name, lineage, intent, None),
            None => self.forget(Some(intent)),
        }
    }

    /// Whether the pods of a gang that wait have come in the place of others who are not gone yet, or whose job they will be.
    pub(super) fn comes_for_another(&self, key: &GangKey) -> bool {
        if self.departures.is_empty() && self.moves.is_empty() {
            return false;
        }
        let first = self.gangs.get(key).and_then(|gang| gang.pods.first());
        let Some(known) = first.and_then(|uid| self.pods.get(uid)) else { return false };
        let Some(lineage) = Lineage::of(key, &known.pod) else { return false };
        self.departures.values().any(|departure| departure.lineage == lineage)
            || self.moves.values().any(|it| it.lineage == lineage)
    }

    /// Those who wait in the place of others, in the order of their ranks.
    pub(super) fn heirs(&self, lineage: &Lineage) -> Vec<Uid> {
        let is_heir = |uid: &Uid| {
            let known = &self.pods[uid];
            known.waits()
                && known.job.is_none()
                && Lineage::of(&known.gang, &known.pod).as_ref() == Some(lineage)
        };
        let candidates: Vec<&Uid> = match lineage {
            Lineage::Gang(key) => self.gangs.get(key).into_iter().flat_map(|gang| &gang.pods).collect(),
            Lineage::Heir { .. } => self.pods.keys().collect(),
        };
        let mut heirs: Vec<(RoleKind, u64, Uid)> = candidates
            .into_iter()
            .filter(|uid| is_heir(uid))
            .map(|uid| (gangs::role(&self.pods[uid].pod), gangs::rank(&self.pods[uid].pod), uid.clone()))
            .collect();
        heirs.sort();
        heirs.into_iter().map(|(_, _, uid)| uid).collect()
    }
}
