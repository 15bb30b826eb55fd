//! Input that nobody sends in good faith: a clear refusal or an empty set, in bounded time, and never a panic.

use std::time::{Duration, Instant as Clock};

use super::*;

/// Whatever is asked takes no longer than this.
const BOUND: Duration = Duration::from_secs(5);

fn requesting(resource: &str, amount: &str) -> Value {
    json!({"spec": {"containers": [{"resources": {"requests": {resource: amount}}}]}})
}

#[test]
fn absurd_quantities_fit_nowhere_and_meaningless_ones_are_refused() {
    let mut world = World::of_two_zones();
    for resource in ["cpu", "memory", "nvidia.com/gpu", "example.com/x", "ephemeral-storage"] {
        for amount in ["1e30", "9e9223372036854775807", "99999999999999999999999Ei"] {
            assert_eq!(world.feasible(requesting(resource, amount)), "", "{resource} {amount}");
        }
        for amount in ["-1", "-1e30"] {
            let refusal = world.facts(requesting(resource, amount)).unwrap_err();
            assert!(matches!(refusal, Refusal::Negative { .. }), "{refusal}");
        }
        for amount in ["", "lots", "0x10", "1e", "\u{0}", "٣"] {
            let refusal = world.facts(requesting(resource, amount)).unwrap_err();
            assert!(matches!(refusal, Refusal::Quantity { .. }), "{refusal}");
        }
    }
}

#[test]
fn absurd_pods_on_nodes_are_counted_and_forgotten_without_a_trace() {
    let mut world = World::of_two_zones();
    let huge = requesting("memory", "1e30");
    for n in 0..10 {
        world.other(&format!("huge-{n}"), "a1", huge.clone());
    }
    world.other("mad", "a2", requesting("memory", "-5 potatoes"));
    world.other("nameless", "", json!({"metadata": {"labels": {"": ""}}}));
    assert_eq!(world.feasible(requesting("memory", "1Gi")), "a2 b1 b2");
    (0..10).for_each(|n| world.gone(&format!("huge-{n}")));
    assert_eq!(world.feasible(requesting("memory", "8Gi")), "a1 a2 b1 b2");
}

#[test]
fn absurd_nodes_offer_nothing_absurd() {
    let mut world = World::new();
    world
        .node("a", json!({"status": {"allocatable": {"cpu": "-3", "memory": "x", "pods": "1e30", "": "5"}}}));
    world.node(
        "b",
        json!({"metadata": {"labels": {"zone": "z".repeat(100_000)}}, "spec": {"taints": [
            {"key": "", "effect": "Whatever"}, {"key": "k", "effect": ""},
        ]}}),
    );
    assert_eq!(world.feasible(json!({})), "a b");
    assert_eq!(world.feasible(requesting("cpu", "1m")), "b");
}

