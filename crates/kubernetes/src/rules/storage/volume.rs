//! A volume, with what is asked of it again and again read once.

use std::collections::BTreeSet;

use crate::objects::{Claim, PersistentVolume, StorageCapacity};
use crate::rules::place::NodeTerm;
use crate::rules::quantity::Amount;
use crate::rules::selector::{Labels, Selector, labels_of};

/// The class of a claim or volume, by the old annotation first.
const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

#[derive(Debug)]
pub(super) struct Volume {
    pub(super) name: String,
    pub(super) class: String,
    pub(super) size: Amount,
    pub(super) object: PersistentVolume,
    /// One of these holds of a node that reaches it; every node does, where it does not say.
    nodes: Option<Vec<NodeTerm>>,
    pub(super) zones: Vec<Zone>,
}

/// A label that a node has to share with a volume, if it is in any zone or region at all.
#[derive(Debug)]
pub(super) struct Zone {
    key: &'static str,
    values: BTreeSet<String>,
}

const ZONE_KEYS: [&str; 4] = [
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
];

impl Volume {
    pub(super) fn of(object: PersistentVolume) -> Self {
        let affinity = object.spec.node_affinity.as_ref().and_then(|affinity| affinity.required.as_ref());
        let annotated = object.metadata.annotations.as_ref().and_then(|all| all.get(CLASS_ANNOTATION));
        let class = annotated.or(object.spec.storage_class_name.as_ref());
        let size = object.spec.capacity.as_ref().and_then(|capacity| capacity.get("storage"));
        Self {
            name: object.metadata.name.clone().unwrap_or_default(),
            class: class.cloned().unwrap_or_default(),
            size: size.and_then(|size| Amount::parse(&size.0)).unwrap_or_default(),
            nodes: affinity.map(NodeTerm::all_understood),
            zones: zones(labels_of(&object.metadata)),
            object,
        }
    }

    pub(super) fn is_reached_from(&self, node: &Labels) -> bool {
        self.nodes.as_ref().is_none_or(|terms| terms.iter().any(|term| term.matches(node, None)))
    }

    /// Bound to the claim already, or meant for it.
    pub(super) fn is_meant_for(&self, claim: &Claim) -> bool {
        self.object.spec.claim_ref.as_ref().is_some_and(|meant| {
            let uid = meant.uid.as_ref().filter(|uid| !uid.is_empty());
            meant.name == claim.metadata.name
                && meant.namespace == claim.metadata.namespace
                && uid.is_none_or(|uid| Some(uid) == claim.metadata.uid.as_ref())
        })
    }

    /// Served by code that drivers have replaced, with rules of its own.
    pub(super) fn is_in_tree(&self) -> bool {
        let spec = &self.object.spec;
        spec.aws_elastic_block_store.is_some()
            || spec.azure_disk.is_some()
            || spec.cinder.is_some()
            || spec.gce_persistent_disk.is_some()
            || spec.portworx_volume.is_some()
    }
}

impl Zone {
    pub(super) fn holds(&self, node: &Labels) -> bool {
        let renamed = self.key.replace("failure-domain.beta.kubernetes.io", "topology.kubernetes.io");
        let value = node.get(self.key).or_else(|| node.get(&renamed));
        value.is_some_and(|value| self.values.contains(value))
    }
}

/// A node without any such label is in a cluster of one zone.
pub(super) fn has_zone(node: &Labels) -> bool {
    ZONE_KEYS.iter().any(|key| node.contains_key(*key))
}

/// Several zones are written with `__` between them; a list with a gap in it is not taken for one.
fn zones(labels: &Labels) -> Vec<Zone> {
    let read = |key: &'static str| {
        let values: BTreeSet<String> =
            labels.get(key)?.split("__").map(|zone| zone.trim().to_owned()).collect();
        (!values.contains("")).then_some(Zone { key, values })
    };
    ZONE_KEYS.into_iter().filter_map(read).collect()
}

pub(super) fn class_of(claim: &Claim) -> &str {
    let annotated = claim.metadata.annotations.as_ref().and_then(|all| all.get(CLASS_ANNOTATION));
    annotated.or(claim.spec.storage_class_name.as_ref()).map_or("", String::as_str)
}

pub(super) fn size_of(claim: &Claim) -> Option<Amount> {
    let requests = claim.spec.resources.as_ref()?.requests.as_ref()?;
    Amount::parse(&requests.get("storage")?.0)
}

/// Room for new volumes of a class, as seen from some nodes.
#[derive(Debug)]
pub struct Room {
    pub(super) class: String,
    largest: Option<Amount>,
    nodes: Selector,
}

impl Room {
    pub(super) fn of(room: &StorageCapacity) -> Self {
        let largest = room.maximum_volume_size.as_ref().or(room.capacity.as_ref());
        Self {
            class: room.storage_class_name.clone(),
            largest: largest.and_then(|largest| Amount::parse(&largest.0)),
            nodes: Selector::of(room.node_topology.as_ref()).unwrap_or(Selector::Nothing),
        }
    }

    pub(super) fn suffices(&self, size: Amount, node: &Labels) -> bool {
        self.largest.is_some_and(|largest| largest.whole() >= size.whole()) && self.nodes.matches(node)
    }
}
