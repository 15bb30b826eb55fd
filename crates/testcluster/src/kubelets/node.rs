//! Nodes as a test describes them, and as their kubelets register them.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use super::amounts::Amounts;

/// A node that does not exist, but for its kubelet. By default it has 32 CPUs, 128 GiB of memory, 1 TiB of disk and
/// room for 110 pods.
#[derive(Debug, Clone)]
pub struct SimNode {
    name: String,
    labels: BTreeMap<String, String>,
    taints: Vec<Value>,
    capacity: BTreeMap<String, Quantity>,
    reserved: BTreeMap<String, Quantity>,
}

/// Who may not come to, or stay on, a tainted node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    NoSchedule,
    PreferNoSchedule,
    NoExecute,
}

/// What the API server is told about a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Readiness {
    Ready,
    NotReady,
}

impl SimNode {
    pub fn new(name: impl Into<String>) -> Self {
        let name = name.into();
        let labels = BTreeMap::from([
            ("kubernetes.io/hostname".to_owned(), name.clone()),
            ("kubernetes.io/os".to_owned(), "linux".to_owned()),
            ("kubernetes.io/arch".to_owned(), "amd64".to_owned()),
        ]);
        let node =
            Self { name, labels, taints: Vec::new(), capacity: BTreeMap::new(), reserved: BTreeMap::new() };
        node.capacity("cpu", "32")
            .capacity("memory", "128Gi")
            .capacity("ephemeral-storage", "1Ti")
            .capacity("pods", "110")
    }

    /// `count` nodes that differ in their names only: `prefix-0`, `prefix-1`, …
    pub fn many(prefix: &str, count: usize) -> impl Iterator<Item = Self> {
        (0..count).map(move |number| Self::new(format!("{prefix}-{number}")))
    }

    #[must_use]
    pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(key.into(), value.into());
        self
    }

    #[must_use]
    pub fn taint(mut self, key: &str, value: &str, effect: Effect) -> Self {
        self.taints.push(json!({ "key": key, "value": value, "effect": format!("{effect:?}") }));
        self
    }

    /// How much it has of a resource, standard or extended: `capacity("nvidia.com/gpu", "8")`.
    #[must_use]
    pub fn capacity(mut self, resource: impl Into<String>, quantity: impl Into<String>) -> Self {
        self.capacity.insert(resource.into(), Quantity(quantity.into()));
        self
    }

    /// How much of a resource pods may have, where that is less than all.
    #[must_use]
    pub fn allocatable(mut self, resource: impl Into<String>, quantity: impl Into<String>) -> Self {
        self.reserved.insert(resource.into(), Quantity(quantity.into()));
        self
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    fn allocatable_quantities(&self) -> BTreeMap<String, Quantity> {
        let mut quantities = self.capacity.clone();
        quantities.extend(self.reserved.clone());
        quantities
    }

    pub(super) fn amounts(&self) -> Amounts {
        Amounts::of(&self.allocatable_quantities())
    }

    /// The object with which it joins the cluster. The address is only data.
    pub(super) fn object(&self, address: Ipv4Addr, now: &Time) -> Node {
        let object = json!({
            "metadata": { "name": self.name, "labels": self.labels },
            "spec": { "taints": self.taints },
            "status": {
                "capacity": self.capacity,
                "allocatable": self.allocatable_quantities(),
                "conditions": conditions(Readiness::Ready, now),
                "addresses": [
                    { "type": "InternalIP", "address": address.to_string() },
                    { "type": "Hostname", "address": self.name },
                ],
            },
        });
        serde_json::from_value(object).expect("it is a node")
    }

    /// The taints in a state: its own, and what the node controller would add.
    pub(super) fn taints(&self, readiness: Readiness) -> Value {
        let mut taints = self.taints.clone();
        if readiness == Readiness::NotReady {
            for effect in [Effect::NoSchedule, Effect::NoExecute] {
                taints
                    .push(json!({ "key": "node.kubernetes.io/not-ready", "effect": format!("{effect:?}") }));
            }
        }
        json!({ "spec": { "taints": taints } })
    }
}

pub(super) fn conditions(readiness: Readiness, now: &Time) -> Value {
    let condition = |kind: &str, status: &str, reason: &str| json!({ "type": kind, "status": status, "reason": reason, "lastHeartbeatTime": now, "lastTransitionTime": now });
    let ready = match readiness {
        Readiness::Ready => condition("Ready", "True", "KubeletReady"),
        Readiness::NotReady => condition("Ready", "False", "KubeletNotReady"),
    };
    json!([
        condition("MemoryPressure", "False", "KubeletHasSufficientMemory"),
        condition("DiskPressure", "False", "KubeletHasNoDiskPressure"),
        condition("PIDPressure", "False", "KubeletHasSufficientPID"),
        ready,
    ])
}
