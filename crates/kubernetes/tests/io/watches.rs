//! Everything that changes arrives, whatever happens to the line or the API server.

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, PostParams};
use kube::{Client, ResourceExt};
use metronome_kubernetes::metrics::Metrics;
use metronome_kubernetes::objects::{Group, GroupKind, QueueKind, definition};
use metronome_kubernetes::watch::{Binding, Change, Delta, Settings, watch};
use metronome_testcluster::proxy::{Fault, Rule, Verb};
use metronome_testcluster::{ControlPlane, Kubernetes, Options, Proxy};
use serde_json::json;
use tokio::sync::mpsc;

use crate::stage::{PATIENCE, Stage};

/// Somebody who watches.
struct Watcher {
    changes: mpsc::Receiver<Change>,
    metrics: Metrics,
}

impl Watcher {
    fn start(client: Client, namespace: &str) -> Self {
        let metrics = Metrics::default();
        let (out, changes) = mpsc::channel(64);
        let settings = Settings { page: 3, rediscover: Duration::from_secs(1), ..Settings::new(namespace) };
        tokio::spawn(watch(client, settings, metrics.clone(), out));
        Self { changes, metrics }
    }

    /// The next change that is as wanted; others are passed over.
    async fn see<T>(&mut self, what: &str, wanted: impl Fn(Change) -> Option<T>) -> T {
        let seen = async {
            loop {
                let change = self.changes.recv().await.expect("it watches");
                if let Some(seen) = wanted(change) {
                    return seen;
                }
            }
        };
        tokio::time::timeout(PATIENCE, seen).await.unwrap_or_else(|_| panic!("never seen: {what}"))
    }

    async fn synced(&mut self) {
        self.see("that all is there", |change| matches!(change, Change::Synced).then_some(())).await;
    }

    async fn applied(&mut self, pod: &str) {
        self.see(pod, |change| match change {
            Change::Pod(Delta::Applied(seen)) => (seen.name_any() == pod).then_some(()),
            _ => None,
        })
        .await;
    }

    /// Anything that says that the pod is there.
    async fn there(&mut self, pod: &str) {
        self.see(pod, |change| match change {
            Change::Pod(Delta::Applied(seen)) => (seen.name_any() == pod).then_some(()),
            Change::Pod(Delta::Reset(all)) => all.iter().any(|seen| seen.name_any() == pod).then_some(()),
            _ => None,
        })
        .await;
    }

