//! Who the scheduler is, and what it may do.

use serde_json::{Value, json};

use super::rights::{IN_THE_CLUSTER, IN_THE_OWN_NAMESPACE};
use super::slots::Slots;
use super::{Manifest, NAME, metadata, wide_metadata};

const RBAC: &str = "rbac.authorization.k8s.io";

pub(super) fn manifests(slots: &Slots) -> Vec<Manifest> {
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(slots, NAME)});
    let wide = role("ClusterRole", &wide_metadata(NAME));
    let own = role("Role", &metadata(slots, NAME));
    vec![
        account.into(),
        Manifest { object: wide, rights: Some(IN_THE_CLUSTER) },
        binding(slots, "ClusterRole", NAME, &wide_metadata(NAME)).into(),
        Manifest { object: own, rights: Some(IN_THE_OWN_NAMESPACE) },
        binding(slots, "Role", NAME, &metadata(slots, NAME)).into(),
    ]
}

pub(super) fn role(kind: &str, metadata: &Value) -> Value {
    json!({"apiVersion": format!("{RBAC}/v1"), "kind": kind, "metadata": metadata})
}

/// Whoever has this name may do what the role of the same name says.
pub(super) fn binding(slots: &Slots, role: &str, name: &str, metadata: &Value) -> Value {
    json!({
        "apiVersion": format!("{RBAC}/v1"), "kind": format!("{role}Binding"), "metadata": metadata,
        "roleRef": {"apiGroup": RBAC, "kind": role, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": slots.namespace}],
    })
}
