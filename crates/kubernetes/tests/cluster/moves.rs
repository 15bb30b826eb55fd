//! Moves: a job saves its work, leaves, is made anew and arrives on another node, or stays where it is.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

use crate::scheduler::Scheduled;
use metronome_testcluster::{Corner, shared};

/// A pod that shares cores with others, saves its work within a second, and has an owner of its own.
fn sharing(corner: &Corner, name: &str, owner: &str) -> Value {
    let mut pod = corner.pod(name, 0);
    pod["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "1"}, "limits": {"cpu": "8"}});
    let owner =
        json!({"apiVersion": "batch/v1", "kind": "Job", "name": owner, "uid": owner, "controller": true});
    pod["metadata"]["ownerReferences"] = json!([owner]);
    for (key, value) in [("checkpoint", "takes=1s"), ("duration", "1h"), ("iterations", "3600")] {
        pod["metadata"]["annotations"][format!("metronome.dev/{key}")] = json!(value);
    }
    pod
}

/// Whether pods may be bound to the second node of a corner.
async fn open_second(corner: &Corner, open: bool) {
    let nodes: Api<Node> = Api::all(corner.client.clone());
    let patch = Patch::Merge(json!({"spec": {"unschedulable": !open}}));
    nodes.patch(&second(corner), &PatchParams::default(), &patch).await.unwrap();
}

fn first(corner: &Corner) -> String {
    format!("{}-0", corner.namespace)
}

fn second(corner: &Corner) -> String {
    format!("{}-1", corner.namespace)
}

async fn says(corner: &Corner, pod: &str, key: &str) -> Option<String> {
    let pod = corner.pods().get_opt(pod).await.unwrap()?;
    pod.metadata.annotations?.get(&format!("metronome.dev/{key}")).cloned()
}

async fn say(corner: &Corner, pod: &str, key: &str, value: &str) {
    corner.patch(pod, json!({"metadata": {"annotations": {format!("metronome.dev/{key}"): value}}})).await;
}

/// Both pods on the first node, the second free for whoever would go there.
async fn crowded(corner: &mut Scheduled) {
    open_second(corner, false).await;
    corner.start().await;
    corner.create([sharing(corner, "a", "owner-of-a"), sharing(corner, "b", "owner-of-b")]).await;
    let seats = corner.until_bound(2).await;
    assert!(seats.values().all(|node| *node == first(corner)), "{seats:?}");
    // One iteration in two seconds: they have two hours to go.
    tokio::time::sleep(Duration::from_secs(2)).await;
    for pod in ["a", "b"] {
        say(corner, pod, "progress", r#"{"iteration": 1}"#).await;
    }
    open_second(corner, true).await;
}

/// Who is asked to save its work, and by which word.
async fn asked(corner: &Corner) -> (&'static str, String) {
    corner
        .until("somebody is asked to save its work", async |corner| {
            for pod in ["a", "b"] {
                if let Some(word) = says(corner, pod, "checkpoint-request").await {
                    return Some((pod, word));
                }
            }
            None
        })
        .await
}

/// The pods that came by this name, or in its place, and hold a node.
async fn holding(corner: &Corner, name: &str) -> Vec<String> {
    let is_over = |pod: &Pod| {
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        matches!(phase, Some("Succeeded" | "Failed"))
    };
    let mut holding = Vec::new();
    for name in [name.to_owned(), format!("{name}-anew")] {
        let pod = corner.pods().get_opt(&name).await.unwrap().filter(|pod| !is_over(pod));
        holding.extend(pod.and_then(|pod| pod.spec?.node_name));
    }
    holding
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_has_saved_its_work_goes_on_elsewhere() {
    let Some(plane) = shared().await else { return };
    let mut corner = Scheduled::not_yet(plane, "moves", 2).await;
    crowded(&mut corner).await;
    let (name, word) = asked(&corner).await;
    say(&corner, name, "checkpointed", &word).await;
    corner
        .until("it is told to leave", async |corner| {
            let pod = corner.pods().get_opt(name).await.unwrap();
            pod.is_none_or(|pod| pod.metadata.deletion_timestamp.is_some()).then_some(())
        })
        .await;
    let anew = format!("{name}-anew");
    corner.create([sharing(&corner, &anew, &format!("owner-of-{name}"))]).await;
    corner
        .until("the new one is bound", async |corner| {
            let holding = holding(corner, name).await;
            assert!(holding.len() <= 1, "it runs twice: {holding:?}");
            corner.seats().await.contains_key(&anew).then_some(())
        })
        .await;
    let seats = corner.seats().await;
    assert_eq!(seats[&anew], second(&corner), "{seats:?}");
    corner
        .until("nothing is recorded any more", async |corner| (corner.intents().await == 0).then_some(()))
        .await;
    corner.judge();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_leaves_a_node_that_is_drained_with_its_work_saved() {
    let Some(plane) = shared().await else { return };
    let mut corner = Scheduled::not_yet(plane, "drained", 2).await;
    open_second(&corner, false).await;
    corner.start().await;
    corner.create([sharing(&corner, "a", "owner-of-a")]).await;
    assert_eq!(corner.until_bound(1).await["a"], first(&corner));
    open_second(&corner, true).await;
    let nodes: Api<Node> = Api::all(corner.client.clone());
    let annotations = json!({"metronome.dev/drain": "true"});
    let drain = json!({"metadata": {"annotations": annotations}, "spec": {"unschedulable": true}});
    nodes.patch(&first(&corner), &PatchParams::default(), &Patch::Merge(drain)).await.unwrap();
    let (name, word) = asked(&corner).await;
    say(&corner, name, "checkpointed", &word).await;
    corner
        .until("it has left", async |corner| {
            let pod = corner.pods().get_opt(name).await.unwrap();
            pod.is_none_or(|pod| pod.metadata.deletion_timestamp.is_some()).then_some(())
        })
        .await;
    corner.create([sharing(&corner, "a-anew", "owner-of-a")]).await;
    corner
        .until("it goes on elsewhere", async |corner| {
            let seats = corner.seats().await;
            seats.get("a-anew").is_some_and(|node| *node == second(corner)).then_some(())
        })
        .await;
    corner.judge();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_never_says_so_stays() {
    let Some(plane) = shared().await else { return };
    let mut corner = Scheduled::not_yet(plane, "stays", 2).await;
    crowded(&mut corner).await;
    let (name, word) = asked(&corner).await;
    // Twice what saving takes, and a minute.
    tokio::time::sleep(Duration::from_secs(30)).await;
    corner
        .until("nobody waits for it any more", async |corner| {
            (says(corner, name, "checkpoint-request").await.as_deref() != Some(&*word)).then_some(())
        })
        .await;
    let seats = corner.seats().await;
    assert_eq!(seats.len(), 2);
    assert!(seats.values().all(|node| *node == first(&corner)), "{seats:?}");
    let told = corner.until("it is told so", async |corner| {
        corner.told(name).await.into_iter().find(|(reason, _)| reason == "NotMoved")
    });
    told.await;
    corner.judge();
}
