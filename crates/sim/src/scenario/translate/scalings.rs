//! `Scaling` documents: tables of sizes and speeds that jobs name.

use std::collections::BTreeMap;
use std::sync::Arc;

use metronome_core::model::job::Members;

use super::Named;
use crate::near::meant_or_known;
use crate::scenario::curve::{Curve, CurveError};
use crate::scenario::documents::{ScalingSpec, SizesShape};
use crate::scenario::error::{Position, Problem, quoted};
use crate::scenario::quality::Quality;
use crate::scenario::values::{Placed, Text, number, whole};

/// By name.
#[derive(Debug, Default)]
pub(super) struct Scalings(BTreeMap<String, Table>);

#[derive(Debug)]
struct Table {
    curve: Curve,
    quality: Option<Arc<Quality>>,
}

pub(super) fn scalings(documents: &[Named<ScalingSpec>]) -> Result<Scalings, Problem> {
    let read = |document: &Named<ScalingSpec>| {
        let sizes = &document.spec.sizes;
        let quality = document.spec.quality.as_ref().map(|points| quality(&points.value, points.at()));
        let table = Table { curve: curve(&sizes.value, sizes.at())?, quality: quality.transpose()? };
        Ok((document.name().to_owned(), table))
    };
    documents.iter().map(read).collect::<Result<_, _>>().map(Scalings)
}

impl Scalings {
    /// The table of that name, or what is wrong and what to do.
    pub(super) fn find(&self, name: &str) -> Result<&Curve, (String, String)> {
        self.0.get(name).map(|table| &table.curve).ok_or_else(|| {
            let hint = match self.0.is_empty() {
                true => "add a document of kind Scaling, or say sizes: scaling: {1: 1.0, 2: 1.9}".to_owned(),
                false => meant_or_known(name, self.0.keys().map(String::as_str)),
            };
            (format!("there is no Scaling {}", quoted(name)), hint)
        })
    }

    /// What the jobs of that name are worth after each part of their work, if it is said.
    pub(super) fn quality(&self, name: &str) -> Option<Arc<Quality>> {
        self.0.get(name)?.quality.clone()
    }
}

/// What is learned by then, in any unit; part by part.
fn quality(points: &[(Text, Text)], at: Position) -> Result<Arc<Quality>, Problem> {
    let point = |(part, quality): &(Text, Text)| -> Result<(f64, f64), Problem> {
        Ok((number(part, 0.0..=1.0)?, number(quality, -MOST_QUALITY..=MOST_QUALITY)?))
    };
    let points = points.iter().map(point).collect::<Result<_, _>>()?;
    let hint = "say parts of the work that rise to 1, and a quality after each: [[0.5, 0.8], [1, 0.9]]";
    Quality::new(points).map(Arc::new).map_err(|error| at.problem(error.to_string()).with_hint(hint))
}

const MOST_QUALITY: f64 = 1e12;

/// Speeds in any unit, of which the ratio counts.
const FASTEST: f64 = 1e12;

pub(super) fn curve(sizes: &SizesShape, at: Position) -> Result<Curve, Problem> {
    let mut speeds = Vec::with_capacity(sizes.0.len());
    for (members, speed) in &sizes.0 {
        let count = whole(members, 1..=u64::from(Members::MOST))? as u32;
        let value = number(speed, 0.0..=FASTEST)?;
        if value == 0.0 {
            let problem = speed.problem(CurveError::Still(count).to_string());
            return Err(problem.with_hint("leave a size out that does not work"));
        }
        speeds.push((count, value));
    }
    Curve::new(speeds).map_err(|error| at.problem(error.to_string()))
}
