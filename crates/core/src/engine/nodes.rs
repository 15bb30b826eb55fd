//! What becomes of nodes: they come, change and go, and so do counters and sets of them.

use super::Engine;
use crate::model::cluster::{Name, NodeSet, NodeSpec, NodeState};
use crate::model::id::{JobId, NodeId, NodeSetId};
use crate::model::job::{ExitReason, Job, Life};
use crate::model::plan::{Assignment, Part};
use crate::model::report::{Failure, NodeCondition, NodeProblem};

impl Engine {
    pub(super) fn node_added(&mut self, spec: &NodeSpec) {
        if let Ok(node) = self.state.cluster.add_node(spec) {
            self.index.room.add(&self.state.cluster, node);
            self.index.occupied.add_node();
            self.index.checker.add_node();
            self.index.contention.catch_up(&self.state.cluster, node);
            self.state.dirty = true;
        }
    }

    /// A node has something else now. Whoever is planned there and not there yet goes back, unless it is there for
    /// the taking still.
    pub(super) fn node_changed(&mut self, node: NodeId, spec: &NodeSpec) {
        let Some(before) = self.state.cluster.nodes().get(node).cloned() else { return };
        self.index.room.count_out_with_capacity(&self.state.cluster, node);
        let changed = self.state.cluster.change_node(node, spec).is_ok();
        self.index.room.count_in_with_capacity(&self.state.cluster, node);
        if !changed {
            return;
        }
        let now = self.state.cluster.node(node);
        let elsewhere = now.gpu_type != before.gpu_type || now.domains != before.domains;
        let planned: Vec<JobId> = self.planned_but_not_there(node).rev().collect();
        for id in planned {
            if elsewhere || self.is_overcommitted(node) {
                self.back_to_where_it_is(id);
            }
        }
        if elsewhere {
            self.route_anew(node);
        }
        self.index.checker.excuse(&self.state.cluster, [node]);
        self.state.dirty = true;
    }

    /// What is sent from a node and to it takes other links than before.
    fn route_anew(&mut self, node: NodeId) {
        self.index.contention.catch_up(&self.state.cluster, node);
        for (id, planned) in self.state.plan.iter().filter(|(_, planned)| planned.touches(node)) {
            self.index.contention.leave(id);
            self.index.contention.join(id, &self.state.jobs[id].spec, planned);
        }
    }

    fn is_overcommitted(&self, node: NodeId) -> bool {
        let (cluster, taken) = (&self.state.cluster, self.index.room.taken());
        let count = |counter| taken.count(node, counter) > cluster.count(node, counter);
        !taken.resources()[node].fits_in(cluster.node(node).capacity)
            || taken.devices(cluster, node).are_overcommitted()
            || cluster.counters().ids().any(count)
    }

    /// A node that comes back begins anew: what failed there or was slow before does not count.
    pub(super) fn node_back(&mut self, node: NodeId) {
        self.state.node_failures.forget(node);
        self.state.dirty |= self.state.slow_nodes.forget(node);
        self.node_turned(node, NodeState::Ready);
    }

    /// What is not well with the nodes on which a job is, or shall be.
    pub(super) fn unwell_under(&self, id: JobId) -> Vec<NodeProblem> {
        let Some(planned) = self.state.plan.get(id) else { return Vec::new() };
        let slow = |node| self.state.slow_nodes.slow().get(&node).map(|slow| slow.speed);
        let conditions = |node| {
            let draining = match self.state.cluster.node(node).state {
                NodeState::Draining { until } => {
                    let within = until.map(|until| until.since(self.state.now));
                    Some(NodeCondition::Draining { within })
                }
                _ => None,
            };
            let slow = slow(node).map(|speed| NodeCondition::Slow { speed });
            draining.into_iter().chain(slow).map(move |is| NodeProblem { node, is })
        };
        planned.nodes().flat_map(conditions).collect()
    }

