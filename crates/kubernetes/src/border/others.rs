//! Pods on nodes that are no jobs of the engine: what they hold, and the groups they count in.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Border;
use super::groups::Change;
use super::kinds::{KindId, Met};
use super::pool::Hold;
use super::wire::Wire;
use crate::objects::Pod;
use crate::rules::load::Load;
use crate::rules::request::held;
use crate::rules::storage::{ClaimKey, ClaimUse};
use crate::rules::traits::Traits;

#[derive(Debug, Default)]
pub(super) struct Others {
    pods: BTreeMap<String, Other>,
    held: BTreeMap<Arc<str>, Load>,
}

#[derive(Debug)]
struct Other {
    node: Arc<str>,
    load: Load,
    kind: Hold<KindId>,
    claims: Vec<ClaimKey>,
}

impl Others {
    pub(super) fn held(&self, node: &str) -> Option<&Load> {
        self.held.get(node)
    }
}

/// What cannot be read of a pod that runs is not counted: it is not ours to refuse.
fn seen(pod: &Pod) -> (Traits, Load, Vec<ClaimKey>) {
    let bare = Pod { metadata: pod.metadata.clone(), ..Pod::default() };
    let traits =
        Traits::of(pod).or_else(|_| Traits::of(&bare)).expect("a pod without a spec asks for nothing");
    let load = held(pod).or_else(|_| held(&bare)).expect("a pod without a spec asks for nothing");
    let claims = ClaimUse::all_of(pod).unwrap_or_default().into_iter().map(|used| used.claim).collect();
    (traits, load, claims)
}

impl Border {
    pub(super) fn other_came(&mut self, wire: &mut Wire<'_>, pod: &Pod) {
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        let node = pod.spec.node_name.as_deref().filter(|node| !node.is_empty());
        let over = matches!(pod.status.phase.as_deref(), Some("Succeeded" | "Failed"));
        let Some(node) = node.filter(|_| !over) else { return self.other_left(wire, &uid) };
        let (traits, load, claims) = seen(pod);
        let kind = self.meet(traits);
        if self.others.pods.get(&uid).is_some_and(|other| {
            *other.node == *node
                && other.load == load
                && other.kind.id() == kind.id()
                && other.claims == claims
        }) {
            return;
        }
        self.other_left(wire, &uid);
        let known = self.others.held.get_key_value(node);
        let node = known.map_or_else(|| Arc::from(node), |(name, _)| name.clone());
        self.count_in(wire, uid, Other { node, load, kind, claims });
    }

    fn count_in(&mut self, wire: &mut Wire<'_>, uid: String, other: Other) {
        let node = other.node.clone();
        self.count_other(wire, other.kind.id(), &node, Change::More);
        self.others.held.entry(node.clone()).or_default().add(&other.load);
        for claim in self.storage.use_began(&node, &other.claims) {
            self.used_otherwise(&claim);
        }
        self.others.pods.insert(uid, other);
        self.node_is_used_otherwise(wire, &node);
    }

    pub(super) fn other_left(&mut self, wire: &mut Wire<'_>, uid: &str) {
        let Some(other) = self.others.pods.remove(uid) else { return };
        self.count_other(wire, other.kind.id(), &other.node, Change::Less);
        let held = self.others.held.get_mut(&other.node).expect("what a pod held was counted");
        held.subtract(&other.load);
        if *held == Load::default() {
            self.others.held.remove(&other.node);
        }
        for claim in self.storage.use_ended(&other.node, &other.claims) {
            self.used_otherwise(&claim);
        }
        self.node_is_used_otherwise(wire, &other.node);
    }

    fn node_is_used_otherwise(&mut self, wire: &mut Wire<'_>, node: &Arc<str>) {
        self.respecify(wire, node);
        if !self.storage.attach_room(node).is_empty() {
            self.readmit_by_storage(wire, node);
        }
    }

    /// The kind of pods with these traits. A new one is put into its groups, and those it repels are told.
    pub(super) fn meet(&mut self, traits: Traits) -> Hold<KindId> {
        self.sweep_kinds();
        match self.kinds.meet(traits) {
            Met::Known(hold) => hold,
            Met::New(hold, terms) => {
                self.sort_in(hold.id());
                terms.iter().for_each(|term| self.repelled(term));
                hold
            }
        }
    }
}
