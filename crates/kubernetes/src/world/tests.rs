//! Hand-made objects in, deeds out: no API server, no clock.

mod deadlines;
mod mishaps;
mod moves;
mod queues;
mod reports;
mod together;
mod turns;
mod weights;

use serde_json::{Value, json};

use metronome_core::model::units::{Duration, Instant};

use super::*;
use crate::deed::{Bound, Intent, Outcome, Seat};
use crate::objects::{Group, GroupKind, Node, Pod};
use crate::watch::{Delta, Recorded};

/// Some months after the pods below were made.
const START: Instant = Instant(1_780_000_000_000_000_000);

fn at(seconds: u64) -> Instant {
    START + Duration::from_secs(seconds)
}

fn node(name: &str, cpu: u32) -> Node {
    let allocatable = json!({"cpu": cpu.to_string(), "memory": "64Gi", "pods": "110"});
    let labels = json!({"kubernetes.io/hostname": name});
    read(json!({"metadata": {"name": name, "labels": labels}, "status": {"allocatable": allocatable}}))
}

/// A pod of ours that asks for one CPU.
fn pod(name: &str) -> Value {
    json!({
        "metadata": {
            "name": name, "namespace": "ns", "uid": name, "resourceVersion": "1", "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {}, "annotations": {},
        },
        "spec": {
            "schedulerName": "metronome",
            "containers": [{"resources": {"requests": {"cpu": "1"}}}],
        },
        "status": {"phase": "Pending"},
    })
}

fn member(name: &str, gang: &str, members: u32) -> Value {
    let mut pod = pod(name);
    pod["metadata"]["labels"]["metronome.dev/gang"] = json!(gang);
    pod["metadata"]["annotations"]["metronome.dev/gang-members"] = json!(members.to_string());
    pod
}

fn on(mut pod: Value, node: &str) -> Value {
    pod["spec"]["nodeName"] = json!(node);
    pod
}

fn owned(mut pod: Value) -> Value {
    let owner = json!({"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j", "controller": true});
    pod["metadata"]["ownerReferences"] = json!([owner]);
    pod
}

fn with_priority(mut pod: Value, priority: i32) -> Value {
    pod["spec"]["priority"] = json!(priority);
    pod
}

fn leaving(mut pod: Value) -> Value {
    pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:01:00Z");
    pod
}

fn read<T: serde::de::DeserializeOwned>(object: Value) -> T {
    serde_json::from_value(object).expect("a well-formed object")
}

/// A world over one node `n` of so many CPUs, and whatever pods are there.
fn world(cpus: u32, pods: Vec<Value>) -> World {
    rebuilt(vec![node("n", cpus)], pods, Vec::new())
}

fn rebuilt(nodes: Vec<Node>, pods: Vec<Value>, intents: Vec<Recorded>) -> World {
    let lists = vec![
        Change::Pod(Delta::Reset(pods.into_iter().map(read).collect())),
        Change::Node(Delta::Reset(nodes)),
        Change::Intent(Delta::Reset(intents)),
    ];
    World::rebuild(Settings::new("metronome"), START, Initial { lists })
}

fn apply(world: &mut World, now: Instant, pod: Value) {
    world.apply(now, Change::Pod(Delta::Applied(read(pod))));
}

fn delete(world: &mut World, now: Instant, pod: Value) {
    world.apply(now, Change::Pod(Delta::Deleted(read(pod))));
}

/// The binds among some deeds: ticket, seats as `pod@node`, and whether an intent is recorded first.
fn binds(deeds: &[Deed]) -> Vec<(Ticket, Vec<String>, bool)> {
    let bind = |deed: &Deed| match &deed.kind {
        Kind::Bind { members, intent } => {
            let mut seats: Vec<String> =
                members.iter().map(|seat| format!("{}@{}", seat.pod.name, seat.node)).collect();
            seats.sort();
            Some((deed.ticket, seats, intent.is_some()))
        }
        _ => None,
    };
    deeds.iter().filter_map(bind).collect()
}

fn evictions(deeds: &[Deed]) -> Vec<(Ticket, Vec<String>)> {
    let evict = |deed: &Deed| match &deed.kind {
        Kind::Evict { victims, .. } => {
            Some((deed.ticket, victims.iter().map(|pod| pod.name.to_string()).collect()))
        }
        _ => None,
    };
    deeds.iter().filter_map(evict).collect()
}

