//! One replica leads at a time, and one that cannot know that it still does, does not.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, DeleteParams, PostParams};
use metronome_kubernetes::deed::{Bound, Kind, Outcome};
use metronome_kubernetes::lead::{Lead, Settings, Standing, elect};
use metronome_kubernetes::metrics::Metrics;
use metronome_kubernetes::request::Server;
use metronome_testcluster::Proxy;
use metronome_testcluster::proxy::{Fault, Rule, Verb};
use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::stage::{Actor, PATIENCE, Stage, seat, until};

pub(crate) fn settings(namespace: &str, identity: &str) -> Settings {
    Settings {
        duration: Duration::from_secs(4),
        renew_deadline: Duration::from_secs(2),
        retry: Duration::from_millis(200),
        ..Settings::new(namespace, identity, "1.0.0")
    }
}

/// Somebody who runs for the lead.
pub(crate) struct Replica {
    pub(crate) lead: Lead,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Replica {
    pub(crate) fn start(client: Client, settings: Settings) -> Self {
        Self::that_may(client, settings, Arc::new(AtomicBool::new(true)))
    }

    fn that_may(client: Client, settings: Settings, may: Arc<AtomicBool>) -> Self {
        let lead = Lead::open();
        let server = Server::new(client, Metrics::default(), Duration::from_secs(2));
        let (stop, stopped) = oneshot::channel();
        let stopped = async move { stopped.await.unwrap_or(()) };
        let may_take = move |_: &_| may.load(Ordering::Relaxed);
        let task = tokio::spawn(elect(server, settings, lead.clone(), may_take, stopped));
        Self { lead, stop, task }
    }

    pub(crate) async fn leads(&self) -> u64 {
        let mut standing = self.lead.standing();
        let leading = standing.wait_for(|now| matches!(now, Standing::Leading { .. }));
        tokio::time::timeout(PATIENCE, leading).await.expect("it leads in time").unwrap();
        assert!(self.lead.is_held());
        self.lead.epoch()
    }

    async fn stop(self) {
        self.stop.send(()).unwrap();
        self.task.await.unwrap();
        assert!(!self.lead.is_held());
    }
}

async fn lease(stage: &Stage) -> Lease {
    Api::namespaced(stage.client.clone(), &stage.namespace).get("metronome").await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn who_stops_hands_over_without_delay() {
    let Some(stage) = Stage::set("handover").await else { return };
    let first = Replica::start(stage.client.clone(), settings(&stage.namespace, "first"));
    assert_eq!(first.leads().await, 1);
    let second = Replica::start(stage.client.clone(), settings(&stage.namespace, "second"));
    let following = Standing::Following { holder: Some("first".into()) };
    second.lead.standing().wait_for(|now| *now == following).await.unwrap();
    first.stop().await;
    let began = Instant::now();
    assert_eq!(second.leads().await, 2);
    assert!(began.elapsed() < Duration::from_secs(4), "nobody had to be waited out");
    let lease = lease(&stage).await;
    assert_eq!(lease.metadata.annotations.unwrap()["metronome.dev/version"], "1.0.0");
    assert_eq!(lease.spec.unwrap().holder_identity.as_deref(), Some("second"));
    second.stop().await;
    let lease = self::lease(&stage).await.spec.unwrap();
    assert_eq!((lease.holder_identity.as_deref(), lease.lease_duration_seconds), (Some(""), Some(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_stops_hands_over_when_what_it_was_doing_is_done() {
    let Some(stage) = Stage::set("underway").await else { return };
    let pod = stage.pod("one").await;
    let first = Replica::start(stage.client.clone(), settings(&stage.namespace, "first"));
    first.leads().await;
    let second = Replica::start(stage.client.clone(), settings(&stage.namespace, "second"));
    let proxy = Proxy::start(stage.plane, 7).await.unwrap();
    let late = Duration::from_millis(1_500);
    proxy.inject(Rule::new(Fault::Delay(late..=late)).of("pods/binding"));
    let mut actor = Actor::start(proxy.client().await.unwrap(), first.lead.clone(), stage.settings());
    actor.ask(Kind::Bind { members: vec![seat(&pod, "node-a")], intent: None }).await;
    until("the bind is under way", async || proxy.total().requests > 0).await;
    first.stop().await;
    second.leads().await;
    assert_eq!(stage.node_of("one").await.as_deref(), Some("node-a"), "it came after another led");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_cut_off_stops_before_another_begins() {
    let Some(stage) = Stage::set("cutoff").await else { return };
    let proxy = Proxy::start(stage.plane, 7).await.unwrap();
    let first = Replica::start(proxy.client().await.unwrap(), settings(&stage.namespace, "first"));
    first.leads().await;
    let second = Replica::start(stage.client.clone(), settings(&stage.namespace, "second"));
    tokio::time::sleep(Duration::from_millis(500)).await;
    proxy.pause();
    let cut_off = Instant::now();
    let overlap = async {
        while !second.lead.is_held() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        first.lead.is_held()
    };
    let overlap = tokio::time::timeout(PATIENCE, overlap).await.expect("the second takes over");
    assert!(!overlap, "both led at once");
    assert!(cut_off.elapsed() > Duration::from_secs(3), "the second did not wait");
    assert_eq!(*first.lead.standing().borrow(), Standing::Lost);
    proxy.resume();
    let following = Standing::Following { holder: Some("second".into()) };
    let mut standing = first.lead.standing();
    tokio::time::timeout(PATIENCE, standing.wait_for(|now| *now == following)).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_take_the_lead_leaves_it() {
    let Some(stage) = Stage::set("decline").await else { return };
    let may = Arc::new(AtomicBool::new(false));
    let settings = settings(&stage.namespace, "shy");
    let replica = Replica::that_may(stage.client.clone(), settings, may.clone());
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!replica.lead.is_held());
    may.store(true, Ordering::Relaxed);
    replica.leads().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_costs_neither_the_lead_nor_an_epoch() {
    let Some(stage) = Stage::set("answer").await else { return };
    let proxy = Proxy::start(stage.plane, 7).await.unwrap();
    proxy.inject(Rule::new(Fault::LoseAnswer).on([Verb::Create]).of("leases").times(1));
    proxy.inject(Rule::new(Fault::HideAnswer).on([Verb::Patch]).of("leases").times(2));
    let replica = Replica::start(proxy.client().await.unwrap(), settings(&stage.namespace, "one"));
    let epoch = replica.leads().await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(replica.lead.is_held());
    assert_eq!(replica.lead.epoch(), epoch);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_was_deleted_begins_a_later_epoch() {
    let Some(stage) = Stage::set("deleted").await else { return };
    let first = Replica::start(stage.client.clone(), settings(&stage.namespace, "first"));
    let epoch = first.leads().await;
    let leases: Api<Lease> = Api::namespaced(stage.client.clone(), &stage.namespace);
    leases.delete("metronome", &DeleteParams::default()).await.unwrap();
    until("it leads anew", async || first.lead.is_held() && first.lead.epoch() > epoch).await;
    first.stop().await;

    let maps: Api<ConfigMap> = Api::namespaced(stage.client.clone(), &stage.namespace);
    let text = r#"{"gang":"PodGroup/a/b","generation":1,"epoch":41,"seats":[]}"#;
    let labels = json!({"metronome.dev/intent": ""});
    let intent = json!({"metadata": {"name": "intent", "labels": labels}, "data": {"intent.json": text}});
    maps.create(&PostParams::default(), &serde_json::from_value(intent).unwrap()).await.unwrap();
    leases.delete("metronome", &DeleteParams::default()).await.unwrap();
    let second = Replica::start(stage.client.clone(), settings(&stage.namespace, "second"));
    assert_eq!(second.leads().await, 42, "later than what is still recorded");
}

#[tokio::test(flavor = "multi_thread")]
async fn retries_stop_at_once_when_the_lead_is_lost() {
    let Some(stage) = Stage::set("stop").await else { return };
    let pod = stage.pod("one").await;
    let may = Arc::new(AtomicBool::new(true));
    let replica = Replica::that_may(stage.client.clone(), settings(&stage.namespace, "one"), may.clone());
    replica.leads().await;
    may.store(false, Ordering::Relaxed);
    let proxy = Proxy::start(stage.plane, 7).await.unwrap();
    proxy.inject(Rule::new(Fault::Busy { retry_after: Duration::from_secs(30) }));
    let mut actor = Actor::start(proxy.client().await.unwrap(), replica.lead.clone(), stage.settings());
    actor.ask(Kind::Bind { members: vec![seat(&pod, "node-a")], intent: None }).await;
    until("the bind was tried", async || proxy.total().requests > 0).await;
    let leases: Api<Lease> = Api::namespaced(stage.client.clone(), &stage.namespace);
    leases.delete("metronome", &DeleteParams::default()).await.unwrap();
    let began = Instant::now();
    match actor.heard().await {
        Outcome::Bound { members, .. } => assert_eq!(members[0].1, Bound::Unknown),
        other => panic!("{other:?}"),
    }
    assert!(began.elapsed() < Duration::from_secs(10), "it waited out the pause");
    let nothing = actor.done(Kind::Bind { members: vec![seat(&pod, "node-a")], intent: None }).await;
    assert!(matches!(nothing, Outcome::GivenUp { .. }), "{nothing:?}");
    assert_eq!(proxy.total().requests, 1, "nothing more was sent");
}
