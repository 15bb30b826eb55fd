//! Where nodes lie, and what links carry: as the `Fabric` called `default` says; without it, as labels named on the command
//! line do, or Volcano's `HyperNode`s, and then nothing is known of links.
//!
//! An engine cannot be told of other levels while it lives. Where they change, everything is rebuilt from the API server, as
//! by a new leader, which disturbs nobody. A fabric that makes no sense changes nothing.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use metronome_core::model::cluster::Name;
use metronome_core::model::units::{Duration, Instant};

use super::hyper_nodes::HyperNodes;
use super::words::time;
use super::{Settings, World};
use crate::deed::{Kind, ObjectRef};
use crate::objects::{Condition, Fabric, FabricStatus, Terrain};
use crate::watch::{Change, Delta};

/// The fabric that counts.
const IN_FORCE: &str = "default";

/// A status that is not seen on its object after so long was lost, and is written again.
const AGAIN_AFTER: Duration = Duration::MINUTE;

#[derive(Debug, Default)]
pub(super) struct Fabrics {
    objects: BTreeMap<Name, Fabric>,
    /// What was last written to each, by its uid, and when.
    written: BTreeMap<Name, (FabricStatus, Instant)>,
    pub(super) hyper_nodes: HyperNodes,
}

impl Fabrics {
    /// Those among the first lists.
    pub(super) fn among(lists: &[Change]) -> Self {
        let mut fabrics = Self::default();
        for change in lists {
            match change {
                Change::Fabric(delta) => fabrics.take_in(delta.clone()),
                Change::HyperNode(delta) => fabrics.hyper_nodes.take_in(delta.clone()),
                _ => {}
            }
        }
        fabrics
    }

    fn take_in(&mut self, delta: Delta<Fabric>) {
        match delta {
            Delta::Applied(fabric) => drop(self.objects.insert(fabric.reference.name.clone(), fabric)),
            Delta::Deleted(fabric) => drop(self.objects.remove(&fabric.reference.name)),
            Delta::Reset(all) => {
                self.objects =
                    all.into_iter().map(|fabric| (fabric.reference.name.clone(), fabric)).collect();
            }
        }
    }

    /// What counts as of now; `before`, where that makes no sense.
    pub(super) fn terrain(&self, settings: &Settings, before: Option<&Terrain>) -> Terrain {
        let usual = || {
            let named = &settings.levels;
            let labels = if named.is_empty() { self.hyper_nodes.labels() } else { named.clone() };
            Terrain { labels, rates: Vec::new() }
        };
        match self.objects.get(IN_FORCE).map(|fabric| &fabric.terrain) {
            Some(Ok(terrain)) => terrain.clone(),
            Some(Err(_)) => before.cloned().unwrap_or_else(usual),
            None => usual(),
        }
    }
}

impl World {
    pub(super) fn fabrics_changed(&mut self, delta: Delta<Fabric>) {
        self.fabrics.take_in(delta);
    }

    /// Whether levels or links are other than those that this world was built with: it is to be built anew.
    pub fn is_outdated(&self) -> bool {
        self.fabrics.terrain(&self.settings, Some(&self.terrain)) != self.terrain
    }

    /// Says of every fabric whether it counts, and why not.
    pub(super) fn judge_fabrics(&mut self, now: Instant) {
        let judged: Vec<(ObjectRef, FabricStatus, bool)> =
            self.fabrics.objects.values().map(|fabric| judged(fabric, now)).collect();
        let there: BTreeSet<Name> = judged.iter().map(|(object, ..)| object.uid.clone()).collect();
        self.fabrics.written.retain(|uid, _| there.contains(uid));
        for (object, status, is_said) in judged {
            let written = self.fabrics.written.get(&object.uid);
            let lately = |(before, at): &(FabricStatus, Instant)| {
                means_the_same(before, &status) && now.since(*at) < AGAIN_AFTER
            };
            if is_said || written.is_some_and(lately) {
                continue;
            }
            self.fabrics.written.insert(object.uid.clone(), (status.clone(), now));
            self.do_it(Kind::Status { object, status: patch(&status) });
        }
    }
}

/// What is to be said of a fabric, and whether its object says so already.
fn judged(fabric: &Fabric, now: Instant) -> (ObjectRef, FabricStatus, bool) {
    let is_default = &*fabric.reference.name == IN_FORCE;
    let (status, reason, message) = match &fabric.terrain {
        Err(why) => ("False", "Refused", why.clone()),
        Ok(_) if !is_default => (
            "False",
            "NotDefault",
            format!("only the fabric called {IN_FORCE} counts; this one changes nothing"),
        ),
        Ok(_) => ("True", "InForce", "nodes lie, and links carry, as it says".to_owned()),
    };
    let before = fabric.status.conditions.iter().find(|before| before.status == status);
    let condition = Condition {
        kind: "Accepted".into(),
        status: status.into(),
        reason: reason.into(),
        message,
        last_transition_time: before.map_or_else(|| time(now), |before| before.last_transition_time.clone()),
        observed_generation: fabric.generation,
    };
    let status = FabricStatus {
        levels: fabric.terrain.as_ref().ok().filter(|_| is_default).map(shown),
        observed_generation: fabric.generation,
        conditions: vec![condition],
    };
    let is_said = status == fabric.status;
    (fabric.reference.clone(), status, is_said)
}

/// Levels as people call them, with what their links carry.
fn shown(terrain: &Terrain) -> String {
    let last = |label: &String| label.rsplit('/').next().unwrap_or_default().to_owned();
    let names = terrain.labels.iter().map(last).chain(["node".to_owned()]);
    let each = names.zip(&terrain.rates).map(|(name, rate)| format!("{name} {rate}"));
    each.collect::<Vec<_>>().join(", ")
}

fn means_the_same(one: &FabricStatus, other: &FabricStatus) -> bool {
    let says = |status: &FabricStatus| {
        let each = status.conditions.iter().map(|one| (one.status.clone(), one.message.clone()));
        (status.levels.clone(), status.observed_generation, each.collect::<Vec<_>>())
    };
    says(one) == says(other)
}

/// With what is no longer said taken back.
fn patch(status: &FabricStatus) -> Value {
    let mut patch = json!(status);
    patch.as_object_mut().expect("a status is an object").entry("levels").or_insert(Value::Null);
    patch
}
