//! Pods on their own.

use serde_json::json;

use crate::scheduler::Scheduled;
use metronome_testcluster::shared;

#[tokio::test(flavor = "multi_thread")]
async fn pods_are_bound_until_the_nodes_are_full_and_the_rest_is_told_why() {
    let Some(plane) = shared().await else { return };
    let corner = Scheduled::new(plane, "full", 2).await;
    corner.create((0..9).map(|at| corner.pod(&format!("p-{at}"), 1))).await;
    let seats = corner.until_bound(8).await;
    let left = (0..9).map(|at| format!("p-{at}")).find(|name| !seats.contains_key(name)).unwrap();
    let (reason, message) = corner.until_verdict(&left, |_, _| true).await;
    assert_eq!(reason, "Unschedulable");
    assert!(message.contains("1 GPU"), "{message}");
    let bound = seats.keys().next().unwrap();
    corner
        .until("the bound pod's event", async |corner| {
            corner.told(bound).await.into_iter().find(|(reason, _)| reason == "Scheduled")
        })
        .await;
    corner
        .until("the waiting pod's event", async |corner| {
            corner
                .told(&left)
                .await
                .into_iter()
                .find(|(reason, said)| reason == "FailedScheduling" && *said == message)
        })
        .await;
    corner.delete(bound).await;
    corner.until("the freed room is taken", async |corner| corner.seats().await.get(&left).cloned()).await;
    corner.judge();
}

#[tokio::test(flavor = "multi_thread")]
async fn gates_and_other_schedulers_are_left_alone() {
    let Some(plane) = shared().await else { return };
    let corner = Scheduled::new(plane, "gates", 1).await;
    let mut gated = corner.pod("gated", 1);
    gated["spec"]["schedulingGates"] = json!([{"name": "example.com/wait"}]);
    let mut other = corner.pod("other", 1);
    other["spec"]["schedulerName"] = json!("somebody-else");
    corner.create([gated, other, corner.pod("plain", 1)]).await;
    corner.until_bound(1).await;
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    assert_eq!(corner.seats().await.into_keys().collect::<Vec<_>>(), ["plain"]);
    corner.patch("gated", json!({"spec": {"schedulingGates": null}})).await;
    corner.until_bound(2).await;
    corner.judge();
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_of_others_are_counted() {
    let Some(plane) = shared().await else { return };
    let corner = Scheduled::new(plane, "others", 1).await;
    let mut other = corner.pod("other", 3);
    other["spec"]["schedulerName"] = json!("somebody-else");
    other["spec"]["nodeName"] = json!(format!("{}-0", corner.namespace));
    corner.create([other]).await;
    corner.create([corner.pod("big", 2), corner.pod("small", 1)]).await;
    corner.until("the small one is bound", async |corner| corner.seats().await.get("small").cloned()).await;
    corner.until_verdict("big", |reason, _| reason == "Unschedulable").await;
    corner.delete("other").await;
    corner.until("the big one is bound", async |corner| corner.seats().await.get("big").cloned()).await;
    corner.judge();
}

#[tokio::test(flavor = "multi_thread")]
async fn anti_affinity_and_spread_hold_between_pods_placed_at_once() {
    let Some(plane) = shared().await else { return };
    let corner = Scheduled::new(plane, "apart", 3).await;
    let apart = |at: u32| {
        let mut pod = corner.pod(&format!("apart-{at}"), 1);
        pod["metadata"]["labels"]["app"] = json!("apart");
        let term = json!({"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "apart"}}});
        pod["spec"]["affinity"] =
            json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}});
        pod
    };
    corner.create((0..4).map(apart)).await;
    let seats = corner.until_bound(3).await;
    let nodes: std::collections::BTreeSet<&String> = seats.values().collect();
    assert_eq!(nodes.len(), 3, "{seats:?}");
    let left = (0..4).map(|at| format!("apart-{at}")).find(|name| !seats.contains_key(name)).unwrap();
    corner.until_verdict(&left, |reason, _| reason == "Unschedulable").await;
    assert_eq!(corner.seats().await.len(), 3);
    corner.judge();
}
