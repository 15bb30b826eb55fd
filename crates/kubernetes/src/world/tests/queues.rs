//! Queues by objects: whose gangs wait, whose make room, and what is refused.

use super::*;
use crate::deed::{About, EventReason};
use crate::objects::{Queue, QueueKind};

fn queue_object(kind: QueueKind, name: &str, spec: Value) -> Queue {
    let (group, version) = match kind {
        QueueKind::Own => ("metronome.dev", "v1alpha1"),
        QueueKind::Volcano => ("scheduling.volcano.sh", "v1beta1"),
    };
    let api = kube::api::ApiResource {
        group: group.into(),
        version: version.into(),
        api_version: format!("{group}/{version}"),
        kind: "Queue".into(),
        plural: "queues".into(),
    };
    Queue::read(kind, &api, &read(json!({"metadata": {"name": name, "uid": name}, "spec": spec})))
}

fn own(name: &str, spec: Value) -> Queue {
    queue_object(QueueKind::Own, name, spec)
}

fn declare(world: &mut World, now: Instant, queue: Queue) {
    world.apply(now, Change::Queue(queue.kind, Delta::Applied(queue)));
}

fn remove(world: &mut World, now: Instant, queue: Queue) {
    world.apply(now, Change::Queue(queue.kind, Delta::Deleted(queue)));
}

fn cpus(cpus: u32) -> Value {
    json!({"cpu": cpus})
}

fn in_queue(mut pod: Value, queue: &str) -> Value {
    pod["metadata"]["labels"]["metronome.dev/queue"] = json!(queue);
    pod
}

fn of_user(mut pod: Value, user: &str) -> Value {
    pod["metadata"]["annotations"]["metronome.dev/user"] = json!(user);
    pod
}

/// Two pods that start together.
fn pair(gang: &str, queue: &str) -> Vec<Value> {
    (0..2).map(|at| in_queue(member(&format!("{gang}-{at}"), gang, 2), queue)).collect()
}

fn bound_to(pods: Vec<Value>, node: &str) -> Vec<Value> {
    pods.into_iter().map(|pod| on(pod, node)).collect()
}

/// One node of so many CPUs, with these queues and pods; pods are heard of first.
fn sharing(cpus: u32, queues: Vec<Queue>, pods: Vec<Value>) -> World {
    let lists = vec![
        Change::Pod(Delta::Reset(pods.into_iter().map(read).collect())),
        Change::Node(Delta::Reset(vec![node("n", cpus)])),
        Change::Queue(QueueKind::Own, Delta::Reset(queues)),
    ];
    World::rebuild(Settings::new("metronome"), START, Initial { lists })
}

fn complaints(deeds: &[Deed]) -> Vec<(String, String)> {
    let complaint = |deed: &Deed| match &deed.kind {
        Kind::Tell(telling) if telling.reason == EventReason::QueueRefused => match &telling.about {
            About::Object(object) => Some((object.name.to_string(), telling.message.clone())),
            About::Pod(_) => None,
        },
        _ => None,
    };
    deeds.iter().filter_map(complaint).collect()
}

fn seats(deeds: &[Deed]) -> Vec<String> {
    let mut seats: Vec<String> = binds(deeds).into_iter().flat_map(|bind| bind.1).collect();
    seats.sort();
    seats
}

/// What those who wait were told in the first seconds from then.
fn told(world: &mut World, now: Instant) -> Vec<(String, String)> {
    let deeds: Vec<Deed> =
        (0..4).flat_map(|seconds| world.turn(now + Duration::from_secs(seconds))).collect();
    assert_eq!(binds(&deeds), []);
    explained(&deeds)
}

fn halves() -> Vec<Queue> {
    ["a", "b"].map(|name| own(name, json!({"quota": cpus(2)}))).to_vec()
}

