//! Cluster: nodes with their resources, the levels of the topology above them, and the fabric of links.

mod fabric;
mod node_set;
mod tree;

use std::sync::Arc;

use indexmap::{IndexMap, IndexSet};
use serde::{Deserialize, Serialize};

use crate::model::id::{CounterId, DomainId, GpuTypeId, Id, IdVec, NodeId, NodeSetId};
use crate::model::units::{Instant, Resources};

pub use fabric::{Fabric, FabricError, Keeping, Link, Path, Vertex};
pub use node_set::NodeSet;
use tree::Tree;

/// Name given by a user; the input layer interns it, the output layer prints it.
pub type Name = Arc<str>;

/// Level of the topology, counted from the outermost: 0 is the widest, `Cluster::depth` is the node itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Level(pub u8);

/// Whether a node accepts members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum NodeState {
    Ready,
    /// Keeps its members and accepts no new ones.
    Cordoned,
    /// Like [`NodeState::Cordoned`] for a limited time, because several jobs failed on the node.
    Avoided,
    /// Like [`NodeState::Cordoned`], and leaves at `until` or once it is empty: jobs that can be migrated leave
    /// before.
    Draining {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Instant>,
    },
    /// Unreachable: its members are lost.
    Gone,
}

/// A node as the core knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    pub name: Name,
    pub capacity: Resources,
    /// Amounts of counters that differ from the cluster-wide default, in order of id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<(CounterId, u64)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_type: Option<GpuTypeId>,
    /// Domain of the node at each level, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub domains: Vec<DomainId>,
    pub state: NodeState,
}

/// Description of a node from the input layer, by names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeSpec {
    pub name: String,
    pub capacity: Resources,
    /// Amounts of counters that differ from the cluster-wide default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<(CounterId, u64)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_type: Option<String>,
    /// Domain name for each level above the node, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub domains: Vec<String>,
}

/// An integer resource of nodes other than CPU, memory and GPUs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counter {
    pub name: Name,
    /// Amount on each node that states no amount of its own.
    pub each: u64,
}

/// Why a cluster or node is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClusterError {
    #[error("two nodes are called `{0}`")]
    DuplicateNode(String),
    #[error("node `{was}` cannot become `{is}`")]
    OtherNode { was: String, is: String },
    #[error("node `{node}` names {given} domains where the topology has {expected} levels above the node")]
    DomainCount { node: String, given: usize, expected: usize },
    #[error("there are more than {0} levels")]
    TooManyLevels(usize),
    #[error("two levels are called `{0}`")]
    DuplicateLevel(String),
}

/// All nodes, domains, counters, node sets and links.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cluster {
    /// Names of the levels, outermost first, without the node's own.
    levels: Vec<Name>,
    domains: IndexSet<Domain>,
    /// Nodes of each domain.
    members: IdVec<DomainId, Vec<NodeId>>,
    gpu_types: IndexSet<Name>,
    nodes: IdVec<NodeId, Node>,
    #[serde(with = "by_name")]
    names: IndexMap<Name, NodeId>,
    #[serde(default, skip_serializing_if = "IdVec::is_empty")]
    counters: IdVec<CounterId, Counter>,
    #[serde(default, skip_serializing_if = "IdVec::is_empty")]
    sets: IdVec<NodeSetId, NodeSet>,
    pub fabric: Fabric,
    /// Tree of links if they are created as nodes join.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tree: Option<Tree>,
}

/// A domain of the topology.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Domain {
    level: Level,
    name: Name,
    within: Option<DomainId>,
}

impl Cluster {
    /// Creates a cluster without nodes; `levels` are the names above the node, outermost first.
    pub fn new(levels: &[&str]) -> Result<Self, ClusterError> {
        const MAX_LEVELS: usize = 8;
        if levels.len() > MAX_LEVELS {
            return Err(ClusterError::TooManyLevels(MAX_LEVELS));
        }
        if let Some(at) = (1..levels.len()).find(|at| levels[..*at].contains(&levels[*at])) {
            return Err(ClusterError::DuplicateLevel(levels[at].to_owned()));
        }
        Ok(Self {
            levels: levels.iter().map(|name| Name::from(*name)).collect(),
            domains: IndexSet::new(),
            members: IdVec::new(),
            gpu_types: IndexSet::new(),
            nodes: IdVec::new(),
            names: IndexMap::new(),
            counters: IdVec::new(),
            sets: IdVec::new(),
            fabric: Fabric::default(),
            tree: None,
        })
    }

    /// Adds a node in state ready.
    pub fn add_node(&mut self, spec: &NodeSpec) -> Result<NodeId, ClusterError> {
        if self.names.contains_key(spec.name.as_str()) {
            return Err(ClusterError::DuplicateNode(spec.name.clone()));
        }
        let (domains, gpu_type) = self.resolve_domains(spec)?;
        let name = Name::from(spec.name.as_str());
        let id = self.nodes.push(Node {
            name: name.clone(),
            capacity: spec.capacity,
            counters: sorted_by_id(&spec.counters),
            gpu_type,
            domains,
            state: NodeState::Ready,
        });
        for domain in &self.nodes[id].domains {
            self.members[*domain].push(id);
        }
        self.names.insert(name, id);
        self.connect_node(id);
        Ok(id)
    }

