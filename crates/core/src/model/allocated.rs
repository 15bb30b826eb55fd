//! Allocated capacity of each node: exact sums, even where they exceed the node's capacity.

use std::sync::Arc;

use crate::model::cluster::Cluster;
use crate::model::devices::{self, Devices, Load};
use crate::model::id::{CounterId, DeviceId, Id, IdVec, NodeId};
use crate::model::job::{Eligibility, Shape};
use crate::model::plan::Assignment;
use crate::model::units::{Gpus, Resources};

/// Allocated resources, counters and device shares of all nodes. Cloning is cheap with many counters or shared
/// devices: these are copied on first write.
#[derive(Clone, Debug, Default)]
pub struct Allocated {
    resources: IdVec<NodeId, Resources>,
    /// By counter, then node; entries beyond the end are zero.
    counters: Vec<Arc<Vec<u64>>>,
    /// Shared devices by node; entries beyond the end are empty.
    shares: Arc<Vec<Vec<Load>>>,
}

/// No allocation on any node.
impl Allocated {
    pub(crate) fn nothing(nodes: usize) -> Self {
        Self { resources: IdVec::filled(Resources::NONE, nodes), ..Self::default() }
    }

    pub(crate) fn add_node(&mut self) -> NodeId {
        self.resources.push(Resources::NONE)
    }

    pub(crate) fn resources(&self) -> &IdVec<NodeId, Resources> {
        &self.resources
    }

    /// All nonzero allocations of counters.
    pub(crate) fn counters(&self) -> impl Iterator<Item = (CounterId, NodeId, u64)> {
        let columns = self.counters.iter().enumerate();
        columns.flat_map(|(counter, column)| {
            let taken = column.iter().enumerate().filter(|(_, taken)| **taken > 0);
            taken.map(move |(node, taken)| (CounterId::from_index(counter), NodeId::from_index(node), *taken))
        })
    }

    /// All allocations of shared devices, in order of node and device.
    pub(crate) fn device_allocations(&self) -> impl Iterator<Item = (NodeId, DeviceId, Gpus)> {
        let nodes = self.shares.iter().enumerate();
        nodes.flat_map(|(node, loads)| {
            loads.iter().map(move |(device, taken)| (NodeId::from_index(node), *device, *taken))
        })
    }

    /// Allocations of the shared devices of a node.
    pub(crate) fn shares(&self, node: NodeId) -> &[Load] {
        self.shares.get(node.index()).map_or(&[], Vec::as_slice)
    }

    /// Whether sums of GPUs are not sufficient to decide if a shape fits, because devices are shared or a share is
    /// requested.
    pub(crate) fn depends_on_devices(&self, node: NodeId, shape: &Shape) -> bool {
        let gpus = shape.each.gpus;
        !gpus.is_whole() || !gpus.is_zero() && !self.shares(node).is_empty()
    }

