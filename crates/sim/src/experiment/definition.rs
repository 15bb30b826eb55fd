//! `experiment.json`: what is run and what must come out.

use std::path::{Component, Path};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::pairs::{self, PairTable};
use super::waits::{Slice, WaitTable};
use super::{Import, Part, metric};

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Definition {
    pub version: u32,
    pub scenarios: Vec<Part>,
    /// Run in every scenario that names none of its own.
    #[serde(default)]
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
    /// Each job beside itself under another policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pairs: Option<PairTable>,
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
    /// Once for some scenarios together: means over those in which a figure lies between two bounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub across: Option<Across>,
}

/// Scenarios are chosen by what came out in them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Across {
    pub metric: String,
    pub policy: String,
    pub at_least: f64,
    pub at_most: f64,
    /// Of these scenarios; of all, if none is named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scenarios: Vec<String>,
}

/// A picture of one figure: bars by scenario and policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Chart {
    pub metric: String,
    /// The SVG file in the folder of the experiment.
    pub file: String,
    pub title: String,
    /// Of these scenarios; of all, if none is named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scenarios: Vec<String>,
    /// Lines instead of bars: each scenario is a point along some quantity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub along: Option<Along>,
}

/// Where each of the scenarios of a chart lies, in their order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Along {
    pub title: String,
    pub at: Vec<f64>,
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
    #[error("draw {scenarios} scenarios at {points} points")]
    Points { points: usize, scenarios: usize },
    #[error("tell two scenarios called `{0}` apart")]
    Twice(String),
    #[error("write `{0}`: a file of an experiment lies in its own folder")]
    Outside(String),
    #[error("read `{0}`: a trace lies in the folder of data, below `METRONOME_DATA`")]
    NotData(String),
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
        let parts = [("scenarios", self.scenarios.len()), ("policies", self.fewest_policies())];
        let seeds = ("seeds", usize::try_from(self.seeds).unwrap_or(usize::MAX));
        if let Some((what, _)) = parts.into_iter().chain([seeds]).find(|(_, count)| *count == 0) {
            return Err(DefinitionError::Without(what));
        }
        self.scenarios.iter().enumerate().try_for_each(|(index, part)| self.check_part(index, part))?;
        self.bars.iter().try_for_each(|bar| self.check_bar(bar))?;
        self.pairs.iter().try_for_each(PairTable::check)?;
        self.charts.iter().try_for_each(|chart| self.check_chart(chart))
    }

    fn fewest_policies(&self) -> usize {
        self.scenarios.iter().map(|part| self.policies_of(part).len()).min().unwrap_or_default()
    }

    /// What is run in a scenario.
    pub fn policies_of<'a>(&'a self, part: &'a Part) -> &'a [String] {
        if part.policies.is_empty() { &self.policies } else { &part.policies }
    }

    /// What is measured in a scenario, simulated or elsewhere.
    fn measured_in<'a>(&'a self, part: &'a Part) -> impl Iterator<Item = &'a str> {
        let observed = part.observed.iter().map(|observed| observed.name.as_str());
        self.policies_of(part).iter().map(String::as_str).chain(observed)
    }

    fn check_part(&self, index: usize, part: &Part) -> Result<(), DefinitionError> {
        lies_inside(&part.name)?;
        part.data().try_for_each(lies_below)?;
        part.import.iter().filter_map(Import::beside).try_for_each(lies_inside)?;
        let named = |other: &Part| other.name == part.name;
        if self.scenarios[..index].iter().any(named) {
            return Err(DefinitionError::Twice(part.name.clone()));
        }
        let ran = part.observed.iter().map(|observed| observed.policy.as_str());
        let policies = || self.policies_of(part).iter().map(String::as_str);
        ran.into_iter().try_for_each(|name| known("policies", policies(), name))
    }

    fn check_bar(&self, bar: &Bar) -> Result<(), DefinitionError> {
        let metrics = std::iter::once(&bar.metric).chain(&bar.over);
        metrics.into_iter().try_for_each(|metric| match Slice::parse(metric) {
            Some(_) if self.waits.is_some() => Ok(()),
            Some(_) => Err(DefinitionError::Without("`waits`, of which a bar asks for a part")),
            None if pairs::is_figure(metric) && self.pairs.is_some() => Ok(()),
            None => check_metric(metric),
        })?;
        if bar.at_most.is_some() == bar.at_least.is_some() {
            return Err(DefinitionError::NoBound(bar.metric.clone()));
        }
        bar.scenario.iter().try_for_each(|name| self.check_scenario(name))?;
        bar.across.iter().try_for_each(|across| self.check_across(across))?;
        let together = bar.across.as_ref().map(|across| &across.scenarios);
        let together = together.filter(|names| !names.is_empty());
        let meant = |part: &&Part| {
            bar.scenario.as_ref().is_none_or(|name| *name == part.name)
                && together.is_none_or(|names| names.contains(&part.name))
        };
        self.scenarios.iter().filter(meant).try_for_each(|part| {
            let policies = std::iter::once(&bar.policy).chain(&bar.against);
            policies.into_iter().try_for_each(|name| known("policies", self.measured_in(part), name))
        })
    }

    fn check_chart(&self, chart: &Chart) -> Result<(), DefinitionError> {
        lies_inside(&chart.file)?;
        check_metric(&chart.metric)?;
        chart.scenarios.iter().try_for_each(|name| self.check_scenario(name))?;
        let points = if chart.scenarios.is_empty() { self.scenarios.len() } else { chart.scenarios.len() };
        match chart.along.as_ref().filter(|along| along.at.len() != points) {
            Some(along) => Err(DefinitionError::Points { points: along.at.len(), scenarios: points }),
            None => Ok(()),
        }
    }

    fn check_across(&self, across: &Across) -> Result<(), DefinitionError> {
        check_metric(&across.metric)?;
        across.scenarios.iter().try_for_each(|name| self.check_scenario(name))
    }

    fn check_scenario(&self, name: &str) -> Result<(), DefinitionError> {
        known("scenarios", self.scenarios.iter().map(|part| part.name.as_str()), name)
    }
}

fn check_metric(metric: &str) -> Result<(), DefinitionError> {
    if metric::is_known(metric) { Ok(()) } else { Err(DefinitionError::NoSuchFigure(metric.to_owned())) }
}

fn known<'a>(
    what: &'static str,
    mut all: impl Iterator<Item = &'a str>,
    name: &str,
) -> Result<(), DefinitionError> {
    match all.any(|known| known == name) {
        true => Ok(()),
        false => Err(DefinitionError::Unknown { what, name: name.to_owned() }),
    }
}

pub(super) fn lies_inside(file: &str) -> Result<(), DefinitionError> {
    let plain = !file.is_empty() && !file.starts_with('.') && !file.contains(['/', '\\']);
    if plain { Ok(()) } else { Err(DefinitionError::Outside(file.to_owned())) }
}

pub(super) fn lies_below(file: &str) -> Result<(), DefinitionError> {
    let mut components = Path::new(file).components();
    let below = !file.is_empty() && components.all(|component| matches!(component, Component::Normal(_)));
    if below { Ok(()) } else { Err(DefinitionError::NotData(file.to_owned())) }
}
