//! Pods with volumes.

use super::*;

fn using(claim: &str) -> Value {
    json!({"spec": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]}})
}

fn claim(name: &str, mode: &str) -> Value {
    json!({
        "metadata": {"namespace": "n", "name": name, "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"volumeName": name, "accessModes": [mode]},
    })
}

fn volume(name: &str, zone: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {"claimRef": {"namespace": "n", "name": name}, "csi": {"driver": "d", "volumeHandle": name},
                 "nodeAffinity": {"required": {"nodeSelectorTerms": [
                     {"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]}]}}},
    })
}

impl World {
    fn bind(&mut self, name: &str, mode: &str, zone: &str) {
        self.border.claim_applied(&mut self.engine, NOW, read(claim(name, mode)));
        self.border.volume_applied(&mut self.engine, NOW, read(volume(name, zone)));
    }
}

#[test]
fn a_pod_goes_where_its_volume_is_and_follows_it() {
    let mut world = World::of_two_zones();
    assert!(world.facts(using("c")).unwrap_err().may_pass());
    world.bind("c", "ReadWriteOnce", "a");
    let job = world.job(1, using("c"));
    assert_eq!(world.feasible_for(job), "a1 a2");
    world.border.volume_applied(&mut world.engine, NOW, read(volume("c", "b")));
    assert_eq!(world.feasible_for(job), "b1 b2");
    world.border.claim_deleted(&mut world.engine, NOW, "n", "c");
    assert_eq!(world.feasible_for(job), "");
}

#[test]
fn a_claim_for_one_pod_has_one_user_anywhere() {
    let mut world = World::of_two_zones();
    world.bind("c", "ReadWriteOncePod", "a");
    assert_eq!(world.feasible(using("c")), "a1 a2");
    world.other("o", "b1", using("c"));
    assert_eq!(world.feasible(using("c")), "");
    world.gone("o");
    let first = world.job(1, using("c"));
    let second = world.job(1, using("c"));
    world.engine.poll(NOW);
    let waits = |job| world.engine.job(job).is_some_and(|job| job.life.is_waiting());
    assert_eq!((waits(first), waits(second)), (false, true));
}

#[test]
fn a_node_has_room_for_so_many_volumes() {
    let mut world = World::of_two_zones();
    for name in ["x", "y"] {
        world.bind(name, "ReadWriteOnce", "a");
    }
    let limited = json!({"metadata": {"name": "a1"}, "spec": {"drivers": [{"name": "d", "allocatable": {"count": 1}}]}});
    world.border.csi_node_applied(&mut world.engine, NOW, read(limited));
    assert_eq!(world.feasible(using("x")), "a1 a2");
    world.other("o", "a1", using("x"));
    assert_eq!(world.feasible(using("x")), "a1 a2", "it is attached there already");
    assert_eq!(world.feasible(using("y")), "a2");
    world.gone("o");
    assert_eq!(world.feasible(using("y")), "a1 a2");
}

#[test]
fn volumes_of_jobs_count_too() {
    let mut world = World::new();
    world.node("a1", json!({"metadata": {"labels": {"zone": "a"}}}));
    for name in ["x", "y"] {
        world.bind(name, "ReadWriteOnce", "a");
    }
    let limited = json!({"metadata": {"name": "a1"}, "spec": {"drivers": [{"name": "d", "allocatable": {"count": 1}}]}});
    world.border.csi_node_applied(&mut world.engine, NOW, read(limited));
    world.job(1, using("x"));
    world.engine.poll(NOW);
    assert_eq!(world.feasible(using("y")), "");
}