#[test]
fn a_queue_takes_back_its_own_by_as_few_whole_gangs_as_will_do() {
    let running = [pair("a1", "a"), pair("a2", "a")].concat();
    let mut world = sharing(4, halves(), bound_to(running, "n"));
    assert_eq!(evictions(&world.turn(at(0))), [], "what nobody wants is lent");
    pair("b1", "b").into_iter().for_each(|pod| apply(&mut world, at(1), pod));
    let deeds = world.turn(at(1));
    let evicted = evictions(&deeds);
    assert_eq!(evicted.len(), 1, "{deeds:?}");
    let gang = evicted[0].1[0][..2].to_owned();
    assert_eq!(evicted[0].1, [format!("{gang}-0"), format!("{gang}-1")], "one whole gang and no more");
    let why = deeds.iter().find_map(|deed| match &deed.kind {
        Kind::Evict { why, .. } => Some(why.clone()),
        _ => None,
    });
    let said = "preempted to make room for ns/b1: its queue b takes back what is its own";
    assert_eq!(why.as_deref(), Some(said));
    world.heard(at(2), Outcome::Evicted { ticket: evicted[0].0 });
    for pod in bound_to(pair(&gang, "a"), "n") {
        delete(&mut world, at(3), pod);
    }
    assert_eq!(seats(&world.turn(at(3))), ["b1-0@n", "b1-1@n"]);
}

#[test]
fn a_queue_of_volcano_that_is_not_reclaimable_gives_nothing_back() {
    let borrower = json!({"deserved": cpus(2), "reclaimable": false});
    let volcano = |name: &str, spec| queue_object(QueueKind::Volcano, name, spec);
    let mut world = sharing(4, Vec::new(), Vec::new());
    declare(&mut world, at(0), volcano("a", borrower));
    declare(&mut world, at(0), volcano("b", json!({"deserved": cpus(2)})));
    for pod in bound_to([pair("a1", "a"), pair("a2", "a")].concat(), "n").into_iter().chain(pair("b1", "b")) {
        apply(&mut world, at(0), pod);
    }
    assert_eq!(evictions(&world.turn(at(1))), []);
    declare(&mut world, at(2), volcano("a", json!({"deserved": cpus(2)})));
    assert_eq!(evictions(&world.turn(at(2))).len(), 1);
}

#[test]
fn nobody_of_equal_priority_makes_room_for_gain() {
    let long = bound_to([pair("a1", "default"), pair("a2", "default")].concat(), "n");
    let mut world = sharing(4, Vec::new(), long);
    apply(&mut world, at(0), pod("short"));
    let hours = (0..48).flat_map(|hour| world.turn(at(3600 * hour)));
    assert_eq!(
        evictions(&hours.collect::<Vec<_>>()),
        [],
        "nobody knows how long anything takes, and what runs would be lost"
    );
}

#[test]
fn a_pod_waits_for_a_queue_that_does_not_exist_and_starts_in_it() {
    let mut world = sharing(4, Vec::new(), vec![in_queue(pod("p"), "lab")]);
    assert_eq!(
        told(&mut world, at(0)),
        [("p".into(), "waiting for its queue: there is no queue \"lab\"".into())]
    );
    declare(&mut world, at(9), own("lab", json!({})));
    assert_eq!(seats(&world.turn(at(9))), ["p@n"]);
}

#[test]
fn a_closed_queue_lets_nobody_in_and_nobody_out() {
    let lab = |state: &str| {
        let body = json!({"metadata": {"name": "lab", "uid": "lab"}, "status": {"state": state}});
        let api = kube::api::ApiResource::erase::<crate::objects::OwnQueue>(&());
        Queue::read(QueueKind::Volcano, &api, &read(body))
    };
    let mut world = sharing(4, Vec::new(), Vec::new());
    declare(&mut world, at(0), lab("Closed"));
    apply(&mut world, at(0), on(in_queue(pod("old"), "lab"), "n"));
    apply(&mut world, at(0), in_queue(pod("new"), "lab"));
    let said = told(&mut world, at(0));
    assert_eq!(said, [("new".into(), "waiting for its queue: queue \"lab\" is closed".into())]);
    declare(&mut world, at(9), lab("Open"));
    assert_eq!(seats(&world.turn(at(9))), ["new@n"]);
}

#[test]
fn a_queue_that_goes_stops_nobody_who_runs() {
    let lab = || own("lab", json!({"quota": cpus(1)}));
    let pods = vec![on(in_queue(pod("runs"), "lab"), "n"), in_queue(pod("waits"), "lab")];
    let mut world = sharing(1, vec![lab()], pods);
    world.turn(at(0));
    remove(&mut world, at(5), lab());
    let said = told(&mut world, at(5));
    assert_eq!(said, [("waits".into(), "waiting for its queue: there is no queue \"lab\"".into())]);
    assert_eq!(world.engine().state().alarms, 0);
    declare(&mut world, at(20), lab());
    delete(&mut world, at(20), on(in_queue(pod("runs"), "lab"), "n"));
    assert_eq!(seats(&world.turn(at(20))), ["waits@n"]);
}

