//! The pods that are waiting to be scheduled, and the groups they belong to.

use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, PostParams};
use serde_json::{Value, json};

use crate::schedulers::{SCHEDULER_NAME, Scheduler};

pub(crate) const NAMESPACE: &str = "bench";
/// Enough to keep an API server on a few cores busy.
const CREATED_AT_ONCE: usize = 32;

/// What a pod asks for: one CPU that every node has many of, or more than any has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ask {
    Little,
    TooMuch,
}

/// How a scheduler is told that pods belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Declaration {
    /// A PodGroup of `scheduling.k8s.io`, named by a field of the pod.
    Upstream,
    /// A PodGroup of `scheduling.volcano.sh`, named by an annotation. Single pods need one, too.
    Volcano,
}

/// Objects that are created together: groups first, because pods without theirs would be looked at in vain.
#[derive(Debug)]
pub(crate) struct Work {
    declaration: Declaration,
    groups: Vec<Value>,
    pods: Vec<Value>,
}

impl Work {
    /// Pods that have nothing to do with one another: `name-0`, `name-1`, …
    pub(crate) fn singles(scheduler: Scheduler, name: &str, count: usize, ask: Ask) -> Self {
        let declaration = scheduler.declaration();
        let names: Vec<String> = (0..count).map(|number| format!("{name}-{number}")).collect();
        let pods = names.iter().map(|name| pod(name, ask));
        match declaration {
            Declaration::Upstream => Self { declaration, groups: Vec::new(), pods: pods.collect() },
            Declaration::Volcano => Self {
                declaration,
                groups: names.iter().map(|name| declaration.group(name, 1)).collect(),
                pods: pods.zip(&names).map(|(pod, name)| declaration.join(pod, name)).collect(),
            },
        }
    }

    /// Gangs of which each is bound whole or not at all.
    pub(crate) fn gangs(scheduler: Scheduler, name: &str, count: usize, members: usize, ask: Ask) -> Self {
        let declaration = scheduler.declaration();
        let group = |number: usize| declaration.group(&format!("{name}-{number}"), members);
        let member = |number: usize| {
            let gang = format!("{name}-{}", number / members);
            declaration.join(pod(&format!("{gang}-{}", number % members), ask), &gang)
        };
        Self {
            declaration,
            groups: (0..count).map(group).collect(),
            pods: (0..count * members).map(member).collect(),
        }
    }

    /// Pods that are bound already, spread evenly over the nodes.
    pub(crate) fn bound(count: usize, nodes: usize) -> Self {
        let bound = |number: usize| {
            let mut pod = pod(&format!("bound-{number}"), Ask::Little);
            pod["spec"]["nodeName"] = json!(format!("node-{}", number % nodes));
            pod
        };
        let pods = (0..count).map(bound).collect();
        Self { declaration: Declaration::Upstream, groups: Vec::new(), pods }
    }

    pub(crate) fn pods(&self) -> usize {
        self.pods.len()
    }

    pub(crate) async fn create(&self, client: &Client) -> kube::Result<()> {
        let resource = self.declaration.resource();
        let groups: Api<DynamicObject> = Api::namespaced_with(client.clone(), NAMESPACE, &resource);
        create_all(&groups, &self.groups).await?;
        create_all(&Api::<Pod>::namespaced(client.clone(), NAMESPACE), &self.pods).await
    }
}

pub(crate) async fn create_all<K>(api: &Api<K>, objects: &[Value]) -> kube::Result<()>
where
    K: Clone + std::fmt::Debug + serde::Serialize + serde::de::DeserializeOwned,
{
    let params = PostParams::default();
    let create = async |object: &Value| {
        let object = serde_json::from_value(object.clone()).expect("it is what it is said to be");
        api.create(&params, &object).await.map(drop)
    };
    stream::iter(objects).map(create).buffer_unordered(CREATED_AT_ONCE).try_collect().await
}

impl Declaration {
    fn api_version(self) -> &'static str {
        match self {
            Self::Upstream => "scheduling.k8s.io/v1beta1",
            Self::Volcano => "scheduling.volcano.sh/v1beta1",
        }
    }

    fn resource(self) -> ApiResource {
        let (group, version) = self.api_version().split_once('/').expect("both have a group");
        ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, "PodGroup"))
    }

    fn group(self, name: &str, members: usize) -> Value {
        let spec = match self {
            Self::Upstream => json!({ "schedulingPolicy": { "gang": { "minCount": members } } }),
            Self::Volcano => json!({ "minMember": members, "queue": "default" }),
        };
        json!({ "apiVersion": self.api_version(), "kind": "PodGroup", "metadata": { "name": name }, "spec": spec })
    }

    fn join(self, mut pod: Value, group: &str) -> Value {
        match self {
            Self::Upstream => pod["spec"]["schedulingGroup"] = json!({ "podGroupName": group }),
            Self::Volcano => {
                pod["metadata"]["annotations"] = json!({ "scheduling.k8s.io/group-name": group });
            }
        }
        pod
    }
}

fn pod(name: &str, ask: Ask) -> Value {
    let cpu = match ask {
        Ask::Little => "1",
        Ask::TooMuch => "1000",
    };
    let requests = json!({ "cpu": cpu, "memory": "1Gi" });
    json!({
        "metadata": { "name": name },
        "spec": {
            "schedulerName": SCHEDULER_NAME,
            "containers": [{ "name": "main", "image": "none", "resources": { "requests": requests } }],
        },
    })
}
