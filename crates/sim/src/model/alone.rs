//! How long an iteration takes alone: what a job is offered as work, and what SRTF and deadlines count with.

use std::collections::{BTreeMap, BTreeSet};

use metronome_core::cluster::{Cluster, Level};
use metronome_core::id::{Id, LinkId, NodeId};
use metronome_core::job::{JobSpec, Role, Topology};
use metronome_core::units::{Bandwidth, Duration, Gpus, Resources, Share};

use super::{Pattern, ring_load};

/// The narrowest link on a job's way, and the bytes that each byte of gradient puts on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Way {
    pub load: f64,
    pub rate: Bandwidth,
}

impl Pattern {
    /// How long an iteration takes alone on this way; sending is free where there is none.
    ///
    /// A declared phase that wants more than the link has takes longer by as much, and the period with it.
    pub fn alone(&self, way: Option<Way>) -> Duration {
        match (self, way) {
            (Self::Gradients(model), None) => model.iteration.alone(0.0, Bandwidth::ZERO),
            (Self::Gradients(model), Some(way)) => model.iteration.alone(way.load, way.rate),
            (Self::Phases(traffic), None) => traffic.period(),
            (Self::Phases(traffic), Some(way)) => {
                let late = |wanted: Bandwidth, length: Duration| {
                    let factor = wanted.0 as f64 / way.rate.0 as f64 - 1.0;
                    Duration((length.0 as f64 * factor.max(0.0)).round() as u64)
                };
                let phases = traffic.phases().iter();
                traffic.period() + phases.map(|phase| late(phase.rate, phase.length)).sum()
            }
        }
    }
}

/// An empty cluster, as a job sees it that is alone.
#[derive(Debug)]
pub struct Alone<'a> {
    cluster: &'a Cluster,
    within_node: Option<Bandwidth>,
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

impl<'a> Alone<'a> {
    pub fn new(cluster: &'a Cluster, within_node: Option<Bandwidth>) -> Self {
        let levels = (0..=cluster.depth().0).rev().map(Some).chain([None]);
        let places = levels.flat_map(|level| places(cluster, level.map(Level))).collect();
        Self { cluster, within_node, places }
    }

    /// How long an iteration takes alone on the fewest nodes.
    ///
    /// The members, as many as the smallest size has, are packed onto the fewest nodes of the empty cluster, inside
    /// the smallest domain that allows so few. The job's ring goes over these nodes, domain by domain: over k nodes it
    /// puts 2 (k − 1) / k bytes on each hop for each byte of gradient, and its pace is that of the narrowest link it
    /// crosses: the links of the nodes, those of the racks where it leaves a rack, and so on. On one node sending is
    /// free, unless the scenario gives a rate within a node: then the ring goes over the job's GPUs at that rate, and
    /// a ring over several nodes is no faster than that. A job that never fits is taken to send for free.
    pub fn iteration(&self, pattern: &Pattern, job: &JobSpec) -> Duration {
        pattern.alone(self.fewest_nodes(job).and_then(|nodes| self.way(&nodes, job.gpus())))
    }

    /// The fewest nodes that hold the whole job when nothing else runs, ring neighbours side by side.
    pub fn fewest_nodes(&self, job: &JobSpec) -> Option<Vec<NodeId>> {
        let near_enough = |place: &&Place| match job.topology {
            Topology::Required(level) => place.level.is_some_and(|own| own >= level),
            Topology::Anywhere | Topology::Preferred(_) => true,
        };
        let places = self.places.iter().filter(near_enough);
        let mut nodes = places.filter_map(|place| pack(&job.roles, place)).min_by_key(Vec::len)?;
        nodes.sort_by_key(|node| (&self.cluster.node(*node).domains, *node));
        Some(nodes)
    }

    fn way(&self, nodes: &[NodeId], gpus: Gpus) -> Option<Way> {
        if nodes.len() < 2 {
            let load = ring_load(u32::try_from(gpus.0.div_ceil(Gpus::whole(1).0)).unwrap_or(u32::MAX));
            return self.within_node.map(|rate| Way { load, rate });
        }
        let rate = [self.ring_rate(nodes), self.within_node].into_iter().flatten().min()?;
        Some(Way { load: ring_load(nodes.len() as u32), rate })
    }

