//! Free capacity of nodes, and for each member shape the number of members that would fit in the whole cluster.
//!
//! The counts are updated node by node, so "does this gang fit at all?" is one comparison, whatever the size of the
//! cluster.

use std::sync::Arc;

use indexmap::IndexMap;

use crate::model::allocated::{Allocated, fit};
use crate::model::cluster::{Cluster, NodeState};
use crate::model::devices::Devices;
use crate::model::id::{IdVec, NodeId, ShapeId};
use crate::model::job::Shape;
use crate::model::plan::Assignment;
use crate::model::units::Resources;

/// Interned shapes in use.
#[derive(Clone, Debug, Default)]
pub struct Shapes {
    known: IndexMap<Arc<Shape>, ShapeId>,
    shape_uses: IdVec<ShapeId, ShapeUses>,
    vacant: Vec<ShapeId>,
    /// Number of shapes in use that ask for a share of a GPU.
    shares: usize,
}

/// An interned shape and the number of roles that use it.
#[derive(Clone, Debug)]
struct ShapeUses {
    shape: Arc<Shape>,
    uses: u32,
}

impl Shapes {
    pub fn get(&self, id: ShapeId) -> &Shape {
        &self.shape_uses[id].shape
    }

    /// Shapes in use.
    pub(crate) fn live(&self) -> impl Iterator<Item = (ShapeId, &Shape)> {
        self.shape_uses.iter().filter(|(_, entry)| entry.uses > 0).map(|(id, entry)| (id, &*entry.shape))
    }

    /// Shapes in use, each with the number of roles of live jobs that ask for it.
    pub(crate) fn in_use(&self) -> impl Iterator<Item = (&Shape, u32)> {
        self.shape_uses.values().filter(|entry| entry.uses > 0).map(|entry| (&*entry.shape, entry.uses))
    }

    /// Whether a shape in use asks for a share of a GPU.
    pub(crate) fn asks_for_gpu_shares(&self) -> bool {
        self.shares > 0
    }

    /// Counts one more user of a shape; returns true if the shape is new.
    fn add_use(&mut self, shape: &Shape) -> (ShapeId, bool) {
        if let Some(id) = self.known.get(shape) {
            self.shape_uses[*id].uses += 1;
            return (*id, false);
        }
        let shape = Arc::new(shape.clone());
        let entry = ShapeUses { shape: shape.clone(), uses: 1 };
        let id = match self.vacant.pop() {
            Some(id) => {
                self.shape_uses[id] = entry;
                id
            }
            None => self.shape_uses.push(entry),
        };
        self.shares += usize::from(shape.each.gpus.is_share());
        self.known.insert(shape, id);
        (id, true)
    }

    /// Counts one user of a shape less.
    fn remove_use(&mut self, id: ShapeId) {
        let entry = &mut self.shape_uses[id];
        entry.uses -= 1;
        if entry.uses == 0 {
            self.known.swap_remove(&entry.shape);
            self.shares -= usize::from(entry.shape.each.gpus.is_share());
            self.vacant.push(id);
        }
    }
}

/// Allocations, and the number of members of each shape in use that fit beside them.
#[derive(Clone, Debug, Default)]
pub struct FreeCapacity {
    pub shapes: Shapes,
    taken: Allocated,
    fits: IdVec<ShapeId, u64>,
    /// The same for an empty cluster whose nodes are all ready.
    most: IdVec<ShapeId, u64>,
    /// Counts releases of capacity: a shape that did not fit cannot fit before this number grows.
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

    /// Number of members of a shape that would fit if every node were ready and empty.
    pub fn most(&self, shape: ShapeId) -> u64 {
        self.most[shape]
    }

    /// Number of releases of capacity so far.
    pub fn growth(&self) -> u64 {
        self.growth
    }

    /// Records a change after which shapes that did not fit may fit.
    pub(crate) fn grow(&mut self) {
        self.growth += 1;
    }

    /// Free resources of all ready nodes.
    pub fn total(&self, cluster: &Cluster) -> Resources {
        let nodes = cluster.nodes().iter();
        let ready = nodes.filter(|(_, node)| node.state == NodeState::Ready);
        ready.map(|(node, _)| self.taken.free(cluster, node)).sum()
    }

