//! How jobs are wired: from the places of their members to routes over links, in one place for everybody who asks
//! how long an iteration takes.

use crate::model::cluster::{Cluster, Fabric};
use crate::model::id::{Id, IdVec, LinkId, NodeId};
use crate::model::job::RoleKind;
use crate::model::units::{Bandwidth, Duration, Gpus};

use crate::model::profile::{Exchange, ring_load};
use crate::network::{self, NoPath, Pattern, Route};

/// So many members of one role on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    pub kind: RoleKind,
    pub node: NodeId,
    pub members: u32,
}

/// The links of a cluster; behind those of its fabric, one inside each node, where that is not free.
#[derive(Clone, Debug, Default)]
pub struct Routing {
    fabric: Fabric,
    rates: IdVec<LinkId, Bandwidth>,
    inside_nodes: bool,
}

impl Routing {
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

    /// What links carry.
    pub fn rates(&self) -> &IdVec<LinkId, Bandwidth> {
        &self.rates
    }

    /// A node came to the cluster, or is plugged in elsewhere. Links inside nodes are not known to whoever asks for this.
    pub(crate) fn catch_up(&mut self, cluster: &Cluster, node: NodeId) {
        self.fabric.catch_up(&cluster.fabric, node);
        for link in self.fabric.links().values().skip(self.rates.len()) {
            self.rates.push(link.rate);
        }
    }

    pub(crate) fn set_rate(&mut self, link: LinkId, rate: Bandwidth) {
        self.rates[link] = rate;
    }

    /// The way of what a job sends. Parameter servers exchange with workers; without them, the nodes form a ring in
    /// the order of their ids, so that nodes of one domain are neighbours. What stays inside a node is free, unless
    /// the scenario gives it a rate. A declared phase says what crosses a link, so each of its bytes crosses each hop
    /// once; gradients are sent as an all-reduce needs them.
    pub fn route(&self, exchange: Exchange<'_>, placed: &[Placed], gpus: Gpus) -> Result<Route, NoPath> {
        let route = self.route_of_gradients(placed, gpus)?;
        match exchange {
            Exchange::Gradients(_) => Ok(route),
            Exchange::Phases(_) => Ok(once_over(&route)),
        }
    }

    fn route_of_gradients(&self, placed: &[Placed], gpus: Gpus) -> Result<Route, NoPath> {
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

    fn ring(&self, placed: &[Placed], gpus: Gpus) -> Result<Route, NoPath> {
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

    /// How long an iteration takes on a route that the job has for itself, without noise.
    pub fn alone(&self, pattern: &Pattern, route: &Route) -> Duration {
        network::alone(pattern, route, &self.rates)
    }
}

/// The same way, with one byte on its busiest link for each byte that is sent.
fn once_over(route: &Route) -> Route {
    let most = route.links().iter().map(|(_, load)| *load).fold(0.0, f64::max);
    Route::over(&route.links().iter().map(|(link, load)| (*link, load / most)).collect::<Vec<_>>())
}
