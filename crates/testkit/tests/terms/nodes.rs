//! What nodes have beside CPU, memory and GPUs, and what becomes of them.

use std::sync::Arc;

use metronome_core::engine::Event;
use metronome_core::model::cluster::NodeSpec;
use metronome_core::model::id::NodeId;
use metronome_core::model::report::{Reason, State};
use metronome_testkit::build::{engine, gpu_node, gpus, policy, racks};
use metronome_testkit::drive::{Driver, Op};

use super::{NOW, assert_well, gang, nodes, observe, runs, single};

#[test]
fn a_node_takes_no_more_members_than_it_has_places_for() {
    let mut driver = Driver::new(racks(1, 2, 8), policy("volcano"));
    let slots = driver.engine.add_counter(NOW, "slots", 3);
    let mut spec = gang("a", 4, 1);
    spec.roles[0].shape.counters = Arc::from([(slots, 1)]);
    let job = driver.submit(spec.clone());
    driver.settle();
    assert_eq!(nodes(&driver, job).len(), 2, "three on one node, one on the other");
    spec.name = "b".into();
    let late = driver.submit(spec);
    driver.settle();
    assert!(!runs(&driver, late));
    let explained = driver.engine.explain(late).unwrap();
    assert_eq!(explained.lacks, [("slots".into(), 4, 2)]);
    assert_well(&driver);
}

#[test]
fn a_job_that_needs_more_of_a_counter_than_nodes_have_is_refused() {
    let mut engine = engine(racks(1, 2, 8), policy("volcano"));
    let ports = engine.add_counter(NOW, "port 80", 1);
    let mut spec = gang("a", 3, 1);
    spec.roles[0].shape.counters = Arc::from([(ports, 1)]);
    let job = engine.submit(NOW, Arc::new(spec));
    let refused = engine.explain(job).unwrap();
    assert_eq!(refused.state, State::Refused);
    assert_eq!(refused.reason, Some(Reason::NoMatchingNode { each: gpus(1), members: 3, fit: 2 }));
}

#[test]
fn where_nodes_may_come_a_job_that_fits_nowhere_waits_with_that_reason() {
    let mut driver = Driver::patient(racks(1, 1, 4), policy("volcano"));
    let job = driver.submit(gang("a", 8, 1));
    driver.settle();
    let reason = Reason::NoMatchingNode { each: gpus(1), members: 8, fit: 4 };
    assert_eq!(driver.engine.verdict(job), Some(reason));
    let node = NodeSpec {
        name: "late".into(),
        capacity: gpu_node(4),
        domains: vec!["rack-0".into()],
        ..NodeSpec::default()
    };
    observe(&mut driver, Event::NodeAdded(node));
    driver.settle();
    assert!(runs(&driver, job));
    assert_well(&driver);
}

#[test]
fn a_node_that_shrinks_keeps_what_runs_and_takes_nothing_more() {
    let mut driver = Driver::new(racks(1, 1, 4), policy("volcano"));
    let three = driver.submit(gang("three", 3, 1));
    driver.settle();
    driver.apply(&Op::NodeChanges(0, 2, 0));
    let one = driver.submit(single("one", 1));
    driver.settle();
    assert!(runs(&driver, three) && !runs(&driver, one));
    driver.apply(&Op::NodeChanges(0, 4, 0));
    driver.settle();
    assert!(runs(&driver, one));
    assert_well(&driver);
}

#[test]
fn what_was_planned_onto_a_node_that_shrank_goes_back_into_line() {
    let mut driver = Driver::new(racks(1, 2, 4), policy("srtf"));
    let long = driver.submit(metronome_testkit::build::job("long", 8, 100));
    driver.settle();
    let short = driver.submit(metronome_testkit::build::job("short", 4, 10));
    driver.poll();
    let planned = nodes(&driver, short);
    assert_eq!(driver.engine.verdict(short), Some(Reason::WaitingForVictims));
    driver.apply(&Op::NodeChanges(planned[0] as usize, 1, 0));
    assert!(nodes(&driver, short).is_empty());
    driver.settle();
    assert!(runs(&driver, short) && !runs(&driver, long));
    assert_ne!(nodes(&driver, short), planned);
    assert_well(&driver);
}

#[test]
fn members_run_only_on_the_nodes_of_their_set() {
    let mut driver = Driver::new(racks(2, 2, 4), policy("volcano"));
    let set = driver.engine.add_node_set(NOW, vec![NodeId(3)]);
    let mut spec = single("a", 4);
    spec.roles[0].shape.on.set = Some(set);
    let first = driver.submit(spec.clone());
    let second = driver.submit(spec);
    driver.settle();
    assert_eq!((nodes(&driver, first), nodes(&driver, second)), (vec![3], vec![]));
    observe(&mut driver, Event::NodeSetChanged { set, node: NodeId(1), allowed: true });
    driver.settle();
    assert_eq!(nodes(&driver, second), [1]);
    observe(&mut driver, Event::NodeSet { set, nodes: vec![NodeId(0)] });
    driver.settle();
    assert!(runs(&driver, first) && runs(&driver, second), "who runs stays");
    assert_well(&driver);
}
