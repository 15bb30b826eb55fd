//! The API server, as far as the test needs it: objects by path.

use futures::stream::{self, StreamExt};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use metronome_kubernetes::objects::{
    Attachment, Claim, CsiDriver, CsiNode, Namespace, Node, PersistentVolume, Pod, StorageCapacity,
    StorageClass,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::draw::{Fixture, Pending, Scene};

/// So many requests at a time.
const AT_ONCE: usize = 16;

pub(crate) struct Server {
    client: Client,
}

/// All objects that matter to where a pod may go, as they come from the API server.
#[derive(Clone)]
pub(crate) struct Everything {
    pub(crate) namespaces: Vec<Namespace>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) pods: Vec<Pod>,
    pub(crate) claims: Vec<Claim>,
    pub(crate) volumes: Vec<PersistentVolume>,
    pub(crate) classes: Vec<StorageClass>,
    pub(crate) csi_nodes: Vec<CsiNode>,
    pub(crate) drivers: Vec<CsiDriver>,
    pub(crate) capacities: Vec<StorageCapacity>,
    pub(crate) attachments: Vec<Attachment>,
}

#[derive(Deserialize)]
struct List<T> {
    items: Vec<T>,
}

impl Server {
    pub(crate) fn new(client: Client) -> Self {
        Self { client }
    }

    async fn send<T: DeserializeOwned>(&self, method: &str, path: &str, kind: &str, body: &Value) -> T {
        let request = http::Request::builder().method(method).uri(path).header("content-type", kind);
        let request = request.body(serde_json::to_vec(body).unwrap()).unwrap();
        let answer = self.client.request(request).await;
        answer.unwrap_or_else(|error| panic!("{method} {path}: {error}\n{body:#}"))
    }

    pub(crate) async fn create(&self, path: &str, body: &Value) -> Value {
        self.send("POST", path, "application/json", body).await
    }

    async fn patch(&self, path: &str, body: &Value) -> Value {
        self.send("PATCH", path, "application/merge-patch+json", body).await
    }

    async fn delete(&self, path: &str, grace: u64) {
        let options = json!({"gracePeriodSeconds": grace});
        let _: Value = self.send("DELETE", path, "application/json", &options).await;
    }

    pub(crate) async fn list<T: DeserializeOwned>(&self, path: &str) -> Vec<T> {
        self.send::<List<T>>("GET", path, "application/json", &Value::Null).await.items
    }

    /// What stays for the whole test.
    pub(crate) async fn furnish(&self, fixtures: &[Fixture]) {
        for fixture in fixtures {
            self.put(fixture).await;
        }
    }

    async fn put(&self, fixture: &Fixture) {
        self.create(&fixture.path, &fixture.body).await;
        let name = fixture.body["metadata"]["name"].as_str().unwrap();
        let own = format!("{}/{name}", fixture.path);
        if let Some(status) = &fixture.status {
            self.patch(&format!("{own}/status"), &json!({"status": status})).await;
        }
        if fixture.leaving {
            self.delete(&own, 3600).await;
        }
    }

    pub(crate) async fn set(&self, scene: &Scene) {
        stream::iter(&scene.fixtures).for_each_concurrent(AT_ONCE, |fixture| self.put(fixture)).await;
    }

    /// Creates the pods that wait, and returns them as the API server has them.
    pub(crate) async fn ask(&self, pending: &[Pending]) -> Vec<Pod> {
        stream::iter(pending).map(|pending| self.create_pending(pending)).buffered(AT_ONCE).collect().await
    }

    /// A claim that is made for a pod can be made only after it; until then the pod is gated.
    pub(crate) async fn create_pending(&self, pending: &Pending) -> Pod {
        let path = format!("/api/v1/namespaces/{}/pods", pending.namespace);
        let pod: Value = self.create(&path, &pending.body).await;
        let metadata: ObjectMeta = serde_json::from_value(pod["metadata"].clone()).unwrap();
        let (name, uid) = (metadata.name.unwrap(), metadata.uid.unwrap());
        let own = format!("{path}/{name}");
        let Some(claim) = pending.claim_for(&name, &uid) else { return serde_json::from_value(pod).unwrap() };
        self.create(&format!("/api/v1/namespaces/{}/persistentvolumeclaims", pending.namespace), &claim)
            .await;
        let freed = self.patch(&own, &json!({"spec": {"schedulingGates": null}})).await;
        serde_json::from_value(freed).unwrap()
    }

    pub(crate) async fn everything(&self) -> Everything {
        Everything {
            namespaces: self.list("/api/v1/namespaces").await,
            nodes: self.list("/api/v1/nodes").await,
            pods: self.list("/api/v1/pods").await,
            claims: self.list("/api/v1/persistentvolumeclaims").await,
            volumes: self.list("/api/v1/persistentvolumes").await,
            classes: self.list(&storage("storageclasses")).await,
            csi_nodes: self.list(&storage("csinodes")).await,
            drivers: self.list(&storage("csidrivers")).await,
            capacities: self.list(&storage("csistoragecapacities")).await,
            attachments: self.list(&storage("volumeattachments")).await,
        }
    }

    /// Removes everything a scene has brought.
    pub(crate) async fn clear(&self) {
        let claims: Vec<Claim> = self.list("/api/v1/persistentvolumeclaims").await;
        for claim in claims.iter().filter(|claim| claim.metadata.deletion_timestamp.is_some()) {
            let (namespace, name) = (claim.metadata.namespace.as_deref(), claim.metadata.name.as_deref());
            let path = claims_in(namespace.unwrap()) + "/" + name.unwrap();
            self.patch(&path, &json!({"metadata": {"finalizers": null}})).await;
        }
        let mut collections = vec!["/api/v1/persistentvolumes".to_owned(), "/api/v1/nodes".to_owned()];
        collections.extend(["csinodes", "volumeattachments"].map(storage));
        for namespace in crate::draw::NAMESPACES {
            collections.push(format!("/api/v1/namespaces/{namespace}/pods"));
            collections.push(claims_in(namespace));
            collections.push(storage(&format!("namespaces/{namespace}/csistoragecapacities")));
        }
        stream::iter(&collections).for_each_concurrent(None, |path| self.delete(path, 0)).await;
    }
}

fn claims_in(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims")
}

fn storage(plural: &str) -> String {
    format!("/apis/storage.k8s.io/v1/{plural}")
}
