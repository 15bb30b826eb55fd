//! What goes wrong in clusters: hostile objects, nodes that go, members that vanish, and the switch.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use serde_json::json;

use crate::scheduler::Scheduled;
use metronome_testcluster::shared;

#[tokio::test(flavor = "multi_thread")]
async fn hostile_objects_stop_nobody_else() {
    let Some(plane) = shared().await else { return };
    let corner = Scheduled::new(plane, "hostile", 1).await;
    let mut endless = corner.pod("endless", 1);
    endless["spec"]["containers"][0]["resources"]["requests"]["memory"] = json!("1e30");
    let mut torn = corner.pod("torn", 1);
    let terms = json!([{"matchExpressions": [
        {"key": "corner", "operator": "In", "values": [corner.namespace]},
        {"key": "corner", "operator": "NotIn", "values": [corner.namespace]},
    ]}]);
    torn["spec"]["affinity"] = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}});
    let mut host = corner.gang("host", 100_000, 1);
    host.truncate(2);
    let mut claims = corner.pod("claims", 1);
    claims["spec"]["resourceClaims"] = json!([{"name": "gpu", "resourceClaimName": "missing"}]);
    let mut heavy = corner.pod("heavy", 1);
    for at in 0..500 {
        heavy["metadata"]["labels"][format!("label-{at}")] = json!("x".repeat(63));
    }
    let mut twins = corner.gang("twins", 2, 1);
    twins[1]["metadata"]["annotations"]["metronome.dev/gang-members"] = json!("3");
    corner.create([endless, torn, claims]).await;
    corner.create(host.into_iter().chain(twins)).await;
    corner.create([heavy, corner.pod("plain", 1)]).await;
    let seats = corner.until_bound(2).await;
    assert_eq!(seats.into_keys().collect::<Vec<_>>(), ["heavy", "plain"]);
    corner.until_verdict("endless", |reason, _| reason == "Unschedulable").await;
    corner.until_verdict("torn", |reason, _| reason == "Unschedulable").await;
    corner.until_verdict("host-0", |_, message| message.contains("2 of the 100000")).await;
    corner.until_verdict("claims", |reason, _| reason == "SchedulerError").await;
    corner.until_verdict("twins-0", |_, message| message.contains("two gangs share one name")).await;
    for name in ["endless", "torn", "claims", "host-0", "host-1", "twins-0", "twins-1"] {
        corner.delete(name).await;
    }
    corner.create([corner.pod("after", 1)]).await;
    corner.until_bound(3).await;
    corner.judge();
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_deleted_while_they_are_scheduled_leave_nothing_behind() {
    let Some(plane) = shared().await else { return };
    let corner = Scheduled::new(plane, "vanish", 4).await;
    for round in 0..10 {
        let gang = corner.gang(&format!("g{round}"), 8, 1);
        corner.create(gang).await;
        for index in [0, 3, 7] {
            let name = format!("g{round}-{index}");
            let _ = corner.pods().delete(&name, &kube::api::DeleteParams::default()).await;
        }
        for index in 0..8 {
            let _ =
                corner.pods().delete(&format!("g{round}-{index}"), &kube::api::DeleteParams::default()).await;
        }
    }
    corner.until("all are gone", async |corner| corner.seats().await.is_empty().then_some(())).await;
    corner.create(corner.gang("last", 16, 1)).await;
    corner.until_bound(16).await;
    corner.until("no intent is left", async |corner| (corner.intents().await == 0).then_some(())).await;
    corner.judge();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_its_node_rejects_is_replaced_in_its_gang() {
    let Some(plane) = shared().await else { return };
    let corner = Scheduled::new(plane, "reject", 2).await;
    corner.kubelets.reject_next(&format!("{}-0", corner.namespace), "OutOfcpu");
    corner.kubelets.reject_next(&format!("{}-1", corner.namespace), "OutOfcpu");
    corner.create(corner.gang("g", 8, 1)).await;
    corner.until_bound(8).await;
    let failed = corner
        .until("the rejected ones have failed", async |corner| {
            let rejected = corner.kubelets.rejections();
            (rejected.len() == 2).then_some(rejected)
        })
        .await;
    for (at, rejection) in failed.iter().enumerate() {
        corner.delete(&rejection.pod).await;
        let mut replacement = corner.gang("g", 8, 1).remove(0);
        replacement["metadata"]["name"] = json!(format!("g-again-{at}"));
        corner.create([replacement]).await;
    }
    corner
        .until("the replacements are bound", async |corner| {
            let seats = corner.seats().await;
            (seats.contains_key("g-again-0") && seats.contains_key("g-again-1")).then_some(())
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_removed_takes_nothing_new_and_one_that_comes_does() {
    let Some(plane) = shared().await else { return };
    let corner = Scheduled::new(plane, "nodes", 2).await;
    corner.create([corner.pod("first", 4)]).await;
    let on = corner.until_bound(1).await["first"].clone();
    let other = (0..2).map(|at| format!("{}-{at}", corner.namespace)).find(|node| *node != on).unwrap();
    corner.kubelets.remove(&other).await.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    corner.create([corner.pod("second", 4)]).await;
    corner.until_verdict("second", |reason, _| reason == "Unschedulable").await;
    corner.kubelets.recover(&other).await.unwrap();
    assert_eq!(corner.until_bound(2).await["second"], other);
    corner.judge();
}

#[tokio::test(flavor = "multi_thread")]
async fn one_switch_stops_all_binding() {
    let Some(plane) = shared().await else { return };
    let corner = Scheduled::new(plane, "switch", 1).await;
    corner.create([corner.pod("before", 1)]).await;
    corner.until_bound(1).await;
    let maps: Api<ConfigMap> = Api::namespaced(corner.client.clone(), &corner.namespace);
    let policy = json!({"metadata": {"name": "metronome", "annotations": {"metronome.dev/binding": "off"}}});
    maps.create(&PostParams::default(), &serde_json::from_value(policy).unwrap()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    corner.create([corner.pod("during", 1)]).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(corner.seats().await.len(), 1);
    maps.delete("metronome", &kube::api::DeleteParams::default()).await.unwrap();
    corner.until_bound(2).await;
    corner.judge();
}
