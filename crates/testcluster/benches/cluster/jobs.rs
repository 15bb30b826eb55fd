//! The same job as each contestant's users would write it: so many workers that find one another by name.

use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use serde_json::{Value, json};

use crate::schedulers::{SCHEDULER_NAME, Scheduler};
use crate::work::{NAMESPACE, create_all};

#[derive(Debug)]
pub(crate) struct Jobs {
    resource: ApiResource,
    objects: Vec<Value>,
}

impl Jobs {
    pub(crate) fn of(scheduler: Scheduler, name: &str, count: usize, members: usize) -> Self {
        let (group, version, kind, spec) = match scheduler {
            Scheduler::Kube => ("jobset.x-k8s.io", "v1alpha2", "JobSet", job_set(members)),
            Scheduler::Volcano => ("batch.volcano.sh", "v1alpha1", "Job", of_volcano(members)),
            Scheduler::Metronome => ("metronome.dev", "v1alpha1", "TrainingJob", training_job(members)),
        };
        let object = |number: usize| {
            json!({
                "apiVersion": format!("{group}/{version}"),
                "kind": kind,
                "metadata": { "name": format!("{name}-{number}") },
                "spec": spec,
            })
        };
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        Self { resource, objects: (0..count).map(object).collect() }
    }

    pub(crate) async fn create(&self, client: &Client) -> kube::Result<()> {
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), NAMESPACE, &self.resource);
        create_all(&api, &self.objects).await
    }
}

fn training_job(members: usize) -> Value {
    json!({ "schedulerName": SCHEDULER_NAME, "members": members, "image": "none", "resources": ask() })
}

fn job_set(members: usize) -> Value {
    let job = json!({ "parallelism": members, "completions": members, "template": { "spec": pod() } });
    json!({ "replicatedJobs": [{ "name": "workers", "replicas": 1, "template": { "spec": job } }] })
}

/// With what its webhooks would fill in, and the plugins that give members what the others' have anyway.
fn of_volcano(members: usize) -> Value {
    json!({
        "schedulerName": SCHEDULER_NAME,
        "queue": "default",
        "minAvailable": members,
        "maxRetry": 3,
        "plugins": { "env": [], "svc": [] },
        "tasks": [{ "name": "workers", "replicas": members, "minAvailable": members, "template": { "spec": pod() } }],
    })
}

fn pod() -> Value {
    let container = json!({ "name": "main", "image": "none", "resources": { "requests": ask() } });
    json!({ "schedulerName": SCHEDULER_NAME, "restartPolicy": "Never", "containers": [container] })
}

fn ask() -> Value {
    json!({ "cpu": "1", "memory": "1Gi" })
}
