//! Hosts and links, by what arrives over them.

use std::net::TcpStream;
use std::num::NonZeroU64;
use std::time::{Duration, Instant};

use metronome_core::model::cluster::{Cluster, Fabric, NodeSpec, Vertex};
use metronome_core::model::id::{LinkId, NodeId};
use metronome_core::model::units::Bandwidth;
use metronome_local::LocalError;
use metronome_local::cleanup::leftovers;
use metronome_local::hosts::{Hosts, Plug};
use metronome_local::links::Scale;
use metronome_local::names::MemberNumber;

use crate::flows::{alone, begin, holds_in_five_tries, send_all};
use crate::worlds::{TestWorld, mbit, tree};

const ONE: Scale = Scale(NonZeroU64::MIN);

fn plug_in(hosts: &mut Hosts, nodes: &[u32]) -> Vec<Plug> {
    let plugs =
        (0..).zip(nodes).map(|(number, node)| hosts.plug(MemberNumber(number), NodeId(*node)).unwrap());
    plugs.collect()
}

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn close(what: &str, rate: f64, expected: f64, tolerance: f64) -> Result<(), String> {
    let off = rate / expected - 1.0;
    eprintln!("{what}: {:.1} of {:.1} Mbit/s, {:+.1} %", rate / 1e6, expected / 1e6, off * 100.0);
    if off.abs() <= tolerance { Ok(()) } else { Err(format!("{what}: {off:+.3}")) }
}

#[test]
fn a_flow_has_the_rate_that_is_set_and_two_have_half_of_it_each() {
    let Some(world) = TestWorld::with_network() else { return };
    let folder = world.open();
    let _alone = alone();
    for rate in [50, 200, 500] {
        let cluster = tree(&["a", "a", "b", "b"], mbit(rate), mbit(rate));
        let mut hosts = Hosts::set_up(&folder, &cluster, ONE).unwrap();
        let plugs = plug_in(&mut hosts, &[0, 1, 2, 3]);
        let whole = rate as f64 * 1e6;
        holds_in_five_tries(|| {
            let one = send_all(&[(&plugs[0], &plugs[2])], millis(1200));
            close("one flow over 1 s", one[0].rate(millis(200), millis(1200)), whole, 0.03)
        });
        holds_in_five_tries(|| {
            let two = send_all(&[(&plugs[0], &plugs[2]), (&plugs[1], &plugs[3])], millis(1200));
            for flow in &two {
                close("one of two over 1 s", flow.rate(millis(200), millis(1200)), whole / 2.0, 0.03)?;
                let tenths = flow.windows(millis(200), millis(1200), millis(100));
                let worst = tenths
                    .iter()
                    .copied()
                    .max_by(|a, b| (a - whole / 2.0).abs().total_cmp(&(b - whole / 2.0).abs()));
                close("its worst tenth", worst.unwrap(), whole / 2.0, 0.1)?;
            }
            Ok(())
        });
        hosts.take_down().unwrap();
    }
}

#[test]
fn a_link_degrades_while_it_is_used_and_the_scale_divides_its_rate() {
    let Some(world) = TestWorld::with_network() else { return };
    let folder = world.open();
    let _alone = alone();
    let scale = Scale(NonZeroU64::new(500).unwrap());
    let cluster = tree(&["a", "b"], Bandwidth(100_000_000_000), Bandwidth(100_000_000_000));
    let mut hosts = Hosts::set_up(&folder, &cluster, scale).unwrap();
    let plugs = plug_in(&mut hosts, &[0, 1]);
    let up = hosts.crossed(plugs[0].number, plugs[1].number)[0];
    let mut port = 5000;
    holds_in_five_tries(|| {
        port += 1;
        let flow = begin(&plugs[0], &plugs[1], port, millis(2400));
        std::thread::sleep(millis(800));
        hosts.set_rate(up, Bandwidth(20_000_000_000)).unwrap();
        std::thread::sleep(millis(800));
        hosts.set_rate(up, Bandwidth(100_000_000_000)).unwrap();
        let flow = flow.join().unwrap();
        close("before", flow.rate(millis(200), millis(700)), 200e6, 0.1)?;
        close("degraded", flow.rate(millis(1000), millis(1500)), 40e6, 0.1)?;
        close("after", flow.rate(millis(1900), millis(2400)), 200e6, 0.1)
    });
    assert_eq!(hosts.ports()[up.0 as usize].rate, mbit(200));
}