    /// The pace of a ring over these nodes: each link counts by the traffic that crosses it, over all hops.
    fn ring_rate(&self, nodes: &[NodeId]) -> Option<Bandwidth> {
        let fabric = &self.cluster.fabric;
        let mut crossed: BTreeMap<LinkId, u64> = BTreeMap::new();
        for (index, from) in nodes.iter().enumerate() {
            let to = nodes[(index + 1) % nodes.len()];
            for (link, share) in fabric.path(*from, to)? {
                *crossed.entry(link).or_default() += u64::from(share.0);
            }
        }
        let pace = |(link, share): (LinkId, u64)| {
            let rate = u128::from(fabric.links()[link].rate.0) * u128::from(Share::WHOLE.0);
            Bandwidth(u64::try_from(rate / u128::from(share.max(1))).unwrap_or(u64::MAX))
        };
        crossed.into_iter().map(pace).min()
    }
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
fn pack(roles: &[Role], place: &Place) -> Option<Vec<NodeId>> {
    let mut roles: Vec<(Resources, u32)> =
        roles.iter().map(|role| (role.shape.each, role.gang.min())).collect();
    roles.sort_by_key(|(each, _)| std::cmp::Reverse((each.gpus, each.cpu, each.memory)));
    let mut rooms: Vec<Room> = Vec::new();
    let mut fresh = place.nodes.iter().map(|(node, room)| Room { node: *node, room: *room, used: false });
    for (each, mut left) in roles {
        for room in &mut rooms {
            left -= room.take(each, left);
        }
        while left > 0 {
            let mut room = fresh.next()?;
            left -= room.take(each, left);
            rooms.push(room);
        }
    }
    Some(rooms.into_iter().filter(|room| room.used).map(|room| room.node).collect())
}

struct Room {
    node: NodeId,
    room: Resources,
    used: bool,
}

impl Room {
    /// Takes in as many of `wanted` as fit, and says how many.
    fn take(&mut self, each: Resources, wanted: u32) -> u32 {
        let taken = each.count_in(self.room).min(wanted);
        self.room = self.room - each.times(u64::from(taken));
        self.used |= taken > 0;
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use metronome_core::cluster::{NodeSpec, Vertex};
    use metronome_core::job::Gang;
    use metronome_core::profile::{Phase, Traffic};

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
                    gpu_type: None,
                    domains: vec![format!("rack-{rack}")],
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

    fn way(members: u64, gpus: u64, within_node: Option<Bandwidth>) -> Option<Way> {
        let (cluster, job) = (lab(), job(members, gpus));
        let alone = Alone::new(&cluster, within_node);
        alone.fewest_nodes(&job).and_then(|nodes| alone.way(&nodes, job.gpus()))
    }

    #[test]
    fn a_ring_is_as_fast_as_the_narrowest_link_that_it_must_cross() {
        let node = Bandwidth(100 * GBPS);
        assert_eq!(way(2, 2, None), None, "one node");
        assert_eq!(way(2, 3, None), Some(Way { load: 1.0, rate: node }), "one rack");
        assert_eq!(way(3, 4, None), Some(Way { load: 4.0 / 3.0, rate: Bandwidth(60 * GBPS) }), "two racks");
        assert_eq!(way(5, 4, None), None, "it never fits");
        let within = Some(Bandwidth(80 * GBPS));
        assert_eq!(way(2, 2, within), Some(Way { load: 1.5, rate: Bandwidth(80 * GBPS) }), "over four GPUs");
        assert_eq!(way(2, 3, within), Some(Way { load: 1.0, rate: Bandwidth(80 * GBPS) }));
    }

    #[test]
    fn members_share_nodes_before_they_take_new_ones() {
        let cluster = lab();
        let alone = Alone::new(&cluster, None);
        let nodes = |members, gpus| alone.fewest_nodes(&job(members, gpus)).map(|nodes| nodes.len());
        assert_eq!(
            [nodes(4, 1), nodes(5, 1), nodes(4, 3), nodes(16, 1)],
            [Some(1), Some(2), Some(4), Some(4)]
        );
        let mut near = job(9, 1);
        near.topology = Topology::Required(Level(0));
        assert_eq!(alone.fewest_nodes(&near), None, "not within one rack");
    }

    #[test]
    fn a_phase_that_wants_more_than_the_link_has_takes_longer() {
        let ms = Duration::from_millis;
        let phase = |offset, rate| Phase { offset: ms(offset), length: ms(20), rate: Bandwidth(rate * GBPS) };
        let pattern = Pattern::Phases(Traffic::new(ms(100), vec![phase(0, 50), phase(50, 150)]).unwrap());
        assert_eq!(pattern.alone(None), ms(100));
        assert_eq!(pattern.alone(Some(Way { load: 1.5, rate: Bandwidth(100 * GBPS) })), ms(110));
    }
}
