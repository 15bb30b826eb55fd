//! Partitions of nodes into domains, and groups of members that are counted per domain.
//!
//! A rule of a member (`job::Rule`) evaluates these counts. They include members of jobs in the plan, of jobs that
//! hold nodes although no longer planned, and pods that are not jobs of this engine.

mod tally;

use serde::{Deserialize, Serialize};

use crate::model::id::{GroupId, IdVec, NodeId, PartitionId};

pub(crate) use tally::GroupMembership;
pub use tally::{Tallies, Tally};

/// Domain of a partition: a number without further meaning.
pub type Domain = u32;

/// Domain of each node, if any.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Partition {
    domains: IdVec<NodeId, Option<Domain>>,
}

impl Partition {
    pub fn domain(&self, node: NodeId) -> Option<Domain> {
        self.domains.get(node).copied().flatten()
    }

    /// Nodes that have a domain, with it.
    pub fn iter(&self) -> impl Iterator<Item = (NodeId, Domain)> {
        self.domains.iter().filter_map(|(node, domain)| Some((node, (*domain)?)))
    }

    fn set(&mut self, node: NodeId, domain: Option<Domain>) {
        while self.domains.get(node).is_none() {
            self.domains.push(None);
        }
        self.domains[node] = domain;
    }
}

impl FromIterator<(NodeId, Domain)> for Partition {
    fn from_iter<A: IntoIterator<Item = (NodeId, Domain)>>(domains: A) -> Self {
        let mut partition = Self::default();
        domains.into_iter().for_each(|(node, domain)| partition.set(node, Some(domain)));
        partition
    }
}

/// Members that are counted per domain of one partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    pub partition: PartitionId,
    /// Members per node that are not jobs of this engine, in order of node.
    pub others: Vec<(NodeId, u32)>,
}

impl Group {
    pub(crate) fn new(partition: PartitionId, mut others: Vec<(NodeId, u32)>) -> Self {
        others.sort_unstable();
        others.dedup_by_key(|(node, _)| *node);
        others.retain(|(_, count)| *count > 0);
        Self { partition, others }
    }

    pub fn others_on(&self, node: NodeId) -> u32 {
        self.find(node).map_or(0, |at| self.others[at].1)
    }

    fn find(&self, node: NodeId) -> Result<usize, usize> {
        self.others.binary_search_by_key(&node, |(node, _)| *node)
    }

    pub(crate) fn set_others(&mut self, node: NodeId, count: u32) {
        match (self.find(node), count) {
            (Ok(at), 0) => drop(self.others.remove(at)),
            (Ok(at), _) => self.others[at].1 = count,
            (Err(_), 0) => {}
            (Err(at), _) => self.others.insert(at, (node, count)),
        }
    }
}

/// All partitions and groups, as the world describes them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Groups {
    pub partitions: IdVec<PartitionId, Partition>,
    pub groups: IdVec<GroupId, Group>,
}

impl Groups {
    pub fn is_empty(&self) -> bool {
        self.partitions.is_empty() && self.groups.is_empty()
    }

    /// Domain of a node in the partition of a group.
    pub fn domain(&self, group: GroupId, node: NodeId) -> Option<Domain> {
        self.partitions.get(self.groups.get(group)?.partition)?.domain(node)
    }

    pub(crate) fn move_node(&mut self, partition: PartitionId, node: NodeId, domain: Option<Domain>) {
        if let Some(partition) = self.partitions.get_mut(partition) {
            partition.set(node, domain);
        }
    }

    /// Groups of a partition.
    pub(crate) fn over(&self, partition: PartitionId) -> impl Iterator<Item = GroupId> {
        self.groups.iter().filter(move |(_, group)| group.partition == partition).map(|(id, _)| id)
    }
}