#[test]
fn over_a_cut_cable_and_from_a_vanished_host_nothing_comes_until_it_is_back() {
    let Some(world) = TestWorld::with_network() else { return };
    let folder = world.open();
    let _alone = alone();
    let cluster = tree(&["a", "b"], mbit(100), mbit(100));
    let mut hosts = Hosts::set_up(&folder, &cluster, ONE).unwrap();
    let plugs = plug_in(&mut hosts, &[0, 1]);
    let crossed = hosts.crossed(plugs[0].number, plugs[1].number);
    assert_eq!(crossed.len(), 4);
    let began = Instant::now();
    let flow = begin(&plugs[0], &plugs[1], 5000, millis(9000));
    let mut moments = Vec::new();
    let mut mark = |after: Duration| {
        moments.push(began.elapsed());
        std::thread::sleep(after);
        moments.push(began.elapsed());
    };
    mark(millis(800));
    hosts.cut(crossed[1]).unwrap();
    mark(millis(1000));
    hosts.restore(crossed[1]).unwrap();
    mark(millis(2200));
    assert_eq!(hosts.vanish(NodeId(1)).unwrap(), [plugs[1].number]);
    let refused = hosts.plug(MemberNumber(7), NodeId(1));
    assert!(matches!(refused, Err(LocalError::Vanished(_))), "{refused:?}");
    mark(millis(1000));
    hosts.come_back(NodeId(1)).unwrap();
    mark(millis(2200));
    let flow = flow.join().unwrap();
    let came: Vec<f64> = moments
        .chunks(2)
        // What was under way when the cable was cut may still be read.
        .map(|part| flow.rate(part[0] + millis(200), part[1]))
        .collect();
    let (whole, cut): (Vec<_>, Vec<_>) = came.iter().enumerate().partition(|(at, _)| at % 2 == 0);
    assert!(whole.iter().all(|(_, rate)| **rate > 10e6), "{came:?}");
    assert!(cut.iter().all(|(_, rate)| **rate == 0.0), "{came:?}");
}

#[test]
fn links_that_are_not_there_are_named() {
    let Some(world) = TestWorld::with_network() else { return };
    let folder = world.open();
    let mut hosts = Hosts::set_up(&folder, &tree(&["a"], mbit(10), mbit(10)), ONE).unwrap();
    assert_eq!(
        hosts.cut(LinkId(99)).unwrap_err().to_string(),
        "find link 99: the cluster has none of that number"
    );
    assert!(matches!(hosts.plug(MemberNumber(0), NodeId(5)), Err(LocalError::NoNode(5))));
    let again = Hosts::set_up(&folder, &tree(&["a"], mbit(10), mbit(10)), ONE).unwrap_err();
    assert!(again.to_string().contains("File exists"), "{again}");
}

/// Two racks, each joined to two spines: a circle.
fn circle() -> Cluster {
    let mut cluster = Cluster::new(&[]).unwrap();
    for at in 0..4 {
        cluster.add_node(&NodeSpec { name: format!("m{at}"), ..NodeSpec::default() }).unwrap();
    }
    let mut fabric = Fabric::default();
    let leaves = ["l0", "l1"].map(|name| fabric.add_switch(name));
    let spines = ["s0", "s1"].map(|name| fabric.add_switch(name));
    let mut lay = |from, to| fabric.connect(from, to, mbit(100), |vertex| format!("{vertex:?}")).unwrap();
    (0..4).for_each(|node| lay(Vertex::Node(NodeId(node)), leaves[node as usize / 2]));
    leaves.iter().for_each(|leaf| spines.iter().for_each(|spine| lay(*leaf, *spine)));
    // One node has a second cable.
    lay(Vertex::Node(NodeId(0)), leaves[1]);
    cluster.fabric = fabric;
    cluster
}

