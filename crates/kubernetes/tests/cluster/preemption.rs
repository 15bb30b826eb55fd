//! Those of higher priority make room for themselves: whole gangs, all victims or none, budgets kept.

use serde_json::json;

use crate::scheduler::Scheduled;
use metronome_testcluster::{ControlPlane, shared};

async fn priority_classes(plane: &ControlPlane) {
    for (name, value) in [("low", 100), ("high", 1000)] {
        let class = format!(
            "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {{name: {name}}}\nvalue: {value}\n"
        );
        plane.apply_yaml(&class).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gang_of_higher_priority_takes_the_place_of_a_whole_gang() {
    let Some(plane) = shared().await else { return };
    priority_classes(plane).await;
    let corner = Scheduled::new(plane, "preempt", 2).await;
    let with_class = |mut pods: Vec<serde_json::Value>, class: &str| {
        pods.iter_mut().for_each(|pod| pod["spec"]["priorityClassName"] = json!(class));
        pods
    };
    corner.create(with_class(corner.gang("low-a", 4, 1), "low")).await;
    corner.create(with_class(corner.gang("low-b", 4, 1), "low")).await;
    corner.until_bound(8).await;
    corner.create(with_class(corner.gang("high", 3, 1), "high")).await;
    // There is room for three before the fourth of those who leave is gone.
    corner
        .until("the high gang runs, one gang went whole and the other was left alone", async |corner| {
            let seats = corner.seats().await;
            let seated = |gang: &str| seats.keys().filter(|name| name.starts_with(gang)).count();
            let mut lows = [seated("low-a"), seated("low-b")];
            lows.sort_unstable();
            (seated("high") == 3 && lows == [0, 4]).then_some(())
        })
        .await;
    corner.judge();
}

#[tokio::test(flavor = "multi_thread")]
async fn where_one_victim_is_protected_nobody_is_evicted() {
    let Some(plane) = shared().await else { return };
    priority_classes(plane).await;
    let corner = Scheduled::new(plane, "budget", 1).await;
    // Nobody computes budgets here, so none is ever allowed.
    plane
        .apply_yaml(&format!(
            "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {{name: all, namespace: {}}}\nspec: \
             {{minAvailable: 1, selector: {{matchLabels: {{guarded: \"yes\"}}}}}}\n",
            corner.namespace
        ))
        .await
        .unwrap();
    let low = |name: &str, guarded: bool| {
        let mut pod = corner.pod(name, 2);
        pod["spec"]["priorityClassName"] = json!("low");
        if guarded {
            pod["metadata"]["labels"]["guarded"] = json!("yes");
        }
        pod
    };
    corner.create([low("guarded", true), low("free", false)]).await;
    corner.until_bound(2).await;
    let mut high = corner.pod("high", 4);
    high["spec"]["priorityClassName"] = json!("high");
    corner.create([high]).await;
    corner.until_verdict("high", |reason, _| reason == "Unschedulable").await;
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    assert_eq!(corner.seats().await.len(), 2, "evicting one of two would help nobody");
    let mut modest = corner.pod("modest", 2);
    modest["spec"]["priorityClassName"] = json!("high");
    corner.create([modest]).await;
    corner
        .until("the unguarded one made room", async |corner| corner.seats().await.get("modest").cloned())
        .await;
    assert!(corner.seats().await.contains_key("guarded"));
    corner.judge();
}
