//! Nodes.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Taint;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

use super::meta::stripped;

#[derive(Clone, Debug, Default, Deserialize)]
pub struct Node {
    #[serde(deserialize_with = "stripped")]
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub spec: NodeSpec,
    #[serde(default)]
    pub status: NodeStatus,
    /// Where it lies by what others say of it, level by level: as labels of its own would.
    #[serde(skip)]
    pub tiers: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct NodeSpec {
    pub unschedulable: Option<bool>,
    pub taints: Option<Vec<Taint>>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeStatus {
    pub allocatable: Option<BTreeMap<String, Quantity>>,
    pub conditions: Option<Vec<NodeCondition>>,
    pub declared_features: Option<Vec<String>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct NodeCondition {
    #[serde(rename = "type")]
    pub kind: String,
    pub status: String,
}

/// The annotation by which somebody says of a node it has cordoned that all who run there are to leave.
const DRAIN: &str = "metronome.dev/drain";
/// The taint by which the cluster autoscaler says so.
const TO_BE_DELETED: &str = "ToBeDeletedByClusterAutoscaler";

impl Node {
    /// Whether all who run there are to go elsewhere. That it takes nobody new is not enough: many a cordoned node is
    /// looked after while its pods run on.
    pub fn is_drained(&self) -> bool {
        let said = self.metadata.annotations.as_ref().and_then(|all| all.get(DRAIN));
        let by_hand = self.spec.unschedulable == Some(true) && said.is_some_and(|said| said == "true");
        by_hand || self.spec.taints.iter().flatten().any(|taint| taint.key == TO_BE_DELETED)
    }
}
