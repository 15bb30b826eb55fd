//! Leaves as an agent makes them, beside those of members.

use std::process::Command;
use std::time::Duration;

use metronome_core::model::id::NodeId;
use metronome_core::network::packet::WIRE_PACKET;
use metronome_local::hosts::{Hosts, Plug};
use metronome_local::links::{Port, Scale};
use metronome_local::names::MemberNumber;

use crate::flows::{alone, holds_in_five_tries, send_all};
use crate::worlds::{TestWorld, mbit, tree};

fn tc(port: &Port, words: &str) {
    let told = port.namespace.within(|| Command::new("tc").args(words.split(' ')).status().unwrap()).unwrap();
    assert!(told.success(), "tc {words}");
}

/// Gives a member a leaf with a standing of its own.
fn give_lane(port: &Port, member: &Plug, standing: &str) {
    let (device, rate) = (&port.device, port.rate.0);
    let leaf = format!(
        "class replace dev {device} parent 1:1 classid 1:10 htb rate 1mbit ceil {rate}bit {standing}"
    );
    tc(port, &leaf);
    let source = format!("match ip src {}/32 flowid 1:10", member.address);
    tc(
        port,
        &format!("filter replace dev {device} parent 1: protocol ip pref 16 handle 801::1 u32 {source}"),
    );
}

#[test]
fn leaves_of_an_agent_stand_as_they_say() {
    let Some(world) = TestWorld::with_network() else { return };
    let folder = world.open();
    let _alone = alone();
    let cluster = tree(&["a", "a", "b", "b"], mbit(200), mbit(400));
    let mut hosts = Hosts::set_up(&folder, &cluster, Scale(1.try_into().unwrap())).unwrap();
    let plugs: Vec<Plug> = (0..4).map(|at| hosts.plug(MemberNumber(at), NodeId(at)).unwrap()).collect();
    let ports = hosts.ports();
    let rack = &ports[hosts.crossed(plugs[0].number, plugs[2].number)[1].0 as usize];
    let ms = Duration::from_millis;
    let share = |what: &str| {
        let both = send_all(&[(&plugs[0], &plugs[2]), (&plugs[1], &plugs[3])], ms(1000));
        let [one, other] = [0, 1].map(|at: usize| both[at].rate(ms(200), ms(1000)));
        eprintln!("{what}: {:.1} and {:.1} Mbit/s", one / 1e6, other / 1e6);
        one / (one + other)
    };
    // HTB sends at least a packet in a turn: below that, weights mean nothing.
    for (packets, part) in [(1, 0.5), (4, 0.8)] {
        let quantum = packets * WIRE_PACKET;
        give_lane(rack, &plugs[0], &format!("burst 20000 cburst 25000 quantum {quantum}"));
        holds_in_five_tries(|| {
            let had = share(&format!("a weight of {packets}"));
            if f64::abs(had - part) < 0.05 { Ok(()) } else { Err(format!("{had} for {part}")) }
        });
    }
    give_lane(rack, &plugs[0], &format!("burst 20000 cburst 25000 prio 3 quantum {WIRE_PACKET}"));
    let had = share("the last class");
    assert!(had < 0.05, "{had}");
}
