//! `Fabric`, ours: by which labels of nodes the levels of the topology are known, and what their links carry.

use kube::api::{ApiResource, DynamicObject};
use kube::{CustomResource, CustomResourceExt, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use metronome_core::model::units::Bandwidth;

use super::meta::reference;
use super::training::Condition;
use crate::deed::ObjectRef;

/// By which labels of nodes the levels of the topology are known, and what the links upwards from each carry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "metronome.dev",
    version = "v1alpha1",
    kind = "Fabric",
    root = "FabricObject",
    doc = "By which labels of nodes the levels of the topology are known, and what the links upwards from each carry. The one called default counts",
    shortname = "mf",
    category = "metronome",
    status = "FabricStatus",
    validation = Rule::new("size(self.spec.levels) > 0").message("a fabric has at least one level, the node's"),
    printcolumn(name = "Accepted", type_ = "string", json_path = ".status.conditions[?(@.type==\"Accepted\")].status"),
    printcolumn(name = "Levels", type_ = "string", json_path = ".status.levels"),
    printcolumn(name = "Why", type_ = "string", priority = 1, json_path = ".status.conditions[?(@.type==\"Accepted\")].message"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[x_kube(
    validation = Rule::new("size(self.levels) == 0 || self.levels[size(self.levels) - 1].label == 'kubernetes.io/hostname'").message("the innermost level is the node: the last label is kubernetes.io/hostname"),
    validation = Rule::new("self.levels.all(one, self.levels.exists_one(other, other.label == one.label))").message("each level has a label of its own")
)]
pub struct FabricSpec {
    /// Outermost first; the last is the node itself
    #[schemars(length(max = 9))]
    pub levels: Vec<FabricLevel>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FabricLevel {
    /// The label of nodes that says in which domain of the level each of them is. A node without it is in one of its own
    #[schemars(
        length(max = 317),
        regex(pattern = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$")
    )]
    pub label: String,
    /// What the link upwards from each domain carries in each direction, such as 150Gbps
    #[schemars(length(max = 32), regex(pattern = r"^[0-9]+(\.[0-9]+)?[kMGT]?bps$"))]
    pub rate: String,
}

/// What has become of it
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct FabricStatus {
    /// Its levels as they are in force, outermost first
    #[serde(skip_serializing_if = "Option::is_none")]
    pub levels: Option<String>,
    /// The generation of the object that this is about
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// The label whose value is the node itself.
pub const HOSTNAME: &str = "kubernetes.io/hostname";

/// A fabric as it is read: what cannot be is kept as the sentence that says so.
#[derive(Clone, Debug)]
pub struct Fabric {
    pub reference: ObjectRef,
    pub generation: Option<i64>,
    pub status: FabricStatus,
    pub terrain: Result<Terrain, String>,
}

/// Where nodes lie, and what is known of the links between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terrain {
    /// The labels of the levels above the node, outermost first.
    pub labels: Vec<String>,
    /// What the links upwards from each of them carry, and from the nodes; none, where nothing is known of links.
    pub rates: Vec<Bandwidth>,
}

impl Fabric {
    pub fn read(api: &ApiResource, object: &DynamicObject) -> Self {
        let part = |name: &str| object.data.get(name).cloned().unwrap_or_default();
        let spec = serde_json::from_value::<FabricSpec>(part("spec"));
        Self {
            reference: reference(api, &object.metadata),
            generation: object.metadata.generation,
            // What we wrote ourselves, and if somebody else did, we write it anew.
            status: serde_json::from_value(part("status")).unwrap_or_default(),
            terrain: spec
                .map_err(|error| format!("it makes no sense: {error}"))
                .and_then(|spec| terrain(&spec)),
        }
    }
}

/// The most levels that the core counts above the node.
const MOST_LEVELS: usize = 8;

/// What a schema cannot say, or an edited one did not.
fn terrain(FabricSpec { levels }: &FabricSpec) -> Result<Terrain, String> {
    let Some((node, above)) = levels.split_last() else {
        return Err("it has no level".into());
    };
    if node.label != HOSTNAME {
        return Err(format!("its innermost level is {}, not {HOSTNAME}", node.label));
    }
    if above.len() > MOST_LEVELS {
        return Err(format!("it has more than {MOST_LEVELS} levels above the node"));
    }
    let mut labels: Vec<&str> = levels.iter().map(|level| level.label.as_str()).collect();
    labels.sort_unstable();
    if let Some(twice) = labels.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(format!("two of its levels have the label {}", twice[0]));
    }
    Ok(Terrain {
        labels: above.iter().map(|level| level.label.clone()).collect(),
        rates: levels.iter().map(rate).collect::<Result<_, _>>()?,
    })
}

fn rate(FabricLevel { label, rate }: &FabricLevel) -> Result<Bandwidth, String> {
    let read =
        rate.parse::<Bandwidth>().map_err(|error| format!("the rate of {label} makes no sense: {error}"))?;
    if read.is_zero() {
        return Err(format!("the rate of {label} is {rate}: over such links nothing could be sent"));
    }
    Ok(read)
}

/// What tells an API server that there are such objects, as a file to apply.
pub fn fabric_definition() -> String {
    super::definition_of(&FabricObject::crd())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(levels: &[(&str, &str)]) -> Result<Terrain, String> {
        let level =
            |(label, rate): &(&str, &str)| FabricLevel { label: (*label).into(), rate: (*rate).into() };
        terrain(&FabricSpec { levels: levels.iter().map(level).collect() })
    }

    #[test]
    fn the_last_level_is_the_node() {
        let terrain = read(&[("metronome.dev/rack", "150Gbps"), (HOSTNAME, "100Gbps")]).unwrap();
        assert_eq!(terrain.labels, ["metronome.dev/rack"]);
        assert_eq!(terrain.rates, [150, 100].map(|gigabits| Bandwidth(gigabits * 1_000_000_000)));
    }

    #[test]
    fn what_makes_no_sense_is_said_in_a_sentence() {
        let said = |levels: &[(&str, &str)]| read(levels).unwrap_err();
        assert_eq!(said(&[]), "it has no level");
        assert_eq!(said(&[("rack", "1Gbps")]), "its innermost level is rack, not kubernetes.io/hostname");
        let twice = [("rack", "1Gbps"), ("rack", "1Gbps"), (HOSTNAME, "1Gbps")];
        assert_eq!(said(&twice), "two of its levels have the label rack");
        assert!(said(&[(HOSTNAME, "0.0Gbps")]).contains("nothing could be sent"));
        assert!(said(&[(HOSTNAME, "fast")]).starts_with("the rate of kubernetes.io/hostname makes no sense"));
    }
}