    pub(super) fn node_turned(&mut self, node: NodeId, is: NodeState) {
        let Some(was) = self.state.cluster.nodes().get(node).map(|node| node.state) else { return };
        if was == is {
            return;
        }
        self.index.room.count_out(&self.state.cluster, node);
        self.state.cluster.set_state(node, is);
        self.index.room.count_in(&self.state.cluster, node);
        self.state.dirty = true;
        if is == NodeState::Ready {
            return self.index.room.grow();
        }
        let planned: Vec<JobId> = self.planned_but_not_there(node).collect();
        planned.into_iter().for_each(|id| self.back_to_where_it_is(id));
        if is == NodeState::Gone {
            let touched = |job: &Job| job.life.holds().iter().any(|held| held.touches(node));
            let broken: Vec<JobId> =
                self.state.jobs.iter().filter(|(_, job)| touched(job)).map(|(id, _)| id).collect();
            broken.into_iter().for_each(|id| self.loses(id, node));
        }
    }

    /// A node under a job is gone. What is left of the job is stopped, so that it can start again whole.
    pub(super) fn loses(&mut self, id: JobId, lost: NodeId) {
        let now = self.state.now;
        self.drop_from_plan(id);
        let job = &mut self.state.jobs[id];
        match job.life.clone() {
            Life::Running(held) => {
                job.progress.stop(now);
                self.set_life(id, Life::Degraded { held, lost });
            }
            life @ (Life::Starting(_) | Life::Moving { .. } | Life::Resizing { .. }) => {
                job.progress.stop(now);
                let (held, exit) = (life.holds(), ExitReason::Abort(Failure::NodeGone));
                self.set_life(id, Life::Leaving { held, exit });
                self.forget_step(id);
            }
            // It is being stopped already.
            _ => return,
        }
        self.index.unsettled.insert(id);
    }

    pub(super) fn counter_added(&mut self, name: Name, each: u64) {
        let counter = self.state.cluster.add_counter(name, each);
        let asks = |needs: &[_]| needs.iter().any(|(needed, _)| *needed == counter);
        self.index.room.recount(&self.state.cluster, |shape| asks(&shape.counters));
        self.state.dirty = true;
    }

    pub(super) fn node_set(&mut self, set: NodeSetId, nodes: Vec<NodeId>) {
        let nodes: NodeSet = nodes.into_iter().collect();
        if self.state.cluster.put_set(set, nodes).is_none() {
            return;
        }
        self.index.room.recount(&self.state.cluster, |shape| shape.on.set == Some(set));
        self.state.dirty = true;
        let ids: Vec<NodeId> = self.state.cluster.nodes().ids().collect();
        ids.into_iter().for_each(|node| self.leave_what_is_not_allowed(set, node));
    }

    pub(super) fn node_set_changed(&mut self, set: NodeSetId, node: NodeId, allowed: bool) {
        let known = self.state.cluster.sets().get(set).is_some();
        if !known || self.state.cluster.nodes().get(node).is_none() {
            return;
        }
        self.index.room.count_out_with_capacity(&self.state.cluster, node);
        if let Some(nodes) = self.state.cluster.set_mut(set) {
            if allowed { nodes.insert(node) } else { nodes.remove(node) }
        }
        self.index.room.count_in_with_capacity(&self.state.cluster, node);
        self.state.dirty = true;
        self.leave_what_is_not_allowed(set, node);
    }

    /// Whoever is planned onto a node that its set no longer has, and is not there yet, goes back.
    fn leave_what_is_not_allowed(&mut self, set: NodeSetId, node: NodeId) {
        if self.state.cluster.in_set(node, set) {
            return;
        }
        let planned: Vec<JobId> = self.planned_but_not_there(node).collect();
        for id in planned {
            let strays = |part: &Part| part.node == node && self.set_of(id, part) == Some(set);
            let planned: Option<&Assignment> = self.state.plan.get(id).map(|planned| &**planned);
            if planned.is_some_and(|planned| planned.parts().iter().any(strays)) {
                self.back_to_where_it_is(id);
            }
        }
    }

    fn set_of(&self, id: JobId, part: &Part) -> Option<NodeSetId> {
        self.state.jobs[id].spec.roles[usize::from(part.role)].shape.on.set
    }
}