#[test]
fn in_circles_everybody_reaches_everybody_and_nothing_goes_round() {
    let Some(world) = TestWorld::with_network() else { return };
    let folder = world.open();
    let mut hosts = Hosts::set_up(&folder, &circle(), ONE).unwrap();
    let plugs = plug_in(&mut hosts, &[0, 1, 2, 3, 2]);
    for to in &plugs {
        let listener =
            to.namespace.within(|| std::net::TcpListener::bind((to.address, 5000)).unwrap()).unwrap();
        for from in plugs.iter().filter(|from| from.number != to.number) {
            let address = (to.address, 5000).into();
            let reached =
                from.namespace.within(|| TcpStream::connect_timeout(&address, millis(2000))).unwrap();
            assert!(reached.is_ok(), "{} to {}: {reached:?}", from.number, to.number);
        }
        drop(listener);
    }
    // Somebody who is not there is sent nowhere.
    let nobody = (MemberNumber(77).address(), 5000).into();
    let reached = plugs[0].namespace.within(|| TcpStream::connect_timeout(&nobody, millis(300))).unwrap();
    assert!(reached.is_err());
    hosts.unplug(plugs[4].number).unwrap();
    let again = hosts.plug(plugs[4].number, NodeId(3)).unwrap();
    assert_eq!(hosts.crossed(plugs[3].number, again.number), []);
}

#[test]
fn without_links_all_nodes_are_joined_and_nothing_is_shaped() {
    let Some(world) = TestWorld::with_network() else { return };
    let folder = world.open();
    let mut cluster = Cluster::new(&[]).unwrap();
    for name in ["a", "b"] {
        cluster.add_node(&NodeSpec { name: name.into(), ..NodeSpec::default() }).unwrap();
    }
    let mut hosts = Hosts::set_up(&folder, &cluster, ONE).unwrap();
    assert_eq!(hosts.ports(), []);
    let plugs = plug_in(&mut hosts, &[0, 1]);
    let flow = begin(&plugs[0], &plugs[1], 5000, millis(500)).join().unwrap();
    assert!(flow.rate(millis(100), millis(500)) > 100e6);
    hosts.unplug(plugs[0].number).unwrap();
    hosts.take_down().unwrap();
}

#[test]
fn a_scheduler_that_comes_later_takes_over_what_there_is() {
    let Some(world) = TestWorld::with_network() else { return };
    let folder = world.open();
    let cluster = tree(&["a", "b"], mbit(100), mbit(100));
    let absent = Hosts::adopt(&folder, &cluster, ONE, &[]);
    assert!(matches!(absent, Err(LocalError::File { .. })));
    let mut first = Hosts::set_up(&folder, &cluster, ONE).unwrap();
    let plugs = plug_in(&mut first, &[0, 1, 1]);
    drop(first);
    // One whom nobody has written down.
    let members = [(plugs[0].number, plugs[0].node), (plugs[1].number, plugs[1].node)];
    let mut second = Hosts::adopt(&folder, &cluster, ONE, &members).unwrap();
    assert_eq!(second.plugged(plugs[1].number).as_ref(), Some(&plugs[1]));
    assert_eq!(second.free_number().unwrap(), MemberNumber(2));
    second.remove_strays().unwrap();
    second.plug(MemberNumber(2), NodeId(1)).unwrap();
    second.unplug(plugs[0].number).unwrap();
    assert_eq!(second.free_number().unwrap(), MemberNumber(0));
    second.plug(MemberNumber(0), NodeId(1)).unwrap();
    second.take_down().unwrap();
    assert_eq!(leftovers(world.root(), &world.name).namespaces, 0);
}

#[test]
fn twenty_four_nodes_are_up_in_a_moment() {
    let Some(world) = TestWorld::with_network() else { return };
    let folder = world.open();
    let _alone = alone();
    let racks: Vec<String> = (0..24).map(|node| format!("rack-{}", node / 4)).collect();
    let racks: Vec<&str> = racks.iter().map(String::as_str).collect();
    let began = Instant::now();
    let mut hosts = Hosts::set_up(&folder, &tree(&racks, mbit(200), mbit(200)), ONE).unwrap();
    let up = began.elapsed();
    plug_in(&mut hosts, &(0..24).collect::<Vec<u32>>());
    eprintln!(
        "24 nodes are up after {up:?}; 24 members are plugged in after {:?} more",
        began.elapsed() - up
    );
    // Thrice as long as it takes beside a compiler on two cores.
    assert!(up < Duration::from_secs(5), "{up:?}");
    assert_eq!(leftovers(world.root(), &world.name).namespaces, 24 + 1 + 24);
}
