//! What a `TrainingJob` says, and the schema by which an API server checks it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::objects::queue::Quantity;

use super::status::TrainingJobStatus;

/// Rules that say which fields stay as they were when the object was made.
macro_rules! unchanged {
    ($field:literal) => {
        Rule::new(concat!(
            "has(self.",
            $field,
            ") == has(oldSelf.",
            $field,
            ") && (!has(self.",
            $field,
            ") || self.",
            $field,
            " == oldSelf.",
            $field,
            ")"
        ))
        .message(concat!($field, " cannot be changed: delete the job and make it anew"))
    };
}

/// A training job: gangs of workers that run together until its work is done
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "metronome.dev",
    version = "v1alpha1",
    kind = "TrainingJob",
    namespaced,
    doc = "A training job: gangs of workers that run together until its work is done",
    shortname = "tj",
    category = "metronome",
    category = "all",
    status = "TrainingJobStatus",
    validation = Rule::new("self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$') && size(self.metadata.name) <= 40").message("its service and pods are named after it: at most 40 small letters, digits and hyphens, with a letter first"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Members", type_ = "string", json_path = ".status.members"),
    printcolumn(name = "Queue", type_ = "string", json_path = ".spec.queue"),
    printcolumn(name = "Position", type_ = "string", json_path = ".status.position"),
    printcolumn(name = "Starts", type_ = "string", json_path = ".status.starts"),
    printcolumn(name = "Ends", type_ = "string", json_path = ".status.ends"),
    printcolumn(name = "OnTrack", type_ = "string", json_path = ".status.conditions[?(@.type==\"OnTrack\")].status"),
    printcolumn(name = "Interleaved", type_ = "string", priority = 1, json_path = ".status.conditions[?(@.type==\"Interleaved\")].reason"),
    printcolumn(name = "Restarts", type_ = "integer", priority = 1, json_path = ".status.restarts"),
    printcolumn(name = "Why", type_ = "string", priority = 1, json_path = ".status.message"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[x_kube(
    validation = Rule::new("!has(self.roles) || size(self.roles) == 0 || !(has(self.members) || has(self.minMembers) || has(self.maxMembers) || has(self.resources) || has(self.template))").message("say roles, or members, resources and template of the only one, not both"),
    validation = Rule::new("(has(self.roles) && size(self.roles) > 0) || has(self.template) || has(self.image)").message("a job needs an image or a template"),
    validation = Rule::new("!has(self.roles) || has(self.image) || self.roles.all(role, has(role.image) || has(role.template))").message("each role needs an image or a template, or the job an image for all of them"),
    validation = Rule::new("!(has(self.template) && (has(self.resources) || has(self.image)))").message("say a template, or image and resources, not both"),
    validation = Rule::new("!(has(self.members) && (has(self.minMembers) || has(self.maxMembers)))").message("say members, or minMembers and maxMembers, not both"),
    validation = Rule::new("has(self.minMembers) == has(self.maxMembers) && (!has(self.minMembers) || self.minMembers <= self.maxMembers)").message("minMembers and maxMembers go together, the least first"),
    validation = Rule::new("!has(self.roles) || self.roles.filter(role, has(role.minMembers) && role.minMembers < role.maxMembers).size() <= 1").message("one role of a job may have minMembers and maxMembers that differ"),
    validation = Rule::new("has(self.members) == has(oldSelf.members)").message("whether a job is elastic cannot be changed"),
    validation = Rule::new("has(self.roles) == has(oldSelf.roles) && (!has(self.roles) || size(self.roles) == size(oldSelf.roles) && self.roles.all(role, oldSelf.roles.exists(old, old.name == role.name)))").message("roles cannot come, go or change their names: delete the job and make it anew"),
    validation = unchanged!("schedulerName"),
    validation = unchanged!("image"),
    validation = unchanged!("command"),
    validation = unchanged!("args"),
    validation = unchanged!("resources"),
    validation = unchanged!("cpu"),
    validation = unchanged!("model"),
    validation = unchanged!("work"),
    validation = unchanged!("topology"),
    validation = unchanged!("checkpoint"),
    validation = unchanged!("template"),
    validation = unchanged!("traffic"),
    validation = unchanged!("progress"),
    validation = unchanged!("rendezvous"),
    validation = unchanged!("port"),
    validation = unchanged!("restart")
)]
#[serde(rename_all = "camelCase")]
pub struct TrainingJobSpec {
    /// The queue it stands in; `default` if none is named
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// The priority class of its pods
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority_class_name: Option<String>,
    /// While it is true, the job has no pods
    #[serde(default)]
    pub suspend: bool,
    /// Who makes and schedules its pods; `metronome` if none is named
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler_name: Option<String>,
    /// Its roles; a job of workers alone may say what they are directly
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub roles: Vec<RoleSpec>,
    /// The workers, where they are its only role
    #[serde(flatten)]
    pub workers: MembersSpec,
    /// The cores that the only member may be given while it runs
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<CoresSpec>,
    /// A known model such as `resnet50/512`, whose measured profile is used
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What there is to do
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<WorkSpec>,
    /// When it is to be done
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<DeadlineSpec>,
    /// What becomes of it when its deadline is over
    #[serde(default)]
    pub on_miss: OnMiss,
    /// How near to each other its members are to be
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<TopologySpec>,
    /// What it sends, as a hint until that is measured
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic: Option<TrafficSpec>,
    /// How it saves its work. Without it, it is never moved
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<CheckpointSpec>,
    /// Who says how far it is
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<ProgressSpec>,
    /// How members find each other
    #[serde(default)]
    pub rendezvous: Rendezvous,
    /// The port at which the first member listens for the others
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<Port>,
    /// Who is made anew when a member fails
    #[serde(default)]
    pub restart: Restart,
    /// How often it may fail and be started again. Evictions and lost nodes do not count
    #[serde(default = "three")]
    #[schemars(range(max = 1_000))]
    pub backoff_limit: u32,
    /// What is done about some failures; the first rule that fits counts
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub failures: Vec<FailureRule>,
    /// It is deleted so long after its end; never, if nothing is said
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds_after_finished: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[x_kube(
    validation = Rule::new("!(has(self.members) && (has(self.minMembers) || has(self.maxMembers)))").message("say members, or minMembers and maxMembers, not both"),
    validation = Rule::new("has(self.minMembers) == has(self.maxMembers) && (!has(self.minMembers) || self.minMembers <= self.maxMembers)").message("minMembers and maxMembers go together, the least first"),
    validation = Rule::new("!(has(self.template) && (has(self.resources) || has(self.image)))").message("say a template, or image and resources, not both"),
    validation = Rule::new("has(self.members) == has(oldSelf.members)").message("whether a role is elastic cannot be changed"),
    validation = unchanged!("resources"),
    validation = unchanged!("image"),
    validation = unchanged!("command"),
    validation = unchanged!("args"),
    validation = unchanged!("template")
)]
#[serde(rename_all = "camelCase")]
pub struct RoleSpec {
    /// `ps` serves the others until they are done; where there is a `chief`, the job is done when it is
    #[schemars(length(max = 15), regex(pattern = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    #[serde(flatten)]
    pub all: MembersSpec,
}

/// How many members a role has, and what each of them is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MembersSpec {
    /// How many members there are
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub members: Option<u32>,
    /// The fewest with which the job runs
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub min_members: Option<u32>,
    /// The most that it can use
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub max_members: Option<u32>,
    /// What each member takes
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "amounts")]
    pub resources: Option<Amounts>,
    /// What each member runs, where it has no template
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub command: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub args: Vec<String>,
    /// The pod that each member is, instead of `image` and `resources`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<Template>,
}

