//! Whether the bars were cleared.

use serde::Serialize;

use super::metric;
use super::pairs;
use super::waits::{Slice, WaitCell};
use super::{Across, Bar, Measured};

/// One bar in one scenario.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    #[serde(flatten)]
    pub bar: Bar,
    /// What the figure or the ratio came to; nothing where it was not measured.
    pub measured: Option<f64>,
    pub met: bool,
}

/// Bars in their order, each in every scenario it is for.
pub fn judge(bars: &[Bar], measured: &Measured) -> Vec<Verdict> {
    let scenarios: Vec<&str> = measured.scenarios.iter().map(|(file, _)| file.as_str()).collect();
    judge_cells(bars, &scenarios, |file, policy, metric| match Slice::parse(metric) {
        Some(slice) => slice.mean(cells(measured, file, policy)?),
        None if pairs::is_figure(metric) => {
            let of = measured.pairs.iter().find(|of| of.scenario == file && of.policy == policy)?;
            of.figure(metric)
        }
        None => {
            let (_, comparison) = measured.scenarios.iter().find(|(of, _)| of == file)?;
            let summary = comparison.summary.iter().find(|summary| summary.policy == policy)?;
            metric::value(&summary.figures, metric)
        }
    })
}

/// The same, of figures that are given by scenario, policy and name.
pub(super) fn judge_cells(
    bars: &[Bar],
    scenarios: &[&str],
    figure: impl Fn(&str, &str, &str) -> Option<f64>,
) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for bar in bars {
        if let Some(across) = &bar.across {
            verdicts.push(verdict_across(bar, across, scenarios, &figure));
            continue;
        }
        let meant = |name: &&&str| bar.scenario.as_deref().is_none_or(|only| only == **name);
        for name in scenarios.iter().filter(meant) {
            verdicts.push(verdict(bar, name, |policy, metric| figure(name, policy, metric)));
        }
    }
    verdicts
}

/// One verdict on the means over those scenarios in which the figure lies between its bounds.
fn verdict_across(
    bar: &Bar,
    across: &Across,
    scenarios: &[&str],
    figure: impl Fn(&str, &str, &str) -> Option<f64>,
) -> Verdict {
    let named = |name: &&&str| across.scenarios.is_empty() || across.scenarios.iter().any(|of| of == **name);
    let between = |name: &&&str| {
        let value = figure(name, &across.policy, &across.metric);
        value.is_some_and(|value| (across.at_least..=across.at_most).contains(&value))
    };
    let chosen: Vec<&str> = scenarios.iter().filter(named).filter(between).copied().collect();
    let mean = |policy: &str, metric: &str| -> Option<f64> {
        let values: Option<Vec<f64>> = chosen.iter().map(|name| figure(name, policy, metric)).collect();
        let values = values.filter(|values| !values.is_empty())?;
        Some(values.iter().sum::<f64>() / values.len() as f64)
    };
    verdict(bar, &chosen.join(", "), mean)
}

/// What was not measured clears no bar.
fn verdict(bar: &Bar, scenario: &str, figure: impl Fn(&str, &str) -> Option<f64>) -> Verdict {
    let ours = figure(&bar.policy, &bar.metric);
    let measured = if bar.against.is_none() && bar.over.is_none() {
        ours
    } else {
        let policy = bar.against.as_ref().unwrap_or(&bar.policy);
        let other = figure(policy, bar.over.as_ref().unwrap_or(&bar.metric));
        ours.zip(other).filter(|(_, other)| *other > 0.0).map(|(ours, other)| ours / other)
    };
    let clears = |value: f64| {
        bar.at_most.is_none_or(|most| value <= most) && bar.at_least.is_none_or(|least| value >= least)
    };
    let bar = Bar { scenario: Some(scenario.to_owned()), ..bar.clone() };
    Verdict { bar, measured, met: measured.is_some_and(clears) }
}

fn cells<'a>(measured: &'a Measured, file: &str, policy: &str) -> Option<&'a [WaitCell]> {
    let (_, waits) = measured.waits.iter().find(|(of, _)| of == file)?;
    waits.iter().find(|of| of.policy == policy).map(|of| of.cells.as_slice())
}

impl Verdict {
    /// `met: jct_s.mean of metronome over coscheduling in load-0.8.yaml is 0.791, at most 0.805`.
    pub fn sentence(&self) -> String {
        let Bar { metric, policy, against, over, at_most, at_least, scenario, .. } = &self.bar;
        let verdict = if self.met { "met" } else { "MISSED" };
        let over = match (over, against) {
            (None, None) => String::new(),
            (None, Some(other)) => format!(" over {other}"),
            (Some(figure), None) => format!(" over {figure}"),
            (Some(figure), Some(other)) => format!(" over {figure} of {other}"),
        };
        let scenario = scenario.as_deref().unwrap_or_default();
        let measured = self.measured.map_or("not measured".into(), |value| format!("{value:.3}"));
        let bound = match (at_most, at_least) {
            (Some(most), _) => format!("at most {most}"),
            (_, Some(least)) => format!("at least {least}"),
            _ => String::new(),
        };
        format!("{verdict}: {metric} of {policy}{over} in {scenario} is {measured}, {bound}")
    }
}
