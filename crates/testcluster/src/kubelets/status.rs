//! What kubelets write into the status of pods.

use std::net::Ipv4Addr;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use super::pod::{BoundContainer, BoundPod, Ending};

/// The exit codes of a process that fails by itself, and of one that was asked to end.
const FAILED: i32 = 1;
const TERMINATED: i32 = 143;

/// Patches name the uid, so that they never hit a successor of the same name.
fn patch(pod: &BoundPod, status: &Value) -> Value {
    json!({ "metadata": { "uid": pod.uid }, "status": status })
}

pub(super) fn running(pod: &BoundPod, addresses: Addresses, now: &Time) -> Value {
    let containers = containers(pod, &(json!({ "running": { "startedAt": now } }), true));
    let status = json!({
        "phase": "Running",
        "startTime": now,
        "hostIP": addresses.node.to_string(),
        "podIP": addresses.pod.to_string(),
        "podIPs": [{ "ip": addresses.pod.to_string() }],
        "conditions": conditions(&["PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready"], "True", None, now),
        "containerStatuses": containers,
    });
    patch(pod, &status)
}

/// Containers have what they ask for.
pub(super) fn resized(pod: &BoundPod) -> Value {
    let status = |container: &BoundContainer| {
        let BoundContainer { name, resources, .. } = container;
        json!({ "name": name, "resources": resources, "allocatedResources": resources.requests })
    };
    let containers: Vec<Value> = pod.containers.iter().map(status).collect();
    patch(pod, &json!({ "containerStatuses": containers }))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Addresses {
    pub(super) node: Ipv4Addr,
    pub(super) pod: Ipv4Addr,
}

pub(super) fn ended(pod: &BoundPod, ending: Ending, now: &Time) -> Value {
    match ending {
        Ending::Succeeded => over(pod, "Succeeded", ("Completed", 0), now),
        Ending::Failed => over(pod, "Failed", ("Error", FAILED), now),
        Ending::Stopped => over(pod, "Failed", ("Error", TERMINATED), now),
    }
}

pub(super) fn rejected(pod: &BoundPod, reason: &str, now: &Time) -> Value {
    let message = format!("Pod was rejected: {reason}");
    let status = json!({ "phase": "Failed", "reason": reason, "message": message, "startTime": now });
    patch(pod, &status)
}

fn over(pod: &BoundPod, phase: &str, (reason, exit_code): (&str, i32), now: &Time) -> Value {
    let terminated = json!({ "terminated": { "exitCode": exit_code, "reason": reason, "finishedAt": now } });
    let condition_reason = if exit_code == 0 { "PodCompleted" } else { "PodFailed" };
    let status = json!({
        "phase": phase,
        "conditions": conditions(&["ContainersReady", "Ready"], "False", Some(condition_reason), now),
        "containerStatuses": containers(pod, &(terminated.clone(), false)),
    });
    patch(pod, &status)
}

fn conditions(kinds: &[&str], status: &str, reason: Option<&str>, now: &Time) -> Vec<Value> {
    let condition =
        |kind: &&str| json!({ "type": kind, "status": status, "reason": reason, "lastTransitionTime": now });
    kinds.iter().map(condition).collect()
}

fn containers(pod: &BoundPod, (state, ready): &(Value, bool)) -> Vec<Value> {
    let status = |container: &BoundContainer| {
        let BoundContainer { name, image, resources } = container;
        json!({
            "name": name, "image": image, "imageID": "", "restartCount": 0,
            "state": state, "ready": ready, "started": ready,
            "resources": resources, "allocatedResources": resources.requests,
        })
    };
    pod.containers.iter().map(status).collect()
}
