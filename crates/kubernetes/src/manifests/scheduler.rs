//! The scheduler itself: its replicas, where they are reached, and what they are told.

use serde_json::{Value, json};

use super::slots::Slots;
use super::{LABEL, Manifest, NAME, PORT_NAME, labels, metadata};

const PORT: u16 = 8089;
/// Nobody, as images without users of their own call it.
const USER: u32 = 65532;
const JOURNAL_FOLDER: &str = "/var/lib/metronome";

/// Where the policy is looked for, again whenever it changes.
pub(super) fn settings(slots: &Slots) -> Manifest {
    let policy = format!("{{\"kind\": \"Policy\", \"spec\": {{\"policy\": \"{}\"}}}}", slots.policy);
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(slots, NAME),
        "data": {"policy.yaml": policy},
    });
    object.into()
}

pub(super) fn manifests(slots: &Slots) -> Vec<Manifest> {
    vec![deployment(slots).into(), budget(slots).into(), service(slots).into()]
}

fn deployment(slots: &Slots) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata(slots, NAME),
        "spec": {
            "replicas": slots.replicas,
            "selector": {"matchLabels": {LABEL: NAME}},
            // The next leader stands by before the last one ends.
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "template": {"metadata": {"labels": labels()}, "spec": pod(slots)},
        },
    })
}

fn pod(slots: &Slots) -> Value {
    json!({
        "serviceAccountName": NAME,
        "priorityClassName": slots.priority_class_name,
        "securityContext": {
            "runAsNonRoot": true, "runAsUser": USER, "runAsGroup": USER, "fsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        // Replicas that fail together are of no use to each other.
        "topologySpreadConstraints": [{
            "maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {LABEL: NAME}},
        }],
        "containers": [container(slots)],
        "volumes": [{"name": "journal", "emptyDir": {"sizeLimit": slots.journal_size}}],
    })
}

fn container(slots: &Slots) -> Value {
    let probe = |path: &str| json!({"httpGet": {"path": path, "port": "http"}, "periodSeconds": 10});
    json!({
        "name": NAME,
        "image": slots.image,
        "args": arguments(slots),
        "ports": [{"name": "http", "containerPort": PORT}],
        "livenessProbe": probe("/livez"),
        "readinessProbe": probe("/readyz"),
        "resources": {
            "requests": {"cpu": slots.cpu, "memory": slots.memory}, "limits": {"memory": slots.memory},
        },
        "securityContext": {
            "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "journal", "mountPath": JOURNAL_FOLDER}],
    })
}

fn arguments(slots: &Slots) -> Vec<Value> {
    let scheduler = vec![json!(format!("--scheduler-name={}", slots.scheduler_name))];
    [
        vec![
            json!("run"),
            json!(format!("--namespace={}", slots.namespace)),
            json!(format!("--listen=0.0.0.0:{PORT}")),
        ],
        slots.observe.either(vec![json!("--observe")], scheduler),
        slots.levels.items(|level| format!("--level={level}")),
        slots.journal.either(vec![json!(format!("--journal={JOURNAL_FOLDER}/journal"))], Vec::new()),
    ]
    .concat()
}

/// Nodes are drained one replica at a time.
fn budget(slots: &Slots) -> Value {
    json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata(slots, NAME),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {LABEL: NAME}}},
    })
}

fn service(slots: &Slots) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": metadata(slots, NAME),
        "spec": {
            "selector": {LABEL: NAME},
            "ports": [{"name": PORT_NAME, "port": PORT, "targetPort": "http"}],
        },
    })
}
