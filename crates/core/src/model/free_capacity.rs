//! Free room: per node, and for each shape of member how many more would fit in the whole cluster.
//!
//! The counts are kept up to date node by node, so that "does this gang fit at all?" is one comparison however
//! large the cluster is.

use std::sync::Arc;

use indexmap::IndexMap;

use crate::model::allocated::{Allocated, fit};
use crate::model::cluster::{Cluster, NodeState};
use crate::model::devices::Devices;
use crate::model::id::{IdVec, NodeId, ShapeId};
use crate::model::job::Shape;
use crate::model::plan::Assignment;
use crate::model::units::Resources;

/// Shapes in use, interned.
#[derive(Clone, Debug, Default)]
pub struct Shapes {
    known: IndexMap<Arc<Shape>, ShapeId>,
    slots: IdVec<ShapeId, Slot>,
    vacant: Vec<ShapeId>,
    /// How many of them ask for a share of a GPU.
    shares: usize,
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

    /// Shapes in use, with how many roles of live jobs ask for each.
    pub(crate) fn in_use(&self) -> impl Iterator<Item = (&Shape, u32)> {
        self.slots.values().filter(|slot| slot.uses > 0).map(|slot| (&*slot.shape, slot.uses))
    }

    /// Whether anybody asks for a share of a GPU.
    pub(crate) fn any_shares(&self) -> bool {
        self.shares > 0
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
        self.shares += usize::from(shape.each.gpus.is_share());
        self.known.insert(shape, id);
        (id, true)
    }

    fn put_down(&mut self, id: ShapeId) {
        let slot = &mut self.slots[id];
        slot.uses -= 1;
        if slot.uses == 0 {
            self.known.swap_remove(&slot.shape);
            self.shares -= usize::from(slot.shape.each.gpus.is_share());
            self.vacant.push(id);
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct FreeCapacity {
    pub shapes: Shapes,
    taken: Allocated,
    fits: IdVec<ShapeId, u64>,
    /// The same, were every node well and free.
    most: IdVec<ShapeId, u64>,
    /// Counts the times room was given back: what did not fit before cannot fit now unless this has grown.
    growth: u64,
}

impl FreeCapacity {
    pub fn of(cluster: &Cluster) -> Self {
        Self { taken: Allocated::nothing(cluster.nodes().len()), ..Self::default() }
    }

    pub fn taken(&self) -> &Allocated {
        &self.taken
    }

    pub fn fits(&self) -> &IdVec<ShapeId, u64> {
        &self.fits
    }

    /// How many members of a shape would fit if every node were well and free.
    pub fn most(&self, shape: ShapeId) -> u64 {
        self.most[shape]
    }

    pub fn growth(&self) -> u64 {
        self.growth
    }

    /// Something has changed by which what did not fit before may fit now.
    pub(crate) fn grow(&mut self) {
        self.growth += 1;
    }

    /// Free on all nodes that take new work.
    pub fn total(&self, cluster: &Cluster) -> Resources {
        let nodes = cluster.nodes().iter();
        let ready = nodes.filter(|(_, node)| node.state == NodeState::Ready);
        ready.map(|(node, _)| self.taken.free(cluster, node)).sum()
    }

    pub(crate) fn intern(&mut self, cluster: &Cluster, shape: &Shape) -> ShapeId {
        let (id, new) = self.shapes.take_up(shape);
        if new {
            if id.0 as usize == self.fits.len() {
                self.fits.push(0);
                self.most.push(0);
            }
            self.count_shape(cluster, id);
        }
        id
    }

    pub(crate) fn release(&mut self, shape: ShapeId) {
        self.shapes.put_down(shape);
    }

    /// Counts anew where the shapes that `changed` names fit.
    pub(crate) fn recount(&mut self, cluster: &Cluster, changed: impl Fn(&Shape) -> bool) {
        let ids: Vec<ShapeId> =
            self.shapes.live().filter(|(_, shape)| changed(shape)).map(|(id, _)| id).collect();
        ids.into_iter().for_each(|id| self.count_shape(cluster, id));
        self.growth += 1;
    }

    fn count_shape(&mut self, cluster: &Cluster, id: ShapeId) {
        let shape = self.shapes.get(id);
        let (mut fits, mut most) = (0, 0);
        for node in cluster.nodes().ids() {
            fits += u64::from(self.fit_on(cluster, node, shape));
            most += u64::from(fit_at_most(cluster, node, shape));
        }
        (self.fits[id], self.most[id]) = (fits, most);
    }

    /// How many members of that shape a node takes beside what it holds already.
    fn fit_on(&self, cluster: &Cluster, node: NodeId, shape: &Shape) -> u32 {
        match cluster.node(node).state {
            NodeState::Ready => self.taken.fit(cluster, node, shape),
            NodeState::Cordoned | NodeState::Avoided | NodeState::Draining { .. } | NodeState::Gone => 0,
        }
    }

    pub(crate) fn take(&mut self, cluster: &Cluster, assignment: &Assignment) {
        assignment.nodes().for_each(|node| self.count_out(cluster, node));
        self.taken.add_all(assignment);
        assignment.nodes().for_each(|node| self.count_in(cluster, node));
    }

    pub(crate) fn give(&mut self, cluster: &Cluster, assignment: &Assignment) {
        assignment.nodes().for_each(|node| self.count_out(cluster, node));
        self.taken.remove_all(assignment);
        assignment.nodes().for_each(|node| self.count_in(cluster, node));
        self.growth += 1;
    }

    /// A new node, empty.
    pub(crate) fn add(&mut self, cluster: &Cluster, node: NodeId) {
        let added = self.taken.add_node();
        assert_eq!(added, node, "nodes are added in the order of their ids");
        self.count_in_whole(cluster, node);
    }

    /// Counts a node as it is now. Whatever is about it may change only between `count_out` and this.
    pub(crate) fn count_in(&mut self, cluster: &Cluster, node: NodeId) {
        if cluster.node(node).state == NodeState::Ready {
            for (id, shape) in self.shapes.live() {
                self.fits[id] += u64::from(self.taken.fit(cluster, node, shape));
            }
        }
    }

    pub(crate) fn count_out(&mut self, cluster: &Cluster, node: NodeId) {
        if cluster.node(node).state == NodeState::Ready {
            for (id, shape) in self.shapes.live() {
                self.fits[id] -= u64::from(self.taken.fit(cluster, node, shape));
            }
        }
    }

    /// As `count_in`, where what the node has in all may have changed too.
    pub(crate) fn count_in_whole(&mut self, cluster: &Cluster, node: NodeId) {
        self.count_in(cluster, node);
        for (id, shape) in self.shapes.live() {
            self.most[id] += u64::from(fit_at_most(cluster, node, shape));
        }
        self.growth += 1;
    }

    pub(crate) fn count_out_whole(&mut self, cluster: &Cluster, node: NodeId) {
        self.count_out(cluster, node);
        for (id, shape) in self.shapes.live() {
            self.most[id] -= u64::from(fit_at_most(cluster, node, shape));
        }
    }
}

/// How many members of a shape an empty node takes.
pub(crate) fn fit_at_most(cluster: &Cluster, node: NodeId, shape: &Shape) -> u32 {
    let whole = cluster.node(node).capacity;
    let devices = Devices::unused(whole.gpus);
    fit(cluster, node, shape, whole, Some(&devices), |counter| cluster.count(node, counter))
}