    /// Replaces capacity, counters, GPU type and domains of a node. Name and state stay.
    pub fn change_node(&mut self, id: NodeId, spec: &NodeSpec) -> Result<(), ClusterError> {
        if *self.nodes[id].name != *spec.name {
            let (was, is) = (self.nodes[id].name.to_string(), spec.name.clone());
            return Err(ClusterError::OtherNode { was, is });
        }
        let (domains, gpu_type) = self.resolve_domains(spec)?;
        let node = &mut self.nodes[id];
        node.capacity = spec.capacity;
        node.counters = sorted_by_id(&spec.counters);
        node.gpu_type = gpu_type;
        let left = std::mem::replace(&mut node.domains, domains);
        for domain in left {
            self.members[domain].retain(|member| *member != id);
        }
        for domain in &self.nodes[id].domains {
            let members = &mut self.members[*domain];
            members.insert(members.partition_point(|member| *member < id), id);
        }
        self.connect_node(id);
        Ok(())
    }

    /// Domains and GPU type of a node, interned.
    fn resolve_domains(
        &mut self,
        spec: &NodeSpec,
    ) -> Result<(Vec<DomainId>, Option<GpuTypeId>), ClusterError> {
        if spec.domains.len() != self.levels.len() {
            return Err(ClusterError::DomainCount {
                node: spec.name.clone(),
                given: spec.domains.len(),
                expected: self.levels.len(),
            });
        }
        let mut domains: Vec<DomainId> = Vec::with_capacity(spec.domains.len());
        for (level, name) in spec.domains.iter().enumerate() {
            domains.push(self.domain(Level(level as u8), name, domains.last().copied()));
        }
        Ok((domains, spec.gpu_type.as_deref().map(|name| self.intern_gpu_type(name))))
    }

    /// Domain with this name at a level within an outer domain; creates it if necessary.
    fn domain(&mut self, level: Level, name: &str, within: Option<DomainId>) -> DomainId {
        let (index, _) = self.domains.insert_full(Domain { level, name: Name::from(name), within });
        if index == self.members.len() {
            self.members.push(Vec::new());
        }
        DomainId::from_index(index)
    }

    pub fn intern_gpu_type(&mut self, name: &str) -> GpuTypeId {
        let index = match self.gpu_types.get_index_of(name) {
            Some(index) => index,
            None => self.gpu_types.insert_full(Name::from(name)).0,
        };
        GpuTypeId::from_index(index)
    }

    pub fn gpu_type_name(&self, id: GpuTypeId) -> &str {
        &self.gpu_types[id.index()]
    }

    pub fn find_gpu_type(&self, name: &str) -> Option<GpuTypeId> {
        self.gpu_types.get_index_of(name).map(GpuTypeId::from_index)
    }

    /// Names of all GPU types of present and former nodes.
    pub fn gpu_types(&self) -> impl Iterator<Item = &str> {
        self.gpu_types.iter().map(|name| &**name)
    }

    pub fn set_state(&mut self, node: NodeId, state: NodeState) {
        self.nodes[node].state = state;
    }

