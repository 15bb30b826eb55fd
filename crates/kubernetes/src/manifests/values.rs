//! What whoever installs may choose. The comments here are also the chart's.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Values {
    /// The image with the program.
    #[schemars(regex(pattern = r"^[a-zA-Z0-9][a-zA-Z0-9._/:@-]*$"))]
    pub image: String,
    /// How many run; one of them leads.
    #[schemars(range(min = 1, max = 9))]
    pub replicas: u32,
    /// Pods with this `schedulerName` are scheduled.
    #[schemars(regex(pattern = r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$"))]
    pub scheduler_name: String,
    /// The policy to decide by, with its switches. It is in force as soon as it is changed, without a restart.
    #[schemars(regex(pattern = r"^[a-z0-9][a-zA-Z0-9:+=._-]*$"))]
    pub policy: String,
    /// Node labels that name the levels of the topology, outermost first.
    #[schemars(inner(regex(pattern = r"^[a-zA-Z0-9][a-zA-Z0-9./_-]*$")))]
    pub levels: Vec<String>,
    /// Bind nothing, and say what would have been decided for the pods of the default scheduler. All rights to write
    /// are left out.
    pub observe: bool,
    /// Whether everything that happens is written down, and how much room there is for it. The file is as old as its pod.
    pub journal: Journal,
    /// What each replica asks for; it may use more CPU and no more memory.
    pub resources: Resources,
    /// The priority class of the scheduler's own pods.
    #[schemars(regex(pattern = r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$"))]
    pub priority_class_name: String,
    /// The definitions of `TrainingJob` and `Queue`. They stay when the chart is uninstalled.
    pub definitions: Part,
    /// A policy for admission that guards whose name, which queue and which priority class people may use.
    pub guard: Part,
    /// What the Prometheus operator needs: where metrics are, and alerts.
    pub monitoring: Part,
    /// An agent on every node that measures what jobs send, takes their reports and holds them to their turns. `nodesWith`
    /// is a label that its nodes have; `uplink` is their interface to the others, if classes are to be enforced on it,
    /// and `uplinkRate` what that carries.
    pub agent: Agent,
}

/// A part of the installation that may be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct Part {
    pub enabled: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(inline)]
pub struct Journal {
    pub enabled: bool,
    #[schemars(regex(pattern = r"^[0-9]+(Ki|Mi|Gi|Ti)?$"))]
    pub size: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(inline)]
pub struct Agent {
    pub enabled: bool,
    #[schemars(regex(pattern = r"^[a-zA-Z0-9][a-zA-Z0-9._/:@-]*$"))]
    pub image: String,
    #[schemars(regex(pattern = r"^[a-zA-Z0-9][a-zA-Z0-9./_-]*$"))]
    pub nodes_with: String,
    #[schemars(regex(pattern = r"^([a-zA-Z0-9][a-zA-Z0-9._-]{0,14})?$"))]
    pub uplink: String,
    #[schemars(regex(pattern = r"^[0-9]+(\.[0-9]+)?[kMGT]?bps$"))]
    pub uplink_rate: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(inline)]
pub struct Resources {
    #[schemars(regex(pattern = r"^[0-9]+(\.[0-9]+)?m?$"))]
    pub cpu: String,
    #[schemars(regex(pattern = r"^[0-9]+(Ki|Mi|Gi|Ti)?$"))]
    pub memory: String,
}

impl Default for Values {
    fn default() -> Self {
        Self {
            image: format!("metronome:{}", env!("CARGO_PKG_VERSION")),
            replicas: 2,
            scheduler_name: "metronome".to_owned(),
            policy: "metronome".to_owned(),
            levels: Vec::new(),
            observe: false,
            journal: Journal::default(),
            resources: Resources::default(),
            priority_class_name: "system-cluster-critical".to_owned(),
            definitions: Part { enabled: true },
            guard: Part { enabled: false },
            monitoring: Part { enabled: false },
            agent: Agent::default(),
        }
    }
}

impl Default for Journal {
    fn default() -> Self {
        Self { enabled: false, size: "1Gi".to_owned() }
    }
}

/// On every node there is, which is on none until it is asked for.
impl Default for Agent {
    fn default() -> Self {
        Self {
            enabled: false,
            image: format!("metronome-agent:{}", env!("CARGO_PKG_VERSION")),
            nodes_with: "kubernetes.io/hostname".to_owned(),
            uplink: String::new(),
            uplink_rate: "100Gbps".to_owned(),
        }
    }
}

/// What a cluster of a thousand nodes with twenty thousand pods needs, and as much again.
impl Default for Resources {
    fn default() -> Self {
        Self { cpu: "500m".to_owned(), memory: "512Mi".to_owned() }
    }
}
