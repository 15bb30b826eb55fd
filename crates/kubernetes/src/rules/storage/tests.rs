//! Claims and volumes by hand.

use super::*;
use crate::objects::Node;

fn read<T: serde::de::DeserializeOwned>(json: serde_json::Value) -> T {
    serde_json::from_value(json).unwrap()
}

fn node(name: &str, labels: serde_json::Value) -> Node {
    read(serde_json::json!({"metadata": {"name": name, "labels": labels}}))
}

fn used(name: &str) -> ClaimUse {
    ClaimUse { claim: ClaimKey { namespace: "n".into(), name: name.into() }, made_for: None }
}

fn claim(name: &str, class: &str, size: &str) -> serde_json::Value {
    serde_json::json!({
        "metadata": {"namespace": "n", "name": name, "uid": name},
        "spec": {"storageClassName": class, "accessModes": ["ReadWriteOnce"],
                 "resources": {"requests": {"storage": size}}},
    })
}

fn bound(name: &str, volume: &str) -> serde_json::Value {
    let mut claim = claim(name, "", "1Gi");
    claim["metadata"]["annotations"] = serde_json::json!({"pv.kubernetes.io/bind-completed": "yes"});
    claim["spec"]["volumeName"] = volume.into();
    claim
}

fn volume(name: &str, class: &str, size: &str, zone: &str) -> serde_json::Value {
    serde_json::json!({
        "metadata": {"name": name},
        "spec": {"storageClassName": class, "capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"],
                 "csi": {"driver": "d", "volumeHandle": name},
                 "nodeAffinity": {"required": {"nodeSelectorTerms": [
                     {"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]}]}}},
        "status": {"phase": "Available"},
    })
}

fn class(name: &str, provisioner: &str, mode: &str) -> serde_json::Value {
    serde_json::json!({"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode})
}

const WAITS: &str = "WaitForFirstConsumer";
const NONE: &str = "kubernetes.io/no-provisioner";

fn allowed(storage: &Storage, claims: &[&str], nodes: &[&Node]) -> Vec<bool> {
    let uses: Vec<ClaimUse> = claims.iter().map(|name| used(name)).collect();
    let wanted = storage.wanted(&uses).unwrap();
    nodes.iter().map(|node| wanted.allow(node)).collect()
}

fn trouble(storage: &Storage, claim: &str) -> Option<VolumeTrouble> {
    match storage.wanted(&[used(claim)]) {
        Err(Refusal::Volume { trouble, .. }) => Some(trouble),
        _ => None,
    }
}

#[test]
fn a_bound_volume_is_reached_from_where_it_says() {
    let (here, there) =
        (node("a", serde_json::json!({"zone": "1"})), node("b", serde_json::json!({"zone": "2"})));
    let mut storage = Storage::default();
    storage.claim_applied(read(bound("c", "v")));
    assert_eq!(trouble(&storage, "c"), Some(VolumeTrouble::VolumeMissing));
    storage.volume_applied(read(volume("v", "", "1Gi", "1")));
    assert_eq!(allowed(&storage, &["c"], &[&here, &there]), [true, false]);
}

#[test]
fn zone_labels_matter_only_on_nodes_that_have_any() {
    let zone = "topology.kubernetes.io/zone";
    let mut labelled = volume("v", "", "1Gi", "1");
    labelled["metadata"]["labels"] = serde_json::json!({"failure-domain.beta.kubernetes.io/zone": "x__y"});
    labelled["spec"]["nodeAffinity"] = serde_json::Value::Null;
    let mut storage = Storage::default();
    storage.claim_applied(read(bound("c", "v")));
    storage.volume_applied(read(labelled));
    let nodes = [serde_json::json!({zone: "y"}), serde_json::json!({zone: "z"}), serde_json::json!({})];
    let nodes = nodes.map(|labels| node("a", labels));
    assert_eq!(allowed(&storage, &["c"], &nodes.each_ref()), [true, false, true]);
}

#[test]
fn claims_that_no_node_can_help_are_refused_by_reason() {
    let mut storage = Storage::default();
    storage.class_applied(read(class("now", "p", "Immediate")));
    storage.claim_applied(read(claim("unbound", "now", "1Gi")));
    storage.claim_applied(read(claim("classless", "", "1Gi")));
    let mut lost = bound("lost", "v");
    lost["status"] = serde_json::json!({"phase": "Lost"});
    storage.claim_applied(read(lost));
    let mut going = bound("going", "v");
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    storage.claim_applied(read(going));
    let troubles = ["none", "unbound", "classless", "lost", "going"].map(|claim| trouble(&storage, claim));
    use VolumeTrouble::{Deleted, Lost, Missing, Unbound};
    assert_eq!(troubles, [Missing, Unbound, Unbound, Lost, Deleted].map(Some));
}

#[test]
fn each_open_claim_takes_a_volume_of_its_own() {
    let (one, two) =
        (node("a", serde_json::json!({"zone": "1"})), node("b", serde_json::json!({"zone": "2"})));
    let mut storage = Storage::default();
    storage.class_applied(read(class("local", NONE, WAITS)));
    storage.claim_applied(read(claim("small", "local", "1Gi")));
    storage.claim_applied(read(claim("large", "local", "8Gi")));
    storage.volume_applied(read(volume("a1", "local", "10Gi", "1")));
    storage.volume_applied(read(volume("a2", "local", "2Gi", "1")));
    storage.volume_applied(read(volume("b1", "local", "10Gi", "2")));
    assert_eq!(allowed(&storage, &["large", "small"], &[&one, &two]), [true, false]);
    assert_eq!(allowed(&storage, &["large"], &[&one, &two]), [true, true]);
}

#[test]
fn a_volume_is_made_where_the_class_allows_and_has_room() {
    let (one, two) =
        (node("a", serde_json::json!({"zone": "1"})), node("b", serde_json::json!({"zone": "2"})));
    let mut made = class("fast", "driver", WAITS);
    made["allowedTopologies"] =
        serde_json::json!([{"matchLabelExpressions": [{"key": "zone", "values": ["1"]}]}]);
    let mut storage = Storage::default();
    storage.class_applied(read(made));
    storage.claim_applied(read(claim("c", "fast", "1Gi")));
    assert_eq!(allowed(&storage, &["c"], &[&one, &two]), [true, false]);
    storage.driver_applied(read(
        serde_json::json!({"metadata": {"name": "driver"}, "spec": {"storageCapacity": true}}),
    ));
    assert_eq!(
        allowed(&storage, &["c"], &[&one]),
        [false],
        "it says how much room it has, and has not said any"
    );
    storage.room_applied(&read(serde_json::json!({
        "metadata": {"namespace": "x", "name": "r"}, "storageClassName": "fast", "capacity": "1Gi",
        "nodeTopology": {"matchLabels": {"zone": "1"}},
    })));
    assert_eq!(allowed(&storage, &["c"], &[&one]), [true]);
}

#[test]
fn a_volume_being_made_for_a_node_keeps_the_pod_to_it() {
    let mut storage = Storage::default();
    storage.class_applied(read(class("fast", "driver", WAITS)));
    let mut selected = claim("c", "fast", "1Gi");
    selected["metadata"]["annotations"] = serde_json::json!({"volume.kubernetes.io/selected-node": "a"});
    storage.claim_applied(read(selected));
    let nodes = [node("a", serde_json::json!({})), node("b", serde_json::json!({}))];
    assert_eq!(allowed(&storage, &["c"], &nodes.each_ref()), [true, false]);
}

#[test]
fn a_node_takes_so_many_volumes_and_the_same_one_again() {
    let here = node("a", serde_json::json!({"zone": "1"}));
    let mut storage = Storage::default();
    for name in ["x", "y"] {
        storage.claim_applied(read(bound(name, name)));
        storage.volume_applied(read(volume(name, "", "1Gi", "1")));
    }
    storage.node_applied(read(serde_json::json!({
        "metadata": {"name": "a"}, "spec": {"drivers": [{"name": "d", "allocatable": {"count": 1}}]}
    })));
    assert_eq!(allowed(&storage, &["x"], &[&here]), [true]);
    assert_eq!(storage.brought(&[used("x"), used("x")]), [("d".to_owned(), 1)].into());
    storage.use_began("a", &[used("x").claim]);
    assert_eq!(allowed(&storage, &["x"], &[&here]), [true], "it is there already");
    assert_eq!(allowed(&storage, &["y"], &[&here]), [false]);
    assert_eq!(storage.attach_room("a"), [("d", 1, 1)]);
    assert_eq!(storage.brought(&[used("x")]), [].into());
    storage.use_ended("a", &[used("x").claim]);
    assert_eq!(allowed(&storage, &["y"], &[&here]), [true]);
}

#[test]
fn an_attached_volume_counts_once_whoever_says_so() {
    let here = node("a", serde_json::json!({"zone": "1"}));
    let mut storage = Storage::default();
    for name in ["x", "y"] {
        storage.claim_applied(read(bound(name, name)));
        let mut volume = volume(name, "", "1Gi", "1");
        volume["spec"]["claimRef"] = serde_json::json!({"namespace": "n", "name": name});
        storage.volume_applied(read(volume));
    }
    storage.node_applied(read(serde_json::json!({
        "metadata": {"name": "a"}, "spec": {"drivers": [{"name": "d", "allocatable": {"count": 2}}]}
    })));
    storage.use_began("a", &[used("x").claim]);
    storage.attachment_applied(read(serde_json::json!({
        "metadata": {"name": "t"},
        "spec": {"attacher": "d", "nodeName": "a", "source": {"persistentVolumeName": "x"}},
    })));
    assert_eq!(allowed(&storage, &["y"], &[&here]), [true]);
    storage.use_ended("a", &[used("x").claim]);
    assert_eq!(storage.attach_room("a"), [("d", 2, 1)], "still on its way out");
    storage.used_by_jobs(&used("x").claim, ["b".to_owned()].into());
    assert_eq!(storage.attach_room("a"), [("d", 2, 1)], "the job that has it is elsewhere");
    storage.used_by_jobs(&used("x").claim, ["a".to_owned()].into());
    assert_eq!(storage.attach_room("a"), [("d", 2, 0)], "counted with the job that has it");
}

#[test]
fn a_driver_that_must_be_there_is() {
    let mut storage = Storage::default();
    storage.class_applied(read(class("fast", "d", WAITS)));
    storage.claim_applied(read(claim("c", "fast", "1Gi")));
    storage.driver_applied(read(serde_json::json!({
        "metadata": {"name": "d"}, "spec": {"preventPodSchedulingIfMissing": true}
    })));
    storage.node_applied(read(
        serde_json::json!({"metadata": {"name": "a"}, "spec": {"drivers": [{"name": "d"}]}}),
    ));
    let nodes = [node("a", serde_json::json!({})), node("b", serde_json::json!({}))];
    assert_eq!(allowed(&storage, &["c"], &nodes.each_ref()), [true, false]);
}
