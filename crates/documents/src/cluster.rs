//! `Cluster`: levels, groups of equal nodes, and links as a tree or as a list.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

use crate::Text;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClusterSpec {
    pub levels: Option<Vec<Text>>,
    pub nodes: Vec<Spanned<NodeGroup>>,
    pub links: Option<Spanned<Links>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NodeGroup {
    pub name: Option<Text>,
    pub count: Option<Text>,
    pub per_rack: Option<Text>,
    #[serde(default)]
    pub per: BTreeMap<String, Text>,
    #[serde(default)]
    pub within: BTreeMap<String, Text>,
    pub cpu: Option<Text>,
    pub memory: Option<Text>,
    pub gpus: Option<Text>,
    pub gpu_type: Option<Text>,
}

#[derive(Debug)]
pub enum Links {
    /// A rate for each level.
    Tree(BTreeMap<String, Text>),
    List(Vec<Spanned<Cable>>),
}

/// From below to above.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Cable {
    pub from: Text,
    pub to: Text,
    pub rate: Text,
}

/// By hand, because serde's own choice between shapes forgets where they stood.
impl<'de> Deserialize<'de> for Links {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(LinksVisitor)
    }
}

struct LinksVisitor;

impl<'de> Visitor<'de> for LinksVisitor {
    type Value = Links;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a rate for each level or a list of {from, to, rate}")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Links, A::Error> {
        Deserialize::deserialize(MapAccessDeserializer::new(map)).map(Links::Tree)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Links, A::Error> {
        Deserialize::deserialize(SeqAccessDeserializer::new(list)).map(Links::List)
    }
}
