//! What is said to people: conditions, events and phases, as other tools expect them.

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{Event as CoreEvent, Pod, PodCondition};
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams, PostParams};
use metronome_kubernetes::deed::{About, EventReason, Kind, ObjectRef, PodRef, Telling, Verdict, Why};
use metronome_testcluster::Proxy;
use metronome_testcluster::proxy::{Fault, Rule, Verb};
use serde_json::json;

use crate::stage::{Stage, reference, seat, until};

fn waits(pod: &PodRef, message: &str, nominated: Option<&str>) -> Kind {
    let nominated = nominated.map(Into::into);
    let verdict = Verdict { why: Why::Unschedulable, message: message.into(), nominated };
    Kind::Explain { pod: pod.clone(), verdict }
}

fn scheduled(pod: &Pod) -> Option<PodCondition> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_ == "PodScheduled").cloned()
}

async fn says(stage: &Stage, name: &str, message: &str) {
    until(&format!("{name} says {message:?}"), async || {
        scheduled(&stage.get(name).await)
            .is_some_and(|condition| condition.message.as_deref() == Some(message))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_says_why_it_waits_and_since_when() {
    let Some(stage) = Stage::set("explain").await else { return };
    let pod = stage.pod("one").await;
    let mut actor = stage.actor();
    actor.ask(waits(&pod, "8 GPUs needed, 3 free", Some("node-a"))).await;
    says(&stage, "one", "8 GPUs needed, 3 free").await;
    let first = stage.get("one").await;
    let condition = scheduled(&first).unwrap();
    assert_eq!((condition.status.as_str(), condition.reason.as_deref()), ("False", Some("Unschedulable")));
    assert!(condition.last_transition_time.is_some());
    assert_eq!(first.status.as_ref().unwrap().nominated_node_name.as_deref(), Some("node-a"));

    actor.ask(waits(&pod, "8 GPUs needed, 7 free", None)).await;
    says(&stage, "one", "8 GPUs needed, 7 free").await;
    let second = stage.get("one").await;
    assert_eq!(scheduled(&second).unwrap().last_transition_time, condition.last_transition_time);
    assert_eq!(second.status.unwrap().nominated_node_name, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_already_is_not_said_again() {
    let Some(stage) = Stage::set("again").await else { return };
    let pod = stage.pod("one").await;
    let proxy = Proxy::start(stage.plane, 7).await.unwrap();
    let mut actor = stage.actor_behind(&proxy).await;
    for _ in 0..5 {
        actor.ask(waits(&pod, "no room", None)).await;
        says(&stage, "one", "no room").await;
    }
    let mut restarted = stage.actor_behind(&proxy).await;
    restarted.ask(waits(&pod, "no room", None)).await;
    restarted.ask(waits(&stage.pod("two").await, "no room", None)).await;
    says(&stage, "two", "no room").await;
    assert_eq!(proxy.tally(Verb::Patch, "pods/status").requests, 2, "one for each pod");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bound_pod_is_never_told_that_it_waits() {
    let Some(stage) = Stage::set("bound").await else { return };
    let (one, two) = (stage.pod("one").await, stage.pod("two").await);
    let mut actor = stage.actor();
    actor.ask(waits(&one, "no room", None)).await;
    says(&stage, "one", "no room").await;
    let stale = one.clone();
    let fresh = reference(&stage.get("one").await);
    actor.done(Kind::Bind { members: vec![seat(&fresh, "node-a")], intent: None }).await;
    actor.ask(waits(&stale, "late", None)).await;
    actor.ask(waits(&two, "no room", None)).await;
    says(&stage, "two", "no room").await;
    assert_eq!(scheduled(&stage.get("one").await).unwrap().status, "True");
}

fn failed(pod: &PodRef, message: &str) -> Kind {
    let about = About::Pod(pod.clone());
    Kind::Tell(Telling { about, reason: EventReason::FailedScheduling, message: message.into() })
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_what_kubectl_shows_and_repeated_ones_are_counted() {
    let Some(stage) = Stage::set("tell").await else { return };
    let pod = stage.pod("one").await;
    let mut actor = stage.actor();
    actor.ask(failed(&pod, "8 GPUs needed, 3 free")).await;
    tokio::time::sleep(Duration::from_secs(11)).await;
    actor.ask(failed(&pod, "8 GPUs needed, 4 free")).await;
    let events: Api<Event> = Api::namespaced(stage.client.clone(), &stage.namespace);
    until("the event is counted", async || {
        let all = events.list(&ListParams::default()).await.unwrap().items;
        all.len() == 1 && all[0].series.as_ref().is_some_and(|series| series.count == 2)
    })
    .await;
    let event = events.list(&ListParams::default()).await.unwrap().items.remove(0);
    assert_eq!(event.reporting_controller.as_deref(), Some("metronome"));
    assert_eq!(
        (event.reason.as_deref(), event.action.as_deref()),
        (Some("FailedScheduling"), Some("Scheduling"))
    );
    assert_eq!(
        (event.type_.as_deref(), event.note.as_deref()),
        (Some("Warning"), Some("8 GPUs needed, 3 free"))
    );
    let fields = format!("involvedObject.uid={},involvedObject.kind=Pod", pod.uid);
    let core: Api<CoreEvent> = Api::namespaced(stage.client.clone(), &stage.namespace);
    assert_eq!(core.list(&ListParams::default().fields(&fields)).await.unwrap().items.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_events_about_one_object_are_dropped_and_counted() {
    let Some(stage) = Stage::set("flood").await else { return };
    let pod = stage.pod("one").await;
    let mut actor = stage.actor();
    for letter in 'a'..='t' {
        actor.ask(failed(&pod, &letter.to_string())).await;
    }
    until("some are dropped", async || actor.metrics.text().contains("events_dropped_total 10")).await;
}

/// As Volcano installs it: the status is part of the object.
const VOLCANO: &str = r"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: podgroups.scheduling.volcano.sh}
spec:
  group: scheduling.volcano.sh
  scope: Namespaced
  names: {kind: PodGroup, plural: podgroups, singular: podgroup}
  versions:
    - name: v1beta1
      served: true
      storage: true
      schema:
        openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
      subresources: {}
";

#[tokio::test(flavor = "multi_thread")]
async fn a_phase_is_written_where_the_status_is_part_of_the_object() {
    let Some(stage) = Stage::set("volcano").await else { return };
    stage.plane.apply_yaml(VOLCANO).await.unwrap();
    let api = ApiResource::from_gvk(&GroupVersionKind::gvk("scheduling.volcano.sh", "v1beta1", "PodGroup"));
    let groups: Api<DynamicObject> = Api::namespaced_with(stage.client.clone(), &stage.namespace, &api);
    let group = json!({
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
        "metadata": {"name": "gang"}, "spec": {"minMember": 2},
    });
    let group = groups.create(&PostParams::default(), &serde_json::from_value(group).unwrap()).await.unwrap();
    let group = ObjectRef {
        api_version: "scheduling.volcano.sh/v1beta1".into(),
        kind: "PodGroup".into(),
        plural: "podgroups".into(),
        namespace: stage.namespace.as_str().into(),
        name: "gang".into(),
        uid: group.metadata.uid.unwrap().into(),
    };
    let mut actor = stage.actor();
    actor.ask(Kind::Status { object: group, status: json!({"phase": "Running"}) }).await;
    until("the group runs", async || groups.get("gang").await.unwrap().data["status"]["phase"] == "Running")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_never_delays_a_bind() {
    let Some(stage) = Stage::set("quiet").await else { return };
    let (loud, bound) = (stage.pod("loud").await, stage.pod("bound").await);
    let proxy = Proxy::start(stage.plane, 7).await.unwrap();
    let late = Duration::from_secs(1);
    proxy.inject(Rule::new(Fault::Delay(late..=late)).of("pods"));
    proxy.inject(Rule::new(Fault::Delay(late..=late)).of("pods/status"));
    proxy.inject(Rule::new(Fault::Delay(late..=late)).of("events"));
    let mut actor = stage.actor_behind(&proxy).await;
    for number in 0..200 {
        let other = PodRef { uid: format!("uid-{number}").into(), ..loud.clone() };
        actor.ask(waits(&other, "no room", None)).await;
        actor.ask(failed(&other, "no room")).await;
    }
    let began = Instant::now();
    actor.done(Kind::Bind { members: vec![seat(&bound, "node-a")], intent: None }).await;
    assert!(began.elapsed() < Duration::from_secs(10), "400 words of a second each went first");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_phase_is_written_back_to_the_group_that_was_meant() {
    let Some(stage) = Stage::set("phase").await else { return };
    let api = ApiResource::from_gvk(&GroupVersionKind::gvk("scheduling.k8s.io", "v1beta1", "PodGroup"));
    let groups: Api<DynamicObject> = Api::namespaced_with(stage.client.clone(), &stage.namespace, &api);
    let group = json!({
        "apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup",
        "metadata": {"name": "gang"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
    });
    let Ok(group) = groups.create(&PostParams::default(), &serde_json::from_value(group).unwrap()).await
    else {
        return metronome_skip::skip("this API server has no PodGroups of its own");
    };
    let group = ObjectRef {
        api_version: "scheduling.k8s.io/v1beta1".into(),
        kind: "PodGroup".into(),
        plural: "podgroups".into(),
        namespace: stage.namespace.as_str().into(),
        name: "gang".into(),
        uid: group.metadata.uid.unwrap().into(),
    };
    let condition = json!({"conditions": [{
        "type": "PodGroupInitiallyScheduled", "status": "True", "reason": "Scheduled",
        "message": "", "lastTransitionTime": "2026-11-15T00:00:00Z",
    }]});
    let mut actor = stage.actor();
    let namesake = ObjectRef { uid: "another".into(), ..group.clone() };
    actor.ask(Kind::Status { object: namesake, status: json!({"conditions": []}) }).await;
    actor.ask(Kind::Status { object: group, status: condition }).await;
    until("the group says so", async || {
        groups.get("gang").await.unwrap().data["status"]["conditions"][0]["status"] == "True"
    })
    .await;
}
