//! `experiment.json`: what is run and what must come out.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::metric;
use super::waits::{Slice, WaitTable};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Definition {
    pub version: u32,
    /// Files in the folder of the experiment.
    pub scenarios: Vec<String>,
    pub policies: Vec<String>,
    /// Each policy runs with the seeds 1 to this.
    pub seeds: u64,
    #[serde(default)]
    pub bars: Vec<Bar>,
    #[serde(default)]
    pub charts: Vec<Chart>,
    /// A table of mean waits by user, urgency and width.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<WaitTable>,
}

/// A figure of one policy, or its ratio to that of another policy or to another figure, and how large or small it must
/// be. Figures are means over seeds, all of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Bar {
    pub metric: String,
    pub policy: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
    /// In this scenario; in each, if none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<String>,
}

/// A picture of one figure: bars by scenario and policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Chart {
    pub metric: String,
    /// The SVG file in the folder of the experiment.
    pub file: String,
    pub title: String,
}

/// Words that fit after "cannot".
#[derive(Debug, Error)]
pub enum DefinitionError {
    #[error("read the definition of the experiment")]
    NotJson(#[source] serde_json::Error),
    #[error("use version {0} of a definition: this program knows version 1")]
    Version(u32),
    #[error("run an experiment without {0}")]
    Without(&'static str),
    #[error("find `{name}` among the {what} of the experiment")]
    Unknown { what: &'static str, name: String },
    #[error("find a figure called `{0}`: it is a path into the JSON of `sim compare`, such as `jct_s.mean`")]
    NoSuchFigure(String),
    #[error("judge `{0}`: a bar has one of `atMost` and `atLeast`")]
    NoBound(String),
    #[error("write `{0}`: a file of an experiment lies in its own folder")]
    Outside(String),
}

impl Definition {
    pub fn parse(text: &str) -> Result<Self, DefinitionError> {
        let definition: Self = serde_json::from_str(text).map_err(DefinitionError::NotJson)?;
        definition.check()?;
        Ok(definition)
    }

    fn check(&self) -> Result<(), DefinitionError> {
        if self.version != 1 {
            return Err(DefinitionError::Version(self.version));
        }
        let parts = [("scenarios", self.scenarios.len()), ("policies", self.policies.len())];
        let seeds = ("seeds", usize::try_from(self.seeds).unwrap_or(usize::MAX));
        if let Some((what, _)) = parts.into_iter().chain([seeds]).find(|(_, count)| *count == 0) {
            return Err(DefinitionError::Without(what));
        }
        let files = self.scenarios.iter().chain(self.charts.iter().map(|chart| &chart.file));
        files.map(String::as_str).try_for_each(lies_inside)?;
        self.bars.iter().try_for_each(|bar| self.check_bar(bar))?;
        self.charts.iter().try_for_each(|chart| check_metric(&chart.metric))
    }

    fn check_bar(&self, bar: &Bar) -> Result<(), DefinitionError> {
        let metrics = std::iter::once(&bar.metric).chain(&bar.over);
        metrics.into_iter().try_for_each(|metric| match Slice::parse(metric) {
            Some(_) if self.waits.is_some() => Ok(()),
            Some(_) => Err(DefinitionError::Without("`waits`, of which a bar asks for a part")),
            None => check_metric(metric),
        })?;
        if bar.at_most.is_some() == bar.at_least.is_some() {
            return Err(DefinitionError::NoBound(bar.metric.clone()));
        }
        let policies = std::iter::once(&bar.policy).chain(&bar.against);
        policies.into_iter().try_for_each(|name| known("policies", &self.policies, name))?;
        bar.scenario.iter().try_for_each(|name| known("scenarios", &self.scenarios, name))
    }
}

fn check_metric(metric: &str) -> Result<(), DefinitionError> {
    if metric::is_known(metric) { Ok(()) } else { Err(DefinitionError::NoSuchFigure(metric.to_owned())) }
}

fn known(what: &'static str, all: &[String], name: &str) -> Result<(), DefinitionError> {
    match all.iter().any(|known| known == name) {
        true => Ok(()),
        false => Err(DefinitionError::Unknown { what, name: name.to_owned() }),
    }
}

fn lies_inside(file: &str) -> Result<(), DefinitionError> {
    let plain = !file.is_empty() && !file.starts_with('.') && !file.contains(['/', '\\']);
    if plain { Ok(()) } else { Err(DefinitionError::Outside(file.to_owned())) }
}
