//! What a kubelet knows of its own node.

use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::time::Instant;

use super::{Amounts, Books, BoundPod, Due, Order, PodKey, Rejection, Stage};

/// Whether a kubelet does anything at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::kubelets) enum Diligence {
    Working,
    Idle,
}

#[derive(Debug)]
pub(super) struct NodeBook {
    number: usize,
    allocatable: Amounts,
    pub(super) used: Amounts,
    pub(super) diligence: Diligence,
    reject_next: VecDeque<String>,
}

impl NodeBook {
    pub(super) fn new(number: usize, allocatable: Amounts) -> Self {
        let used = Amounts::default();
        Self { number, allocatable, used, diligence: Diligence::Working, reject_next: VecDeque::new() }
    }

    /// Why a pod may not run here: because a test wants it so, or because there is no room.
    pub(super) fn refusal(&mut self, pod: &BoundPod) -> Option<Rejection> {
        let lacking =
            || self.allocatable.lacking(&self.used, &pod.requests).map(|name| format!("OutOf{name}"));
        let reason = self.reject_next.pop_front().or_else(lacking)?;
        let PodKey { namespace, name } = pod.key.clone();
        Some(Rejection { namespace, pod: name, node: pod.node.clone(), reason })
    }

    pub(super) fn address(&self) -> Ipv4Addr {
        node_address(self.number)
    }
}

/// Addresses are only data. Pods have theirs in the upper half.
pub(in crate::kubelets) fn node_address(number: usize) -> Ipv4Addr {
    let [.., a, b, c] = (number + 1).to_be_bytes();
    [10, a & 127, b, c].into()
}

impl Books {
    /// Refuses the next pod that comes to a node, whether it fits or not.
    pub(in crate::kubelets) fn reject_next(&mut self, node: &str, reason: String) {
        self.node(node).reject_next.push_back(reason);
    }

    /// A kubelet that comes back looks at all its pods again.
    pub(in crate::kubelets) fn turn(&mut self, node: &str, diligence: Diligence, now: Instant) {
        self.node(node).diligence = diligence;
        if diligence == Diligence::Working {
            let of_node = self.pods.values().filter(|book| book.pod.node == node);
            let waiting: Vec<(BoundPod, Stage)> =
                of_node.map(|book| (book.pod.clone(), book.stage)).collect();
            waiting.iter().for_each(|(pod, stage)| self.plan(pod, *stage, now));
        }
    }

    /// Nodes take turns, so that renewals are spread over the period.
    pub(super) fn plan_leases(&mut self, now: Instant) {
        let Some(period) = self.pace.heartbeat else { return };
        let names: Vec<String> = self.nodes.keys().cloned().collect();
        let count = u32::try_from(names.len()).expect("nodes can be counted");
        for (number, name) in (0..).zip(names) {
            self.enter_due(now + period * number / count, Due::Lease(name));
        }
    }

    pub(super) fn renew_lease(&mut self, node: String, now: Instant) {
        let Some(period) = self.pace.heartbeat else { return };
        if self.nodes[&node].diligence == Diligence::Working {
            self.orders.push(Order::RenewLease(node.clone()));
        }
        self.enter_due(now + period, Due::Lease(node));
    }

    fn node(&mut self, name: &str) -> &mut NodeBook {
        self.nodes.get_mut(name).unwrap_or_else(|| panic!("there is no node `{name}`"))
    }
}