fn explained(deeds: &[Deed]) -> Vec<(String, String)> {
    let explain = |deed: &Deed| match &deed.kind {
        Kind::Explain { pod, verdict } => Some((pod.name.to_string(), verdict.message.clone())),
        _ => None,
    };
    deeds.iter().filter_map(explain).collect()
}

fn deleted(deeds: &[Deed]) -> Vec<String> {
    let delete = |deed: &Deed| match &deed.kind {
        Kind::Delete { pods, .. } => pods.iter().map(|pod| pod.name.to_string()).collect(),
        _ => Vec::new(),
    };
    deeds.iter().flat_map(delete).collect()
}

/// Answers every bind among the deeds: `fate` says what becomes of each pod.
fn answer(world: &mut World, now: Instant, deeds: &[Deed], fate: impl Fn(&str) -> Bound) {
    for deed in deeds {
        if let Kind::Bind { members, .. } = &deed.kind {
            let members: Vec<(Seat, Bound)> =
                members.iter().map(|seat| (seat.clone(), fate(&seat.pod.name))).collect();
            world.heard(now, Outcome::Bound { ticket: deed.ticket, members });
        }
    }
}

#[test]
fn a_pod_is_bound_where_there_is_room() {
    let mut world = world(2, vec![pod("a")]);
    let deeds = world.turn(at(0));
    assert_eq!(binds(&deeds), [(Ticket(1), vec!["a@n".into()], false)]);
    answer(&mut world, at(1), &deeds, |_| Bound::Here);
    apply(&mut world, at(1), pod("b"));
    apply(&mut world, at(1), pod("c"));
    let deeds = world.turn(at(2));
    assert_eq!(binds(&deeds).len(), 1, "two CPUs, one taken");
}

#[test]
fn a_gang_is_bound_whole_after_its_intent_is_recorded() {
    let mut world = world(4, vec![member("g-0", "g", 3), member("g-1", "g", 3)]);
    assert_eq!(binds(&world.turn(at(0))), []);
    let waits = explained(&world.turn(at(2)));
    assert!(waits.is_empty() || waits[0].1.contains("2 of the 3"), "{waits:?}");
    apply(&mut world, at(3), member("g-2", "g", 3));
    let deeds = world.turn(at(3));
    let seats = vec!["g-0@n".to_owned(), "g-1@n".into(), "g-2@n".into()];
    assert_eq!(
        binds(&deeds).iter().map(|(_, seats, intent)| (seats.clone(), *intent)).collect::<Vec<_>>(),
        [(seats, true)]
    );
    answer(&mut world, at(4), &deeds, |_| Bound::Here);
    let deeds = world.turn(at(4));
    assert!(deeds.iter().any(|deed| matches!(deed.kind, Kind::Forget { .. })), "{deeds:?}");
    apply(&mut world, at(5), member("g-3", "g", 3));
    assert_eq!(binds(&world.turn(at(5)))[0].1, ["g-3@n"], "beyond its least a pod goes by itself");
}

#[test]
fn a_gang_that_does_not_fit_holds_nothing() {
    let mut world =
        world(2, vec![member("g-0", "g", 3), member("g-1", "g", 3), member("g-2", "g", 3), pod("z")]);
    let deeds = world.turn(at(0));
    assert_eq!(binds(&deeds).iter().map(|bind| bind.1.clone()).collect::<Vec<_>>(), [["z@n"]]);
    let said = explained(&world.turn(at(3)));
    let said: Vec<_> = explained(&deeds).into_iter().chain(said).collect();
    assert!(said.iter().filter(|(_, text)| text.contains("3 members")).count() >= 3, "{said:?}");
}

#[test]
fn pods_held_back_by_a_gate_are_left_alone() {
    let mut gated = pod("a");
    gated["spec"]["schedulingGates"] = json!([{"name": "wait"}]);
    let mut world = world(2, vec![gated]);
    assert_eq!(world.turn(at(0)), []);
    let mut released = pod("a");
    released["metadata"]["generation"] = json!(2);
    apply(&mut world, at(5), released);
    assert_eq!(binds(&world.turn(at(5))).len(), 1);
}

#[test]
fn pods_of_others_take_room_until_they_are_gone() {
    let mut other = on(pod("o"), "n");
    other["spec"]["schedulerName"] = json!("default-scheduler");
    let mut world = world(1, vec![other.clone(), pod("a")]);
    assert_eq!(binds(&world.turn(at(0))), []);
    delete(&mut world, at(1), other);
    assert_eq!(binds(&world.turn(at(1))).len(), 1);
}

