//! A corner of the cluster for one test: nodes that only its pods select, a namespace, and a judge over both. Tests
//! that share an API server do not meet.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::{ConfigMap, Event, Pod};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

use crate::{ControlPlane, Judge, Kubelets, SimNode};

/// Long enough for a loaded machine; a test that needs it has failed.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// One test's part of the cluster.
pub struct Corner {
    pub plane: &'static ControlPlane,
    pub client: Client,
    pub namespace: String,
    pub kubelets: Kubelets,
    pub judge: Judge,
}

impl std::fmt::Debug for Corner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Corner").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

impl Corner {
    /// So many nodes of 8 CPUs and 4 GPUs. Pods of this corner name a scheduler that is called as its namespace is.
    pub async fn new(plane: &'static ControlPlane, name: &str, nodes: usize) -> Self {
        let client = plane.client().await.unwrap();
        let namespace = plane.namespace(name).await.unwrap();
        let nodes = (0..nodes).map(|at| {
            let node = SimNode::new(format!("{namespace}-{at}")).label("corner", &namespace);
            node.capacity("cpu", "8").capacity("memory", "32Gi").capacity("nvidia.com/gpu", "4")
        });
        let judge = Judge::over(&client, &format!("corner={namespace}"));
        let kubelets = Kubelets::start(client.clone(), nodes).await.unwrap();
        Self { plane, client, namespace, kubelets, judge }
    }

    pub fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// A pod of this corner's scheduler that asks for so many GPUs.
    pub fn pod(&self, name: &str, gpus: u32) -> Value {
        json!({
            "metadata": {"name": name, "labels": {}, "annotations": {}},
            "spec": {
                "schedulerName": self.namespace,
                "nodeSelector": {"corner": self.namespace},
                "terminationGracePeriodSeconds": 1,
                "containers": [{
                    "name": "main", "image": "none",
                    "resources": {"requests": {"cpu": "1", "nvidia.com/gpu": gpus.to_string()}, "limits": {"nvidia.com/gpu": gpus.to_string()}},
                }],
            },
        })
    }

    /// The pods of a labelled gang.
    pub fn gang(&self, name: &str, members: u32, gpus: u32) -> Vec<Value> {
        let member = |index: u32| {
            let mut pod = self.pod(&format!("{name}-{index}"), gpus);
            pod["metadata"]["labels"]["metronome.dev/gang"] = json!(name);
            pod["metadata"]["annotations"]["metronome.dev/gang-members"] = json!(members.to_string());
            pod
        };
        (0..members).map(member).collect()
    }

    pub async fn create(&self, pods: impl IntoIterator<Item = Value>) {
        let api = &self.pods();
        let create = async |pod: Value| {
            let pod: Pod = serde_json::from_value(pod).unwrap();
            api.create(&PostParams::default(), &pod).await.unwrap();
        };
        stream::iter(pods).for_each_concurrent(16, create).await;
    }

    /// Where each pod of this corner is bound.
    pub async fn seats(&self) -> BTreeMap<String, String> {
        let pods = self.pods().list(&ListParams::default()).await.unwrap();
        let seat = |pod: Pod| Some((pod.name_any(), pod.spec?.node_name?));
        pods.items.into_iter().filter_map(seat).collect()
    }

    pub async fn until_bound(&self, count: usize) -> BTreeMap<String, String> {
        self.until(&format!("{count} pods are bound"), async |corner| {
            let seats = corner.seats().await;
            (seats.len() >= count).then_some(seats)
        })
        .await
    }

    /// Looks again and again until there is something to see.
    pub async fn until<T>(&self, what: &str, mut look: impl AsyncFnMut(&Self) -> Option<T>) -> T {
        let begin = std::time::Instant::now();
        loop {
            if let Some(seen) = look(self).await {
                return seen;
            }
            assert!(
                begin.elapsed() < PATIENCE,
                "waited too long until {what}; bound: {:?}",
                self.seats().await
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Reason and message of the condition that says why a pod is not scheduled.
    pub async fn verdict(&self, pod: &str) -> Option<(String, String)> {
        let status = self.pods().get_opt(pod).await.unwrap()?.status?;
        let condition = status.conditions?.into_iter().find(|condition| condition.type_ == "PodScheduled")?;
        (condition.status == "False")
            .then(|| (condition.reason.unwrap_or_default(), condition.message.unwrap_or_default()))
    }

    pub async fn until_verdict(&self, pod: &str, says: impl Fn(&str, &str) -> bool) -> (String, String) {
        self.until(&format!("{pod} says why it waits"), async |corner| {
            corner.verdict(pod).await.filter(|(reason, message)| says(reason, message))
        })
        .await
    }

    /// What people are told about a pod, as (reason, message).
    pub async fn told(&self, pod: &str) -> Vec<(String, String)> {
        let events: Api<Event> = Api::namespaced(self.client.clone(), &self.namespace);
        let about = ListParams::default().fields(&format!("involvedObject.name={pod}"));
        let events = events.list(&about).await.unwrap().items;
        events
            .into_iter()
            .map(|event| (event.reason.unwrap_or_default(), event.message.unwrap_or_default()))
            .collect()
    }

    pub async fn delete(&self, pod: &str) {
        self.pods().delete(pod, &DeleteParams::default()).await.unwrap();
    }

    pub async fn patch(&self, pod: &str, patch: Value) {
        self.pods().patch(pod, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    /// The gangs whose intents are recorded.
    pub async fn intents(&self) -> usize {
        let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), &self.namespace);
        maps.list(&ListParams::default().labels("metronome.dev/intent")).await.unwrap().items.len()
    }

    /// Nothing that must never happen has happened, and somebody was there to see.
    pub fn judge(&self) {
        assert!(self.judge.seen() > 0, "the judge has seen nothing");
        assert_eq!(self.judge.violations(), [""; 0]);
        assert_eq!(self.kubelets.rejections(), []);
    }
}
