//! Where parameter servers and workers go, against every other place they could have.

use metronome_core::model::cluster::{Cluster, NodeSpec};
use metronome_core::model::job::{Gang, JobSpec, Role, RoleKind, Shape};
use metronome_core::model::plan::Assignment;
use metronome_core::model::units::{Cpu, Gpus, Memory, Resources};
use metronome_testkit::build::{policy, racks};
use metronome_testkit::drive::Driver;
use proptest::prelude::*;

/// CPUs and GPUs.
fn takes(cpus: u64, gpus: u64) -> Resources {
    Resources { cpu: Cpu::cores(cpus), memory: Memory::gib(cpus), gpus: Gpus::whole(gpus) }
}

/// Racks of nodes with these CPUs and GPUs.
fn cluster(racks: &[Vec<(u64, u64)>]) -> Cluster {
    let mut cluster = Cluster::new(&["rack"]).unwrap();
    for (rack, nodes) in racks.iter().enumerate() {
        for (node, (cpus, gpus)) in nodes.iter().enumerate() {
            let spec = NodeSpec {
                name: format!("node-{rack}-{node}"),
                capacity: takes(*cpus, *gpus),
                domains: vec![format!("rack-{rack}")],
                ..NodeSpec::default()
            };
            cluster.add_node(&spec).unwrap();
        }
    }
    cluster
}

/// Servers of one CPU; workers of so many GPUs and as many CPUs.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    servers: u64,
    workers: u64,
    gpus: u64,
}

const SERVER: (u64, u64) = (1, 0);

impl Wanted {
    fn job(self) -> JobSpec {
        let role =
            |kind, members, each| Role { kind, gang: Gang::rigid(members).unwrap(), shape: Shape::of(each) };
        let mut spec = JobSpec::workers("job", Gang::rigid(1).unwrap(), Resources::NONE);
        let server = takes(SERVER.0, SERVER.1);
        spec.roles = vec![
            role(RoleKind::Worker, self.workers, takes(self.gpus, self.gpus)),
            role(RoleKind::Ps, self.servers, server),
        ];
        spec
    }

    /// Gradients that cross the link of a node, times the number of servers.
    fn crossing(self, servers: u64, workers: u64) -> u64 {
        servers * (self.workers - workers) + workers * (self.servers - servers)
    }

    fn fits(self, (cpus, gpus): (u64, u64), servers: u64, workers: u64) -> bool {
        servers * SERVER.0 + workers * self.gpus <= cpus && workers * self.gpus <= gpus
    }

    /// The fewest of these nodes that hold all, and the least on the busiest of their links, by trying everything.
    fn best(self, nodes: &[(u64, u64)]) -> Option<(usize, u64)> {
        self.best_of_rest(nodes, self.servers, self.workers)
    }

    fn best_of_rest(self, nodes: &[(u64, u64)], servers: u64, workers: u64) -> Option<(usize, u64)> {
        if servers == 0 && workers == 0 {
            return Some((0, 0));
        }
        let (node, rest) = nodes.split_first()?;
        let mut best: Option<(usize, u64)> = None;
        for s in 0..=servers {
            for w in (0..=workers).filter(|w| self.fits(*node, s, *w)) {
                let Some((count, busiest)) = self.best_of_rest(rest, servers - s, workers - w) else {
                    continue;
                };
                let own = (count + usize::from(s + w > 0), busiest.max(self.crossing(s, w)));
                best = Some(best.map_or(own, |least| least.min(own)));
            }
        }
        best
    }

    /// How many nodes a place has, and what crosses the busiest of their links.
    fn cost_of(self, place: &Assignment) -> (usize, u64) {
        let on = |node, role| {
            let parts = place.parts().iter().filter(|part| part.node == node && part.role == role);
            parts.map(|part| u64::from(part.members)).sum::<u64>()
        };
        let crossing = place.nodes().map(|node| self.crossing(on(node, 1), on(node, 0)));
        (place.nodes().count(), crossing.max().unwrap_or(0))
    }
}

/// Where the job is put on an empty cluster, if it is.
fn placed(cluster: Cluster, wanted: Wanted, name: &str) -> Option<Assignment> {
    let mut driver = Driver::new(cluster, policy(name));
    let job = driver.submit(wanted.job());
    driver.poll();
    assert_eq!(driver.engine.state().alarms, 0, "{:?}", driver.engine.state().last_alarm);
    driver.engine.state().plan.get(job).map(|place| (**place).clone())
}