#[test]
fn a_pod_that_leaves_holds_its_room_until_it_is_gone() {
    let mut world = world(1, vec![on(pod("a"), "n"), pod("b")]);
    apply(&mut world, at(0), leaving(on(pod("a"), "n")));
    assert_eq!(binds(&world.turn(at(0))), []);
    delete(&mut world, at(30), on(pod("a"), "n"));
    assert_eq!(binds(&world.turn(at(30)))[0].1, ["b@n"]);
}

#[test]
fn half_a_gang_is_completed_first_and_given_up_in_the_end() {
    let gang = |name: &str| owned(member(name, "g", 2));
    let mut world = world(2, vec![gang("g-0"), gang("g-1")]);
    let deeds = world.turn(at(0));
    answer(&mut world, at(0), &deeds, |name| if name == "g-0" { Bound::Here } else { Bound::Gone });
    delete(&mut world, at(0), gang("g-1"));
    assert_eq!(binds(&world.turn(at(1))), []);
    let mut again = world.turn(at(10));
    assert_eq!(deleted(&again), [""; 0], "there is time for a replacement");
    again = world.turn(at(40));
    assert_eq!(deleted(&again), ["g-0"]);
}

#[test]
fn a_replacement_completes_half_a_gang() {
    let mut world = world(2, vec![member("g-0", "g", 2), member("g-1", "g", 2)]);
    let deeds = world.turn(at(0));
    answer(&mut world, at(0), &deeds, |name| if name == "g-0" { Bound::Here } else { Bound::Gone });
    delete(&mut world, at(0), member("g-1", "g", 2));
    apply(&mut world, at(1), member("g-2", "g", 2));
    assert_eq!(binds(&world.turn(at(2)))[0].1, ["g-2@n"]);
}

#[test]
fn a_replacement_goes_first_but_takes_nobodys_place() {
    let gang = |name: &str| member(name, "g", 2);
    let mut world = world(2, vec![on(gang("g-0"), "n"), on(pod("x"), "n"), gang("g-1"), pod("a"), pod("b")]);
    let hours: Vec<Deed> = (0..24).flat_map(|hour| world.turn(at(3600 * hour))).collect();
    assert_eq!((binds(&hours), evictions(&hours)), (Vec::new(), Vec::new()), "x is of the same priority");
    delete(&mut world, at(90_000), on(pod("x"), "n"));
    assert_eq!(binds(&world.turn(at(90_000)))[0].1, ["g-1@n"]);
}

#[test]
fn what_ends_one_by_one_is_not_taken_for_broken() {
    let gang = |name: &str| on(owned(member(name, "g", 2)), "n");
    let mut world = world(2, vec![gang("g-0"), gang("g-1")]);
    assert_eq!(world.turn(at(0)), []);
    let mut done = gang("g-0");
    done["status"]["phase"] = json!("Succeeded");
    apply(&mut world, at(1), done);
    assert_eq!(deleted(&world.turn(at(600))), [""; 0]);
    apply(&mut world, at(601), pod("a"));
    assert_eq!(binds(&world.turn(at(601))).len(), 1, "the room of the one that ended is free");
}

#[test]
fn lower_priorities_make_room_together_or_not_at_all() {
    let low = |name: &str| with_priority(on(pod(name), "n"), 1);
    let high = ["h-0", "h-1"].map(|name| with_priority(member(name, "h", 2), 100));
    let mut world = world(2, [vec![low("a"), low("b")], high.to_vec()].concat());
    let deeds = world.turn(at(0));
    let evicted = evictions(&deeds);
    assert_eq!(evicted.len(), 1, "one deed for all: {deeds:?}");
    assert_eq!(evicted[0].1.len(), 2);
    world.heard(at(1), Outcome::NotEvicted { ticket: evicted[0].0, refusal: "budget".into() });
    assert_eq!(binds(&world.turn(at(1))), []);
    let deeds = world.turn(at(60));
    let evicted = evictions(&deeds);
    world.heard(at(60), Outcome::Evicted { ticket: evicted[0].0 });
    delete(&mut world, at(61), low("a"));
    assert_eq!(binds(&world.turn(at(61))), [], "one of two victims still holds its room");
    delete(&mut world, at(62), low("b"));
    assert_eq!(binds(&world.turn(at(62)))[0].1, ["h-0@n", "h-1@n"]);
}