    fn count(&self, line: &str) -> u64 {
        let text = self.metrics.text();
        let found = text.lines().find_map(|have| have.strip_prefix(line)?.trim().parse().ok());
        found.unwrap_or(0)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_kinds_come_whole_before_it_is_said_that_they_are_there() {
    let Some(stage) = Stage::set("whole").await else { return };
    for number in 0..7 {
        stage.pod(&format!("whole-{number}")).await;
    }
    stage.pod("whole-ended").await;
    stage.status("whole-ended", json!({"phase": "Succeeded"})).await;
    let mut watcher = Watcher::start(stage.client.clone(), &stage.namespace);
    let (mut kinds, mut pods) = (0, Vec::new());
    loop {
        match watcher.changes.recv().await.unwrap() {
            Change::Synced => break,
            Change::Pod(Delta::Reset(all)) => {
                kinds += 1;
                pods.extend(all.iter().map(ResourceExt::name_any).filter(|name| name.starts_with("whole-")));
            }
            Change::Node(Delta::Reset(_))
            | Change::Namespace(Delta::Reset(_))
            | Change::Claim(Delta::Reset(_))
            | Change::Volume(Delta::Reset(_))
            | Change::Class(Delta::Reset(_))
            | Change::CsiNode(Delta::Reset(_))
            | Change::Budget(Delta::Reset(_))
            | Change::Job(Delta::Reset(_))
            | Change::Intent(Delta::Reset(_))
            | Change::Policy(None) => kinds += 1,
            _ => {}
        }
    }
    assert_eq!(kinds, 11);
    assert_eq!(pods.len(), 7, "pods that have ended are left out: {pods:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_come_and_go() {
    let Some(stage) = Stage::set("comeandgo").await else { return };
    let mut watcher = Watcher::start(stage.client.clone(), &stage.namespace);
    watcher.synced().await;
    stage.pod("comes").await;
    watcher.applied("comes").await;
    stage.pods().delete("comes", &DeleteParams::default().grace_period(0)).await.unwrap();
    watcher
        .see("that it went", |change| match change {
            Change::Pod(Delta::Deleted(pod)) => (pod.name_any() == "comes").then_some(()),
            _ => None,
        })
        .await;
    stage.pod("ends").await;
    stage.status("ends", json!({"phase": "Failed"})).await;
    watcher
        .see("that it ended", |change| match change {
            Change::Pod(Delta::Deleted(pod)) => (pod.name_any() == "ends").then_some(()),
            _ => None,
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_that_breaks_goes_on_where_it_broke() {
    let Some(stage) = Stage::set("resume").await else { return };
    let proxy = Proxy::start(stage.plane, 7).await.unwrap();
    let mut watcher = Watcher::start(proxy.client().await.unwrap(), &stage.namespace);
    watcher.synced().await;
    let relists = watcher.count(r#"metronome_watch_relists_total{kind="pods"}"#);
    for round in 0..3 {
        proxy.cut_watches();
        let name = format!("resume-{round}");
        stage.pod(&name).await;
        watcher.applied(&name).await;
    }
    assert_eq!(
        watcher.count(r#"metronome_watch_relists_total{kind="pods"}"#),
        relists,
        "nothing was listed again"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn watches_that_end_at_once_are_not_taken_up_in_a_hot_loop() {
    let Some(stage) = Stage::set("hot").await else { return };
    let proxy = Proxy::start(stage.plane, 7).await.unwrap();
    proxy.inject(Rule::new(Fault::CutWatch { after_events: 0..=0 }).on([Verb::Watch]).of("nodes"));
    let mut watcher = Watcher::start(proxy.client().await.unwrap(), &stage.namespace);
    let began = Instant::now();
    watcher.synced().await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    let watches = proxy.tally(Verb::Watch, "nodes").requests;
    let most = 7 + began.elapsed().as_secs();
    assert!((2..=most).contains(&watches), "{watches} watches where {most} are enough");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_refuses_all_is_asked_ever_more_seldom() {
    let Some(stage) = Stage::set("refuses").await else { return };
    let proxy = Proxy::start(stage.plane, 7).await.unwrap();
    proxy.inject(Rule::new(Fault::Answer(500)));
    let mut watcher = Watcher::start(proxy.client().await.unwrap(), &stage.namespace);
    tokio::time::sleep(Duration::from_secs(4)).await;
    let lists = proxy.tally(Verb::List, "nodes").requests;
    assert!((2..=8).contains(&lists), "{lists} lists in a few seconds");
    proxy.heal();
    watcher.synced().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_api_server_is_watched_on_and_what_was_missed_is_listed() {
    let Some(plane) = ControlPlane::start_or_skip(Options::from_env()).await else { return };
    let plane: &'static ControlPlane = Box::leak(Box::new(plane));
    let client = plane.client().await.unwrap();
    let namespace = plane.namespace("restart").await.unwrap();
    let stage = Stage { plane, client, namespace };
    let proxy = Proxy::start(plane, 7).await.unwrap();
    let mut watcher = Watcher::start(proxy.client().await.unwrap(), &stage.namespace);
    watcher.synced().await;
    stage.pod("before").await;
    watcher.applied("before").await;
    plane.restart_api_server().await.unwrap();
    stage.pod("after").await;
    watcher.there("after").await;

    // What a new server's cache does not reach back to is gone for a watch: 410.
    proxy.inject(Rule::new(Fault::Drop));
    proxy.cut_watches();
    for number in 0..5 {
        stage.pod(&format!("missed-{number}")).await;
    }
    plane.restart_api_server().await.unwrap();
    let relists = watcher.count(r#"metronome_watch_relists_total{kind="pods"}"#);
    proxy.heal();
    watcher.there("missed-4").await;
    stage.pod("last").await;
    watcher.there("last").await;
    assert!(
        watcher.count(r#"metronome_watch_relists_total{kind="pods"}"#) > relists,
        "it was not listed again"
    );
    plane.stop(metronome_testcluster::Component::ApiServer);
    plane.stop(metronome_testcluster::Component::Etcd);
}

/// As permissive as custom resources can be: anything goes below `spec`.
const LATER: &str = r"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: podgroups.scheduling.x-k8s.io
spec:
  group: scheduling.x-k8s.io
  scope: Namespaced
  names: {kind: PodGroup, plural: podgroups, singular: podgroup}
  versions:
    - name: v1alpha1
      served: true
      storage: true
      schema:
        openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
";

fn group(change: Change, name: &str) -> Option<Group> {
    let is_it = |group: &Group| &*group.reference.name == name;
    match change {
        Change::Group(GroupKind::Plugins, Delta::Applied(group)) => Some(group).filter(is_it),
        Change::Group(GroupKind::Plugins, Delta::Reset(all)) => all.into_iter().find(is_it),
        _ => None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kinds_that_are_installed_later_are_watched_and_hostile_objects_do_not_stop_it() {
    let Some(stage) = Stage::set("later").await else { return };
    let mut watcher = Watcher::start(stage.client.clone(), &stage.namespace);
    watcher.synced().await;
    stage.plane.apply_yaml(LATER).await.unwrap();
    declare(&stage, "hostile", r#"{"a": [1]}"#).await;
    let hostile = watcher.see("the hostile one", |change| group(change, "hostile")).await;
    assert!(hostile.min_members.is_err());
    declare(&stage, "honest", "4").await;
    let honest = watcher.see("the honest one", |change| group(change, "honest")).await;
    assert_eq!(honest.min_members, Ok(4));
    assert!(watcher.count(r#"metronome_bad_objects_total{kind="plugins_groups"}"#) > 0);
    let definitions = Api::<CustomResourceDefinition>::all(stage.client.clone());
    definitions.delete("podgroups.scheduling.x-k8s.io", &DeleteParams::default()).await.unwrap();
    watcher
        .see("that the kind is gone", |change| match change {
            Change::Group(GroupKind::Plugins, Delta::Reset(all)) => all.is_empty().then_some(()),
            _ => None,
        })
        .await;
}

async fn declare(stage: &Stage, name: &str, least: &str) {
    let text = format!(
        "{{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, \
         metadata: {{name: {name}, namespace: {}}}, spec: {{minMember: {least}}}}}",
        stage.namespace
    );
    stage.plane.apply_yaml(&text).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn queues_are_seen_from_when_there_is_such_a_kind_until_it_is_gone() {
    let Some(stage) = Stage::set("queues").await else { return };
    let mut watcher = Watcher::start(stage.client.clone(), &stage.namespace);
    watcher.synced().await;
    stage.plane.apply_yaml(&definition()).await.unwrap();
    let lab = "{apiVersion: metronome.dev/v1alpha1, kind: Queue, metadata: {name: lab}, spec: {parent: labs, weight: 3}}";
    stage.plane.apply_yaml(lab).await.unwrap();
    let queue = watcher
        .see("the queue", |change| match change {
            Change::Queue(QueueKind::Own, Delta::Applied(queue)) => Some(queue),
            Change::Queue(QueueKind::Own, Delta::Reset(all)) => all.into_iter().next(),
            _ => None,
        })
        .await;
    let described = queue.described.unwrap();
    assert_eq!((described.parent.as_deref(), described.queue.weight), (Some("labs"), 3));
    let definitions = Api::<CustomResourceDefinition>::all(stage.client.clone());
    definitions.delete("queues.metronome.dev", &DeleteParams::default()).await.unwrap();
    watcher
        .see("that the kind is gone", |change| match change {
            Change::Queue(QueueKind::Own, Delta::Reset(all)) => all.is_empty().then_some(()),
            _ => None,
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn gangs_that_the_api_server_itself_knows_are_seen() {
    let Some(stage) = Stage::set("upstream").await else { return };
    let (kind, gang) = match Kubernetes::chosen().unwrap() {
        Kubernetes::V1_35 => (
            GroupKind::Workload,
            "{apiVersion: scheduling.k8s.io/v1alpha1, kind: Workload, metadata: {name: gang, namespace: NS}, \
             spec: {podGroups: [{name: workers, policy: {gang: {minCount: 4}}}, {name: ps, policy: {basic: {}}}]}}",
        ),
        Kubernetes::V1_37 => (
            GroupKind::Upstream,
            "{apiVersion: scheduling.k8s.io/v1beta1, kind: PodGroup, metadata: {name: gang, namespace: NS}, \
             spec: {schedulingPolicy: {gang: {minCount: 4}}}}",
        ),
    };
    stage.plane.apply_yaml(&gang.replace("NS", &stage.namespace)).await.unwrap();
    let mut watcher = Watcher::start(stage.client.clone(), &stage.namespace);
    let group = watcher
        .see("the gang", |change| match change {
            Change::Group(seen, Delta::Reset(all)) if seen == kind => {
                all.into_iter().find(|group| *group.reference.namespace == *stage.namespace)
            }
            _ => None,
        })
        .await;
    assert_eq!((&*group.reference.name, group.min_members), ("gang", Ok(4)));
    assert_eq!(group.complaints, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_policy_and_intents_come_from_our_own_namespace() {
    let Some(stage) = Stage::set("own").await else { return };
    let mut watcher = Watcher::start(stage.client.clone(), &stage.namespace);
    watcher.synced().await;
    let maps: Api<ConfigMap> = Api::namespaced(stage.client.clone(), &stage.namespace);
    let create = async |map| {
        maps.create(&PostParams::default(), &serde_json::from_value(map).unwrap()).await.unwrap();
    };
    create(json!({"metadata": {"name": "metronome"}, "data": {"policy.yaml": "spec: {binding: Off}"}})).await;
    let policy = watcher
        .see("the policy", |change| match change {
            Change::Policy(policy) => policy,
            _ => None,
        })
        .await;
    assert_eq!((policy.binding, policy.complaint), (Binding::Off, None));
    let labels = json!({"metronome.dev/intent": ""});
    create(json!({"metadata": {"name": "bad", "labels": labels}, "data": {"intent.json": "{"}})).await;
    let intent = watcher
        .see("the intent", |change| match change {
            Change::Intent(Delta::Applied(recorded)) => Some(recorded),
            _ => None,
        })
        .await;
    assert_eq!(intent.name.0, "bad");
    assert!(intent.intent.is_err());
}
