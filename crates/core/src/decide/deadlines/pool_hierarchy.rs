//! Which pools there are, and which pool lies in which.
//!
//! A job that may run on some nodes takes from the pool of these nodes, and from every pool that all these nodes are
//! part of: a job for one type of GPU takes from the pool of that type, and from the pool of all GPUs where other jobs
//! take from that. If of every two pools one lies in the other or they have no node in common, what fits by pools fits
//! on the nodes as far as sums tell. Pools that overlap in part do not account for each other. Where memory may run
//! out first, there are memory pools of the same nodes.

use std::collections::BTreeMap;

use super::kind::Kind;
use crate::deadlines::{CapacityPool, Units};
use crate::decide::snapshot::Snapshot;
use crate::model::allocated::is_eligible;
use crate::model::cluster::{Node, NodeState};
use crate::model::id::{Id, NodeId};
use crate::model::job::Eligibility;
use crate::model::units::Resources;

#[derive(Clone, Debug)]
pub(super) struct PoolHierarchy {
    /// Pools of several nodes, each set of nodes once.
    pools: Vec<NodePool>,
    /// The pool of each kind that jobs with deadlines are of.
    kinds: BTreeMap<Kind, usize>,
    /// The memory pool of each kind, if memory is booked.
    memories: Option<BTreeMap<Kind, usize>>,
    /// Whether the cores of each node are a pool of their own.
    by_node: bool,
}

/// The resources of one kind on a set of nodes.
#[derive(Clone, Debug)]
struct NodePool {
    pool: CapacityPool,
    nodes: Nodes,
    /// The pools in which this one lies, itself included.
    within: Vec<CapacityPool>,
}

/// A set of nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Nodes(Vec<u64>);

impl Nodes {
    fn of(count: usize, nodes: impl Iterator<Item = NodeId>) -> Self {
        let mut bits = vec![0; count.div_ceil(64)];
        nodes.for_each(|node| bits[node.index() / 64] |= 1 << (node.index() % 64));
        Self(bits)
    }

    fn has(&self, node: NodeId) -> bool {
        self.0.get(node.index() / 64).is_some_and(|bits| bits >> (node.index() % 64) & 1 == 1)
    }

    fn lie_in(&self, others: &Self) -> bool {
        self.0.iter().zip(&others.0).all(|(own, other)| own & !other == 0)
    }
}

impl PoolHierarchy {
    pub(super) fn of(snapshot: &Snapshot<'_>, jobs: impl Iterator<Item = Kind>, booked: Booked) -> Self {
        let memories = (booked == Booked::MemoryAsWell).then(BTreeMap::new);
        let mut hierarchy = Self { pools: Vec::new(), kinds: BTreeMap::new(), memories, by_node: false };
        for kind in jobs {
            hierarchy.note(snapshot, kind);
        }
        for at in 0..hierarchy.pools.len() {
            let nodes = &hierarchy.pools[at].nodes;
            hierarchy.pools[at].within = hierarchy.within(hierarchy.pools[at].pool, nodes);
        }
        hierarchy
    }

    fn note(&mut self, snapshot: &Snapshot<'_>, kind: Kind) {
        if kind == Kind::CoresInPlace {
            self.by_node = true;
        }
        if self.kinds.contains_key(&kind) {
            return;
        }
        let Some(pool) = kind.pool() else { return };
        let (pool, nodes) = match self.kinds.len() < snapshot.tuning.decide.max_pool_kinds {
            true => (pool, nodes_of(snapshot, pool)),
            false => (anywhere(pool), nodes_of(snapshot, anywhere(pool))),
        };
        if self.memories.is_some() {
            let at = self.add(memory_beside(pool), nodes.clone());
            self.memories.get_or_insert_default().insert(kind, at);
        }
        let at = self.add(pool, nodes);
        self.kinds.insert(kind, at);
    }

    /// A pool of such nodes, which may be there already.
    fn add(&mut self, pool: CapacityPool, nodes: Nodes) -> usize {
        let same = |known: &NodePool| is_alike(known.pool, pool) && known.nodes == nodes;
        self.pools.iter().position(same).unwrap_or_else(|| {
            self.pools.push(NodePool { pool, nodes, within: Vec::new() });
            self.pools.len() - 1
        })
    }

    /// The pools of the same resource that contain all of some nodes.
    fn within(&self, pool: CapacityPool, nodes: &Nodes) -> Vec<CapacityPool> {
        let around = |other: &&NodePool| is_alike(other.pool, pool) && nodes.lie_in(&other.nodes);
        self.pools.iter().filter(around).map(|other| other.pool).collect()
    }

