//! How much of its node's CPU a job has beside others, said on its pods for whoever runs on the nodes to carry out.

use std::collections::BTreeSet;

use metronome_core::units::{Duration, Instant};

use super::World;
use super::gangs::annotation;
use super::pods::{Known, Uid};
use crate::deed::Kind;
use crate::objects::Pod;

pub(super) const CPU_WEIGHT: &str = "metronome.dev/cpu-weight";

/// A word that is not seen on a pod after so long was lost, and is said again.
const AGAIN_AFTER: Duration = Duration::MINUTE;

/// What a pod was last asked to say.
#[derive(Clone, Debug)]
pub(super) struct Weighed {
    says: Option<String>,
    at: Instant,
}

impl World {
    /// Says of all whose weight is not the usual one what it is, and takes it back from all others.
    pub(super) fn say_weights(&mut self, now: Instant) {
        let crews = self.engine.state().weights.keys().filter_map(|job| self.crews.get(job));
        let unusual = crews.flat_map(|crew| crew.members().map(|member| member.uid.clone()));
        let all: BTreeSet<Uid> = unusual.chain(self.weighed.keys().cloned()).collect();
        for uid in all {
            match self.pods.get(&uid) {
                Some(known) => self.say_weight(now, uid, self.weight_of(known)),
                None => drop(self.weighed.remove(&uid)),
            }
        }
    }

    /// Nothing for the usual one, and for who has not allowed it.
    fn weight_of(&self, known: &Known) -> Option<String> {
        let id = known.job.filter(|_| known.is_placed())?;
        let weight = self.engine.weight(id);
        let allowed = self.engine.job(id)?.spec.capabilities.throttle;
        (allowed && !weight.is_default()).then(|| weight.get().to_string())
    }

    fn say_weight(&mut self, now: Instant, uid: Uid, says: Option<String>) {
        let known = &self.pods[&uid];
        if annotation(&known.pod, CPU_WEIGHT) == says.as_deref() {
            if says.is_none() {
                self.weighed.remove(&uid);
            }
            return;
        }
        let lately = |before: &&Weighed| before.says == says && now.since(before.at) < AGAIN_AFTER;
        if self.weighed.get(&uid).filter(lately).is_some() {
            return;
        }
        let pod = known.reference();
        self.do_it(Kind::Annotate { pod, key: CPU_WEIGHT, value: says.clone() });
        self.weighed.insert(uid, Weighed { says, at: now });
    }

    /// A pod that was there before us may say what was true then.
    pub(super) fn note_old_weight(&mut self, uid: &Uid, pod: &Pod) {
        let says = annotation(pod, CPU_WEIGHT).map(str::to_owned);
        if says.is_some() {
            self.weighed.insert(uid.clone(), Weighed { says, at: Instant::START });
        }
    }
}
