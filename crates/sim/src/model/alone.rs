//! How long an iteration takes alone: what a job is offered as work, and what SRTF and deadlines count with.

use std::collections::{BTreeMap, BTreeSet};

use metronome_core::model::cluster::{Cluster, Level};
use metronome_core::model::id::{Id, NodeId};
use metronome_core::model::job::{JobSpec, Role, Topology};
use metronome_core::model::units::{Bandwidth, Duration, Resources};

use metronome_core::network::Route;
use metronome_core::network::routing::{PlacedMembers, Routing};

use super::Pattern;

/// An empty cluster, as a job sees it that is alone.
#[derive(Debug)]
pub struct Alone {
    wiring: Routing,
    /// Single nodes first, the whole cluster last; of equal places the first.
    places: Vec<Place>,
}

/// Nodes that lie together, the largest first.
#[derive(Debug)]
struct Place {
    /// None for the whole cluster.
    level: Option<Level>,
    nodes: Vec<(NodeId, Resources)>,
}

impl Alone {
    pub fn new(cluster: &Cluster, within_node: Option<Bandwidth>) -> Self {
        let levels = (0..=cluster.depth().0).rev().map(Some).chain([None]);
        let places = levels.flat_map(|level| places(cluster, level.map(Level))).collect();
        Self { wiring: Routing::of(cluster, within_node), places }
    }

    /// How long an iteration takes alone on the fewest nodes.
    ///
    /// The members, as many as the smallest size has, are packed onto the fewest nodes of the empty cluster, inside
    /// the smallest domain that allows so few, and wired there as they would be in a run. A job that never fits is
    /// taken to send for free.
    pub fn iteration(&self, pattern: &Pattern, job: &JobSpec) -> Duration {
        let placed = self.fewest_nodes(job).unwrap_or_default();
        let route =
            self.wiring.route(pattern.exchange(), &placed, job.gpus()).unwrap_or_else(|_| Route::nothing());
        self.wiring.alone(&pattern.as_loop(), &route)
    }

    /// The fewest nodes that hold the whole job when nothing else runs, with its members.
    pub fn fewest_nodes(&self, job: &JobSpec) -> Option<Vec<PlacedMembers>> {
        let near_enough = |place: &&Place| match job.topology {
            Topology::Required(level) => place.level.is_some_and(|own| own >= level),
            Topology::Anywhere | Topology::Preferred(_) => true,
        };
        let places = self.places.iter().filter(near_enough);
        places.filter_map(|place| pack(&job.roles, place)).min_by_key(|placed| count_nodes(placed))
    }

    #[cfg(test)]
    fn nodes(&self, job: &JobSpec) -> Option<usize> {
        self.fewest_nodes(job).map(|placed| count_nodes(&placed))
    }
}

fn count_nodes(placed: &[PlacedMembers]) -> usize {
    placed.iter().map(|part| part.node).collect::<BTreeSet<_>>().len()
}

/// The places of a level that differ in what their nodes have.
fn places(cluster: &Cluster, level: Option<Level>) -> Vec<Place> {
    let all = cluster.nodes().iter().map(|(id, node)| (id, node.capacity));
    let mut together: BTreeMap<usize, Vec<(NodeId, Resources)>> = BTreeMap::new();
    for (id, capacity) in all {
        let domains = &cluster.node(id).domains;
        let place = match level {
            None => 0,
            Some(level) => domains.get(usize::from(level.0)).map_or(id.index(), |domain| domain.index()),
        };
        together.entry(place).or_default().push((id, capacity));
    }
    let mut seen: BTreeSet<Vec<Resources>> = BTreeSet::new();
    let mut places = Vec::new();
    for mut nodes in together.into_values() {
        nodes.sort_by_key(|(_, capacity)| std::cmp::Reverse((capacity.gpus, capacity.cpu, capacity.memory)));
        if seen.insert(nodes.iter().map(|(_, capacity)| *capacity).collect()) {
            places.push(Place { level, nodes });
        }
    }
    places
}