#[test]
fn nobody_is_evicted_before_it_has_run_for_as_long_as_was_said() {
    let low = || with_priority(pod("low"), 1);
    let lists =
        vec![Change::Pod(Delta::Reset(vec![read(low())])), Change::Node(Delta::Reset(vec![node("n", 1)]))];
    let settings = Settings { min_run: Duration::from_secs(300), ..Settings::new("metronome") };
    let mut world = World::rebuild(settings, START, Initial { lists });
    let deeds = world.turn(at(0));
    answer(&mut world, at(0), &deeds, |_| Bound::Here);
    apply(&mut world, at(0), on(low(), "n"));
    apply(&mut world, at(1), with_priority(pod("high"), 100));
    assert_eq!(evictions(&world.turn(at(1))), []);
    assert_eq!(evictions(&world.turn(at(299))), []);
    assert_eq!(evictions(&world.turn(at(301))).len(), 1);
}

#[test]
fn lost_answers_are_asked_for_again() {
    let mut world = world(2, vec![member("g-0", "g", 2), member("g-1", "g", 2)]);
    let deeds = world.turn(at(0));
    answer(&mut world, at(0), &deeds, |name| if name == "g-0" { Bound::Here } else { Bound::Unknown });
    let deeds = world.turn(at(1));
    assert_eq!(binds(&deeds)[0].1, ["g-1@n"], "the same seat, and only what is not known");
    answer(&mut world, at(1), &deeds, |_| Bound::Here);
    assert_eq!(binds(&world.turn(at(2))), []);
}

fn recorded(seats: &[(&str, &str)]) -> Recorded {
    let seat = |(pod, node): &(&str, &str)| Seat {
        pod: crate::deed::PodRef {
            namespace: "ns".into(),
            name: (*pod).into(),
            uid: (*pod).into(),
            version: "".into(),
        },
        node: (*node).into(),
    };
    let intent = Intent {
        name: None,
        gang: "label/ns/g".into(),
        generation: 7,
        epoch: 1,
        seats: seats.iter().map(seat).collect(),
        leaves: Vec::new(),
    };
    let key = GangKey::Labelled { namespace: "ns".into(), name: "g".into() };
    Recorded { name: steps::intent_name(&key), version: "1".into(), intent: Ok(intent) }
}

#[test]
fn a_new_leader_completes_what_was_meant() {
    let pods = vec![on(member("g-0", "g", 2), "m"), member("g-1", "g", 2), pod("z")];
    let nodes = vec![node("n", 4), node("m", 1)];
    let mut world = rebuilt(nodes, pods, vec![recorded(&[("g-0", "m"), ("g-1", "n")])]);
    let deeds = world.turn(at(0));
    let mut seats: Vec<_> = binds(&deeds).into_iter().map(|bind| bind.1).collect();
    seats.sort();
    assert_eq!(seats, [["g-1@n"], ["z@n"]]);
    answer(&mut world, at(0), &deeds, |_| Bound::Here);
    assert!(world.turn(at(0)).iter().any(|deed| matches!(deed.kind, Kind::Forget { .. })));
}

#[test]
fn a_new_leader_gives_up_what_can_no_longer_be() {
    let pods = vec![member("g-0", "g", 2), member("g-1", "g", 2)];
    let mut world = rebuilt(vec![node("n", 4)], pods, vec![recorded(&[("g-0", "gone"), ("g-1", "n")])]);
    let deeds = world.turn(at(0));
    assert!(deeds.iter().any(|deed| matches!(deed.kind, Kind::Forget { .. })));
    assert_eq!(explained(&deeds).len(), 2, "both are written to, so that a late bind fails");
    assert_eq!(binds(&deeds)[0].1, ["g-0@n", "g-1@n"]);
}

#[test]
fn a_new_leader_completes_a_gang_of_which_some_have_ended() {
    let pods = vec![on(member("g-1", "g", 3), "n"), member("g-2", "g", 3)];
    let seats = [("g-0", "n"), ("g-1", "n"), ("g-2", "n")];
    let mut world = rebuilt(vec![node("n", 4)], pods, vec![recorded(&seats)]);
    let deeds = world.turn(at(0));
    assert_eq!(binds(&deeds)[0].1, ["g-2@n"]);
    // Where nobody is on a node, nobody knows whether those that are gone ever were.
    let pods = vec![member("g-1", "g", 3), member("g-2", "g", 3)];
    let mut world = rebuilt(vec![node("n", 4)], pods, vec![recorded(&seats)]);
    assert_eq!(binds(&world.turn(at(0))), []);
}

