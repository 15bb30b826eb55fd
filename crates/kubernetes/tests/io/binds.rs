//! Binds arrive once, whatever the line does, and say truly where the pod is.

use std::time::{Duration, Instant};

use futures::future::join_all;
use kube::api::{DeleteParams, Patch, PatchParams};
use metronome_kubernetes::act;
use metronome_kubernetes::deed::{Bound, Kind, Outcome, PodRef};
use metronome_kubernetes::lead::Lead;
use metronome_testcluster::Proxy;
use metronome_testcluster::proxy::{Chance, Fault, Rule, Verb};
use serde_json::json;

use crate::stage::{Actor, Stage, reference, seat};

fn bind(pod: &PodRef, node: &str) -> Kind {
    Kind::Bind { members: vec![seat(pod, node)], intent: None }
}

fn bound(outcome: &Outcome) -> Vec<Bound> {
    match outcome {
        Outcome::Bound { members, .. } => members.iter().map(|(_, bound)| *bound).collect(),
        other => panic!("nothing was bound: {other:?}"),
    }
}

async fn line(stage: &Stage, rule: Rule) -> Proxy {
    let proxy = Proxy::start(stage.plane, 7).await.unwrap();
    proxy.inject(rule.on([Verb::Create]).of("pods/binding"));
    proxy
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_is_bound_as_kube_scheduler_binds_it() {
    let Some(stage) = Stage::set("bind").await else { return };
    let pod = stage.pod("one").await;
    let mut actor = stage.actor();
    assert_eq!(bound(&actor.done(bind(&pod, "node-a")).await), [Bound::Here]);
    let pod = stage.get("one").await;
    assert_eq!(pod.spec.unwrap().node_name.as_deref(), Some("node-a"));
    let conditions = pod.status.unwrap().conditions.unwrap();
    let scheduled = conditions.iter().find(|condition| condition.type_ == "PodScheduled").unwrap();
    assert_eq!(scheduled.status, "True");
    assert!(actor.metrics.text().contains(r#"metronome_binds_total{result="here"} 1"#));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_changed_meanwhile_is_bound_as_it_is_now() {
    let Some(stage) = Stage::set("changed").await else { return };
    let pod = stage.pod("one").await;
    stage.label("one", "yes").await;
    let mut actor = stage.actor();
    assert_eq!(bound(&actor.done(bind(&pod, "node-a")).await), [Bound::Here]);
    assert_eq!(stage.node_of("one").await.as_deref(), Some("node-a"));
}

#[tokio::test(flavor = "multi_thread")]
async fn where_a_pod_is_already_is_said() {
    let Some(stage) = Stage::set("already").await else { return };
    let pod = stage.pod("one").await;
    let mut actor = stage.actor();
    actor.done(bind(&pod, "node-a")).await;
    assert_eq!(bound(&actor.done(bind(&pod, "node-a")).await), [Bound::Here]);
    assert_eq!(bound(&actor.done(bind(&pod, "node-b")).await), [Bound::Elsewhere]);
    assert_eq!(stage.node_of("one").await.as_deref(), Some("node-a"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_gone_is_gone_even_if_another_has_its_name() {
    let Some(stage) = Stage::set("gone").await else { return };
    let pod = stage.pod("one").await;
    stage.pods().delete("one", &DeleteParams::default().grace_period(0)).await.unwrap();
    let mut actor = stage.actor();
    assert_eq!(bound(&actor.done(bind(&pod, "node-a")).await), [Bound::Gone]);
    stage.pod("one").await;
    assert_eq!(bound(&actor.done(bind(&pod, "node-a")).await), [Bound::Gone]);
    assert_eq!(stage.node_of("one").await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gated_pod_is_refused() {
    let Some(stage) = Stage::set("gated").await else { return };
    let pod = stage.pod_with("one", json!({}), json!({"schedulingGates": [{"name": "a/b"}]})).await;
    assert_eq!(bound(&stage.actor().done(bind(&pod, "node-a")).await), [Bound::Refused]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_on_its_way_out_is_gone() {
    let Some(stage) = Stage::set("leaving").await else { return };
    stage.pod("one").await;
    let finalizer = Patch::Merge(json!({"metadata": {"finalizers": ["metronome.dev/test"]}}));
    stage.pods().patch("one", &PatchParams::default(), &finalizer).await.unwrap();
    stage.pods().delete("one", &DeleteParams::default()).await.unwrap();
    let pod = reference(&stage.get("one").await);
    assert_eq!(bound(&stage.actor().done(bind(&pod, "node-a")).await), [Bound::Gone]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_is_found_again_without_binding_twice() {
    let Some(stage) = Stage::set("lost").await else { return };
    for (name, fault) in [("dropped", Fault::LoseAnswer), ("hidden", Fault::HideAnswer)] {
        let pod = stage.pod(name).await;
        let proxy = line(&stage, Rule::new(fault).times(1)).await;
        let mut actor = stage.actor_behind(&proxy).await;
        assert_eq!(bound(&actor.done(bind(&pod, "node-a")).await), [Bound::Here], "{name}");
        assert_eq!(proxy.tally(Verb::Create, "pods/binding").requests, 1, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_server_is_left_alone_as_long_as_it_asks() {
    let Some(stage) = Stage::set("busy").await else { return };
    let pod = stage.pod("one").await;
    let proxy = line(&stage, Rule::new(Fault::Busy { retry_after: Duration::from_secs(1) }).times(2)).await;
    let began = Instant::now();
    let mut actor = stage.actor_behind(&proxy).await;
    assert_eq!(bound(&actor.done(bind(&pod, "node-a")).await), [Bound::Here]);
    assert!(began.elapsed() >= Duration::from_secs(2), "{:?}", began.elapsed());
    assert_eq!(proxy.tally(Verb::Create, "pods/binding").requests, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_never_answers_is_given_up_in_the_end() {
    let Some(stage) = Stage::set("never").await else { return };
    let pod = stage.pod("one").await;
    let proxy = Proxy::start(stage.plane, 7).await.unwrap();
    proxy.inject(Rule::new(Fault::Answer(503)));
    let settings = act::Settings { retries: 3, ..stage.settings() };
    let mut actor = Actor::start(proxy.client().await.unwrap(), Lead::alone(1), settings);
    assert_eq!(bound(&actor.done(bind(&pod, "node-a")).await), [Bound::Unknown]);
    assert!(proxy.total().requests < 20, "{:?}", proxy.total());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_pods_over_a_bad_line_are_each_bound_once() {
    let Some(stage) = Stage::set("bad").await else { return };
    let names: Vec<_> = (0..100).map(|number| format!("pod-{number}")).collect();
    let pods = join_all(names.iter().map(|name| stage.pod(name))).await;
    let proxy = Proxy::start(stage.plane, 7).await.unwrap();
    for fault in [Fault::LoseAnswer, Fault::HideAnswer, Fault::Drop, Fault::Answer(503)] {
        proxy.inject(Rule::new(fault).with(Chance::percent(10)));
    }
    proxy.inject(Rule::new(Fault::Answer(409)).with(Chance::percent(10)).of("pods/binding"));
    let mut actor = stage.actor_behind(&proxy).await;
    for (number, pod) in pods.iter().enumerate() {
        actor.ask(bind(pod, &format!("node-{}", number % 10))).await;
    }
    for _ in &pods {
        assert_eq!(bound(&actor.heard().await), [Bound::Here]);
    }
    for (number, name) in names.iter().enumerate() {
        assert_eq!(stage.node_of(name).await, Some(format!("node-{}", number % 10)));
    }
    assert!(actor.end().await.is_empty(), "every outcome came once");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_cut_short_is_said_to_be_given_up_once() {
    let Some(stage) = Stage::set("short").await else { return };
    let pod = stage.pod("one").await;
    let proxy = Proxy::start(stage.plane, 7).await.unwrap();
    proxy.pause();
    let settings = act::Settings { grace: Duration::from_millis(100), ..stage.settings() };
    let mut actor = Actor::start(proxy.client().await.unwrap(), Lead::alone(1), settings);
    let ticket = actor.ask(bind(&pod, "node-a")).await;
    let outcomes = actor.end().await;
    assert!(matches!(&outcomes[..], [Outcome::GivenUp { ticket: given_up, .. }] if *given_up == ticket));
}