/// Largest members first, each where one of its job already is if there is room, else on the largest node left.
fn pack(roles: &[Role], place: &Place) -> Option<Vec<PlacedMembers>> {
    let mut roles: Vec<&Role> = roles.iter().collect();
    roles.sort_by_key(|role| {
        let each = role.shape.each;
        std::cmp::Reverse((each.gpus, each.cpu, each.memory))
    });
    let (mut opened, mut placed) = (Vec::new(), Vec::new());
    let mut fresh = place.nodes.iter().copied();
    for role in roles {
        let mut left = role.gang.min();
        let mut at = 0;
        while left > 0 {
            if at == opened.len() {
                opened.push(fresh.next()?);
            }
            let (node, room): &mut (NodeId, Resources) = &mut opened[at];
            let members = role.shape.each.count_on(*room).min(left);
            *room = *room - role.shape.each.times(u64::from(members));
            if members > 0 {
                placed.push(PlacedMembers { kind: role.kind, node: *node, members });
            }
            left -= members;
            at += 1;
        }
    }
    Some(placed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use metronome_core::model::cluster::{NodeSpec, Vertex};
    use metronome_core::model::job::{Gang, RoleKind};
    use metronome_core::model::profile::{Bucket, Iteration, Phase, Traffic};
    use metronome_core::model::units::{Bytes, Gpus};

    use crate::model::Model;

    const GBPS: u64 = 1_000_000_000;

    /// Two racks of two nodes with four GPUs: 100 Gbps to a node, 60 Gbps to a rack.
    fn lab() -> Cluster {
        let mut cluster = Cluster::new(&["rack"]).unwrap();
        let name = |vertex: Vertex| format!("{vertex:?}");
        let root = cluster.fabric.add_switch("root");
        for rack in 0..2 {
            let switch = cluster.fabric.add_switch(&format!("rack-{rack}"));
            cluster.fabric.connect(switch, root, Bandwidth(60 * GBPS), name).unwrap();
            for node in 0..2 {
                let spec = NodeSpec {
                    name: format!("node-{rack}-{node}"),
                    capacity: Resources { gpus: Gpus::whole(4), ..Resources::NONE },
                    domains: vec![format!("rack-{rack}")],
                    ..NodeSpec::default()
                };
                let id = cluster.add_node(&spec).unwrap();
                cluster.fabric.connect(Vertex::Node(id), switch, Bandwidth(100 * GBPS), name).unwrap();
            }
        }
        cluster
    }

    fn job(members: u64, gpus: u64) -> JobSpec {
        let each = Resources { gpus: Gpus::whole(gpus), ..Resources::NONE };
        JobSpec::workers("it", Gang::rigid(members).unwrap(), each)
    }

    /// One gradient of 75 MB that is ready at once, and nothing to compute: only sending counts.
    fn burst(members: u64, gpus: u64, within_node: Option<Bandwidth>) -> Duration {
        let buckets = vec![Bucket { ready: Duration::ZERO, bytes: Bytes(75_000_000) }];
        let iteration = Iteration { compute: Duration(1), buckets, finish: Duration::ZERO };
        let pattern = Pattern::Gradients(Arc::new(Model { name: "burst".into(), iteration }));
        let cluster = lab();
        Alone::new(&cluster, within_node).iteration(&pattern, &job(members, gpus))
    }

    #[test]
    fn a_ring_is_as_fast_as_the_narrowest_link_that_it_must_cross() {
        let ms = Duration::from_millis;
        assert_eq!(burst(2, 2, None), Duration(1), "on one node sending is free");
        assert_eq!(burst(2, 3, None), ms(6), "in one rack at 100 Gbps");
        assert_eq!(burst(4, 4, None), ms(15), "over two racks, half as much again at 60 Gbps");
        assert_eq!(burst(5, 4, None), Duration(1), "it never fits");
        let within = Some(Bandwidth(50 * GBPS));
        assert_eq!(burst(2, 2, within), ms(18), "over four GPUs");
        assert_eq!(burst(2, 3, within), ms(12), "no faster than inside its nodes");
    }

    #[test]
    fn servers_exchange_with_workers() {
        let mut with_server = job(1, 4);
        let mut server = with_server.roles[0].clone();
        server.kind = RoleKind::Ps;
        with_server.roles.push(server);
        let traffic = Traffic::new(
            Duration::from_millis(10),
            vec![Phase {
                offset: Duration::ZERO,
                length: Duration::from_millis(10),
                rate: Bandwidth(200 * GBPS),
            }],
        );
        let cluster = lab();
        let time = Alone::new(&cluster, None).iteration(&Pattern::Phases(traffic.unwrap()), &with_server);
        assert_eq!(time, Duration::from_millis(20), "the burst wants twice what the link has");
    }

    #[test]
    fn members_share_nodes_before_they_take_new_ones() {
        let cluster = lab();
        let alone = Alone::new(&cluster, None);
        let nodes = |members, gpus| alone.nodes(&job(members, gpus));
        assert_eq!(
            [nodes(4, 1), nodes(5, 1), nodes(4, 3), nodes(16, 1)],
            [Some(1), Some(2), Some(4), Some(4)]
        );
        let mut near = job(9, 1);
        near.topology = Topology::Required(Level(0));
        assert_eq!(alone.nodes(&near), None, "not within one rack");
    }
}