#[test]
fn two_gangs_with_one_name_are_told_so() {
    let mut world = world(9, vec![member("g-0", "g", 2), member("g-1", "g", 3)]);
    let deeds = [world.turn(at(0)), world.turn(at(2))].concat();
    assert_eq!(binds(&deeds), []);
    assert!(explained(&deeds).iter().all(|(_, text)| text.contains("two gangs share one name")));
    assert_eq!(explained(&deeds).len(), 2);
}

#[test]
fn a_group_that_cannot_be_read_stops_only_its_own_pods() {
    let mut lost = pod("l");
    lost["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] = json!("missing");
    let mut world = world(9, vec![lost, pod("a")]);
    let deeds = [world.turn(at(0)), world.turn(at(2))].concat();
    assert_eq!(binds(&deeds)[0].1, ["a@n"]);
    assert_eq!(explained(&deeds)[0].0, "l");
}

fn switched_off() -> PolicyDocument {
    PolicyDocument { binding: Binding::Off, policy: None, accepts: None, complaint: None }
}

#[test]
fn nothing_is_bound_while_the_switch_is_off() {
    let mut world = world(2, vec![pod("a")]);
    world.apply(at(0), Change::Policy(Some(switched_off())));
    assert_eq!(binds(&world.turn(at(0))), []);
    world.apply(at(9), Change::Policy(None));
    assert_eq!(binds(&world.turn(at(9))).len(), 1);
}

#[test]
fn observing_compares_and_does_nothing() {
    let lists = vec![
        Change::Node(Delta::Reset(vec![node("n", 2)])),
        Change::Pod(Delta::Reset([pod("a"), pod("b"), pod("z")].map(read::<Pod>).to_vec())),
    ];
    let settings = Settings { mode: Mode::Observe, ..Settings::new("metronome") };
    let mut world = World::rebuild(settings, START, Initial { lists });
    assert_eq!([world.turn(at(0)), world.turn(at(20))].concat(), [], "also z, which waits, is told nothing");
    apply(&mut world, at(30), on(pod("a"), "n"));
    apply(&mut world, at(30), on(pod("b"), "n"));
    apply(&mut world, at(30), on(pod("c"), "n"));
    world.turn(at(31));
    let totals = world.observed().0;
    assert_eq!((totals.earlier, totals.later), (2, 0));
    assert!((totals.earlier_seconds - 60.0).abs() < 1e-6);
}

#[test]
fn whoever_waited_before_a_restart_keeps_its_place() {
    let mut old = pod("z-old");
    old["metadata"]["creationTimestamp"] = json!("2025-01-01T00:00:00Z");
    let mut world = world(1, vec![pod("a-new"), old]);
    assert_eq!(binds(&world.turn(at(0)))[0].1, ["z-old@n"]);
}

fn volcano_group(spec: Value) -> Change {
    let object = json!({
        "metadata": {"name": "g", "namespace": "ns", "uid": "g"},
        "spec": spec,
        "status": {"phase": "Pending"},
    });
    let api = kube::api::ApiResource {
        group: "scheduling.volcano.sh".into(),
        version: "v1beta1".into(),
        api_version: "scheduling.volcano.sh/v1beta1".into(),
        kind: "PodGroup".into(),
        plural: "podgroups".into(),
    };
    let group = Group::read(GroupKind::Volcano, &api, &read(object)).remove(0);
    Change::Group(GroupKind::Volcano, Delta::Applied(group))
}

fn statuses(deeds: &[Deed]) -> Vec<Value> {
    let status = |deed: &Deed| match &deed.kind {
        Kind::Status { status, .. } => Some(status.clone()),
        _ => None,
    };
    deeds.iter().filter_map(status).collect()
}

#[test]
fn volcano_groups_are_let_in_so_that_their_pods_are_made() {
    let mut world = world(2, vec![]);
    world.apply(at(0), volcano_group(json!({"minMember": 2})));
    assert_eq!(statuses(&world.turn(at(0))), [json!({"phase": "Inqueue"})]);
}