fn a_node() -> impl Strategy<Value = (u64, u64)> {
    (0u64..7, 0u64..5)
}

fn small() -> impl Strategy<Value = (Vec<Vec<(u64, u64)>>, Wanted)> {
    let racks = prop::collection::vec(prop::collection::vec(a_node(), 1..4), 1..3);
    let wanted =
        (1u64..4, 1u64..6, 1u64..3).prop_map(|(servers, workers, gpus)| Wanted { servers, workers, gpus });
    (racks, wanted)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn inside_a_rack_no_place_has_fewer_nodes_or_as_many_with_less_on_the_busiest_link(
        (racks, wanted) in small()
    ) {
        let best = racks.iter().filter_map(|nodes| wanted.best(nodes)).min();
        let place = placed(cluster(&racks), wanted, "metronome");
        if let Some(best) = best {
            let place = place.expect("a rack holds it");
            prop_assert_eq!(wanted.cost_of(&place), best, "{:?}", place);
        } else if let Some(place) = place {
            let all: Vec<(u64, u64)> = racks.concat();
            prop_assert!(wanted.cost_of(&place).0 >= wanted.best(&all).expect("it was placed").0);
        }
    }

    #[test]
    fn servers_and_workers_are_placed_whole_or_not_at_all((racks, wanted) in small()) {
        for name in ["metronome", "volcano"] {
            if let Some(place) = placed(cluster(&racks), wanted, name) {
                prop_assert_eq!(u64::from(place.members()), wanted.servers + wanted.workers);
            }
        }
    }
}

fn on_nodes(place: &Assignment) -> Vec<(u32, u64, u64)> {
    let on = |node, role| -> u64 {
        let parts = place.parts().iter().filter(|part| part.node == node && part.role == role);
        parts.map(|part| u64::from(part.members)).sum()
    };
    place.nodes().map(|node| (node.0, on(node, 1), on(node, 0))).collect()
}

#[test]
fn servers_share_nodes_with_equal_parts_of_the_workers() {
    let wanted = Wanted { servers: 2, workers: 8, gpus: 1 };
    let place = placed(racks(2, 4, 4), wanted, "metronome").unwrap();
    assert_eq!(on_nodes(&place), [(0, 1, 4), (1, 1, 4)]);
}

#[test]
fn a_gang_that_one_node_holds_exchanges_over_no_link() {
    let wanted = Wanted { servers: 3, workers: 4, gpus: 1 };
    let place = placed(racks(2, 4, 4), wanted, "metronome").unwrap();
    assert_eq!(on_nodes(&place), [(0, 3, 4)]);
}

#[test]
fn a_gang_too_large_to_try_everything_still_has_its_servers_apart() {
    let wanted = Wanted { servers: 16, workers: 256, gpus: 1 };
    let place = placed(racks(1, 40, 8), wanted, "metronome").unwrap();
    let nodes = on_nodes(&place);
    assert_eq!(nodes.len(), 32);
    assert!(nodes.iter().all(|(_, servers, workers)| *servers <= 1 && *workers == 8), "{nodes:?}");
}

#[test]
fn over_several_racks_servers_stay_with_workers() {
    let wanted = Wanted { servers: 4, workers: 24, gpus: 1 };
    let place = placed(racks(3, 4, 4), wanted, "metronome").unwrap();
    let nodes = on_nodes(&place);
    assert_eq!(nodes.len(), 6);
    assert!(nodes.iter().all(|(_, servers, _)| *servers <= 1), "{nodes:?}");
}

#[test]
fn volcano_gives_each_server_a_bucket_with_an_equal_part_of_the_workers() {
    let wanted = Wanted { servers: 2, workers: 6, gpus: 1 };
    let place = placed(racks(1, 4, 4), wanted, "volcano").unwrap();
    assert_eq!(on_nodes(&place), [(0, 1, 3), (1, 1, 3)]);
}

#[test]
fn a_bucket_that_no_node_holds_goes_where_most_of_it_fits() {
    // One server and six workers in one bucket: the server and four workers fit a node, two are left.
    let wanted = Wanted { servers: 1, workers: 6, gpus: 1 };
    let place = placed(racks(1, 4, 4), wanted, "volcano").unwrap();
    assert_eq!(on_nodes(&place), [(0, 1, 4), (1, 0, 2)]);
}
