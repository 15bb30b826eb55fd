//! Kubelets' decisions on pods made by hand.

use serde_json::{Value, json};

use super::*;

const NOTHING: [&str; 0] = [];

struct World {
    books: Books,
    begin: Instant,
}

fn world(pace: Pace) -> World {
    let begin = Instant::now();
    let allocatable = |name: &str| (name.to_owned(), amounts(&[("cpu", "4"), ("pods", "3")]));
    World { books: Books::new(pace, ["a", "b"].map(allocatable), begin), begin }
}

fn amounts(pairs: &[(&str, &str)]) -> Amounts {
    let quantity = |text: &str| k8s_openapi::apimachinery::pkg::api::resource::Quantity(text.to_owned());
    let quantities: BTreeMap<String, _> =
        pairs.iter().map(|(name, text)| ((*name).to_owned(), quantity(text))).collect();
    Amounts::of(&quantities)
}

fn pod(name: &str, cpu: &str) -> Value {
    json!({
        "metadata": { "namespace": "n", "name": name, "uid": name },
        "spec": {
            "nodeName": "a",
            "containers": [{ "name": "c", "resources": { "requests": { "cpu": cpu } } }],
        },
        "status": { "phase": "Pending" },
    })
}

fn with_phase(mut pod: Value, phase: &str) -> Value {
    pod["status"]["phase"] = json!(phase);
    pod
}

fn deleted(mut pod: Value) -> Value {
    pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    pod["metadata"]["deletionGracePeriodSeconds"] = json!(30);
    pod
}

impl World {
    /// What is ordered by this time, in seconds after the beginning.
    fn at(&mut self, seconds: u64) -> Vec<String> {
        self.books.wake(self.begin + Duration::from_secs(seconds));
        self.orders()
    }

    /// What is ordered when a pod is seen at this time.
    fn see(&mut self, seconds: u64, pod: Value) -> Vec<String> {
        let pod = serde_json::from_value(pod).unwrap();
        self.books.observe(BoundPod::of(&pod).unwrap(), self.begin + Duration::from_secs(seconds));
        self.orders()
    }

    fn orders(&mut self) -> Vec<String> {
        let shown = |order: Order| match order {
            Order::Run(pod, _) => format!("run {}", pod.key.name),
            Order::Resize(pod) => format!("resize {}", pod.key.name),
            Order::End(pod, ending) => format!("{ending:?} {}", pod.key.name),
            Order::Reject(pod, rejection) => format!("{} {}", rejection.reason, pod.key.name),
            Order::Delete(pod) => format!("delete {}", pod.key.name),
            Order::RenewLease(node) => format!("renew {node}"),
        };
        self.books.take_orders().into_iter().map(shown).collect()
    }
}

#[test]
fn a_pod_runs_once_and_ends_when_its_time_is_up() {
    let mut world = world(Pace { start_after: Duration::from_secs(2), ..Pace::default() });
    let mut short = pod("short", "1");
    short["metadata"]["annotations"] = json!({ "sim.metronome.dev/runs-for": "5s" });
    assert_eq!(world.see(0, short.clone()), NOTHING);
    assert_eq!(world.see(1, short.clone()), NOTHING);
    assert_eq!(world.at(2), ["run short"]);
    assert_eq!(world.see(3, with_phase(short.clone(), "Running")), NOTHING);
    assert_eq!(world.books.counts().running, 1);
    assert_eq!(world.at(8), ["Succeeded short"]);
    assert_eq!(world.see(9, with_phase(short, "Succeeded")), NOTHING);
    assert_eq!(world.books.counts().running, 0);
}

#[test]
fn what_does_not_fit_is_rejected_until_there_is_room() {
    let mut world = world(Pace::default());
    assert_eq!(world.see(0, pod("first", "3")), ["run first"]);
    assert_eq!(world.see(0, pod("second", "2")), ["OutOfcpu second"]);
    assert_eq!(world.see(0, pod("second", "2")), NOTHING);
    world.see(1, with_phase(pod("first", "3"), "Failed"));
    assert_eq!(world.see(1, pod("third", "4")), ["run third"]);
    assert_eq!((world.books.counts().rejected, world.books.take_rejections().len()), (1, 1));
}

#[test]
fn the_number_of_pods_is_bounded_too() {
    let mut world = world(Pace::default());
    let orders: Vec<String> = (0..4).flat_map(|n| world.see(0, pod(&n.to_string(), "0"))).collect();
    assert_eq!(orders, ["run 0", "run 1", "run 2", "OutOfpods 3"]);
}

