//! What is said on pods by annotations, for whoever runs on their nodes: written where a pod does not say it, and taken back
//! where it is no longer true.

use std::collections::BTreeSet;

use metronome_core::model::units::{Duration, Instant};

use super::World;
use super::gangs::annotation;
use super::pods::{Known, Uid};
use super::turns::TURN;
use super::weights::CPU_WEIGHT;
use crate::deed::Kind;
use crate::objects::Pod;

/// A word that is not seen on a pod after so long was lost, and is said again.
const AGAIN_AFTER: Duration = Duration::MINUTE;

/// What a pod was last asked to say.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    says: Option<String>,
    at: Instant,
}

impl World {
    /// Has each of these pods, and all that were asked before, say what `says` finds for it.
    pub(super) fn have_said(
        &mut self,
        now: Instant,
        key: &'static str,
        pods: BTreeSet<Uid>,
        says: impl Fn(&Self, &Known) -> Option<String>,
    ) {
        let before = self.asked.keys().filter(|(said, _)| *said == key).map(|(_, uid)| uid.clone());
        for uid in pods.into_iter().chain(before).collect::<BTreeSet<Uid>>() {
            match self.pods.get(&uid) {
                Some(known) => self.say_on(now, uid, key, says(self, known)),
                None => drop(self.asked.remove(&(key, uid))),
            }
        }
    }

    fn say_on(&mut self, now: Instant, uid: Uid, key: &'static str, says: Option<String>) {
        let known = &self.pods[&uid];
        if annotation(&known.pod, key) == says.as_deref() {
            if says.is_none() {
                self.asked.remove(&(key, uid));
            }
            return;
        }
        let lately = |before: &&Asked| before.says == says && now.since(before.at) < AGAIN_AFTER;
        if self.asked.get(&(key, uid.clone())).filter(lately).is_some() {
            return;
        }
        let pod = known.reference();
        self.do_it(Kind::Annotate { pod, key, value: says.clone() });
        self.asked.insert((key, uid), Asked { says, at: now });
    }

    /// A pod that was there before us may say what was true then.
    pub(super) fn note_old_sayings(&mut self, uid: &Uid, pod: &Pod) {
        for key in [CPU_WEIGHT, TURN] {
            let says = annotation(pod, key).map(str::to_owned);
            if says.is_some() {
                self.asked.insert((key, uid.clone()), Asked { says, at: Instant::START });
            }
        }
        self.note_old_turn(pod);
    }
}
