//! `Policy`: a named policy as changes to one that is built in.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_saphyr::Spanned;

use crate::Text;

#[derive(Debug, Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PolicySpec {
    pub base: Option<Text>,
    pub order: Option<OrderShape>,
    pub gangs: Option<Text>,
    pub queueing: Option<Text>,
    pub sharing: Option<Text>,
    pub sizing: Option<Text>,
    pub preemption: Option<Text>,
    pub placement: Option<Text>,
    pub links: Option<Text>,
    pub slowdowns: Option<Text>,
    pub moving: Option<Text>,
    pub throttling: Option<Text>,
    pub deadlines: Option<Text>,
    pub tuning: Option<Spanned<TuningShape>>,
}

/// Overridden entries of the tuning table, as written: `{predictionTolerance: 0.01}`.
#[derive(Debug, Default)]
pub struct TuningShape(pub Vec<(Text, Text)>);

/// Names keep their position, so that an unknown one can be pointed at.
impl<'de> Deserialize<'de> for TuningShape {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(TuningVisitor)
    }
}

struct TuningVisitor;

impl<'de> Visitor<'de> for TuningVisitor {
    type Value = TuningShape;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("names of tuning entries with their values")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<TuningShape, A::Error> {
        let mut written = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            written.push(entry);
        }
        Ok(TuningShape(written))
    }
}

/// A word, or a word with what it needs: `order: {leastAttained: {limits: [3250, 7200]}}`.
#[derive(Debug, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum OrderShape {
    Fifo,
    Priority,
    Srtf,
    Srsf,
    LeastAttained(LimitsShape),
    Weighted(Box<Spanned<WeightsShape>>),
}

#[derive(Debug, serde::Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LimitsShape {
    pub limits: Spanned<Vec<Text>>,
}

#[derive(Debug, serde::Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WeightsShape {
    pub user: Option<Text>,
    pub task: Option<Text>,
    pub wait: Option<Text>,
    pub width: Option<Text>,
    pub brevity: Option<Text>,
    pub window: Option<Text>,
}
