//! Weights that are said on pods.

use super::moves::{said, sharing};
use super::*;

const ALLOWED: (&str, &str) = ("throttle", "allowed");

fn weights(deeds: &[Deed]) -> Vec<(String, Option<String>)> {
    said(deeds, "cpu-weight")
}

fn saying(mut pod: Value, weight: &str) -> Value {
    pod["metadata"]["annotations"]["metronome.dev/cpu-weight"] = json!(weight);
    pod
}

/// A pod with little to do, and one with much.
fn both(first: &[(&str, &str)]) -> (Value, Value) {
    let short = [&[("duration", "20m")], first].concat();
    (sharing("short", 4, &short), sharing("long", 4, &[ALLOWED]))
}

#[test]
fn who_has_least_left_has_more_weight_until_nobody_is_beside_it() {
    let (short, long) = both(&[ALLOWED]);
    let mut world = world(4, vec![on(short.clone(), "n"), on(long.clone(), "n")]);
    let deeds = [world.turn(at(1)), world.turn(at(20))].concat();
    assert_eq!(weights(&deeds), [("short".to_owned(), Some("10000".to_owned()))]);
    apply(&mut world, at(30), saying(on(short.clone(), "n"), "10000"));
    assert_eq!(weights(&world.turn(at(31))), [], "it says so already");
    delete(&mut world, at(40), on(long, "n"));
    let deeds = [world.turn(at(41)), world.turn(at(60))].concat();
    assert_eq!(weights(&deeds), [("short".to_owned(), None)]);
    apply(&mut world, at(61), on(short, "n"));
    world.turn(at(62));
    assert!(world.asked.is_empty());
}

#[test]
fn who_has_not_allowed_it_says_nothing() {
    let (short, long) = both(&[("checkpoint", "30s")]);
    let mut world = world(4, vec![on(short, "n"), on(long, "n")]);
    let deeds: Vec<Deed> = (1..6).flat_map(|round| world.turn(at(10 * round))).collect();
    assert_eq!(weights(&deeds), []);
}

#[test]
fn a_weight_of_an_earlier_leader_is_taken_back() {
    let alone = on(saying(sharing("a", 4, &[ALLOWED]), "10000"), "n");
    let mut world = world(4, vec![alone]);
    assert_eq!(weights(&world.turn(at(0))), [("a".to_owned(), None)]);
}