    /// The pools from which a job takes; those of a node, where it is bound to one.
    pub(super) fn pools(
        &self,
        snapshot: &Snapshot<'_>,
        kind: Kind,
        node: Option<NodeId>,
    ) -> Vec<CapacityPool> {
        match (self.kinds.get(&kind), kind.pool(), node) {
            (Some(at), ..) => self.pools[*at].within.clone(),
            (None, Some(pool), _) => self.within(pool, &nodes_of(snapshot, pool)),
            (None, None, Some(node)) => {
                self.around(node).filter(|pool| resource_of(*pool) == PooledResource::Cores).collect()
            }
            (None, None, None) => Vec::new(),
        }
    }

    /// The memory pools from which a job takes; none where memory is not booked.
    pub(super) fn memories(
        &self,
        snapshot: &Snapshot<'_>,
        kind: Kind,
        node: Option<NodeId>,
    ) -> Vec<CapacityPool> {
        let Some(memories) = &self.memories else { return Vec::new() };
        match (memories.get(&kind), kind.pool(), node) {
            (Some(at), ..) => self.pools[*at].within.clone(),
            (None, Some(pool), _) => self.within(memory_beside(pool), &nodes_of(snapshot, pool)),
            (None, None, Some(node)) => {
                self.around(node).filter(|pool| resource_of(*pool) == PooledResource::Memory).collect()
            }
            (None, None, None) => Vec::new(),
        }
    }

    /// The pools that a node is part of.
    pub(super) fn around(&self, node: NodeId) -> impl Iterator<Item = CapacityPool> {
        let own = self.by_node.then_some(CapacityPool::CoresOf(node));
        let memory = own.filter(|_| self.memories.is_some()).map(memory_beside);
        let wide = self.pools.iter().filter(move |wide| wide.nodes.has(node)).map(|wide| wide.pool);
        own.into_iter().chain(memory).chain(wide)
    }
}

/// The resources that are booked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Booked {
    UnitsAlone,
    MemoryAsWell,
}

/// The ready nodes that have some of the resource of a pool.
fn nodes_of(snapshot: &Snapshot<'_>, pool: CapacityPool) -> Nodes {
    let nodes = snapshot.cluster.nodes();
    let on = match pool {
        CapacityPool::Gpus(on)
        | CapacityPool::Cores(on)
        | CapacityPool::MemoryByGpus(on)
        | CapacityPool::MemoryByCores(on) => on,
        CapacityPool::CoresOf(_) | CapacityPool::MemoryOf(_) => Eligibility::default(),
    };
    let counts = |id: NodeId, node: &Node| {
        node.state == NodeState::Ready
            && units(pool, node.capacity) > 0
            && is_eligible(snapshot.cluster, id, on)
    };
    Nodes::of(nodes.len(), nodes.iter().filter(|(id, node)| counts(*id, node)).map(|(id, _)| id))
}

/// The units of a pool in an amount of resources.
pub(super) fn units(pool: CapacityPool, amount: Resources) -> Units {
    let units = match resource_of(pool) {
        PooledResource::Gpus => amount.gpus.0,
        PooledResource::Cores => amount.cpu.0,
        PooledResource::Memory => amount.memory.0,
    };
    Units::try_from(units).unwrap_or(Units::MAX)
}

/// The resource of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PooledResource {
    Gpus,
    Cores,
    Memory,
}

fn resource_of(pool: CapacityPool) -> PooledResource {
    match pool {
        CapacityPool::Gpus(_) => PooledResource::Gpus,
        CapacityPool::Cores(_) | CapacityPool::CoresOf(_) => PooledResource::Cores,
        CapacityPool::MemoryByGpus(_) | CapacityPool::MemoryByCores(_) | CapacityPool::MemoryOf(_) => {
            PooledResource::Memory
        }
    }
}

fn is_alike(one: CapacityPool, other: CapacityPool) -> bool {
    resource_of(one) == resource_of(other)
}

/// The memory of the nodes of a pool.
fn memory_beside(pool: CapacityPool) -> CapacityPool {
    match pool {
        CapacityPool::Gpus(on) => CapacityPool::MemoryByGpus(on),
        CapacityPool::Cores(on) => CapacityPool::MemoryByCores(on),
        CapacityPool::CoresOf(node) => CapacityPool::MemoryOf(node),
        memory => memory,
    }
}

fn anywhere(pool: CapacityPool) -> CapacityPool {
    let anywhere = Eligibility::default();
    if resource_of(pool) == PooledResource::Gpus {
        CapacityPool::Gpus(anywhere)
    } else {
        CapacityPool::Cores(anywhere)
    }
}