#[test]
fn a_deleted_pod_is_stopped_first_and_holds_its_room_until_then() {
    let mut world = world(Pace { stop_after: Duration::from_secs(3), ..Pace::default() });
    world.see(0, pod("old", "4"));
    world.see(0, with_phase(pod("old", "4"), "Running"));
    assert_eq!(world.see(1, deleted(with_phase(pod("old", "4"), "Running"))), NOTHING);
    assert_eq!(world.see(2, pod("early", "1")), ["OutOfcpu early"]);
    assert_eq!(world.at(4), ["Stopped old"]);
    assert_eq!(world.see(5, deleted(with_phase(pod("old", "4"), "Failed"))), ["delete old"]);
    assert_eq!(world.see(5, pod("late", "4")), ["run late"]);
}

#[test]
fn pods_that_ran_before_are_not_admitted_again() {
    let mut world = world(Pace::default());
    for name in ["one", "two"] {
        world.see(0, with_phase(pod(name, "4"), "Running"));
    }
    assert_eq!(world.books.counts(), Counts { running: 2, started: 2, ..Counts::default() });
}

#[test]
fn a_listing_without_a_pod_frees_its_room() {
    let mut world = world(Pace::default());
    world.see(0, pod("gone", "4"));
    world.books.begin_listing();
    world.books.end_listing();
    assert_eq!(world.see(1, pod("next", "4")), ["run next"]);
}

#[test]
fn a_successor_of_the_same_name_is_another_pod() {
    let mut world = world(Pace::default());
    world.see(0, pod("same", "4"));
    let mut successor = pod("same", "4");
    successor["metadata"]["uid"] = json!("other");
    assert_eq!(world.see(1, successor), ["run same"]);
}

#[test]
fn an_idle_kubelet_does_nothing_and_catches_up() {
    let mut world = world(Pace::default());
    world.books.turn("a", Diligence::Idle, world.begin);
    assert_eq!(world.see(0, pod("waits", "1")), NOTHING);
    assert_eq!(world.see(1, pod("goes", "1")), NOTHING);
    assert_eq!(world.see(2, deleted(pod("goes", "1"))), NOTHING);
    world.books.turn("a", Diligence::Working, world.begin);
    let mut orders = world.orders();
    orders.sort();
    assert_eq!(orders, ["Stopped goes", "run waits"]);
}

#[test]
fn a_test_can_have_a_pod_rejected() {
    let mut world = world(Pace::default());
    world.books.reject_next("a", "OutOfcpu".to_owned());
    assert_eq!(world.see(0, pod("unlucky", "1")), ["OutOfcpu unlucky"]);
    assert_eq!(world.see(0, pod("lucky", "1")), ["run lucky"]);
}

#[test]
fn leases_are_renewed_in_turns() {
    let mut world = world(Pace { heartbeat: Some(Duration::from_secs(10)), ..Pace::default() });
    assert_eq!(world.at(0), ["renew a"]);
    assert_eq!(world.at(5), ["renew b"]);
    world.books.turn("a", Diligence::Idle, world.begin);
    assert_eq!(world.at(15), ["renew b"]);
}

#[test]
fn a_running_pod_is_given_what_it_asks_for_by_now_if_that_fits() {
    let mut world = world(Pace::default());
    world.see(0, pod("one", "1"));
    world.see(0, with_phase(pod("one", "1"), "Running"));
    assert_eq!(world.see(1, with_phase(pod("one", "3"), "Running")), ["resize one"]);
    assert_eq!(world.see(2, pod("two", "1")), ["run two"]);
    assert_eq!(world.see(3, with_phase(pod("one", "4"), "Running")), NOTHING);
    assert_eq!(world.books.take_rejections().len(), 1);
    assert_eq!(world.see(4, with_phase(pod("one", "2"), "Running")), ["resize one"]);
    assert_eq!(world.see(5, pod("three", "1")), ["run three"]);
}

#[test]
fn what_a_pod_asks_for_while_it_starts_is_not_forgotten() {
    let mut world = world(Pace::default());
    assert_eq!(world.see(0, pod("one", "1")), ["run one"]);
    assert_eq!(world.see(0, pod("one", "3")), NOTHING);
    assert_eq!(world.see(0, with_phase(pod("one", "3"), "Running")), ["resize one"]);
    assert_eq!(world.see(0, with_phase(pod("one", "3"), "Running")), NOTHING);
}