/// Amounts of resources by name.
pub type Amounts = BTreeMap<String, Quantity>;

fn amounts(generator: &mut SchemaGenerator) -> Schema {
    let quantity = Quantity::json_schema(generator);
    json_schema!({
        "description": "What each member takes, such as `{cpu: 8, memory: 32Gi, nvidia.com/gpu: 1}`",
        "type": "object",
        "maxProperties": 32,
        "additionalProperties": quantity,
    })
}

/// A `PodTemplateSpec`. The API server looks at it when pods are made of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Template(pub Map<String, Value>);

impl JsonSchema for Template {
    fn schema_name() -> Cow<'static, str> {
        "Template".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A PodTemplateSpec, as in a Job; it is checked when pods are made of it",
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": true,
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[x_kube(validation = Rule::new("self.min <= self.max").message("the least cores first"))]
pub struct CoresSpec {
    #[schemars(range(min = 1, max = 4096))]
    pub min: u32,
    #[schemars(range(min = 1, max = 4096))]
    pub max: u32,
}

/// A time such as `90s`, `10m` or `6h`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Span(pub String);

impl JsonSchema for Span {
    fn schema_name() -> Cow<'static, str> {
        "Span".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A time such as 90s, 10m or 6h",
            "type": "string",
            "maxLength": 32,
            "pattern": r"^([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h|d))+$",
        })
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkSpec {
    /// The iterations that there are to do
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub iterations: Option<u64>,
    /// How long they take with the fewest members, alone
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<Span>,
    /// What is to be learned
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<TargetSpec>,
    /// The iterations after which it ends whatever it has learned
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_iterations: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[x_kube(validation = Rule::new("has(self.atMost) != has(self.atLeast)").message("say atMost or atLeast"))]
#[serde(rename_all = "camelCase")]
pub struct TargetSpec {
    pub metric: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?$"))]
    pub at_most: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?$"))]
    pub at_least: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[x_kube(validation = Rule::new("has(self.after) != has(self.at)").message("say after or at"))]
#[serde(rename_all = "camelCase")]
pub struct DeadlineSpec {
    /// So long after the job was made
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Span>,
    /// A time such as 2026-11-15T18:00:00Z
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "instant")]
    pub at: Option<String>,
    #[serde(default)]
    pub binding: DeadlineBinding,
}

