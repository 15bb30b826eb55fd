//! All victims are evicted, or nobody is.

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use metronome_kubernetes::deed::{Kind, Outcome, PodRef};
use metronome_testcluster::Proxy;
use metronome_testcluster::proxy::{Fault, Rule, Verb};
use serde_json::json;

use crate::stage::{Stage, until};

fn evict(victims: &[PodRef]) -> Kind {
    Kind::Evict { victims: victims.to_vec(), why: "a gang of 8 goes first".into(), intent: None }
}

/// A pod that runs and is ready, as budgets count them.
async fn running(stage: &Stage, name: &str, app: &str) -> PodRef {
    let pod = stage.pod_with(name, json!({"app": app}), json!({"nodeName": "node-a"})).await;
    let ready = json!([{"type": "Ready", "status": "True"}]);
    stage.status(name, json!({"phase": "Running", "conditions": ready})).await;
    pod
}

/// With no controllers about, a budget says what it is told to say.
async fn budget(stage: &Stage, name: &str, app: &str, allowed: i32) {
    let budgets: Api<PodDisruptionBudget> = Api::namespaced(stage.client.clone(), &stage.namespace);
    let budget = json!({
        "metadata": {"name": name},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": app}}},
    });
    budgets.create(&PostParams::default(), &serde_json::from_value(budget).unwrap()).await.unwrap();
    let status = json!({"status": {
        "disruptionsAllowed": allowed, "currentHealthy": 2, "desiredHealthy": 2 - allowed,
        "expectedPods": 2, "observedGeneration": 1,
    }});
    budgets.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
}

fn is_leaving(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

async fn nobody_leaves(stage: &Stage) -> bool {
    stage.pods().list(&ListParams::default()).await.unwrap().items.iter().all(|pod| !is_leaving(pod))
}

#[tokio::test(flavor = "multi_thread")]
async fn victims_are_marked_and_sent_away_and_people_told() {
    let Some(stage) = Stage::set("evict").await else { return };
    let victims = [running(&stage, "one", "a").await, running(&stage, "two", "a").await];
    let mut actor = stage.actor();
    assert!(matches!(actor.done(evict(&victims)).await, Outcome::Evicted { .. }));
    let pod = stage.get("one").await;
    assert!(is_leaving(&pod));
    let conditions = pod.status.unwrap().conditions.unwrap();
    let target = conditions.iter().find(|condition| condition.type_ == "DisruptionTarget").unwrap();
    assert_eq!(target.status, "True");
    let events: Api<Event> = Api::namespaced(stage.client.clone(), &stage.namespace);
    until("people are told", async || {
        let told = events.list(&ListParams::default()).await.unwrap().items;
        told.iter().filter(|event| event.reason.as_deref() == Some("Preempted")).count() == 2
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_a_budget_guards_one_nobody_is_evicted() {
    let Some(stage) = Stage::set("guarded").await else { return };
    let victims = [running(&stage, "free", "a").await, running(&stage, "guarded", "b").await];
    budget(&stage, "guard", "b", 0).await;
    match stage.actor().done(evict(&victims)).await {
        Outcome::NotEvicted { refusal, .. } => assert!(refusal.contains("guard"), "{refusal}"),
        other => panic!("{other:?}"),
    }
    assert!(nobody_leaves(&stage).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_of_one_does_not_give_two() {
    let Some(stage) = Stage::set("two").await else { return };
    let victims = [running(&stage, "one", "a").await, running(&stage, "two", "a").await];
    budget(&stage, "guard", "a", 1).await;
    let mut actor = stage.actor();
    assert!(matches!(actor.done(evict(&victims)).await, Outcome::NotEvicted { .. }));
    assert!(nobody_leaves(&stage).await, "each alone could have gone");
    assert!(matches!(actor.done(evict(&victims[..1])).await, Outcome::Evicted { .. }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_with_two_budgets_is_not_taken_for_evicted() {
    let Some(stage) = Stage::set("both").await else { return };
    let victims = [running(&stage, "one", "a").await];
    budget(&stage, "first", "a", 1).await;
    budget(&stage, "second", "a", 1).await;
    match stage.actor().done(evict(&victims)).await {
        Outcome::NotEvicted { refusal, .. } => assert!(refusal.contains("both select"), "{refusal}"),
        other => panic!("{other:?}"),
    }
    assert!(nobody_leaves(&stage).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_gone_already_stands_in_nobodys_way() {
    let Some(stage) = Stage::set("already").await else { return };
    let victims = [running(&stage, "gone", "a").await, running(&stage, "there", "a").await];
    stage.pods().delete("gone", &DeleteParams::default().grace_period(0)).await.unwrap();
    assert!(matches!(stage.actor().done(evict(&victims)).await, Outcome::Evicted { .. }));
    assert!(is_leaving(&stage.get("there").await));
}

#[tokio::test(flavor = "multi_thread")]
async fn another_pod_of_the_victims_name_is_spared() {
    let Some(stage) = Stage::set("namesake").await else { return };
    let victim = running(&stage, "one", "a").await;
    stage.pods().delete("one", &DeleteParams::default().grace_period(0)).await.unwrap();
    running(&stage, "one", "a").await;
    assert!(matches!(stage.actor().done(evict(&[victim])).await, Outcome::Evicted { .. }));
    assert!(nobody_leaves(&stage).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_is_no_refusal() {
    let Some(stage) = Stage::set("lost").await else { return };
    let victim = running(&stage, "one", "a").await;
    budget(&stage, "guard", "a", 1).await;
    let proxy = Proxy::start(stage.plane, 7).await.unwrap();
    proxy.inject(Rule::new(Fault::LoseAnswer).on([Verb::Create]).of("pods/eviction").times(2));
    let mut actor = stage.actor_behind(&proxy).await;
    assert!(matches!(actor.done(evict(&[victim])).await, Outcome::Evicted { .. }));
    assert!(is_leaving(&stage.get("one").await));
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_are_deleted_with_the_reason_on_them_but_never_their_namesakes() {
    let Some(stage) = Stage::set("delete").await else { return };
    let pod = running(&stage, "one", "a").await;
    let stale = PodRef { uid: "another".into(), ..pod.clone() };
    let why = "its gang could not be completed";
    let mut actor = stage.actor();
    let delete = |pod: &PodRef| Kind::Delete { pods: vec![pod.clone()], why: why.into() };
    assert!(matches!(actor.done(delete(&stale)).await, Outcome::Deleted { .. }));
    assert!(nobody_leaves(&stage).await);
    assert!(matches!(actor.done(delete(&pod)).await, Outcome::Deleted { .. }));
    let pod = stage.get("one").await;
    assert!(is_leaving(&pod));
    let conditions = pod.status.unwrap().conditions.unwrap();
    let target = conditions.iter().find(|condition| condition.type_ == "DisruptionTarget").unwrap();
    assert_eq!(target.message.as_deref(), Some(why));
}
