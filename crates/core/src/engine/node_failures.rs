//! Nodes on which several jobs fail take nothing new for a while.

use super::Engine;
use crate::model::allocated::is_eligible;
use crate::model::cluster::{Name, NodeState};
use crate::model::id::NodeId;
use crate::model::job::Job;
use crate::model::report::AvoidedNode;

impl Engine {
    pub(super) fn member_failed(&mut self, node: NodeId, of: Name) {
        let nodes = self.state.cluster.nodes();
        let (Some(here), all) = (nodes.get(node), nodes.len()) else { return };
        let is_ready = here.state == NodeState::Ready;
        let tuning = &self.state.policy.tuning.observe;
        let cleared = self.state.node_failures.note(self.state.now, node, of, tuning);
        cleared.into_iter().for_each(|node| self.is_used_again(node));
        let tuning = &self.state.policy.tuning.observe;
        if is_ready && self.state.node_failures.avoids(self.state.now, node, all, tuning) {
            self.node_turned(node, NodeState::Avoided);
        }
    }

    /// Nodes that were avoided for long enough are used again; true if there were any.
    pub(super) fn end_avoidance(&mut self) -> bool {
        let over = self.state.node_failures.end(self.state.now);
        over.iter().for_each(|node| self.is_used_again(*node));
        !over.is_empty()
    }

    /// Unless the world has said meanwhile that it is not.
    fn is_used_again(&mut self, node: NodeId) {
        if self.state.cluster.node(node).state == NodeState::Avoided {
            self.node_turned(node, NodeState::Ready);
        }
    }

    /// The nodes that a waiting job might use, were they not avoided.
    pub(super) fn avoided_for(&self, job: &Job) -> Vec<AvoidedNode> {
        let cluster = &self.state.cluster;
        let avoided = self.state.node_failures.avoided().iter().filter(|_| job.life.is_waiting());
        let avoided = avoided.filter(|(node, _)| cluster.node(**node).state == NodeState::Avoided);
        let may_use = |node| job.spec.roles.iter().any(|role| is_eligible(cluster, node, role.shape.on));
        let of_use = avoided.filter(|(node, _)| may_use(**node));
        of_use
            .map(|(node, avoided)| AvoidedNode {
                node: *node,
                failed: avoided.failed.iter().cloned().collect(),
                lasts: avoided.until.since(self.state.now),
            })
            .collect()
    }
}
