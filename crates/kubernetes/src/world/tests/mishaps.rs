//! Pods that fail, and what is held against their node.

use super::*;
use crate::deed::{About, EventReason};

fn failed(mut pod: Value) -> Value {
    pod["status"]["phase"] = json!("Failed");
    pod
}

/// Four nodes with three pods on the first.
fn four_nodes() -> World {
    let nodes = ["n", "m", "o", "p"].map(|name| node(name, 4));
    let pods = ["a", "b", "c"].map(|name| on(pod(name), "n"));
    rebuilt(nodes.to_vec(), pods.to_vec(), Vec::new())
}

fn avoided(deeds: &[Deed]) -> Vec<String> {
    let told = |deed: &Deed| match &deed.kind {
        Kind::Tell(it) if it.reason == EventReason::NodeAvoided => match &it.about {
            About::Object(object) => Some(format!("{}/{}", object.kind, object.name)),
            About::Pod(_) => None,
        },
        _ => None,
    };
    deeds.iter().filter_map(told).collect()
}

#[test]
fn a_node_on_which_three_pods_fail_is_avoided_and_that_is_said_once() {
    let mut world = four_nodes();
    for (at_s, name) in [(1, "a"), (2, "b"), (3, "c")] {
        assert!(avoided(&world.turn(at(at_s))).is_empty());
        apply(&mut world, at(at_s), failed(on(pod(name), "n")));
        apply(&mut world, at(at_s), failed(on(pod(name), "n")));
    }
    assert_eq!(avoided(&world.turn(at(5))), ["Node/n"]);
    assert!(avoided(&world.turn(at(60))).is_empty());
    apply(&mut world, at(61), pod("next"));
    let binds = binds(&world.turn(at(61)));
    assert!(!binds[0].1[0].ends_with("@n"), "{binds:?}");
}

#[test]
fn pods_that_were_to_go_and_those_of_one_owner_do_not_count_as_several() {
    let mut world = four_nodes();
    for name in ["a", "b"] {
        apply(&mut world, at(1), failed(on(pod(name), "n")));
    }
    apply(&mut world, at(2), leaving(on(pod("c"), "n")));
    apply(&mut world, at(3), failed(leaving(on(pod("c"), "n"))));
    assert!(avoided(&world.turn(at(5))).is_empty());
    for name in ["d", "e", "f"] {
        apply(&mut world, at(6), owned(on(pod(name), "m")));
        world.turn(at(6));
        apply(&mut world, at(7), failed(owned(on(pod(name), "m"))));
    }
    assert!(avoided(&world.turn(at(10))).is_empty());
}