#[test]
fn contradictions_lead_nowhere() {
    let mut world = World::of_two_zones();
    let term = json!({"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "zone"});
    let required = json!({"requiredDuringSchedulingIgnoredDuringExecution": [term]});
    let both = json!({
        "metadata": {"labels": {"app": "x"}},
        "spec": {"affinity": {"podAffinity": required, "podAntiAffinity": required}},
    });
    assert_eq!(world.feasible(both.clone()), "a1 a2 b1 b2", "nobody is there yet");
    world.other("o", "a1", json!({"metadata": {"labels": {"app": "x"}}}));
    assert_eq!(world.feasible(both), "");
    let nodes = json!({"nodeSelectorTerms": [{"matchExpressions": [
        {"key": "zone", "operator": "In", "values": ["a"]}, {"key": "zone", "operator": "NotIn", "values": ["a"]},
    ]}]});
    let nowhere = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": nodes}});
    assert_eq!(world.feasible(json!({"spec": {"affinity": nowhere}})), "");
}

#[test]
fn unknown_words_are_refused_by_name() {
    let mut world = World::of_two_zones();
    let selector = json!({"matchExpressions": [{"key": "a", "operator": "Resembles", "values": ["b"]}]});
    let pod_term = json!([{"labelSelector": selector, "topologyKey": "zone"}]);
    let node_terms = json!({"nodeSelectorTerms": [selector]});
    let required = |terms: &Value| json!({"requiredDuringSchedulingIgnoredDuringExecution": terms});
    let spread = |key: &str, value: Value| {
        let usual = json!({"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"});
        json!({"topologySpreadConstraints": [with(usual, json!({key: value}))]})
    };
    for spec in [
        json!({"affinity": {"podAffinity": required(&pod_term)}}),
        json!({"affinity": {"podAntiAffinity": required(&pod_term)}}),
        json!({"affinity": {"nodeAffinity": required(&node_terms)}}),
        json!({"tolerations": [{"key": "a", "operator": "Resembles"}]}),
        json!({"tolerations": [{"key": "a", "operator": "Exists", "effect": "Never"}]}),
        spread("whenUnsatisfiable", json!("Complain")),
        spread("nodeAffinityPolicy", json!("Maybe")),
        spread("labelSelector", selector.clone()),
    ] {
        let refusal = world.facts(json!({"spec": spec})).unwrap_err();
        assert!(matches!(refusal, Refusal::Unknown { .. }), "{spec}: {refusal}");
        assert!(refusal.to_string().len() < 200);
    }
    let long = "x".repeat(1_000_000);
    let refusal = world.facts(requesting("cpu", &long)).unwrap_err();
    assert!(refusal.to_string().len() < 200, "a refusal stays readable");
}

#[test]
fn masses_of_everything_take_bounded_time() {
    let mut world = World::new();
    for n in 0..200 {
        let taints = json!([{"key": "a", "value": n.to_string(), "effect": "NoSchedule"}]);
        world.node(&format!("n{n}"), json!({"spec": {"taints": taints}}));
    }
    let begin = Clock::now();
    let many = |make: fn(u32) -> Value| Value::from((0..10_000).map(make).collect::<Vec<_>>());
    let tolerations = many(|n| json!({"key": "a", "value": n.to_string()}));
    let terms = many(
        |n| json!({"matchExpressions": [{"key": "host", "operator": "In", "values": [format!("n{n}")]}]}),
    );
    let labels: serde_json::Map<_, _> =
        (0..10_000).map(|n| (format!("label-{n}"), json!("x".repeat(63)))).collect();
    let ports = many(|n| json!({"containerPort": 1, "hostPort": n + 1}));
    let required = json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}});
    let tolerant = json!({"spec": {"tolerations": tolerations, "affinity": {"nodeAffinity": required}}});
    assert_eq!(world.feasible(tolerant).split(' ').count(), 200);
    assert_eq!(world.feasible(json!({"metadata": {"labels": labels}})), "");
    let refusal = world.facts(json!({"spec": {"containers": [{"ports": ports}]}})).unwrap_err();
    assert!(matches!(refusal, Refusal::TooManyCounters { .. }), "{refusal}");
    assert!(begin.elapsed() < BOUND, "{:?}", begin.elapsed());
}

#[test]
fn a_thousand_rules_on_one_pod_take_bounded_time() {
    let mut world = World::of_two_zones();
    for n in 0..300 {
        world.other(&format!("o{n}"), "a1", json!({"metadata": {"labels": {"app": n.to_string()}}}));
    }
    let begin = Clock::now();
    let terms: Vec<Value> = (0..1000)
        .map(|n| json!({"labelSelector": {"matchLabels": {"app": n.to_string()}}, "topologyKey": "zone"}))
        .collect();
    let apart = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}});
    assert_eq!(world.feasible(json!({"spec": {"affinity": apart}})), "b1 b2");
    assert!(begin.elapsed() < BOUND, "{:?}", begin.elapsed());
}
