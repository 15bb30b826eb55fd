//! `Scaling`: how fast jobs are at each size, and what they are worth after each part of their work. A job has sizes of
//! its own, or names some that many share.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_saphyr::Spanned;

use crate::Text;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ScalingSpec {
    pub sizes: Spanned<SizesShape>,
    /// Parts of the work, and the quality after each.
    pub quality: Option<Spanned<Vec<(Text, Text)>>>,
}

/// Members and speeds, as they are written.
#[derive(Debug, Default)]
pub struct SizesShape(pub Vec<(Text, Text)>);

/// The name of a `Scaling`, or sizes.
#[derive(Debug)]
pub enum ScalingShape {
    Named(String),
    Sizes(SizesShape),
}

impl<'de> Deserialize<'de> for SizesShape {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(SizesVisitor)
    }
}

struct SizesVisitor;

impl<'de> Visitor<'de> for SizesVisitor {
    type Value = SizesShape;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sizes with a speed for each, such as {1: 1.0, 2: 1.9}")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<SizesShape, A::Error> {
        let mut sizes = Vec::new();
        while let Some(size) = map.next_entry()? {
            sizes.push(size);
        }
        Ok(SizesShape(sizes))
    }
}

/// By hand, because serde's own choice between shapes forgets where they stood.
impl<'de> Deserialize<'de> for ScalingShape {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(ScalingVisitor)
    }
}

struct ScalingVisitor;

impl<'de> Visitor<'de> for ScalingVisitor {
    type Value = ScalingShape;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a Scaling, or sizes with a speed for each such as {1: 1.0, 2: 1.9}")
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<ScalingShape, E> {
        Ok(ScalingShape::Named(name.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ScalingShape, A::Error> {
        SizesVisitor.visit_map(map).map(ScalingShape::Sizes)
    }
}