    /// Counts one more user of a shape.
    pub(crate) fn intern(&mut self, cluster: &Cluster, shape: &Shape) -> ShapeId {
        let (id, new) = self.shapes.add_use(shape);
        if new {
            if id.0 as usize == self.fits.len() {
                self.fits.push(0);
                self.most.push(0);
            }
            self.recount_shape(cluster, id);
        }
        id
    }

    /// Counts one user of a shape less.
    pub(crate) fn release(&mut self, shape: ShapeId) {
        self.shapes.remove_use(shape);
    }

    /// Recounts the shapes that `changed` selects.
    pub(crate) fn recount(&mut self, cluster: &Cluster, changed: impl Fn(&Shape) -> bool) {
        let ids: Vec<ShapeId> =
            self.shapes.live().filter(|(_, shape)| changed(shape)).map(|(id, _)| id).collect();
        ids.into_iter().for_each(|id| self.recount_shape(cluster, id));
        self.growth += 1;
    }

    fn recount_shape(&mut self, cluster: &Cluster, id: ShapeId) {
        let shape = self.shapes.get(id);
        let (mut fits, mut most) = (0, 0);
        for node in cluster.nodes().ids() {
            fits += u64::from(self.fit_on(cluster, node, shape));
            most += u64::from(fit_when_empty(cluster, node, shape));
        }
        (self.fits[id], self.most[id]) = (fits, most);
    }

    /// Number of members of a shape that a node accepts beside its present ones.
    fn fit_on(&self, cluster: &Cluster, node: NodeId, shape: &Shape) -> u32 {
        match cluster.node(node).state {
            NodeState::Ready => self.taken.fit(cluster, node, shape),
            NodeState::Cordoned | NodeState::Avoided | NodeState::Draining { .. } | NodeState::Gone => 0,
        }
    }

    /// Allocates an assignment.
    pub(crate) fn take(&mut self, cluster: &Cluster, assignment: &Assignment) {
        assignment.nodes().for_each(|node| self.count_out(cluster, node));
        self.taken.add_all(assignment);
        assignment.nodes().for_each(|node| self.count_in(cluster, node));
    }

    /// Releases an assignment.
    pub(crate) fn give(&mut self, cluster: &Cluster, assignment: &Assignment) {
        assignment.nodes().for_each(|node| self.count_out(cluster, node));
        self.taken.remove_all(assignment);
        assignment.nodes().for_each(|node| self.count_in(cluster, node));
        self.growth += 1;
    }

    /// Adds a new, empty node.
    pub(crate) fn add(&mut self, cluster: &Cluster, node: NodeId) {
        let added = self.taken.add_node();
        assert_eq!(added, node, "nodes are added in the order of their ids");
        self.count_in_with_capacity(cluster, node);
    }

    /// Adds a node to the counts. A node may change only between `count_out` and this call.
    pub(crate) fn count_in(&mut self, cluster: &Cluster, node: NodeId) {
        if cluster.node(node).state == NodeState::Ready {
            for (id, shape) in self.shapes.live() {
                self.fits[id] += u64::from(self.taken.fit(cluster, node, shape));
            }
        }
    }

    /// Removes a node from the counts.
    pub(crate) fn count_out(&mut self, cluster: &Cluster, node: NodeId) {
        if cluster.node(node).state == NodeState::Ready {
            for (id, shape) in self.shapes.live() {
                self.fits[id] -= u64::from(self.taken.fit(cluster, node, shape));
            }
        }
    }

    /// Like `count_in`, after a change that may include the node's capacity.
    pub(crate) fn count_in_with_capacity(&mut self, cluster: &Cluster, node: NodeId) {
        self.count_in(cluster, node);
        for (id, shape) in self.shapes.live() {
            self.most[id] += u64::from(fit_when_empty(cluster, node, shape));
        }
        self.growth += 1;
    }

    /// Like `count_out`, before a change that may include the node's capacity.
    pub(crate) fn count_out_with_capacity(&mut self, cluster: &Cluster, node: NodeId) {
        self.count_out(cluster, node);
        for (id, shape) in self.shapes.live() {
            self.most[id] -= u64::from(fit_when_empty(cluster, node, shape));
        }
    }
}

/// Number of members of a shape that fit on the node when it is empty.
pub(crate) fn fit_when_empty(cluster: &Cluster, node: NodeId, shape: &Shape) -> u32 {
    let whole = cluster.node(node).capacity;
    let devices = Devices::unused(whole.gpus);
    fit(cluster, node, shape, whole, Some(&devices), |counter| cluster.count(node, counter))
}
