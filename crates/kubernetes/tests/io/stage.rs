//! What every test needs: a namespace, pods in it, and somebody who acts.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use metronome_kubernetes::act::{self, act};
use metronome_kubernetes::deed::{Deed, Kind, Outcome, PodRef, Seat, Ticket};
use metronome_kubernetes::lead::Lead;
use metronome_kubernetes::metrics::Metrics;
use metronome_kubernetes::request::Server;
use metronome_testcluster::{ControlPlane, Proxy, shared};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Longer than anything takes on a machine that is busy with other tests.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Stage {
    pub(crate) plane: &'static ControlPlane,
    pub(crate) client: Client,
    pub(crate) namespace: String,
}

impl Stage {
    /// A namespace of the test's own; `None` where there is no control plane to be had.
    pub(crate) async fn set(prefix: &str) -> Option<Self> {
        let plane = shared().await?;
        let client = plane.client().await.unwrap();
        let namespace = plane.namespace(prefix).await.unwrap();
        Some(Self { plane, client, namespace })
    }

    pub(crate) fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub(crate) async fn pod(&self, name: &str) -> PodRef {
        self.pod_with(name, json!({}), json!({})).await
    }

    pub(crate) async fn pod_with(&self, name: &str, labels: Value, spec: Value) -> PodRef {
        let mut pod = json!({
            "metadata": {"name": name, "labels": labels},
            "spec": {"schedulerName": "metronome", "containers": [{"name": "main", "image": "none"}]},
        });
        pod["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        let pod = serde_json::from_value(pod).unwrap();
        reference(&self.pods().create(&PostParams::default(), &pod).await.unwrap())
    }

    pub(crate) async fn get(&self, name: &str) -> Pod {
        self.pods().get(name).await.unwrap()
    }

    pub(crate) async fn label(&self, name: &str, value: &str) {
        let patch = Patch::Merge(json!({"metadata": {"labels": {"touched": value}}}));
        self.pods().patch(name, &PatchParams::default(), &patch).await.unwrap();
    }

    pub(crate) async fn status(&self, name: &str, status: Value) {
        let patch = Patch::Merge(json!({ "status": status }));
        self.pods().patch_status(name, &PatchParams::default(), &patch).await.unwrap();
    }

    /// Where a pod is bound to, if it is.
    pub(crate) async fn node_of(&self, name: &str) -> Option<String> {
        self.get(name).await.spec.and_then(|spec| spec.node_name)
    }

    /// Somebody who acts straight at the API server.
    pub(crate) fn actor(&self) -> Actor {
        Actor::start(self.client.clone(), Lead::alone(1), self.settings())
    }

    /// Somebody who acts through a faulty line.
    pub(crate) async fn actor_behind(&self, proxy: &Proxy) -> Actor {
        Actor::start(proxy.client().await.unwrap(), Lead::alone(1), self.settings())
    }

    pub(crate) fn settings(&self) -> act::Settings {
        act::Settings {
            first_delay: Duration::from_millis(20),
            longest_delay: Duration::from_millis(500),
            ..act::Settings::new(&self.namespace, "test")
        }
    }
}

pub(crate) fn reference(pod: &Pod) -> PodRef {
    PodRef {
        namespace: pod.namespace().unwrap().into(),
        name: pod.name_any().into(),
        uid: pod.uid().unwrap().into(),
        version: pod.resource_version().unwrap().into(),
    }
}

pub(crate) fn seat(pod: &PodRef, node: &str) -> Seat {
    Seat { pod: pod.clone(), node: Arc::from(node) }
}

/// Carries out deeds, and hears what became of them.
pub(crate) struct Actor {
    deeds: mpsc::UnboundedSender<Deed>,
    pub(crate) outcomes: mpsc::UnboundedReceiver<Outcome>,
    pub(crate) metrics: Metrics,
    task: JoinHandle<()>,
    tickets: u64,
}

impl Actor {
    pub(crate) fn start(client: Client, lead: Lead, settings: act::Settings) -> Self {
        let metrics = Metrics::default();
        let server = Server::new(client, metrics.clone(), Duration::from_secs(2));
        let (deeds, asked) = mpsc::unbounded_channel();
        let (told, outcomes) = mpsc::unbounded_channel();
        let task = tokio::spawn(act(server, lead, settings, asked, told));
        Self { deeds, outcomes, metrics, task, tickets: 0 }
    }

    /// Asks for something and does not wait for it.
    pub(crate) async fn ask(&mut self, kind: Kind) -> Ticket {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        self.deeds.send(Deed { ticket, kind }).unwrap();
        ticket
    }

    pub(crate) async fn heard(&mut self) -> Outcome {
        tokio::time::timeout(PATIENCE, self.outcomes.recv())
            .await
            .expect("an outcome in time")
            .expect("an outcome")
    }

    pub(crate) async fn done(&mut self, kind: Kind) -> Outcome {
        self.ask(kind).await;
        self.heard().await
    }

    /// Asks for no more, and waits for the end.
    pub(crate) async fn end(self) -> Vec<Outcome> {
        let Self { deeds, mut outcomes, task, .. } = self;
        drop(deeds);
        tokio::time::timeout(PATIENCE, task).await.expect("an end in time").unwrap();
        std::iter::from_fn(|| outcomes.try_recv().ok()).collect()
    }
}

/// Waits until something is so, and says what it was waiting for if it never is.
pub(crate) async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let waited = tokio::time::timeout(PATIENCE, async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    waited.await.unwrap_or_else(|_| panic!("it never came about that {what}"));
}