fn instant(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "description": "A time such as 2026-11-15T18:00:00Z", "type": "string", "format": "date-time" })
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DeadlineBinding {
    Strict,
    #[default]
    Soft,
    BestEffort,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OnMiss {
    #[default]
    Run,
    Suspend,
    Fail,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[x_kube(validation = Rule::new("has(self.preferred) != has(self.required)").message("say preferred or required"))]
#[serde(rename_all = "camelCase")]
pub struct TopologySpec {
    /// The level within which members are to be, if that can be
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preferred: Option<String>,
    /// The level within which members must be
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrafficSpec {
    /// How long an iteration takes
    pub period: Span,
    #[serde(default)]
    #[schemars(length(max = 16))]
    pub phases: Vec<PhaseSpec>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseSpec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<Span>,
    pub length: Span,
    /// Such as 40Gbps
    #[schemars(regex(pattern = r"^[0-9]+(\.[0-9]+)?[kMGT]?bps$"))]
    pub rate: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckpointSpec {
    /// How often it saves its work by itself
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Span>,
    /// How long saving takes
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub takes: Option<Span>,
    /// How long it takes to go on from what was saved
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart: Option<Span>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProgressSpec {
    pub from: ProgressSource,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ProgressSource {
    #[serde(rename = "SDK")]
    Sdk,
    #[serde(rename = "HTTP")]
    Http,
    Annotation,
    None,
}

/// How members find each other
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Rendezvous {
    /// Variables of PyTorch (`MASTER_ADDR`, `RANK`, …) and of TensorFlow (`TF_CONFIG`)
    #[default]
    Environment,
    /// These, and a file with all hosts, as `mpirun` reads it
    #[serde(rename = "MPI")]
    Mpi,
    /// Variables of `torchrun` for members that come and go: those who run go on when others join or leave
    Elastic,
    /// Nothing is said to them
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Port(pub u16);

impl JsonSchema for Port {
    fn schema_name() -> Cow<'static, str> {
        "Port".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "The port at which the first member listens for the others; 29500 if none is named",
            "type": "integer", "format": "int32", "minimum": 1, "maximum": 65535,
        })
    }
}

/// Who is made anew when a member fails
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Restart {
    /// All members, together
    #[default]
    Gang,
    /// The one that failed; the others go on
    Member,
    /// Nobody: the job has failed
    Never,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailureRule {
    /// The exit codes for which it holds
    #[schemars(length(min = 1, max = 255))]
    pub exit_codes: Vec<i32>,
    pub action: FailureAction,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum FailureAction {
    /// The job has failed, however often it may still fail
    Fail,
    /// It is started again, and that does not count
    Ignore,
}

fn three() -> u32 {
    3
}
