//! What classes and weights do to real TCP.

use std::cell::RefCell;
use std::time::Duration;

use metronome_agent::members::Roster;
use metronome_agent::ports::{Ports, Rung};
use serde_json::{Value, json};

use crate::namespaces::{Pair, Worker, may_make_namespaces};

const RATE: u64 = 100_000_000;

fn word(lane: &Value) -> Value {
    let mut word = json!({"generation": 1, "anchor": "2026-11-16T12:00:00Z", "periodNs": 0, "turnNs": 0,
        "class": 0, "holdNs": 0, "validUntil": "2100-01-01T00:00:00Z"});
    for (key, value) in lane.as_object().unwrap() {
        word[key] = value.clone();
    }
    word
}

/// Two jobs of one member each, with these lanes; null for none.
fn roster(pair: &Pair, lanes: [Value; 2]) -> Roster {
    let member = |(at, lane): (usize, Value)| {
        let turn = if lane.is_null() { Value::Null } else { word(&lane) };
        json!({"job": format!("default/job-{at}"), "member": "worker-0", "token": "t", "turn": turn,
            "address": format!("10.78.0.{}", at + 1)})
    };
    let members: Vec<Value> = lanes.into_iter().enumerate().map(member).collect();
    let jobs = ["default/job-0", "default/job-1"];
    let port = json!({"netns": pair.paths()[0], "device": "up", "rate_bps": RATE, "crossed_by": jobs});
    serde_json::from_value(json!({"members": members, "ports": [port]})).unwrap()
}

/// What both send, in Mbit/s.
fn rates(senders: &[Worker; 2]) -> [f64; 2] {
    std::thread::sleep(Duration::from_millis(300));
    let before = [senders[0].sent(), senders[1].sent()];
    let began = std::time::Instant::now();
    std::thread::sleep(Duration::from_millis(1200));
    let seconds = began.elapsed().as_secs_f64();
    [0, 1].map(|at| (senders[at].sent() - before[at]) as f64 * 8e-6 / seconds)
}

#[test]
fn real_senders_share_a_link_as_their_lanes_say() {
    if !may_make_namespaces() {
        return;
    }
    let pair = Pair::new("share", 2, RATE);
    // A leaf that the world has made for a member is none of ours.
    pair.tc("class add dev up parent 1:1 classid 1:1000 htb rate 1mbit ceil 100mbit quantum 9014");
    let sink = pair.sink();
    let senders = || [1, 2].map(|member| pair.sender(member, || (1 << 20, Duration::ZERO)));
    let sending = RefCell::new(None);
    let mut ports = Ports::default();
    let mut measure = |name: &str, lanes: [Value; 2], climbs: Option<[f64; 2]>| {
        ports.follow(&roster(&pair, lanes), 0);
        for (at, sent) in climbs.into_iter().flatten().enumerate() {
            ports.climb(&format!("default/job-{at}"), Rung { sent, volume: 1.0, best: 1.0, class: 0 });
        }
        let [one, other] = rates(sending.borrow_mut().get_or_insert_with(senders));
        println!("{name:<44} {one:6.1} and {other:6.1} Mbit/s: {:.2} to 1", one / other);
        assert!((one + other) * 1e6 > 0.85 * RATE as f64, "{name}: the link is full");
        one / other
    };
    let fair = measure("no lanes", [Value::Null, Value::Null], None);
    assert!((0.5..2.0).contains(&fair), "{fair}");
    let weighted = measure("weights 4 and 1", [json!({"weight": 4}), Value::Null], None);
    assert!((2.8..5.5).contains(&weighted), "{weighted}");
    let turned = measure(
        "weights 1 and 4, changed in place",
        [json!({"weight": 1, "follows": "bytesSent"}), json!({"weight": 4})],
        None,
    );
    assert!((2.8..5.5).contains(&(1.0 / turned)), "{turned}");
    let lanes = || [json!({"follows": "partLeft"}), json!({"follows": "partLeft"})];
    let early = measure("both at the beginning of an iteration", lanes(), Some([0.0, 0.0]));
    assert!((0.6..1.7).contains(&early), "{early}");
    let ahead = measure("one nearly done, in the same leaves", lanes(), Some([0.9, 0.0]));
    assert!(ahead > 8.0, "{ahead}");
    let behind = measure("the other nearly done", lanes(), Some([0.0, 0.9]));
    assert!(behind < 1.0 / 8.0, "{behind}");
    // The kernel gives a leaf another class when its queue is empty. Jobs pause in every iteration; these never do.
    sending.take();
    std::thread::sleep(Duration::from_millis(200));
    let classes = measure("classes 0 and 2", [json!({"class": 0, "weight": 2}), json!({"class": 2})], None);
    assert!(classes > 8.0, "{classes}");
    assert!(pair.tc("class show dev up").contains("class htb 1:10 "));
    // What is left when an agent is killed is removed by the next.
    let mut next = Ports::default();
    next.follow(&roster(&pair, [Value::Null, Value::Null]), 0);
    let left: Vec<String> = pair.tc("class show dev up").lines().map(|line| line[..15].to_owned()).collect();
    assert_eq!(left.len(), 3, "{left:?}");
    assert_eq!(pair.tc("filter show dev up"), "");
    next.follow(&roster(&pair, [json!({"class": 1}), Value::Null]), 0);
    next.clear();
    assert_eq!(pair.tc("class show dev up").lines().count(), 3);
    assert_eq!(pair.tc("filter show dev up"), "");
    drop((sending, sink));
}
