//! Which pools there are, and which lie in which.
//!
//! Whoever may run on some nodes takes from the pool of these nodes, and from every pool that these nodes are all part of:
//! a job for one type of GPU takes from those of that type, and from all GPUs where others take from these. Where of two
//! pools one lies in the other, or they have nothing in common, what fits by this count fits on the nodes as far as their
//! sums go. Pools that overlap in part do not know of each other. Where memory may run out first, it has pools of the same nodes.

use std::collections::BTreeMap;

use super::kind::Kind;
use crate::deadlines::{Pool, Units};
use crate::decide::snapshot::Snapshot;
use crate::model::allocated::is_eligible;
use crate::model::cluster::{Node, NodeState};
use crate::model::id::{Id, NodeId};
use crate::model::job::Eligibility;
use crate::model::units::Resources;

#[derive(Clone, Debug)]
pub(super) struct Family {
    /// Pools of several nodes, each set of nodes once.
    pools: Vec<Wide>,
    /// The pool of each kind that jobs with deadlines are of.
    kinds: BTreeMap<Kind, usize>,
    /// The same of memory, if that is booked.
    memories: Option<BTreeMap<Kind, usize>>,
    /// Whether the cores of each node are a pool of their own.
    by_node: bool,
}

/// What nodes have in common that some may run on.
#[derive(Clone, Debug)]
struct Wide {
    pool: Pool,
    nodes: Nodes,
    /// The pools in which this one lies, itself included.
    within: Vec<Pool>,
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

impl Family {
    pub(super) fn of(snapshot: &Snapshot<'_>, jobs: impl Iterator<Item = Kind>, booked: Booked) -> Self {
        let memories = (booked == Booked::MemoryAsWell).then(BTreeMap::new);
        let mut family = Self { pools: Vec::new(), kinds: BTreeMap::new(), memories, by_node: false };
        for kind in jobs {
            family.note(snapshot, kind);
        }
        for at in 0..family.pools.len() {
            let nodes = &family.pools[at].nodes;
            family.pools[at].within = family.within(family.pools[at].pool, nodes);
        }
        family
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
    fn add(&mut self, pool: Pool, nodes: Nodes) -> usize {
        let same = |known: &Wide| is_alike(known.pool, pool) && known.nodes == nodes;
        self.pools.iter().position(same).unwrap_or_else(|| {
            self.pools.push(Wide { pool, nodes, within: Vec::new() });
            self.pools.len() - 1
        })
    }

    /// The pools of the same thing that some nodes all are part of.
    fn within(&self, pool: Pool, nodes: &Nodes) -> Vec<Pool> {
        let around = |other: &&Wide| is_alike(other.pool, pool) && nodes.lie_in(&other.nodes);
        self.pools.iter().filter(around).map(|other| other.pool).collect()
    }

    /// The pools that a job takes from; on a node, where it is bound to one.
    pub(super) fn pools(&self, snapshot: &Snapshot<'_>, kind: Kind, node: Option<NodeId>) -> Vec<Pool> {
        match (self.kinds.get(&kind), kind.pool(), node) {
            (Some(at), ..) => self.pools[*at].within.clone(),
            (None, Some(pool), _) => self.within(pool, &nodes_of(snapshot, pool)),
            (None, None, Some(node)) => {
                self.around(node).filter(|pool| thing(*pool) == Thing::Cores).collect()
            }
            (None, None, None) => Vec::new(),
        }
    }

    /// The pools of memory that it takes from; none where memory is not booked.
    pub(super) fn memories(&self, snapshot: &Snapshot<'_>, kind: Kind, node: Option<NodeId>) -> Vec<Pool> {
        let Some(memories) = &self.memories else { return Vec::new() };
        match (memories.get(&kind), kind.pool(), node) {
            (Some(at), ..) => self.pools[*at].within.clone(),
            (None, Some(pool), _) => self.within(memory_beside(pool), &nodes_of(snapshot, pool)),
            (None, None, Some(node)) => {
                self.around(node).filter(|pool| thing(*pool) == Thing::Memory).collect()
            }
            (None, None, None) => Vec::new(),
        }
    }

    /// The pools that a node is part of.
    pub(super) fn around(&self, node: NodeId) -> impl Iterator<Item = Pool> {
        let own = self.by_node.then_some(Pool::CoresOf(node));
        let memory = own.filter(|_| self.memories.is_some()).map(memory_beside);
        let wide = self.pools.iter().filter(move |wide| wide.nodes.has(node)).map(|wide| wide.pool);
        own.into_iter().chain(memory).chain(wide)
    }
}

/// What is booked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Booked {
    UnitsAlone,
    MemoryAsWell,
}

/// The nodes that are well and have some of what a pool is of.
fn nodes_of(snapshot: &Snapshot<'_>, pool: Pool) -> Nodes {
    let nodes = snapshot.cluster.nodes();
    let on = match pool {
        Pool::Gpus(on) | Pool::Cores(on) | Pool::MemoryByGpus(on) | Pool::MemoryByCores(on) => on,
        Pool::CoresOf(_) | Pool::MemoryOf(_) => Eligibility::default(),
    };
    let counts = |id: NodeId, node: &Node| {
        node.state == NodeState::Ready
            && units(pool, node.capacity) > 0
            && is_eligible(snapshot.cluster, id, on)
    };
    Nodes::of(nodes.len(), nodes.iter().filter(|(id, node)| counts(*id, node)).map(|(id, _)| id))
}

/// So much of what a pool is of.
pub(super) fn units(pool: Pool, amount: Resources) -> Units {
    let units = match thing(pool) {
        Thing::Gpus => amount.gpus.0,
        Thing::Cores => amount.cpu.0,
        Thing::Memory => amount.memory.0,
    };
    Units::try_from(units).unwrap_or(Units::MAX)
}

/// What a pool is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Thing {
    Gpus,
    Cores,
    Memory,
}

fn thing(pool: Pool) -> Thing {
    match pool {
        Pool::Gpus(_) => Thing::Gpus,
        Pool::Cores(_) | Pool::CoresOf(_) => Thing::Cores,
        Pool::MemoryByGpus(_) | Pool::MemoryByCores(_) | Pool::MemoryOf(_) => Thing::Memory,
    }
}

fn is_alike(one: Pool, other: Pool) -> bool {
    thing(one) == thing(other)
}

/// The memory of the nodes of a pool.
fn memory_beside(pool: Pool) -> Pool {
    match pool {
        Pool::Gpus(on) => Pool::MemoryByGpus(on),
        Pool::Cores(on) => Pool::MemoryByCores(on),
        Pool::CoresOf(node) => Pool::MemoryOf(node),
        memory => memory,
    }
}

fn anywhere(pool: Pool) -> Pool {
    let anywhere = Eligibility::default();
    if thing(pool) == Thing::Gpus { Pool::Gpus(anywhere) } else { Pool::Cores(anywhere) }
}