#[test]
fn a_gang_beyond_the_limit_waits_for_quota_until_that_is_raised() {
    let lab = |most: u32| own("lab", json!({"limit": cpus(most)}));
    let mut world = sharing(4, vec![lab(1)], pair("g", "lab"));
    let said = told(&mut world, at(0));
    assert_eq!(said.len(), 2);
    assert!(
        said.iter().all(|(_, text)| text.contains("queue `lab` has 1 CPU left of its quota")),
        "{said:?}"
    );
    declare(&mut world, at(9), lab(2));
    assert_eq!(seats(&world.turn(at(9))), ["g-0@n", "g-1@n"]);
}

#[test]
fn a_user_holds_no_more_than_the_queue_lets_them() {
    let lab = own("lab", json!({"users": [{"name": "ann", "priority": "low", "limit": cpus(1)}]}));
    let of = |name: &str, user: &str| of_user(in_queue(pod(name), "lab"), user);
    let mut world = sharing(4, vec![lab], vec![of("x", "ann"), of("y", "ann"), of("z", "bob")]);
    let bound = seats(&world.turn(at(0)));
    assert_eq!(bound.len(), 2, "{bound:?}");
    assert!(bound.contains(&"z@n".to_owned()));
}

#[test]
fn a_queue_in_itself_is_refused_and_what_it_said_before_holds() {
    let inside = |name: &str, parent: &str| own(name, json!({"parent": parent, "limit": cpus(1)}));
    let mut world = sharing(4, vec![own("a", json!({"limit": cpus(1)})), inside("b", "a")], Vec::new());
    assert_eq!(complaints(&world.turn(at(0))), []);
    declare(&mut world, at(1), own("a", json!({"parent": "b", "limit": cpus(3)})));
    let said = complaints(&world.turn(at(1)));
    let why =
        "its parent \"b\" lies in it; name another parent; until then what it said before stays in force";
    assert_eq!(said, [("a".into(), format!("cannot be as it says: {why}"))]);
    apply(&mut world, at(2), in_queue(pod("x"), "a"));
    apply(&mut world, at(2), in_queue(pod("y"), "a"));
    assert_eq!(seats(&world.turn(at(2))).len(), 1, "the old limit holds");
    declare(&mut world, at(3), own("a", json!({"parent": "b", "limit": cpus(3)})));
    assert_eq!(complaints(&world.turn(at(3))), [], "it was told");
    declare(&mut world, at(4), own("a", json!({"limit": cpus(3)})));
    let deeds = world.turn(at(4));
    assert_eq!((seats(&deeds).len(), complaints(&deeds).len()), (1, 0));
}

#[test]
fn a_queue_waits_for_its_parent_in_whatever_order_they_come() {
    let mut world = sharing(4, Vec::new(), vec![in_queue(pod("p"), "leaf")]);
    declare(&mut world, at(0), own("inner", json!({"parent": "outer"})));
    declare(&mut world, at(0), own("outer", json!({})));
    declare(&mut world, at(0), own("leaf", json!({"parent": "twig"})));
    declare(&mut world, at(0), own("twig", json!({"parent": "branch"})));
    let deeds = world.turn(at(0));
    assert_eq!(
        (complaints(&deeds).len(), seats(&deeds).len()),
        (2, 0),
        "not of those that were there a moment later"
    );
    declare(&mut world, at(1), own("branch", json!({})));
    assert_eq!(seats(&world.turn(at(1))), ["p@n"]);
}

#[test]
fn what_cannot_be_read_and_who_is_called_root_are_refused() {
    let mut world = sharing(4, Vec::new(), Vec::new());
    declare(&mut world, at(0), own("lab", json!({"weight": 0})));
    declare(&mut world, at(0), own("root", json!({})));
    let said = complaints(&world.turn(at(0)));
    let lab = "cannot be as it says: spec.weight is 0, which is out of range; until then it is not in force";
    assert_eq!(said[0], ("lab".into(), lab.into()));
    assert_eq!(said[1].0, "root");
}

