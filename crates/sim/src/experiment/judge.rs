//! Whether the bars were cleared.

use serde::Serialize;

use super::metric;
use super::{Bar, Measured};
use crate::results::Comparison;

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
    bars.iter()
        .flat_map(|bar| {
            let meant = |file: &str| bar.scenario.as_deref().is_none_or(|only| only == file);
            let scenarios = measured.scenarios.iter().filter(move |(file, _)| meant(file));
            scenarios.map(move |(file, comparison)| verdict(bar, file, comparison))
        })
        .collect()
}

/// What was not measured clears no bar.
fn verdict(bar: &Bar, file: &str, comparison: &Comparison) -> Verdict {
    let figure = |policy: &str| {
        let summary = comparison.summary.iter().find(|summary| summary.policy == policy)?;
        metric::value(&summary.figures, &bar.metric)
    };
    let measured = match &bar.against {
        None => figure(&bar.policy),
        Some(other) => figure(&bar.policy)
            .zip(figure(other))
            .filter(|(_, other)| *other > 0.0)
            .map(|(ours, other)| ours / other),
    };
    let clears = |value: f64| {
        bar.at_most.is_none_or(|most| value <= most) && bar.at_least.is_none_or(|least| value >= least)
    };
    let bar = Bar { scenario: Some(file.to_owned()), ..bar.clone() };
    Verdict { bar, measured, met: measured.is_some_and(clears) }
}

impl Verdict {
    /// `met: jct_s.mean of metronome over coscheduling in load-0.8.yaml is 0.791, at most 0.805`.
    pub fn sentence(&self) -> String {
        let Bar { metric, policy, against, at_most, at_least, scenario } = &self.bar;
        let verdict = if self.met { "met" } else { "MISSED" };
        let over = against.as_ref().map(|other| format!(" over {other}")).unwrap_or_default();
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
