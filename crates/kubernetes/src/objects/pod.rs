//! Pods.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Affinity, Toleration, TopologySpreadConstraint};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::meta::stripped;

#[derive(Clone, Debug, Default, Deserialize)]
pub struct Pod {
    #[serde(deserialize_with = "stripped")]
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub spec: PodSpec,
    #[serde(default)]
    pub status: PodStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSpec {
    pub node_name: Option<String>,
    pub scheduler_name: Option<String>,
    pub node_selector: Option<BTreeMap<String, String>>,
    pub affinity: Option<Affinity>,
    pub tolerations: Option<Vec<Toleration>>,
    pub topology_spread_constraints: Option<Vec<TopologySpreadConstraint>>,
    pub scheduling_gates: Option<Vec<Gate>>,
    pub containers: Vec<Container>,
    pub init_containers: Option<Vec<Container>>,
    /// Pod-level requests, which stand above those of the containers.
    pub resources: Option<Needs>,
    pub overhead: Option<BTreeMap<String, Quantity>>,
    pub priority: Option<i32>,
    pub preemption_policy: Option<String>,
    pub host_network: Option<bool>,
    pub host_users: Option<bool>,
    pub volumes: Option<Vec<Volume>>,
    pub resource_claims: Option<Vec<IgnoredAny>>,
    /// The upstream gang it belongs to, since 1.36.
    pub scheduling_group: Option<SchedulingGroup>,
    /// The upstream gang it belongs to, in 1.35.
    pub workload_ref: Option<WorkloadRef>,
    pub termination_grace_period_seconds: Option<i64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodStatus {
    pub phase: Option<String>,
    pub reason: Option<String>,
    pub nominated_node_name: Option<String>,
    pub conditions: Option<Vec<PodCondition>>,
    /// What a pod whose resources are being changed holds until the change is made.
    pub resources: Option<Needs>,
    pub allocated_resources: Option<BTreeMap<String, Quantity>>,
    pub container_statuses: Option<Vec<ContainerStatus>>,
    pub init_container_statuses: Option<Vec<ContainerStatus>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct PodCondition {
    #[serde(rename = "type")]
    pub kind: String,
    pub reason: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerStatus {
    pub name: String,
    pub resources: Option<Needs>,
    pub allocated_resources: Option<BTreeMap<String, Quantity>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Container {
    pub name: String,
    pub resources: Option<Needs>,
    pub ports: Option<Vec<ContainerPort>>,
    /// `Always` on an init container makes it a sidecar.
    pub restart_policy: Option<String>,
    pub restart_policy_rules: Option<Vec<RestartRule>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct RestartRule {
    pub action: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Needs {
    pub requests: Option<BTreeMap<String, Quantity>>,
    pub limits: Option<BTreeMap<String, Quantity>>,
    pub claims: Option<Claims>,
}

/// Devices claimed dynamically; only whether there are any matters.
pub type Claims = Vec<IgnoredAny>;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerPort {
    pub host_port: Option<i32>,
    #[serde(rename = "hostIP")]
    pub host_ip: Option<String>,
    pub protocol: Option<String>,
    pub container_port: i32,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Gate {
    pub name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SchedulingGroup {
    pub pod_group_name: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadRef {
    pub name: String,
    pub pod_group: String,
    pub pod_group_replica_key: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Volume {
    pub name: String,
    pub persistent_volume_claim: Option<ClaimRef>,
    pub ephemeral: Option<Ephemeral>,
    // Storage named in the pod itself, the way it was before drivers: only whether there is any matters.
    pub aws_elastic_block_store: Option<IgnoredAny>,
    pub azure_disk: Option<IgnoredAny>,
    pub cinder: Option<IgnoredAny>,
    pub gce_persistent_disk: Option<IgnoredAny>,
    pub iscsi: Option<IgnoredAny>,
    pub portworx_volume: Option<IgnoredAny>,
    pub rbd: Option<IgnoredAny>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClaimRef {
    pub claim_name: String,
}

/// A claim made for the pod, named after pod and volume; what it asks for is read from the claim itself.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub struct Ephemeral {}
