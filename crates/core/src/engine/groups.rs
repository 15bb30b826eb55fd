//! Partitions, groups and budgets, as the world describes them.

use std::sync::Arc;

use super::Engine;
use super::index::belongs;
use crate::model::groups::{Domain, Group, Partition, Tallies};
use crate::model::id::{BudgetId, GroupId, JobId, NodeId, PartitionId};

impl Engine {
    pub(super) fn partition(&mut self, id: PartitionId, domains: Vec<(NodeId, Domain)>) {
        let partition: Partition = domains.into_iter().collect();
        if self.state.groups.partitions.put(id, partition).is_some() {
            self.index.tallies.partition_changed(&self.state.groups, id);
            self.state.dirty = true;
        }
    }

    pub(super) fn partition_changed(&mut self, id: PartitionId, node: NodeId, domain: Option<Domain>) {
        let Some(partition) = self.state.groups.partitions.get(id) else { return };
        let before = partition.domain(node);
        if before != domain {
            self.state.groups.move_node(id, node, domain);
            self.index.tallies.node_moved(&self.state.groups, id, node, before, domain);
            self.state.dirty = true;
        }
    }

    pub(super) fn group(
        &mut self,
        id: GroupId,
        partition: PartitionId,
        others: Vec<(NodeId, u32)>,
        members: &[(JobId, u8)],
    ) {
        let known = self.state.groups.partitions.get(partition).is_some();
        let group = Group::new(partition, others);
        if !known || self.state.groups.groups.put(id, group).is_none() {
            return;
        }
        self.index.tallies.group_changed(&self.state.groups, id);
        for (job, role) in members {
            self.joins(*job, *role, id);
        }
        self.state.dirty = true;
    }

    /// A role of a live job belongs to a group from now on.
    fn joins(&mut self, id: JobId, role: u8, group: GroupId) {
        let Some(job) = self.state.jobs.get(id) else { return };
        let Some(shape) = job.spec.roles.get(usize::from(role)).map(|role| &role.shape) else { return };
        let Err(at) = shape.groups.binary_search(&group) else { return };
        let mut groups = shape.groups.to_vec();
        groups.insert(at, group);
        self.index.unwelcome(&mut self.state, id);
        let spec = Arc::make_mut(&mut self.state.jobs[id].spec);
        spec.roles[usize::from(role)].shape.groups = Arc::from(groups);
        self.index.welcome(&mut self.state, id);
        self.index.line_up(&mut self.state, id);
        self.index.recount(&mut self.state, id);
    }

    pub(super) fn others_changed(&mut self, id: GroupId, node: NodeId, count: u32) {
        let Some(group) = self.state.groups.groups.get_mut(id) else { return };
        let before = group.others_on(node);
        if before != count {
            group.set_others(node, count);
            let by = i64::from(count) - i64::from(before);
            self.index.tallies.others_changed(&self.state.groups, id, node, by);
            self.state.dirty = true;
        }
    }

    pub(super) fn budget(&mut self, id: BudgetId, allowed: u32) {
        if self.state.budgets.put(id, allowed).is_some() {
            self.victims_may_be_had();
        }
    }

    /// Whether the groups, counted from nothing, have the counts that were kept.
    pub(super) fn groups_are_right(&self) -> bool {
        let mut anew = Tallies::of(&self.state.groups);
        for (id, _) in self.state.jobs.iter() {
            anew.recount(&self.state.groups, id, belongs(&self.state, id));
        }
        anew.agrees_with(&self.index.tallies)
    }
}
