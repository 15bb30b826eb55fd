//! kube-scheduler, and an extender that hears which nodes have passed its filters and lets none pass, so that nothing
//! is ever bound.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use axum::extract::State;
use axum::routing::post;
use axum::{Json, Router};
use metronome_kubernetes::objects::Pod;
use metronome_testcluster::{ControlPlane, Kubernetes, Options, Shared};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::draw::Pending;
use crate::server::Server;

/// The nodes that passed, by the pod's uid.
type Heard = Arc<Mutex<BTreeMap<String, BTreeSet<String>>>>;

static PORT: OnceLock<u16> = OnceLock::new();
static PLANE: Shared = Shared::new(options);

const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) struct Reference {
    plane: &'static ControlPlane,
    heard: Heard,
}

/// What kube-scheduler says of a pod.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) nodes: BTreeSet<String>,
    pub(crate) message: String,
}

/// What it has written about each pod, by uid.
pub(crate) type Messages = BTreeMap<String, String>;

fn options() -> Options {
    let port = PORT.get().expect("the extender listens first");
    let configuration = format!(
        "apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {{leaderElect: false}}
clientConnection: {{qps: 5000, burst: 5000}}
percentageOfNodesToScore: 100
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 1
profiles:
- schedulerName: reference
  plugins: {{postFilter: {{disabled: [{{name: '*'}}]}}}}
extenders:
- urlPrefix: http://127.0.0.1:{port}
  filterVerb: filter
  nodeCacheCapable: true
  httpTimeout: 30s
"
    );
    // Without controllers nobody takes away what protects storage in use, and scenes could not be cleared.
    let protection = "--disable-admission-plugins=StorageObjectInUseProtection";
    let options = Options::default().version(Kubernetes::V1_37).scheduler(configuration);
    options.without_flow_control().api_server_flag(protection)
}

impl Reference {
    /// `None` where the programs cannot be had.
    pub(crate) async fn start() -> Option<Self> {
        let heard = Heard::default();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        PORT.set(listener.local_addr().unwrap().port()).expect("one reference per process");
        let extender = Router::new().route("/filter", post(filter)).with_state(heard.clone());
        tokio::spawn(async move { axum::serve(listener, extender).await });
        Some(Self { plane: PLANE.get().await?, heard })
    }

    pub(crate) async fn server(&self) -> Server {
        Server::new(self.plane.client().await.unwrap())
    }

    /// Waits until it has said something about each of these pods.
    pub(crate) async fn answers(&self, server: &Server, pods: &[Pod]) -> Messages {
        let waiting: BTreeSet<&str> = pods.iter().map(uid).collect();
        let begin = std::time::Instant::now();
        loop {
            let pods: Vec<Value> =
                server.list("/api/v1/pods?fieldSelector=spec.schedulerName%3Dreference").await;
            let messages: Messages = pods.iter().filter_map(refused).collect();
            if waiting.iter().all(|uid| messages.contains_key(*uid)) {
                return messages;
            }
            let silent =
                pods.iter().filter(|pod| pod["spec"]["nodeName"].is_null() && refused(pod).is_none());
            let silent: Vec<String> =
                silent.map(|pod| format!("{} {}", pod["metadata"]["name"], pod["status"])).collect();
            assert!(begin.elapsed() < PATIENCE, "kube-scheduler says nothing about {silent:#?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    pub(crate) fn answer(&self, messages: &Messages, pod: &Pod) -> Answer {
        let nodes = self.heard.lock().unwrap().get(uid(pod)).cloned().unwrap_or_default();
        Answer { nodes, message: messages.get(uid(pod)).cloned().unwrap_or_default() }
    }

    /// Asks about one more pod.
    pub(crate) async fn ask_again(&self, server: &Server, pending: &Pending) -> Answer {
        let pod = server.create_pending(pending).await;
        let messages = self.answers(server, std::slice::from_ref(&pod)).await;
        self.answer(&messages, &pod)
    }
}

fn uid(pod: &Pod) -> &str {
    pod.metadata.uid.as_deref().expect("the API server gives every pod a uid")
}

/// The uid of a pod that was not scheduled, and why.
fn refused(pod: &Value) -> Option<(String, String)> {
    let conditions = pod["status"]["conditions"].as_array()?;
    let scheduled = conditions.iter().find(|condition| condition["type"] == "PodScheduled")?;
    let refused = scheduled["status"] == "False" && scheduled["reason"] != "SchedulingGated";
    let message = scheduled["message"].as_str().unwrap_or_default().to_owned();
    refused.then(|| (pod["metadata"]["uid"].as_str().unwrap().to_owned(), message))
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Filter {
    pod: Pod,
    node_names: Option<Vec<String>>,
}

async fn filter(State(heard): State<Heard>, Json(asked): Json<Filter>) -> Json<Value> {
    let nodes = asked.node_names.unwrap_or_default().into_iter().collect();
    heard.lock().unwrap().insert(uid(&asked.pod).to_owned(), nodes);
    Json(json!({"NodeNames": [], "FailedNodes": {}}))
}
