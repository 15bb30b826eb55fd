//! What there is: nodes with their resources, the levels of the topology above them, and the fabric of links.

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

/// A name given by a user; the border interns it, the edge prints it.
pub type Name = Arc<str>;

/// A level of the topology, counted from the outermost: 0 is the widest, `Cluster::depth` is the node itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Level(pub u8);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum NodeState {
    Ready,
    /// Keeps what it runs and takes nothing new.
    Cordoned,
    /// The same, for a while, because several jobs failed there.
    Avoided,
    /// The same, and it is about to go, then or once nothing runs there: whoever can goes elsewhere in time.
    Draining {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Instant>,
    },
    /// Not heard of: what it ran is lost.
    Gone,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    pub name: Name,
    pub capacity: Resources,
    /// What it has of counters where that is not what every node has, in order of id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<(CounterId, u64)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_type: Option<GpuTypeId>,
    /// The domain it lies in at each level, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub domains: Vec<DomainId>,
    pub state: NodeState,
}

/// A node as the border describes it, by names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeSpec {
    pub name: String,
    pub capacity: Resources,
    /// What it has of counters where that is not what every node has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<(CounterId, u64)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_type: Option<String>,
    /// A domain name for each level but the node's own, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub domains: Vec<String>,
}

/// Something that nodes have a number of and members take, beside CPU, memory and GPUs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counter {
    pub name: Name,
    /// How much every node has that says nothing else.
    pub each: u64,
}

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

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cluster {
    /// Outermost first; the node itself is not listed.
    levels: Vec<Name>,
    domains: IndexSet<Domain>,
    /// The nodes of each domain.
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
    /// What its links are, where they are laid as nodes come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tree: Option<Tree>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Domain {
    level: Level,
    name: Name,
    within: Option<DomainId>,
}

impl Cluster {
    /// A cluster without nodes; `levels` are the names above the node, outermost first.
    pub fn new(levels: &[&str]) -> Result<Self, ClusterError> {
        const MOST_LEVELS: usize = 8;
        if levels.len() > MOST_LEVELS {
            return Err(ClusterError::TooManyLevels(MOST_LEVELS));
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

    pub fn add_node(&mut self, spec: &NodeSpec) -> Result<NodeId, ClusterError> {
        if self.names.contains_key(spec.name.as_str()) {
            return Err(ClusterError::DuplicateNode(spec.name.clone()));
        }
        let (domains, gpu_type) = self.place_of(spec)?;
        let name = Name::from(spec.name.as_str());
        let id = self.nodes.push(Node {
            name: name.clone(),
            capacity: spec.capacity,
            counters: in_order(&spec.counters),
            gpu_type,
            domains,
            state: NodeState::Ready,
        });
        for domain in &self.nodes[id].domains {
            self.members[*domain].push(id);
        }
        self.names.insert(name, id);
        self.plug_in(id);
        Ok(id)
    }

    /// Gives a node what `spec` says in place of what it had. It keeps its name and its state.
    pub fn change_node(&mut self, id: NodeId, spec: &NodeSpec) -> Result<(), ClusterError> {
        if *self.nodes[id].name != *spec.name {
            let (was, is) = (self.nodes[id].name.to_string(), spec.name.clone());
            return Err(ClusterError::OtherNode { was, is });
        }
        let (domains, gpu_type) = self.place_of(spec)?;
        let node = &mut self.nodes[id];
        node.capacity = spec.capacity;
        node.counters = in_order(&spec.counters);
        node.gpu_type = gpu_type;
        let left = std::mem::replace(&mut node.domains, domains);
        for domain in left {
            self.members[domain].retain(|member| *member != id);
        }
        for domain in &self.nodes[id].domains {
            let members = &mut self.members[*domain];
            members.insert(members.partition_point(|member| *member < id), id);
        }
        self.plug_in(id);
        Ok(())
    }

    /// The domains and the GPU type that a node names.
    fn place_of(&mut self, spec: &NodeSpec) -> Result<(Vec<DomainId>, Option<GpuTypeId>), ClusterError> {
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

    /// The names of all types of GPU that nodes have or had.
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

    /// The level that is the node itself.
    pub fn depth(&self) -> Level {
        Level(self.levels.len() as u8)
    }

    /// The level of that name; `node` is the innermost.
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

    /// The nodes of a domain, in order of id.
    pub fn nodes_in(&self, domain: DomainId) -> &[NodeId] {
        &self.members[domain]
    }

    /// The domains of a level, in order of id.
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

    /// How much of a counter a node has in all; nothing of one that nobody has named.
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

    /// Adds a set of nodes before anything runs; afterwards an event does.
    pub fn add_set(&mut self, nodes: NodeSet) -> NodeSetId {
        self.sets.push(nodes)
    }

    /// Adds a set under the next id, or replaces it; `None` for an id beyond the next.
    pub(crate) fn put_set(&mut self, set: NodeSetId, nodes: NodeSet) -> Option<()> {
        self.sets.put(set, nodes)
    }

    pub(crate) fn set_mut(&mut self, set: NodeSetId) -> Option<&mut NodeSet> {
        self.sets.get_mut(set)
    }

    /// Whether a node lies in a set; a set that nobody has named has no nodes.
    pub fn in_set(&self, node: NodeId, set: NodeSetId) -> bool {
        self.sets.get(set).is_some_and(|nodes| nodes.contains(node))
    }

    /// Everything there is, whatever its state.
    pub fn capacity(&self) -> Resources {
        self.nodes.values().map(|node| node.capacity).sum()
    }
}

fn in_order(counters: &[(CounterId, u64)]) -> Vec<(CounterId, u64)> {
    let mut counters = counters.to_vec();
    counters.sort_unstable();
    counters.dedup_by_key(|(counter, _)| *counter);
    counters
}

/// The index from names to nodes is made anew on reading: it says nothing that the nodes do not.
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
    fn a_name_stands_for_one_node() {
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
    fn every_node_has_of_a_counter_what_it_says_or_what_each_has() {
        let mut cluster = Cluster::new(&["rack"]).unwrap();
        let slots = cluster.add_counter(Name::from("slots"), 8);
        let plain = cluster.add_node(&spec("a", "r1")).unwrap();
        let own = NodeSpec { counters: vec![(slots, 3)], ..spec("b", "r1") };
        let own = cluster.add_node(&own).unwrap();
        assert_eq!((cluster.count(plain, slots), cluster.count(own, slots)), (8, 3));
        assert_eq!(cluster.count(plain, CounterId(9)), 0);
    }
}