    /// Devices of a node with their allocations.
    pub(crate) fn devices(&self, cluster: &Cluster, node: NodeId) -> Devices<'_> {
        let (capacity, taken) = (cluster.node(node).capacity.gpus, self.resources[node].gpus);
        Devices::new(capacity, taken, self.shares(node))
    }

    /// Allocated amount of a counter on a node.
    pub(crate) fn count(&self, node: NodeId, counter: CounterId) -> u64 {
        let column = self.counters.get(counter.index());
        column.and_then(|column| column.get(node.index())).copied().unwrap_or(0)
    }

    pub(crate) fn add(&mut self, node: NodeId, amount: Resources) {
        self.resources[node] = self.resources[node] + amount;
    }

    pub(crate) fn remove(&mut self, node: NodeId, amount: Resources) {
        self.resources[node] = self.resources[node] - amount;
    }

    pub(crate) fn add_count(&mut self, node: NodeId, counter: CounterId, amount: u64) {
        let taken = self.column(node, counter);
        *taken = taken.saturating_add(amount);
    }

    pub(crate) fn remove_count(&mut self, node: NodeId, counter: CounterId, amount: u64) {
        let taken = self.column(node, counter);
        *taken = taken.saturating_sub(amount);
    }

    pub(crate) fn add_share(&mut self, node: NodeId, device: DeviceId, amount: Gpus) {
        devices::add(self.loads(node), device, amount);
    }

    pub(crate) fn remove_share(&mut self, node: NodeId, device: DeviceId, amount: Gpus) {
        devices::remove(self.loads(node), device, amount);
    }

    fn loads(&mut self, node: NodeId) -> &mut Vec<Load> {
        let shares = Arc::make_mut(&mut self.shares);
        if shares.len() <= node.index() {
            shares.resize_with(node.index() + 1, Vec::new);
        }
        &mut shares[node.index()]
    }

    fn column(&mut self, node: NodeId, counter: CounterId) -> &mut u64 {
        if self.counters.len() <= counter.index() {
            self.counters.resize_with(counter.index() + 1, Arc::default);
        }
        let column = Arc::make_mut(&mut self.counters[counter.index()]);
        if column.len() <= node.index() {
            column.resize(node.index() + 1, 0);
        }
        &mut column[node.index()]
    }

    /// Adds a whole assignment.
    pub(crate) fn add_all(&mut self, assignment: &Assignment) {
        for (node, amount) in assignment.takes() {
            self.add(*node, *amount);
        }
        for (node, counter, amount) in assignment.counters() {
            self.add_count(*node, *counter, *amount);
        }
        for (node, device, amount) in assignment.shares() {
            self.add_share(*node, *device, *amount);
        }
    }

    /// Removes a whole assignment.
    pub(crate) fn remove_all(&mut self, assignment: &Assignment) {
        for (node, amount) in assignment.takes() {
            self.remove(*node, *amount);
        }
        for (node, counter, amount) in assignment.counters() {
            self.remove_count(*node, *counter, *amount);
        }
        for (node, device, amount) in assignment.shares() {
            self.remove_share(*node, *device, *amount);
        }
    }

    /// Free resources of a node; zero where the node is overcommitted.
    pub(crate) fn free(&self, cluster: &Cluster, node: NodeId) -> Resources {
        cluster.node(node).capacity - self.resources[node]
    }

    /// Free amount of a counter on a node.
    pub(crate) fn left(&self, cluster: &Cluster, node: NodeId, counter: CounterId) -> u64 {
        cluster.count(node, counter).saturating_sub(self.count(node, counter))
    }

    /// Number of members of a shape that fit on a node, whatever the node's state.
    pub(crate) fn fit(&self, cluster: &Cluster, node: NodeId, shape: &Shape) -> u32 {
        let devices = self.depends_on_devices(node, shape).then(|| self.devices(cluster, node));
        let free = self.free(cluster, node);
        fit(cluster, node, shape, free, devices.as_ref(), |counter| self.left(cluster, node, counter))
    }

    /// Nodes that have less free capacity than an assignment needs.
    pub(crate) fn lacking(&self, cluster: &Cluster, assignment: &Assignment) -> Vec<NodeId> {
        let takes = assignment.takes().iter();
        let short = takes.filter(|(node, amount)| !amount.fits_in(self.free(cluster, *node)));
        let counts = assignment.counters().iter();
        let outnumbered =
            counts.filter(|(node, counter, amount)| *amount > self.left(cluster, *node, *counter));
        let short = short.map(|(node, _)| *node).chain(outnumbered.map(|(node, _, _)| *node));
        short.chain(self.lacking_devices(cluster, assignment)).collect()
    }

    fn lacking_devices(&self, cluster: &Cluster, assignment: &Assignment) -> impl Iterator<Item = NodeId> {
        let takes = assignment.takes().iter().filter(|(_, amount)| !amount.gpus.is_zero());
        let touched = takes
            .filter(|(node, _)| !self.shares(*node).is_empty() || !assignment.shares_on(*node).is_empty());
        let lacking = touched.filter(|(node, amount)| {
            let shares = assignment.shares_on(*node).iter().map(|(_, device, share)| (*device, *share));
            self.devices(cluster, *node).lack(amount.gpus, shares)
        });
        lacking.map(|(node, _)| *node)
    }
}

/// Number of members of a shape that fit into the free capacity of a node; `devices` is `Some` where single devices
/// matter.
pub(crate) fn fit(
    cluster: &Cluster,
    node: NodeId,
    shape: &Shape,
    free: Resources,
    devices: Option<&Devices<'_>>,
    left: impl Fn(CounterId) -> u64,
) -> u32 {
    if !is_eligible(cluster, node, shape.on) {
        return 0;
    }
    let on_devices = |devices: &Devices<'_>| u32::try_from(devices.fit(shape.each.gpus)).unwrap_or(u32::MAX);
    let on_devices = devices.map_or(u32::MAX, on_devices);
    let by_count = |fit: u32, (counter, each): &(CounterId, u64)| match left(*counter).checked_div(*each) {
        Some(count) => fit.min(u32::try_from(count).unwrap_or(u32::MAX)),
        None => fit,
    };
    shape.counters.iter().fold(shape.each.count_in(free).min(on_devices), by_count)
}

/// Whether a node has the GPU type and belongs to the node set that a role requires.
pub(crate) fn is_eligible(cluster: &Cluster, node: NodeId, on: Eligibility) -> bool {
    on.gpu_type.is_none_or(|wanted| cluster.node(node).gpu_type == Some(wanted))
        && on.set.is_none_or(|set| cluster.in_set(node, set))
}
