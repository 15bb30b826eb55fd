//! Sets of nodes that pods may go to, under the ids the engine gave.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use metronome_core::engine::Event;
use metronome_core::model::id::{NodeId, NodeSetId};

use super::Border;
use super::pool::{Hold, Pool};
use super::wire::Wire;
use crate::objects::Node;
use crate::rules::place::Where;
use crate::rules::storage::{ClaimKey, Storage};

#[derive(Debug, Default)]
pub(super) struct Sets {
    pool: Pool<NodeSetId, Where>,
    /// Those that depend on storage.
    by_claim: BTreeMap<ClaimKey, BTreeSet<NodeSetId>>,
}

impl Sets {
    fn file(&mut self, id: NodeSetId, place: &Where) {
        for used in &place.claims {
            self.by_claim.entry(used.claim.clone()).or_default().insert(id);
        }
    }

    fn sweep(&mut self) {
        for (id, place) in self.pool.sweep() {
            for used in &place.claims {
                let Some(sets) = self.by_claim.get_mut(&used.claim) else { continue };
                sets.remove(&id);
                if sets.is_empty() {
                    self.by_claim.remove(&used.claim);
                }
            }
        }
    }

    fn with_claims(&self) -> BTreeSet<NodeSetId> {
        self.by_claim.values().flatten().copied().collect()
    }
}

/// Whether a node is allowed. A claim that is no good allows none.
fn judge(place: &Where, storage: &Storage, node: &Node) -> bool {
    let reachable =
        || place.claims.is_empty() || storage.wanted(&place.claims).is_ok_and(|wanted| wanted.allow(node));
    place.allows(node) && reachable()
}

impl Border {
    /// The engine's id of the set of nodes that are allowed, new if need be.
    pub(super) fn set(&mut self, wire: &mut Wire<'_>, place: Where) -> Hold<NodeSetId> {
        if let Some(hold) = self.sets.pool.find(&place) {
            return hold;
        }
        self.sets.sweep();
        let nodes = self.allowed(&place);
        let id = match self.sets.pool.vacant() {
            Some(set) => {
                wire.tell(Event::NodeSet { set, nodes });
                set
            }
            None => wire.engine.add_node_set(wire.now, nodes),
        };
        self.sets.file(id, &place);
        self.sets.pool.put(id, Arc::new(place))
    }

    fn allowed(&self, place: &Where) -> Vec<NodeId> {
        let Ok(wanted) = self.storage.wanted(&place.claims) else { return Vec::new() };
        let allowed = |node: &Node| place.allows(node) && (place.claims.is_empty() || wanted.allow(node));
        self.nodes.present().filter(|(_, node)| allowed(node)).map(|(id, _)| id).collect()
    }

    /// A node has come, changed or gone: finds whether it is allowed in every set.
    pub(super) fn admit(&mut self, wire: &mut Wire<'_>, id: NodeId) {
        let sets: Vec<NodeSetId> = self.sets.pool.iter().map(|(set, _)| set).collect();
        sets.into_iter().for_each(|set| self.readmit(wire, set, id));
    }

    /// What is attached to a node, or can be, has changed.
    pub(super) fn readmit_by_storage(&mut self, wire: &mut Wire<'_>, name: &str) {
        let Some(id) = self.nodes.id(name) else { return };
        self.sets.with_claims().into_iter().for_each(|set| self.readmit(wire, set, id));
    }

    fn readmit(&mut self, wire: &mut Wire<'_>, set: NodeSetId, node: NodeId) {
        let Some(place) = self.sets.pool.key(set) else { return };
        let allowed = self.nodes.get(node).is_some_and(|node| judge(place, &self.storage, node));
        if wire.engine.state().cluster.in_set(node, set) != allowed {
            wire.tell(Event::NodeSetChanged { set, node, allowed });
        }
    }

    /// Storage has changed for pods with these claims.
    pub(super) fn reconsider<'a>(&mut self, wire: &mut Wire<'_>, claims: impl Iterator<Item = &'a ClaimKey>) {
        let affected = claims.filter_map(|claim| self.sets.by_claim.get(claim)).flatten().copied();
        for set in affected.collect::<BTreeSet<_>>() {
            let Some(place) = self.sets.pool.key(set).cloned() else { continue };
            let nodes = self.allowed(&place);
            if nodes != self.told(wire, set) {
                wire.tell(Event::NodeSet { set, nodes });
            }
        }
    }

    fn told(&self, wire: &Wire<'_>, set: NodeSetId) -> Vec<NodeId> {
        let cluster = &wire.engine.state().cluster;
        self.nodes.present().map(|(id, _)| id).filter(|id| cluster.in_set(*id, set)).collect()
    }

    /// Claims that some set depends on.
    pub(super) fn claims_in_question(&self) -> Vec<ClaimKey> {
        self.sets.by_claim.keys().cloned().collect()
    }
}
