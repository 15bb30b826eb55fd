//! What pods refer to beside nodes: claims and volumes, namespaces, budgets, jobs.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{TopologySelectorTerm, VolumeNodeAffinity};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::meta::stripped;

#[derive(Clone, Debug, Default, Deserialize)]
pub struct Namespace {
    #[serde(deserialize_with = "stripped")]
    pub metadata: ObjectMeta,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub struct Claim {
    #[serde(deserialize_with = "stripped")]
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub spec: ClaimSpec,
    #[serde(default)]
    pub status: ClaimStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClaimSpec {
    pub access_modes: Option<Vec<String>>,
    pub storage_class_name: Option<String>,
    pub volume_name: Option<String>,
    pub volume_mode: Option<String>,
    pub selector: Option<LabelSelector>,
    pub resources: Option<super::Needs>,
    pub volume_attributes_class_name: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ClaimStatus {
    pub phase: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub struct PersistentVolume {
    #[serde(deserialize_with = "stripped")]
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub spec: PersistentVolumeSpec,
    #[serde(default)]
    pub status: ClaimStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PersistentVolumeSpec {
    pub node_affinity: Option<VolumeNodeAffinity>,
    pub access_modes: Option<Vec<String>>,
    pub storage_class_name: Option<String>,
    pub volume_mode: Option<String>,
    pub capacity: Option<BTreeMap<String, Quantity>>,
    pub claim_ref: Option<k8s_openapi::api::core::v1::ObjectReference>,
    pub csi: Option<CsiSource>,
    pub volume_attributes_class_name: Option<String>,
    // Storage from before drivers, that drivers have taken over: only whether it is such matters.
    pub aws_elastic_block_store: Option<IgnoredAny>,
    pub azure_disk: Option<IgnoredAny>,
    pub cinder: Option<IgnoredAny>,
    pub gce_persistent_disk: Option<IgnoredAny>,
    pub portworx_volume: Option<IgnoredAny>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CsiSource {
    pub driver: String,
    pub volume_handle: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StorageClass {
    #[serde(deserialize_with = "stripped")]
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub provisioner: String,
    pub volume_binding_mode: Option<String>,
    pub allowed_topologies: Option<Vec<TopologySelectorTerm>>,
}

/// A storage driver as the cluster knows it.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct CsiDriver {
    #[serde(deserialize_with = "stripped")]
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub spec: CsiDriverSpec,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CsiDriverSpec {
    /// Whether it says how much room there is for new volumes.
    pub storage_capacity: Option<bool>,
    pub prevent_pod_scheduling_if_missing: Option<bool>,
}

/// How much room a class of storage has for new volumes, as seen from some nodes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StorageCapacity {
    #[serde(deserialize_with = "stripped")]
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub storage_class_name: String,
    pub node_topology: Option<LabelSelector>,
    pub capacity: Option<Quantity>,
    pub maximum_volume_size: Option<Quantity>,
}

/// A volume attached to a node, or about to be.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Attachment {
    #[serde(deserialize_with = "stripped")]
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub spec: AttachmentSpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AttachmentSpec {
    pub attacher: String,
    pub node_name: String,
    pub source: AttachmentSource,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AttachmentSource {
    pub persistent_volume_name: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub struct CsiNode {
    #[serde(deserialize_with = "stripped")]
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub spec: CsiNodeSpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct CsiNodeSpec {
    pub drivers: Option<Vec<DriverLimit>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct DriverLimit {
    pub name: String,
    pub allocatable: Option<k8s_openapi::api::storage::v1::VolumeNodeResources>,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub struct Budget {
    #[serde(deserialize_with = "stripped")]
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub spec: BudgetSpec,
    #[serde(default)]
    pub status: BudgetStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct BudgetSpec {
    pub selector: Option<LabelSelector>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BudgetStatus {
    pub disruptions_allowed: i32,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub struct Job {
    #[serde(deserialize_with = "stripped")]
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub spec: JobSpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct JobSpec {
    pub parallelism: Option<i32>,
    pub suspend: Option<bool>,
}
