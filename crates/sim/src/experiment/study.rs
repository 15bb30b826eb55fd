//! Experiments on one link, without a cluster: some loops share it, each in the lane that a policy would give it, with
//! everything else fixed. Two kinds: mixes of measured models, and loops made for the purpose.
//!
//! What comes out is a figure for each policy in each *cell*, which is what a scenario is elsewhere, so bars, tables and
//! charts are those of all experiments.

mod cells;
mod loops;
mod mixes;
mod shared_link;

use std::path::Path;

use metronome_core::model::policy::{Links, Policy};
use serde::Deserialize;

use super::{Bar, Chart, DefinitionError};
use crate::noise::NoiseError;
use loops::LoopsDefinition;
use mixes::MixesDefinition;

pub use cells::Cells;

/// As `experiment.json` says it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Study {
    pub version: u32,
    pub link: Kind,
    /// What each policy would do about the link is done, and nothing else of it.
    pub policies: Vec<String>,
    #[serde(default)]
    pub bars: Vec<Bar>,
    #[serde(default)]
    pub charts: Vec<Chart>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Kind {
    Mixes(MixesDefinition),
    Loops(LoopsDefinition),
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    #[error("find a policy called `{0}` that says what jobs do on a link")]
    NoSuchPolicy(String),
    #[error("read {file}")]
    Unreadable { file: String, source: std::io::Error },
    #[error("draw from {file}")]
    Noise { file: String, source: NoiseError },
}

impl Study {
    /// Nothing where the text defines an experiment of another kind.
    pub fn parse(text: &str) -> Option<Result<Self, DefinitionError>> {
        let document: serde_json::Value = serde_json::from_str(text).ok()?;
        document.get("link")?;
        let parsed = serde_json::from_str(text).map_err(DefinitionError::NotJson);
        Some(parsed.and_then(|study: Self| study.check().map(|()| study)))
    }

    fn check(&self) -> Result<(), DefinitionError> {
        if self.version != 1 {
            return Err(DefinitionError::Version(self.version));
        }
        if self.policies.is_empty() {
            return Err(DefinitionError::Without("policies"));
        }
        self.data().iter().try_for_each(|file| super::definition::lies_below(file))?;
        self.bars.iter().try_for_each(|bar| self.check_bar(bar))?;
        self.charts.iter().try_for_each(|chart| {
            super::definition::lies_inside(&chart.file)?;
            self.check_figure(&chart.metric)?;
            chart.scenarios.iter().try_for_each(|cell| self.check_cell(cell))
        })
    }

    fn check_bar(&self, bar: &Bar) -> Result<(), DefinitionError> {
        if bar.at_most.is_some() == bar.at_least.is_some() {
            return Err(DefinitionError::NoBound(bar.metric.clone()));
        }
        let mut metrics = std::iter::once(&bar.metric).chain(&bar.over);
        metrics.try_for_each(|metric| self.check_figure(metric))?;
        bar.scenario.iter().try_for_each(|cell| self.check_cell(cell))?;
        let mut policies = std::iter::once(&bar.policy).chain(&bar.against);
        match policies.find(|name| !self.policies.contains(name)) {
            Some(name) => Err(DefinitionError::Unknown { what: "policies", name: name.clone() }),
            None => Ok(()),
        }
    }

    fn check_figure(&self, metric: &str) -> Result<(), DefinitionError> {
        let known = match &self.link {
            Kind::Mixes(_) => mixes::FIGURES.contains(&metric),
            Kind::Loops(_) => loops::FIGURES.contains(&metric),
        };
        if known { Ok(()) } else { Err(DefinitionError::NoSuchFigure(metric.to_owned())) }
    }

    fn check_cell(&self, name: &str) -> Result<(), DefinitionError> {
        let known = match &self.link {
            Kind::Mixes(_) => mixes::CELLS.contains(&name),
            Kind::Loops(loops) => loops.cells().any(|cell| cell == name),
        };
        match known {
            true => Ok(()),
            false => Err(DefinitionError::Unknown { what: "cells", name: name.to_owned() }),
        }
    }

    /// Files that it takes from the folder of data.
    pub fn data(&self) -> &[String] {
        match &self.link {
            Kind::Mixes(_) => &[],
            Kind::Loops(loops) => &loops.measured,
        }
    }

    /// Runs everything; `seeds` takes the place of what the definition says, where it is given.
    pub fn run(&self, data: &Path, seeds: Option<u64>) -> Result<Cells, StudyError> {
        let ways = self.policies.iter().map(|name| way(name)).collect::<Result<Vec<Links>, _>>()?;
        let ways: Vec<(&str, Links)> = self.policies.iter().map(String::as_str).zip(ways).collect();
        match &self.link {
            Kind::Mixes(mixes) => Ok(mixes.run(&ways, seeds)),
            Kind::Loops(loops) => loops.run(&ways, data, seeds),
        }
    }
}

/// What a policy does about links. A bound that nobody can have is not among what is compared here.
fn way(name: &str) -> Result<Links, StudyError> {
    let links = Policy::named(name).map(|policy| policy.links);
    links.filter(|links| shared_link::can_do(*links)).ok_or_else(|| StudyError::NoSuchPolicy(name.to_owned()))
}
