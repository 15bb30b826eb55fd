//! What runs where in fact: the world's own books, to catch the engine's mistakes.

use std::collections::BTreeMap;

use metronome_core::model::cluster::Cluster;
use metronome_core::model::id::{DeviceId, IdVec, NodeId};
use metronome_core::model::plan::Assignment;
use metronome_core::model::units::{Gpus, Resources};

#[derive(Debug)]
pub(super) struct Books {
    used: IdVec<NodeId, Resources>,
    /// Of devices that are shared, where it is not nothing.
    shared: BTreeMap<(NodeId, DeviceId), Gpus>,
    /// GPUs taken on all nodes, and the most there ever were.
    allocated: Gpus,
    peak: Gpus,
}

impl Books {
    pub(super) fn of(nodes: usize) -> Self {
        let used = IdVec::filled(Resources::NONE, nodes);
        Self { used, shared: BTreeMap::new(), allocated: Gpus::ZERO, peak: Gpus::ZERO }
    }

    pub(super) fn peak(&self) -> Gpus {
        self.peak
    }

    /// Enters an assignment; returns the nodes that then hold more than they have.
    pub(super) fn enter(&mut self, cluster: &Cluster, on: &Assignment) -> Vec<NodeId> {
        for (node, amount) in on.takes() {
            self.used[*node] = self.used[*node] + *amount;
            self.allocated += amount.gpus;
        }
        for (node, device, share) in on.shares() {
            *self.shared.entry((*node, *device)).or_default() += *share;
        }
        self.peak = self.peak.max(self.allocated);
        on.nodes().filter(|node| !self.is_right(cluster, *node)).collect()
    }

    pub(super) fn strike(&mut self, on: &Assignment) {
        for (node, amount) in on.takes() {
            self.used[*node] = self.used[*node] - *amount;
            self.allocated -= amount.gpus;
        }
        for (node, device, share) in on.shares() {
            let left = self.shared.remove(&(*node, *device)).unwrap_or_default() - *share;
            if !left.is_zero() {
                self.shared.insert((*node, *device), left);
            }
        }
    }

    /// Whether a node has what it holds, and as many devices as its members have for themselves or share.
    fn is_right(&self, cluster: &Cluster, node: NodeId) -> bool {
        let (used, capacity) = (self.used[node], cluster.node(node).capacity);
        let shared =
            || self.shared.range((node, DeviceId(0))..=(node, DeviceId(u32::MAX))).map(|(_, of)| *of);
        let whole = used.gpus - shared().sum();
        let in_use = whole + Gpus::whole(shared().count() as u64);
        used.fits_in(capacity) && shared().all(|taken| taken <= Gpus::ONE) && in_use <= capacity.gpus
    }
}
