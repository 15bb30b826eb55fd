//! Metadata without what fills most of it on the wire: managed fields, and annotations that are not ours to read.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use kube::api::ApiResource;
use serde::{Deserialize, Deserializer};

use crate::deed::ObjectRef;

/// A point in time as the API gives it, in whole seconds since the epoch.
pub type Seconds = i64;

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Kept {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    generation: Option<i64>,
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
    owner_references: Option<Vec<OwnerReference>>,
    creation_timestamp: Option<Time>,
    deletion_timestamp: Option<Time>,
}

/// Annotations that say something about scheduling; the rest (last-applied configurations above all) is dropped.
pub(super) fn concerns_scheduling(key: &str) -> bool {
    ["metronome.dev/", "scheduling.k8s.io/", "scheduling.volcano.sh/", "scheduling.x-k8s.io/", "volcano.sh/"]
        .iter()
        .any(|prefix| key.starts_with(prefix))
        || key == "volume.kubernetes.io/selected-node"
        || key == "volume.beta.kubernetes.io/storage-class"
        || key == "pv.kubernetes.io/bind-completed"
}

pub(super) fn stripped<'de, D: Deserializer<'de>>(from: D) -> Result<ObjectMeta, D::Error> {
    let kept = Kept::deserialize(from)?;
    let annotations = kept.annotations.map(|mut all| {
        all.retain(|key, _| concerns_scheduling(key));
        all
    });
    Ok(ObjectMeta {
        name: kept.name,
        namespace: kept.namespace,
        uid: kept.uid,
        resource_version: kept.resource_version,
        generation: kept.generation,
        labels: kept.labels,
        annotations: annotations.filter(|all| !all.is_empty()),
        owner_references: kept.owner_references,
        creation_timestamp: kept.creation_timestamp,
        deletion_timestamp: kept.deletion_timestamp,
        ..ObjectMeta::default()
    })
}

pub(super) fn reference(api: &ApiResource, metadata: &ObjectMeta) -> ObjectRef {
    let shared = |text: &Option<String>| Arc::from(text.as_deref().unwrap_or_default());
    ObjectRef {
        api_version: api.api_version.as_str().into(),
        kind: api.kind.as_str().into(),
        plural: api.plural.as_str().into(),
        namespace: shared(&metadata.namespace),
        name: shared(&metadata.name),
        uid: shared(&metadata.uid),
    }
}
