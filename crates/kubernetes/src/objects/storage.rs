//! What pods refer to beside nodes: claims and volumes, namespaces, budgets, jobs.

use k8s_openapi::api::core::v1::{TopologySelectorTerm, VolumeNodeAffinity};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use serde::Deserialize;

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
    pub capacity:
        Option<std::collections::BTreeMap<String, k8s_openapi::apimachinery::pkg::api::resource::Quantity>>,
    pub claim_ref: Option<k8s_openapi::api::core::v1::ObjectReference>,
    pub csi: Option<CsiDriver>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CsiDriver {
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
    pub drivers: Vec<DriverLimit>,
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
