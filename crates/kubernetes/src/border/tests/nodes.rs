//! Nodes and what is left of them.

use metronome_core::model::cluster::NodeState;

use super::*;

fn asking(resource: &str, amount: &str) -> Value {
    json!({"spec": {"containers": [{"resources": {"requests": {resource: amount}}}]}})
}

#[test]
fn what_others_hold_is_not_there() {
    let mut world = World::of_two_zones();
    world.other("o", "a1", asking("cpu", "2"));
    assert_eq!(world.feasible(asking("cpu", "3")), "a2 b1 b2");
    assert_eq!(world.feasible(asking("cpu", "2")), "a1 a2 b1 b2");
    world.gone("o");
    assert_eq!(world.feasible(asking("cpu", "3")), "a1 a2 b1 b2");
}

#[test]
fn a_node_takes_so_many_pods() {
    let mut world = World::new();
    world.node("a", json!({"status": {"allocatable": {"pods": "1"}}}));
    assert_eq!(world.feasible(json!({})), "a");
    world.other("o", "a", json!({}));
    assert_eq!(world.feasible(json!({})), "");
    world.other("o", "a", json!({"status": {"phase": "Succeeded"}}));
    assert_eq!(world.feasible(json!({})), "a", "a pod that is done holds nothing");
}

#[test]
fn pods_may_come_before_their_node() {
    let mut world = World::new();
    world.other("o", "a", asking("cpu", "3"));
    world.node("a", json!({}));
    assert_eq!(
        (world.feasible(asking("cpu", "1")), world.feasible(asking("cpu", "2"))),
        ("a".into(), String::new())
    );
}

#[test]
fn counted_resources_and_ports_are_respected() {
    let port = |address: &str| {
        json!({"spec": {"containers": [{"ports": [
            {"containerPort": 1, "hostPort": 80, "hostIP": address}
        ]}]}})
    };
    let mut world = World::of_two_zones();
    world.node(
        "a1",
        json!({"metadata": {"labels": {"zone": "a"}}, "status": {"allocatable": {"example.com/x": "2"}}}),
    );
    assert_eq!(world.feasible(asking("example.com/x", "2")), "a1");
    world.other("o", "a1", asking("example.com/x", "1"));
    assert_eq!(world.feasible(asking("example.com/x", "2")), "");
    world.other("p", "a2", port("10.0.0.1"));
    world.other("q", "b1", port(""));
    assert_eq!(world.feasible(port("")), "a1 b2");
    assert_eq!(world.feasible(port("10.0.0.1")), "a1 b2");
    assert_eq!(world.feasible(port("10.0.0.2")), "a1 a2 b2");
}

#[test]
fn labels_taints_and_cordons_decide_and_may_change() {
    let mut world = World::of_two_zones();
    let in_a = json!({"spec": {"nodeSelector": {"zone": "a"}}});
    let job = world.job(1, in_a.clone());
    assert_eq!(world.feasible_for(job), "a1 a2");
    world.node("a1", json!({"metadata": {"labels": {"zone": "a"}}, "spec": {"unschedulable": true}}));
    world.node("b1", json!({"metadata": {"labels": {"zone": "a"}}}));
    assert_eq!(world.feasible_for(job), "a2 b1");
    world.border.node_deleted(&mut world.engine, NOW, "a2");
    assert_eq!(world.feasible_for(job), "b1");
    world.node("a2", json!({"metadata": {"labels": {"zone": "a"}}}));
    assert_eq!(world.feasible_for(job), "a2 b1", "a node that comes back has its id again");
}

#[test]
fn a_node_without_the_label_of_a_level_is_in_a_domain_of_its_own() {
    let mut world = World::of_two_zones();
    world.node("alone", json!({}));
    let cluster = &world.engine.state().cluster;
    let domain = |name: &str| cluster.node(cluster.find_node(name).unwrap()).domains[0];
    assert_eq!(domain("a1"), domain("a2"));
    assert!(["a1", "b1"].iter().all(|name| domain(name) != domain("alone")));
}

#[test]
fn equal_pods_share_one_set_and_unused_ids_are_used_again() {
    let mut world = World::of_two_zones();
    for _ in 0..100 {
        world.feasible(json!({}));
    }
    assert_eq!(world.engine.state().cluster.sets().len(), 1);
    for n in 0..1000 {
        world.feasible(json!({"spec": {"nodeSelector": {"n": n.to_string()}}}));
    }
    assert!(world.engine.state().cluster.sets().len() < 200, "ids of sets nobody uses are used again");
}

#[test]
fn devices_claimed_dynamically_are_refused() {
    let mut world = World::of_two_zones();
    let claims = world.facts(json!({"spec": {"resourceClaims": [{"name": "gpu"}]}}));
    assert_eq!(claims.unwrap_err(), Refusal::DeviceClaims);
    let container = json!({"spec": {"containers": [{"resources": {"claims": [{"name": "gpu"}]}}]}});
    assert_eq!(world.facts(container).unwrap_err(), Refusal::DeviceClaims);
}

#[test]
fn a_node_is_emptied_where_somebody_says_so_and_not_because_it_is_cordoned() {
    let mut world = World::new();
    let mut drained = |given: Value| {
        world.node("a", given);
        let cluster = &world.engine.state().cluster;
        let state = cluster.node(cluster.find_node("a").unwrap()).state;
        matches!(state, NodeState::Draining { until: None })
    };
    let said = json!({"annotations": {"metronome.dev/drain": "true"}});
    let taint = json!([{"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule", "value": "1"}]);
    assert!(drained(json!({"metadata": said, "spec": {"unschedulable": true}})), "from the first");
    assert!(!drained(json!({"spec": {"unschedulable": true}})));
    assert!(!drained(json!({"metadata": said})), "it is open again");
    assert!(drained(json!({"spec": {"taints": taint}})));
    assert!(!drained(json!({})));
}

#[test]
fn a_node_that_comes_back_is_still_to_be_emptied() {
    let mut world = World::new();
    let given = json!({"metadata": {"annotations": {"metronome.dev/drain": "true"}}, "spec": {"unschedulable": true}});
    world.node("a", given.clone());
    world.border.node_deleted(&mut world.engine, NOW, "a");
    world.node("a", given);
    let cluster = &world.engine.state().cluster;
    let state = cluster.node(cluster.find_node("a").unwrap()).state;
    assert_eq!(state, NodeState::Draining { until: None });
}
