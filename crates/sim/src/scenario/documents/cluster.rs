//! `Cluster`: levels, groups of equal nodes, and links as a tree or as a list.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

use crate::scenario::values::Text;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ClusterSpec {
    pub(crate) levels: Option<Vec<Text>>,
    pub(crate) nodes: Vec<Spanned<NodeGroup>>,
    pub(crate) links: Option<Spanned<Links>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct NodeGroup {
    pub(crate) name: Option<Text>,
    pub(crate) count: Option<Text>,
    pub(crate) per_rack: Option<Text>,
    #[serde(default)]
    pub(crate) per: BTreeMap<String, Text>,
    #[serde(default)]
    pub(crate) within: BTreeMap<String, Text>,
    pub(crate) cpu: Option<Text>,
    pub(crate) memory: Option<Text>,
    pub(crate) gpus: Option<Text>,
    pub(crate) gpu_type: Option<Text>,
}

#[derive(Debug)]
pub(crate) enum Links {
    /// A rate for each level.
    Tree(BTreeMap<String, Text>),
    List(Vec<Spanned<Cable>>),
}

/// From below to above.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Cable {
    pub(crate) from: Text,
    pub(crate) to: Text,
    pub(crate) rate: Text,
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
