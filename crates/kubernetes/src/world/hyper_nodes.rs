//! Where nodes lie by Volcano's `HyperNode`s: each tier is a level, named `topology.volcano.sh/tier-N` as if by a label.
//!
//! They count where neither a fabric nor the command line names levels; a fabric may name them, too, and say what their links
//! carry.

use std::collections::{BTreeMap, BTreeSet};

use metronome_core::model::cluster::Name;
use metronome_core::model::units::Instant;

use super::World;
use crate::objects::{HyperMember, HyperNode, Node};
use crate::rules::selector::{Selector, labels_of};
use crate::watch::Delta;

/// The core counts no more levels above the node.
const MOST_TIERS: usize = 8;

#[derive(Debug, Default)]
pub(super) struct HyperNodes {
    objects: BTreeMap<Name, HyperNode>,
    /// Those that name a node, by its name.
    naming: BTreeMap<String, BTreeSet<Name>>,
    /// Those that choose nodes by labels.
    choosing: Vec<(Selector, Name)>,
    /// Those around another of their kind.
    around: BTreeMap<Name, BTreeSet<Name>>,
}

fn label(tier: u32) -> String {
    format!("topology.volcano.sh/tier-{tier}")
}

impl HyperNodes {
    pub(super) fn take_in(&mut self, delta: Delta<HyperNode>) {
        match delta {
            Delta::Applied(one) => drop(self.objects.insert(one.name.clone(), one)),
            Delta::Deleted(one) => drop(self.objects.remove(&one.name)),
            Delta::Reset(all) => self.objects = all.into_iter().map(|one| (one.name.clone(), one)).collect(),
        }
        self.index();
    }

    fn index(&mut self) {
        let objects = std::mem::take(&mut self.objects);
        *self = Self::default();
        for one in objects.values() {
            for member in &one.members {
                match member {
                    HyperMember::Node(node) => {
                        self.naming.entry(node.clone()).or_default().insert(one.name.clone());
                    }
                    HyperMember::Nodes(labels) => self.choosing.push((labels.clone(), one.name.clone())),
                    HyperMember::Within(other) => {
                        self.around.entry(other.clone()).or_default().insert(one.name.clone());
                    }
                }
            }
        }
        self.objects = objects;
    }

    /// The levels that they make, outermost first.
    pub(super) fn labels(&self) -> Vec<String> {
        let tiers: BTreeSet<u32> = self.objects.values().map(|one| one.tier).collect();
        let mut innermost: Vec<u32> = tiers.into_iter().take(MOST_TIERS).collect();
        innermost.reverse();
        innermost.into_iter().map(label).collect()
    }

    /// Around a node, the one of each tier; where two of one tier are, the first by name.
    fn around(&self, node: &Node) -> BTreeMap<String, String> {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        let chosen = self.choosing.iter().filter(|(labels, _)| labels.matches(labels_of(&node.metadata)));
        let mut next: Vec<&Name> =
            self.naming.get(name).into_iter().flatten().chain(chosen.map(|(_, name)| name)).collect();
        let mut found: BTreeSet<&Name> = BTreeSet::new();
        // Whoever lies in itself is looked at once.
        while let Some(one) = next.pop() {
            if found.insert(one) {
                next.extend(self.around.get(one).into_iter().flatten());
            }
        }
        let known = found.into_iter().rev().filter_map(|name| self.objects.get(name));
        known.map(|one| (label(one.tier), one.name.to_string())).collect()
    }
}

impl World {
    pub(super) fn hyper_nodes_changed(&mut self, now: Instant, delta: Delta<HyperNode>) {
        self.fabrics.hyper_nodes.take_in(delta);
        let nodes: Vec<Node> = self.border.nodes().cloned().collect();
        for node in nodes {
            let tiers = self.fabrics.hyper_nodes.around(&node);
            if tiers != node.tiers {
                self.border.node_applied(&mut self.engine, now, Node { tiers, ..node });
            }
        }
    }

    /// A node with where it lies.
    pub(super) fn located(&self, node: Node) -> Node {
        Node { tiers: self.fabrics.hyper_nodes.around(&node), ..node }
    }
}
