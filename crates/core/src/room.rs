//! Free room: per node, and for each shape of member how many more would fit in the whole cluster.
//!
//! The counts are kept up to date node by node, so that "does this gang fit at all?" is one comparison however
//! large the cluster is.

use std::sync::Arc;

use indexmap::IndexMap;

use crate::cluster::{Cluster, NodeState};
use crate::id::{IdVec, NodeId, ShapeId};
use crate::job::Shape;
use crate::units::Resources;

/// Shapes in use, interned.
#[derive(Clone, Debug, Default)]
pub struct Shapes {
    known: IndexMap<Arc<Shape>, ShapeId>,
    slots: IdVec<ShapeId, Slot>,
    vacant: Vec<ShapeId>,
}

#[derive(Clone, Debug)]
struct Slot {
    shape: Arc<Shape>,
    uses: u32,
}

impl Shapes {
    pub fn get(&self, id: ShapeId) -> &Shape {
        &self.slots[id].shape
    }

    pub(crate) fn live(&self) -> impl Iterator<Item = (ShapeId, &Shape)> {
        self.slots.iter().filter(|(_, slot)| slot.uses > 0).map(|(id, slot)| (id, &*slot.shape))
    }

    /// Counts one more user; true if the shape is new to the room.
    fn take_up(&mut self, shape: &Shape) -> (ShapeId, bool) {
        if let Some(id) = self.known.get(shape) {
            self.slots[*id].uses += 1;
            return (*id, false);
        }
        let shape = Arc::new(shape.clone());
        let slot = Slot { shape: shape.clone(), uses: 1 };
        let id = match self.vacant.pop() {
            Some(id) => {
                self.slots[id] = slot;
                id
            }
            None => self.slots.push(slot),
        };
        self.known.insert(shape, id);
        (id, true)
    }

    fn put_down(&mut self, id: ShapeId) {
        let slot = &mut self.slots[id];
        slot.uses -= 1;
        if slot.uses == 0 {
            self.known.swap_remove(&slot.shape);
            self.vacant.push(id);
        }
    }
}

/// How many members of that shape a node takes beside what it holds already.
pub(crate) fn fit_on(cluster: &Cluster, node: NodeId, free: Resources, shape: &Shape) -> u32 {
    match cluster.node(node).state {
        NodeState::Ready => fit_when_ready(cluster, node, free, shape),
        NodeState::Cordoned | NodeState::Gone => 0,
    }
}

pub(crate) fn fit_when_ready(cluster: &Cluster, node: NodeId, free: Resources, shape: &Shape) -> u32 {
    let eligible = shape.on.gpu_type.is_none_or(|wanted| cluster.node(node).gpu_type == Some(wanted))
        && shape.on.nodes.as_ref().is_none_or(|only| only.binary_search(&node).is_ok());
    if eligible { shape.each.count_in(free) } else { 0 }
}

#[derive(Clone, Debug, Default)]
pub struct Room {
    pub shapes: Shapes,
    free: IdVec<NodeId, Resources>,
    fits: IdVec<ShapeId, u64>,
    /// Counts the times room was given back: what did not fit before cannot fit now unless this has grown.
    growth: u64,
}

impl Room {
    pub fn of(cluster: &Cluster) -> Self {
        Self { free: cluster.nodes().values().map(|node| node.capacity).collect(), ..Self::default() }
    }

    pub fn free(&self) -> &IdVec<NodeId, Resources> {
        &self.free
    }

    pub fn fits(&self) -> &IdVec<ShapeId, u64> {
        &self.fits
    }

    pub fn growth(&self) -> u64 {
        self.growth
    }

    /// Free on all nodes that take new work.
    pub fn total(&self, cluster: &Cluster) -> Resources {
        let ready = |node: &NodeId| cluster.node(*node).state == NodeState::Ready;
        self.free.iter().filter(|(node, _)| ready(node)).map(|(_, free)| *free).sum()
    }

    pub(crate) fn intern(&mut self, cluster: &Cluster, shape: &Shape) -> ShapeId {
        let (id, new) = self.shapes.take_up(shape);
        if new {
            let fit = |(node, free): (NodeId, &Resources)| u64::from(fit_on(cluster, node, *free, shape));
            let fits = self.free.iter().map(fit).sum();
            if id.0 as usize == self.fits.len() {
                self.fits.push(fits);
            } else {
                self.fits[id] = fits;
            }
        }
        id
    }

    pub(crate) fn release(&mut self, shape: ShapeId) {
        self.shapes.put_down(shape);
    }

    pub(crate) fn take(&mut self, cluster: &Cluster, node: NodeId, amount: Resources) {
        let left =
            self.free[node].checked_sub(amount).expect("a checked plan never takes more than there is");
        self.set(cluster, node, left);
    }

    pub(crate) fn give(&mut self, cluster: &Cluster, node: NodeId, amount: Resources) {
        self.set(cluster, node, self.free[node] + amount);
        self.growth += 1;
    }

    fn set(&mut self, cluster: &Cluster, node: NodeId, free: Resources) {
        let before = std::mem::replace(&mut self.free[node], free);
        for (id, shape) in self.shapes.live() {
            let (was, is) = (fit_on(cluster, node, before, shape), fit_on(cluster, node, free, shape));
            self.fits[id] = self.fits[id] + u64::from(is) - u64::from(was);
        }
    }

    /// A new node, empty.
    pub(crate) fn add(&mut self, cluster: &Cluster, node: NodeId) {
        let added = self.free.push(cluster.node(node).capacity);
        assert_eq!(added, node, "nodes are added in the order of their ids");
        self.count_in(cluster, node);
    }

    /// A node takes new work from now on.
    pub(crate) fn count_in(&mut self, cluster: &Cluster, node: NodeId) {
        for (id, shape) in self.shapes.live() {
            self.fits[id] += u64::from(fit_when_ready(cluster, node, self.free[node], shape));
        }
        self.growth += 1;
    }

    /// A node takes no new work any more.
    pub(crate) fn count_out(&mut self, cluster: &Cluster, node: NodeId) {
        for (id, shape) in self.shapes.live() {
            self.fits[id] -= u64::from(fit_when_ready(cluster, node, self.free[node], shape));
        }
    }
}
