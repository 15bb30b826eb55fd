//! A pod as it is now, looked at where an answer left a doubt. As much of it as any doubt is about.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::hands::{Hands, Lane, Stop};
use crate::deed::PodRef;
use crate::request::{Answer, Call};

#[derive(Debug, Deserialize)]
pub(super) struct Seen {
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    uid: String,
    resource_version: String,
    deletion_timestamp: Option<IgnoredAny>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    node_name: Option<String>,
    scheduling_gates: Vec<IgnoredAny>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    phase: String,
    nominated_node_name: Option<String>,
    conditions: Vec<SeenCondition>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SeenCondition {
    #[serde(rename = "type")]
    kind: String,
    pub(super) status: String,
    pub(super) reason: String,
    pub(super) message: String,
}

impl Seen {
    pub(super) fn version(&self) -> &str {
        &self.metadata.resource_version
    }

    pub(super) fn labels(&self) -> &BTreeMap<String, String> {
        &self.metadata.labels
    }

    pub(super) fn node(&self) -> Option<&str> {
        self.spec.node_name.as_deref().filter(|node| !node.is_empty())
    }

    pub(super) fn nominated(&self) -> Option<&str> {
        self.status.nominated_node_name.as_deref().filter(|node| !node.is_empty())
    }

    pub(super) fn is_leaving(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    pub(super) fn is_gated(&self) -> bool {
        !self.spec.scheduling_gates.is_empty()
    }

    pub(super) fn is_running(&self) -> bool {
        self.status.phase == "Running"
    }

    pub(super) fn condition(&self, kind: &str) -> Option<&SeenCondition> {
        self.status.conditions.iter().find(|condition| condition.kind == kind)
    }

    pub(super) fn is_ready(&self) -> bool {
        self.condition("Ready").is_some_and(|ready| ready.status == "True")
    }
}

impl Hands {
    /// The pod, or nothing where it is gone and perhaps another of its name is there.
    pub(super) async fn see(&self, lane: &Lane, pod: &PodRef) -> Result<Option<Seen>, Stop> {
        match self.settle(lane, &Call::get("pods", path(pod))).await? {
            Answer::Done(body) => match serde_json::from_slice::<Seen>(&body) {
                Ok(seen) => Ok(Some(seen).filter(|seen| *seen.metadata.uid == *pod.uid)),
                Err(error) => Err(Stop::Unreachable(error.to_string())),
            },
            Answer::Absent => Ok(None),
            other => {
                Err(Stop::Unreachable(format!("{}/{} cannot be read: {other:?}", pod.namespace, pod.name)))
            }
        }
    }
}

pub(super) fn path(pod: &PodRef) -> String {
    format!("/api/v1/namespaces/{}/pods/{}", pod.namespace, pod.name)
}