#[test]
fn a_pending_gang_may_change_its_queue() {
    let full = own("full", json!({"limit": cpus(0)}));
    let mut world = sharing(4, vec![full, own("free", json!({}))], pair("g", "full"));
    assert_eq!(seats(&world.turn(at(0))), [""; 0]);
    pair("g", "free").into_iter().for_each(|pod| apply(&mut world, at(1), pod));
    assert_eq!(seats(&world.turn(at(1))), ["g-0@n", "g-1@n"]);
}

#[test]
fn queues_of_kueue_count_where_there_is_one_of_that_name() {
    let mut kueued = pod("k");
    kueued["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = json!("team");
    let mut world = sharing(4, Vec::new(), vec![kueued.clone()]);
    assert_eq!(seats(&world.turn(at(0))), ["k@n"], "Kueue alone has a queue of that name");
    let none = own("team", json!({"limit": cpus(0)}));
    let mut world = sharing(4, vec![none], vec![kueued]);
    assert_eq!(seats(&world.turn(at(0))), [""; 0]);
}

#[test]
fn ours_is_heeded_where_both_declare_a_queue() {
    let mut world = sharing(4, vec![own("lab", json!({"limit": cpus(1)}))], Vec::new());
    declare(&mut world, at(0), queue_object(QueueKind::Volcano, "lab", json!({"capability": cpus(4)})));
    apply(&mut world, at(0), in_queue(pod("x"), "lab"));
    apply(&mut world, at(0), in_queue(pod("y"), "lab"));
    assert_eq!(seats(&world.turn(at(0))).len(), 1);
    remove(&mut world, at(1), own("lab", json!({})));
    assert_eq!(seats(&world.turn(at(1))).len(), 1, "now Volcano's is");
}

#[test]
fn a_restart_evicts_nobody_who_holds_their_own() {
    let both = [bound_to(pair("a1", "a"), "n"), bound_to(pair("b1", "b"), "n"), pair("a2", "a")].concat();
    let mut world = sharing(4, halves(), both);
    let deeds = [world.turn(at(0)), world.turn(at(5))].concat();
    assert_eq!((evictions(&deeds), seats(&deeds)), (Vec::new(), Vec::new()));
}

#[test]
fn ids_of_queues_that_are_gone_are_used_again() {
    let mut world = sharing(4, Vec::new(), Vec::new());
    for round in 0..50 {
        let queue = || own(&format!("queue-{round}"), json!({}));
        declare(&mut world, at(round), queue());
        remove(&mut world, at(round), queue());
    }
    assert_eq!(world.engine().state().queues.len(), 2);
}

#[test]
fn what_a_queue_holds_is_written_when_it_changes_and_not_too_often() {
    let mut world =
        sharing(1, vec![own("lab", json!({}))], vec![in_queue(pod("x"), "lab"), in_queue(pod("y"), "lab")]);
    let deeds = world.turn(at(0));
    answer(&mut world, at(0), &deeds, |_| Bound::Here);
    let held = json!({"cpu": "1000m", "memory": "0", "nvidia.com/gpu": "0"});
    assert_eq!(statuses(&deeds), [json!({"held": held, "running": 1, "waiting": 1})]);
    delete(&mut world, at(1), in_queue(pod("y"), "lab"));
    assert_eq!(statuses(&world.turn(at(2))), [json!(null); 0], "it was just written");
    let later: Vec<Deed> = (3..60).flat_map(|seconds| world.turn(at(seconds))).collect();
    assert_eq!(statuses(&later), [json!({"held": held, "running": 1, "waiting": 0})]);
}

#[test]
fn a_group_of_volcano_is_let_in_once_its_queue_is_there() {
    let mut world = sharing(4, Vec::new(), Vec::new());
    world.apply(at(0), volcano_group(json!({"minMember": 2, "queue": "lab"})));
    assert_eq!(statuses(&world.turn(at(0))), [json!(null); 0]);
    declare(&mut world, at(1), queue_object(QueueKind::Volcano, "lab", json!({})));
    assert_eq!(statuses(&world.turn(at(1))), [json!({"phase": "Inqueue"})]);
}
