//! Pods of `TrainingJob`s as their controller sees them: also those that are over.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

use super::meta::stripped;
use super::training::{ATTEMPT, INDEX_LABEL, JOB_LABEL, ROLE_LABEL};

#[derive(Clone, Debug, Default, Deserialize)]
pub struct Member {
    #[serde(deserialize_with = "stripped")]
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub spec: MemberSpec,
    #[serde(default)]
    pub status: MemberStatus,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MemberSpec {
    pub node_name: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MemberStatus {
    pub phase: Option<String>,
    pub reason: Option<String>,
    pub message: Option<String>,
    pub conditions: Option<Vec<MemberCondition>>,
    pub container_statuses: Option<Vec<Ended>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct MemberCondition {
    #[serde(rename = "type")]
    pub kind: String,
    pub status: String,
    pub reason: Option<String>,
    pub message: Option<String>,
}

/// A container, as far as it says how it ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Ended {
    pub state: State,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct State {
    pub terminated: Option<Terminated>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Terminated {
    pub exit_code: i32,
    pub reason: Option<String>,
}

impl Member {
    pub fn job(&self) -> Option<&str> {
        self.label(JOB_LABEL)
    }

    pub fn role(&self) -> Option<&str> {
        self.label(ROLE_LABEL)
    }

    pub fn index(&self) -> Option<u32> {
        self.label(INDEX_LABEL)?.parse().ok()
    }

    /// At which attempt of its job it was made.
    pub fn attempt(&self) -> Option<u32> {
        self.metadata.annotations.as_ref()?.get(ATTEMPT)?.parse().ok()
    }

    pub fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    /// The uid of whoever made it.
    pub fn owner(&self) -> Option<&str> {
        let owners = self.metadata.owner_references.as_deref().unwrap_or_default();
        owners.iter().find(|owner| owner.controller == Some(true)).map(|owner| &*owner.uid)
    }

    pub fn is_leaving(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    pub fn is_placed(&self) -> bool {
        self.spec.node_name.as_deref().is_some_and(|node| !node.is_empty())
    }

    pub fn is(&self, phase: &str) -> bool {
        self.status.phase.as_deref() == Some(phase)
    }

    pub fn is_over(&self) -> bool {
        self.is("Succeeded") || self.is("Failed")
    }

    pub fn condition(&self, kind: &str) -> Option<&MemberCondition> {
        self.status.conditions.as_ref()?.iter().find(|condition| condition.kind == kind)
    }

    /// The first of its containers that did not end well.
    pub fn failure(&self) -> Option<&Terminated> {
        let containers = self.status.container_statuses.as_deref().unwrap_or_default();
        containers.iter().filter_map(|one| one.state.terminated.as_ref()).find(|ended| ended.exit_code != 0)
    }

    fn label(&self, key: &str) -> Option<&str> {
        self.metadata.labels.as_ref()?.get(key).map(String::as_str)
    }
}
