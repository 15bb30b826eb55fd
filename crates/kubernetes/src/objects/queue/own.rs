//! Our own `Queue`: its schema, and what it says.

use std::borrow::Cow;
use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::{CustomResource, CustomResourceExt, KubeSchema};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use metronome_core::model::cluster::Name;
use metronome_core::model::queue::{self, QueueUser};
use metronome_core::model::units::Share;

use super::{Described, Doors, amounts, parent};
use crate::objects::fields::{Complaint, Fields};

/// Whose work it is, how much it counts, and how much it may hold.
#[derive(Clone, Debug, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "metronome.dev",
    version = "v1alpha1",
    kind = "Queue",
    doc = "Whose work it is, how much it counts, and how much it may hold",
    shortname = "mq",
    category = "metronome",
    status = "QueueStatus",
    validation = Rule::new("self.metadata.name != 'root'").message("root is above all queues and has no object"),
    validation = Rule::new("!has(self.spec.parent) || self.spec.parent != self.metadata.name").message("a queue does not lie in itself"),
    printcolumn(name = "Parent", type_ = "string", json_path = ".spec.parent"),
    printcolumn(name = "Weight", type_ = "integer", json_path = ".spec.weight"),
    printcolumn(name = "GPUs", type_ = "string", json_path = ".status.held['nvidia\\.com/gpu']"),
    printcolumn(name = "Running", type_ = "integer", json_path = ".status.running"),
    printcolumn(name = "Waiting", type_ = "integer", json_path = ".status.waiting"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct QueueSpec {
    /// The queue it lies in; `root`, which is above all, where none is named
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// How much it counts beside others: what it may call its own where it has no quota, and who is served next
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub weight: u32,
    /// What it may call its own. What it does not name it does not bound
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<Amounts>,
    /// What it may never exceed, also where it borrows
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Amounts>,
    /// Whether others may use what is left of its quota until it wants it back
    #[serde(default = "yes")]
    pub lends: bool,
    /// Whether it may hold more than its quota while others leave room
    #[serde(default = "yes")]
    pub borrows: bool,
    /// Users that count more or less than others there, or may hold only so much
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000))]
    pub users: Vec<UserSpec>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Amounts {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Quantity>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Quantity>,
    #[serde(rename = "nvidia.com/gpu", default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<Quantity>,
}

/// A number, or a text such as `500m` or `32Gi`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Quantity(pub IntOrString);

impl JsonSchema for Quantity {
    fn schema_name() -> Cow<'static, str> {
        "Quantity".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A number, or a text such as 500m or 32Gi",
            "minimum": 0,
            "pattern": r"^[0-9]+(\.[0-9]+)?(m|k|[KMGTPE]i|[MGTPE]|[eE][0-9]+)?$",
            "x-kubernetes-int-or-string": true,
        })
    }
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct UserSpec {
    /// As the label or annotation `metronome.dev/user` of pods says it
    #[schemars(length(min = 1))]
    pub name: String,
    #[serde(default)]
    pub priority: UserPriority,
    /// What the jobs of this user together may never exceed there
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Amounts>,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum UserPriority {
    High,
    #[default]
    Normal,
    Low,
}

/// What has become of it
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueueStatus {
    /// What its jobs and those of queues inside it hold
    #[serde(default)]
    pub held: BTreeMap<String, String>,
    /// Jobs that hold something: gangs, and pods on their own
    #[serde(default)]
    pub running: u32,
    /// Jobs that stand in line
    #[serde(default)]
    pub waiting: u32,
}

fn one() -> u32 {
    1
}

fn yes() -> bool {
    true
}

/// What tells an API server that there are such objects, as a file to apply.
pub fn definition() -> String {
    crate::objects::definition_of(&Queue::crd())
}

/// Standing of a user that a queue does not name, or of whom it says nothing.
pub(super) const NORMAL: Share = Share(Share::WHOLE.0 / 2);

const STANDINGS: [(&str, Share); 3] = [("high", Share::WHOLE), ("normal", NORMAL), ("low", Share::NONE)];

/// Read field by field, so that a complaint names the place: the schema may have been edited, too.
pub(super) fn read(name: &str, body: &Fields<'_>) -> Result<Described, Complaint> {
    let spec = body.at("spec");
    let queue = queue::Queue {
        weight: spec.at("weight").weight()?,
        quota: amounts(&spec.at("quota"))?,
        limit: amounts(&spec.at("limit"))?,
        lends: spec.at("lends").flag()?.unwrap_or(true),
        borrows: spec.at("borrows").flag()?.unwrap_or(true),
        users: spec.at("users").items().iter().map(user).collect::<Result<_, _>>()?,
        ..queue::Queue::open(name)
    };
    Ok(Described { parent: parent(spec.at("parent").text()?), doors: Doors::Open, queue })
}

fn user(entry: &Fields<'_>) -> Result<QueueUser, Complaint> {
    let named = entry.at("name");
    let name = named.text()?.ok_or_else(|| Complaint::Missing { field: named.path().to_owned() })?;
    let priority = entry.at("priority").word(&STANDINGS, "high, normal or low")?.unwrap_or(NORMAL);
    Ok(QueueUser { name: Name::from(name), priority, limit: amounts(&entry.at("limit"))? })
}
