//! What has become of a `TrainingJob`. What decides how to go on (`attempt`, `restarts`, `notBefore`, `phase`, and how many
//! of each role are `wanted`) is written before it is acted upon: whoever leads next finds it there.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{RoleOf, TrainingJobSpec};

/// What has become of it
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TrainingJobStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// Why it is as it is, in one sentence
    pub message: String,
    /// How many of its members run, of how many there are to be
    pub members: String,
    /// Its place in the line it stands in
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<String>,
    /// When it will start, as far as can be foreseen
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starts: Option<String>,
    /// Between when and when it will end, as far as can be foreseen
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ends: Option<String>,
    /// The generation of the object that this is about
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Its members were made anew so many times, for whatever reason
    pub attempt: u32,
    /// How many of these were failures of its own
    pub restarts: u32,
    /// Before this time no new members are made
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_before: Option<String>,
    /// When all its members ran for the first time
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<LastFailure>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<RoleStatus>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

impl TrainingJobStatus {
    /// How many members of a role there are to be: as is recorded here, where there may be more than the least.
    pub fn size_of(&self, role: &RoleOf<'_>) -> u32 {
        let recorded = self.roles.iter().find(|one| one.name == role.name).map(|one| one.wanted);
        recorded.unwrap_or(role.least).clamp(role.least, role.most)
    }

    /// All members that there are to be.
    pub fn size(&self, spec: &TrainingJobSpec) -> u32 {
        spec.all_roles().iter().map(|role| self.size_of(role)).fold(0, u32::saturating_add)
    }

    /// From now on its only role that may have more has so many.
    pub fn resize(&mut self, spec: &TrainingJobSpec, members: u32) {
        let Some(elastic) = spec.elastic_role() else { return };
        if let Some(role) = self.roles.iter_mut().find(|role| role.name == elastic.name) {
            role.wanted = members.clamp(elastic.least, elastic.most);
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Phase {
    /// What it says cannot be: it has no pods
    Refused,
    Suspended,
    /// It stands in line
    Waiting,
    Running,
    /// Its members are being made anew
    Restarting,
    Succeeded,
    Failed,
}

impl Phase {
    pub fn is_over(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RoleStatus {
    pub name: String,
    /// How many there are to be
    pub wanted: u32,
    /// How many are on a node
    pub placed: u32,
    pub running: u32,
    pub succeeded: u32,
}

/// The last time that a member failed
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LastFailure {
    pub pod: String,
    pub uid: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    pub reason: String,
    pub at: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    /// What it is about: of a job `Admitted`, `Placed`, `Interleaved`, `OnTrack` or `Completed`; of a fabric `Accepted`
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`
    pub status: String,
    pub reason: String,
    pub message: String,
    pub last_transition_time: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}
