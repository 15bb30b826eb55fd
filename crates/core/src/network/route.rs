//! Routes: the bytes that each byte of a job's gradient puts on each link.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::model::cluster::Fabric;
use crate::model::id::{LinkId, NodeId};

use crate::model::profile::ring_load;

/// Links that a job's exchange crosses, in the order of their ids, each with its load: the bytes on the link per byte
/// of gradient. All hops of an exchange proceed together, so one rate describes the whole exchange.
#[derive(Clone, Debug, PartialEq)]
pub struct Route(Arc<[(LinkId, f64)]>);

/// Error: no path of links joins two nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no links lead from node {} to node {}", from.0, to.0)]
pub struct NoPath {
    pub from: NodeId,
    pub to: NodeId,
}

impl Route {
    /// Route of a job on one node: communication between its GPUs crosses no link.
    pub fn nothing() -> Self {
        Self(Arc::new([]))
    }

    /// Route of a ring all-reduce through `nodes` in the order given and back to the first. A node that occurs twice
    /// is one member.
    pub fn ring(fabric: &Fabric, nodes: &[NodeId]) -> Result<Self, NoPath> {
        let mut seen = BTreeSet::new();
        let ring: Vec<NodeId> = nodes.iter().copied().filter(|node| seen.insert(*node)).collect();
        let each = ring_load(ring.len() as u32);
        let mut loads = Loads { fabric, links: BTreeMap::new() };
        for (index, from) in ring.iter().enumerate() {
            loads.add(*from, ring[(index + 1) % ring.len()], each)?;
        }
        Ok(loads.route())
    }

    /// Route of an exchange with parameter servers. Every worker sends each byte of its gradient to the servers, an
    /// equal part to each, and receives as much. A worker and a server on the same node use no link.
    pub fn servers(fabric: &Fabric, workers: &[(NodeId, u32)], servers: &[NodeId]) -> Result<Self, NoPath> {
        let mut loads = Loads { fabric, links: BTreeMap::new() };
        for (worker, count) in workers {
            let each = f64::from(*count) / servers.len() as f64;
            for server in servers {
                loads.add(*worker, *server, each)?;
                loads.add(*server, *worker, each)?;
            }
        }
        Ok(loads.route())
    }

    /// Route from a list of links and loads; loads of the same link add up.
    pub fn over(links: &[(LinkId, f64)]) -> Self {
        let mut sums: BTreeMap<LinkId, f64> = BTreeMap::new();
        for (link, load) in links {
            *sums.entry(*link).or_default() += load;
        }
        Self(sums.into_iter().filter(|(_, load)| *load > 0.0).collect())
    }

    pub fn links(&self) -> &[(LinkId, f64)] {
        &self.0
    }

    /// Bytes that one byte of gradient puts on a link; zero if the route does not cross it.
    pub fn load_on(&self, link: LinkId) -> f64 {
        self.0.binary_search_by_key(&link, |(crossed, _)| *crossed).map_or(0.0, |at| self.0[at].1)
    }

    /// Largest load of any link of the route.
    pub(super) fn peak(&self) -> f64 {
        self.0.iter().map(|(_, load)| *load).fold(0.0, f64::max)
    }
}

/// Loads that add up while a route is built.
struct Loads<'a> {
    fabric: &'a Fabric,
    links: BTreeMap<LinkId, f64>,
}

impl Loads<'_> {
    fn add(&mut self, from: NodeId, to: NodeId, bytes: f64) -> Result<(), NoPath> {
        let path = self.fabric.path(from, to).ok_or(NoPath { from, to })?;
        for (link, share) in path {
            *self.links.entry(link).or_default() += bytes * share.as_f64();
        }
        Ok(())
    }

    fn route(self) -> Route {
        Route(self.links.into_iter().filter(|(_, load)| *load > 0.0).collect())
    }
}

#[cfg(test)]
mod tests {
    use crate::model::cluster::Vertex;
    use crate::model::units::Bandwidth;

    use super::*;

    /// Two racks of two nodes under two spines: cables 0–3 from the nodes, 4–7 from the racks.
    fn clos() -> Fabric {
        let mut fabric = Fabric::default();
        let racks = [fabric.add_switch("rack-0"), fabric.add_switch("rack-1")];
        let spines = [fabric.add_switch("spine-0"), fabric.add_switch("spine-1")];
        let rate = Bandwidth(100_000_000_000);
        let name = |vertex: Vertex| format!("{vertex:?}");
        for node in 0..4 {
            fabric.connect(Vertex::Node(NodeId(node)), racks[node as usize / 2], rate, name).unwrap();
        }
        for rack in racks {
            for spine in spines {
                fabric.connect(rack, spine, rate, name).unwrap();
            }
        }
        fabric
    }

    fn load(route: &Route, link: u32) -> f64 {
        route.links().iter().find(|(id, _)| id.0 == link).map_or(0.0, |(_, load)| *load)
    }

    #[test]
    fn a_ring_puts_the_same_on_every_hop_and_half_of_it_on_each_of_two_spines() {
        let fabric = clos();
        let ring = Route::ring(&fabric, &[NodeId(0), NodeId(1), NodeId(2), NodeId(3)]).unwrap();
        for node_link in 0..8 {
            assert_eq!(load(&ring, node_link), 1.5);
        }
        for rack_link in 8..16 {
            assert_eq!(load(&ring, rack_link), 0.75);
        }
        let inside = Route::ring(&fabric, &[NodeId(2), NodeId(3), NodeId(2)]).unwrap();
        assert_eq!(inside.links(), [4, 5, 6, 7].map(|link| (LinkId(link), 1.0)));
    }

    #[test]
    fn a_job_on_one_node_crosses_no_link() {
        assert_eq!(Route::ring(&clos(), &[NodeId(1), NodeId(1)]), Ok(Route::nothing()));
        assert_eq!(Route::ring(&Fabric::default(), &[]), Ok(Route::nothing()));
        assert_eq!(Route::servers(&clos(), &[(NodeId(1), 4)], &[NodeId(1)]), Ok(Route::nothing()));
    }

    #[test]
    fn every_worker_sends_its_own_gradients_to_every_server() {
        // Three workers on node 0 and one on node 1, servers on nodes 1 and 2: half of each gradient to each server.
        let workers = [(NodeId(0), 3), (NodeId(1), 1)];
        let route = Route::servers(&clos(), &workers, &[NodeId(1), NodeId(2)]).unwrap();
        assert_eq!(load(&route, 0), 3.0, "all that node 0 sends leaves it");
        assert_eq!(load(&route, 1), 3.0, "and as much comes back");
        assert_eq!(load(&route, 3), 1.5 + 0.5, "node 1 hears from node 0's workers and from server 2");
        assert_eq!(load(&route, 5), 2.0, "server 2 hears from all four workers, half of each");
    }

    #[test]
    fn unconnected_nodes_are_named_in_the_error() {
        let mut fabric = clos();
        let alone = fabric.add_switch("alone");
        let name = |vertex: Vertex| format!("{vertex:?}");
        fabric.connect(Vertex::Node(NodeId(9)), alone, Bandwidth(1), name).unwrap();
        let refused = Route::ring(&fabric, &[NodeId(0), NodeId(9)]);
        assert_eq!(refused, Err(NoPath { from: NodeId(0), to: NodeId(9) }));
        assert_eq!(refused.unwrap_err().to_string(), "no links lead from node 0 to node 9");
    }
}
