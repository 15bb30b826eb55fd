//! Volcano's `HyperNode`: nodes, or other such objects, that are near to each other. The lower its tier, the nearer.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::api::DynamicObject;
use metronome_core::model::cluster::Name;
use serde_json::Value;

use crate::rules::selector::Selector;

#[derive(Clone, Debug, PartialEq)]
pub struct HyperNode {
    pub name: Name,
    /// Of its kind; 1 is the innermost.
    pub tier: u32,
    pub members: Vec<HyperMember>,
    /// Whether all that it says could be understood.
    pub is_clear: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum HyperMember {
    /// A node, by its name.
    Node(String),
    /// Nodes, by their labels.
    Nodes(Selector),
    /// Another of its kind, by its name.
    Within(Name),
}

impl HyperNode {
    pub fn read(object: &DynamicObject) -> Self {
        let spec = &object.data["spec"];
        let said = spec["members"].as_array().map(Vec::as_slice).unwrap_or_default();
        let members: Vec<HyperMember> = said.iter().filter_map(member).collect();
        let tier = spec["tier"].as_u64().and_then(|tier| u32::try_from(tier).ok());
        Self {
            name: Name::from(object.metadata.name.as_deref().unwrap_or_default()),
            tier: tier.unwrap_or(0),
            is_clear: tier.is_some() && members.len() == said.len(),
            members,
        }
    }
}

/// Nothing where it is chosen by a pattern of names: those are not read here.
fn member(said: &Value) -> Option<HyperMember> {
    let selector = &said["selector"];
    let exact = selector["exactMatch"]["name"].as_str();
    match (said["type"].as_str()?, exact) {
        ("Node", Some(name)) => Some(HyperMember::Node(name.to_owned())),
        ("HyperNode", Some(name)) => Some(HyperMember::Within(Name::from(name))),
        ("Node", None) => {
            let labels = selector.get("labelMatch")?.clone();
            let labels = serde_json::from_value::<LabelSelector>(labels).ok()?;
            Selector::of(Some(&labels)).ok().map(HyperMember::Nodes)
        }
        _ => None,
    }
}
