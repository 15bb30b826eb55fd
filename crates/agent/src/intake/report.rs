//! Reports as they come in: ours, and that of Kubeflow's `TrainJob` (KEP-2779).

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;

use crate::observed::Progress;

/// `POST /v1/progress`. What else a report says is ignored: the next SDK may say more.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    pub(super) job: String,
    pub(super) member: String,
    iteration: u64,
    #[serde(default)]
    time: Option<String>,
    #[serde(default)]
    metrics: BTreeMap<String, Option<f64>>,
    #[serde(default)]
    compute_seconds: Option<f64>,
    #[serde(default)]
    throughput: Option<f64>,
}

/// `POST /apis/trainer.kubeflow.org/v1alpha1/namespaces/{namespace}/trainjobs/{name}/status`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TrainJobReport {
    trainer_status: TrainerStatus,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct TrainerStatus {
    #[serde(default)]
    progress_percentage: Option<f64>,
    #[serde(default, alias = "estimatedRemainingDurationSeconds")]
    estimated_remaining_seconds: Option<f64>,
    #[serde(default)]
    metrics: Vec<NamedMetric>,
    #[serde(default)]
    last_updated_time: Option<String>,
}

#[derive(Debug, Deserialize)]
struct NamedMetric {
    name: String,
    /// A number in quotes.
    value: String,
}

const MOST_METRICS: usize = 32;
const LONGEST_NAME: usize = 64;

/// Metrics of other frameworks that count iterations.
const ITERATIONS: [&str; 3] = ["iteration", "step", "global_step"];

impl Report {
    pub(super) fn progress(self, now: Timestamp) -> Result<Progress, &'static str> {
        let given = self.metrics.into_iter().filter_map(|(name, value)| Some((name, value?)));
        Ok(Progress {
            job: self.job,
            member: self.member,
            iteration: Some(self.iteration),
            time: time(self.time, now)?,
            metrics: metrics(given)?,
            compute_seconds: positive(self.compute_seconds)?,
            throughput: positive(self.throughput)?,
            ..Progress::default()
        })
    }
}

impl TrainJobReport {
    pub(super) fn progress(
        self,
        job: String,
        member: String,
        now: Timestamp,
    ) -> Result<Progress, &'static str> {
        let status = self.trainer_status;
        let number = |metric: NamedMetric| {
            let value =
                metric.value.trim().parse::<f64>().map_err(|_| "the value of a metric is no number")?;
            Ok((metric.name, value))
        };
        let named = status.metrics.into_iter().map(number).collect::<Result<Vec<_>, &'static str>>()?;
        let metrics = metrics(named.into_iter())?;
        let counted = ITERATIONS.iter().find_map(|name| metrics.get(*name));
        Ok(Progress {
            job,
            member,
            iteration: counted.filter(|count| **count >= 0.0).map(|count| *count as u64),
            time: time(status.last_updated_time, now)?,
            metrics,
            percent: positive(status.progress_percentage)?.map(|percent| percent.min(100.0)),
            remaining_seconds: positive(status.estimated_remaining_seconds)?,
            ..Progress::default()
        })
    }
}

fn metrics(given: impl Iterator<Item = (String, f64)>) -> Result<BTreeMap<String, f64>, &'static str> {
    let all: BTreeMap<String, f64> = given.filter(|(_, value)| value.is_finite()).collect();
    if all.len() > MOST_METRICS {
        return Err("there are more than 32 metrics");
    }
    if all.keys().any(|name| name.is_empty() || name.len() > LONGEST_NAME) {
        return Err("the name of a metric has between 1 and 64 letters");
    }
    Ok(all)
}

fn positive(number: Option<f64>) -> Result<Option<f64>, &'static str> {
    match number {
        Some(number) if !number.is_finite() || number < 0.0 => Err("a number is below zero"),
        number => Ok(number),
    }
}

/// A clock that says nothing we can read is ours.
fn time(text: Option<String>, now: Timestamp) -> Result<String, &'static str> {
    match text {
        Some(text) => {
            let read: Timestamp = text.parse().map_err(|_| "the time is not in RFC 3339 format")?;
            Ok(read.to_string())
        }
        None => Ok(now.to_string()),
    }
}
