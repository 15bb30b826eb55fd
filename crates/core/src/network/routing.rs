//! Routes of placed jobs: from the nodes of their members to links and loads. All estimates of iteration times use
//! this module.

use crate::model::cluster::{Cluster, Fabric};
use crate::model::id::{Id, IdVec, LinkId, NodeId};
use crate::model::job::RoleKind;
use crate::model::units::{Bandwidth, Duration, Gpus};

use crate::model::profile::{Exchange, ring_load};
use crate::network::{self, NoPath, Pattern, Route};

/// Members of one role on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacedMembers {
    pub kind: RoleKind,
    pub node: NodeId,
    pub members: u32,
}

/// Links of a cluster and their rates. If communication within a node has a rate, one link per node follows the
/// fabric's.
#[derive(Clone, Debug, Default)]
pub struct Routing {
    fabric: Fabric,
    rates: IdVec<LinkId, Bandwidth>,
    inside_nodes: bool,
}

impl Routing {
    /// Links of a cluster; `within_node` is the rate between the GPUs of one node, `None` if that is free.
    pub fn of(cluster: &Cluster, within_node: Option<Bandwidth>) -> Self {
        let fabric = cluster.fabric.clone();
        let mut rates: IdVec<LinkId, Bandwidth> = fabric.links().values().map(|link| link.rate).collect();
        for rate in within_node.into_iter().flat_map(|rate| cluster.nodes().ids().map(move |_| rate)) {
            rates.push(rate);
        }
        Self { fabric, rates, inside_nodes: within_node.is_some() }
    }

    pub fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    /// Rate of each link.
    pub fn rates(&self) -> &IdVec<LinkId, Bandwidth> {
        &self.rates
    }

    /// Adds the links of a node that joined the cluster or was connected to another switch. Only valid without links
    /// inside nodes.
    pub(crate) fn catch_up(&mut self, cluster: &Cluster, node: NodeId) {
        self.fabric.catch_up(&cluster.fabric, node);
        for link in self.fabric.links().values().skip(self.rates.len()) {
            self.rates.push(link.rate);
        }
    }

    pub(crate) fn set_rate(&mut self, link: LinkId, rate: Bandwidth) {
        self.rates[link] = rate;
    }

    /// Route of a job's exchange between its placed members. Parameter servers exchange with workers. Without them,
    /// the nodes form a ring in the order of their ids, so that nodes of one domain are neighbours. Communication
    /// within a node is free unless the scenario gives it a rate. A traffic phase states the bytes on a link, so each
    /// of its bytes crosses each hop once; gradients get the loads of an all-reduce.
    pub fn route(
        &self,
        exchange: Exchange<'_>,
        placed: &[PlacedMembers],
        gpus: Gpus,
    ) -> Result<Route, NoPath> {
        let route = self.gradient_route(placed, gpus)?;
        match exchange {
            Exchange::Gradients(_) => Ok(route),
            Exchange::Phases(_) => Ok(scaled_to_one_byte(&route)),
        }
    }

    fn gradient_route(&self, placed: &[PlacedMembers], gpus: Gpus) -> Result<Route, NoPath> {
        if self.fabric.is_empty() && !self.inside_nodes {
            return Ok(Route::nothing());
        }
        let servers: Vec<NodeId> = placed
            .iter()
            .filter(|part| part.kind == RoleKind::Ps)
            .flat_map(|part| (0..part.members).map(|_| part.node))
            .collect();
        if servers.is_empty() {
            return self.ring(placed, gpus);
        }
        let workers = placed.iter().filter(|part| part.kind != RoleKind::Ps);
        let workers: Vec<(NodeId, u32)> = workers.map(|part| (part.node, part.members)).collect();
        Route::servers(&self.fabric, &workers, &servers)
    }

    /// Ring over the nodes of all members, with the links inside nodes where these have a rate.
    fn ring(&self, placed: &[PlacedMembers], gpus: Gpus) -> Result<Route, NoPath> {
        let mut nodes: Vec<NodeId> = placed.iter().map(|part| part.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let between = match nodes[..] {
            [] | [_] => Route::nothing(),
            _ => Route::ring(&self.fabric, &nodes)?,
        };
        if !self.inside_nodes {
            return Ok(between);
        }
        let whole_gpus = u32::try_from(gpus.0.div_ceil(Gpus::whole(1).0)).unwrap_or(u32::MAX);
        let load = ring_load(if nodes.len() == 1 { whole_gpus } else { nodes.len() as u32 });
        let inside = |node: &NodeId| (LinkId::from_index(self.fabric.links().len() + node.index()), load);
        let links = between.links().iter().copied().chain(nodes.iter().map(inside));
        Ok(Route::over(&links.filter(|(_, load)| *load > 0.0).collect::<Vec<_>>()))
    }

    /// Duration of an iteration without jitter on a route that no other job uses.
    pub fn alone(&self, pattern: &Pattern, route: &Route) -> Duration {
        network::alone(pattern, route, &self.rates)
    }
}

/// Scales the loads of a route so that its busiest link carries one byte per byte sent.
fn scaled_to_one_byte(route: &Route) -> Route {
    let most = route.links().iter().map(|(_, load)| *load).fold(0.0, f64::max);
    Route::over(&route.links().iter().map(|(link, load)| (*link, load / most)).collect::<Vec<_>>())
}