    pub fn nodes(&self) -> &IdVec<NodeId, Node> {
        &self.nodes
    }

    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id]
    }

    pub fn find_node(&self, name: &str) -> Option<NodeId> {
        self.names.get(name).copied()
    }

    /// Level of the node itself.
    pub fn depth(&self) -> Level {
        Level(self.levels.len() as u8)
    }

    /// Level with this name; `node` is the innermost.
    pub fn find_level(&self, name: &str) -> Option<Level> {
        if name == "node" {
            return Some(self.depth());
        }
        self.levels.iter().position(|level| &**level == name).map(|index| Level(index as u8))
    }

    pub fn level_name(&self, level: Level) -> &str {
        self.levels.get(usize::from(level.0)).map_or("node", |name| name)
    }

    pub fn domain_count(&self) -> usize {
        self.domains.len()
    }

    /// Nodes of a domain in order of id.
    pub fn nodes_in(&self, domain: DomainId) -> &[NodeId] {
        &self.members[domain]
    }

    /// Domains of a level in order of id.
    pub fn domains_at(&self, level: Level) -> impl Iterator<Item = DomainId> {
        let ids = self.members.ids().zip(&self.domains);
        ids.filter(move |(_, domain)| domain.level == level).map(|(id, _)| id)
    }

    pub fn domain_name(&self, id: DomainId) -> &str {
        &self.domains[id.index()].name
    }

    pub fn add_counter(&mut self, name: Name, each: u64) -> CounterId {
        self.counters.push(Counter { name, each })
    }

    pub fn counters(&self) -> &IdVec<CounterId, Counter> {
        &self.counters
    }

    /// Amount of a counter on a node; zero for an unknown counter.
    pub fn count(&self, node: NodeId, counter: CounterId) -> u64 {
        let own = &self.nodes[node].counters;
        match own.binary_search_by_key(&counter, |(counter, _)| *counter) {
            Ok(at) => own[at].1,
            Err(_) => self.counters.get(counter).map_or(0, |counter| counter.each),
        }
    }

    pub fn sets(&self) -> &IdVec<NodeSetId, NodeSet> {
        &self.sets
    }

    /// Adds a node set before the engine starts; afterwards an event does.
    pub fn add_set(&mut self, nodes: NodeSet) -> NodeSetId {
        self.sets.push(nodes)
    }

    /// Adds a set with the next id, or replaces an existing one; `None` for an id beyond the next.
    pub(crate) fn put_set(&mut self, set: NodeSetId, nodes: NodeSet) -> Option<()> {
        self.sets.put(set, nodes)
    }

    pub(crate) fn set_mut(&mut self, set: NodeSetId) -> Option<&mut NodeSet> {
        self.sets.get_mut(set)
    }

    /// Whether a node belongs to a set; an unknown set is empty.
    pub fn in_set(&self, node: NodeId, set: NodeSetId) -> bool {
        self.sets.get(set).is_some_and(|nodes| nodes.contains(node))
    }

    /// Capacity of all nodes in any state.
    pub fn capacity(&self) -> Resources {
        self.nodes.values().map(|node| node.capacity).sum()
    }
}

fn sorted_by_id(counters: &[(CounterId, u64)]) -> Vec<(CounterId, u64)> {
    let mut counters = counters.to_vec();
    counters.sort_unstable();
    counters.dedup_by_key(|(counter, _)| *counter);
    counters
}

/// Serializes the index from names to nodes as a list of names: the nodes' order gives the ids.
mod by_name {
    use super::{IndexMap, Name, NodeId};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(names: &IndexMap<Name, NodeId>, to: S) -> Result<S::Ok, S::Error> {
        names.keys().collect::<Vec<_>>().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<IndexMap<Name, NodeId>, D::Error> {
        let names = Vec::<Name>::deserialize(from)?;
        Ok(names.into_iter().enumerate().map(|(index, name)| (name, super::Id::from_index(index))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(name: &str, rack: &str) -> NodeSpec {
        NodeSpec { name: name.into(), domains: vec![rack.into()], ..NodeSpec::default() }
    }

    #[test]
    fn nodes_of_one_rack_share_a_domain() {
        let mut cluster = Cluster::new(&["rack"]).unwrap();
        let a = cluster.add_node(&spec("a", "r1")).unwrap();
        let b = cluster.add_node(&spec("b", "r1")).unwrap();
        let c = cluster.add_node(&spec("c", "r2")).unwrap();
        assert_eq!(cluster.node(a).domains, cluster.node(b).domains);
        assert_ne!(cluster.node(a).domains, cluster.node(c).domains);
        assert_eq!(cluster.find_level("node"), Some(Level(1)));
        assert_eq!(cluster.find_node("c"), Some(c));
    }

    #[test]
    fn a_name_belongs_to_one_node() {
        let mut cluster = Cluster::new(&["rack"]).unwrap();
        cluster.add_node(&spec("a", "r1")).unwrap();
        assert_eq!(cluster.add_node(&spec("a", "r2")), Err(ClusterError::DuplicateNode("a".into())));
        assert_eq!(Cluster::new(&["rack", "rack"]), Err(ClusterError::DuplicateLevel("rack".into())));
    }

    #[test]
    fn a_node_may_change_everything_but_its_name() {
        let mut cluster = Cluster::new(&["rack"]).unwrap();
        let a = cluster.add_node(&spec("a", "r1")).unwrap();
        let b = cluster.add_node(&spec("b", "r2")).unwrap();
        cluster.change_node(a, &spec("a", "r2")).unwrap();
        assert_eq!(cluster.nodes_in(cluster.node(b).domains[0]), [a, b]);
        let renamed = cluster.change_node(a, &spec("b", "r2"));
        assert_eq!(renamed, Err(ClusterError::OtherNode { was: "a".into(), is: "b".into() }));
    }

    #[test]
    fn a_node_has_its_own_amount_of_a_counter_or_the_default() {
        let mut cluster = Cluster::new(&["rack"]).unwrap();
        let slots = cluster.add_counter(Name::from("slots"), 8);
        let plain = cluster.add_node(&spec("a", "r1")).unwrap();
        let own = NodeSpec { counters: vec![(slots, 3)], ..spec("b", "r1") };
        let own = cluster.add_node(&own).unwrap();
        assert_eq!((cluster.count(plain, slots), cluster.count(own, slots)), (8, 3));
        assert_eq!(cluster.count(plain, CounterId(9)), 0);
    }
}
