//! What training code says of its progress: in an annotation of a pod, or in the status of a `TrainJob`.

use jiff::Timestamp;
use kube::api::DynamicObject;
use metronome_core::model::units::{Duration, Instant};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// One report. Whatever is not said, or makes no sense, is left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    pub done: Option<Done>,
    pub loss: Option<f64>,
    pub at: Option<Instant>,
    /// What the one who says this takes for its own part of an iteration, without waiting for others.
    pub computes: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    Iterations(u64),
    Percent(u64),
}

/// As the agent takes it, too: `{"iteration": 1200, "time": "…", "computeSeconds": 0.21, "metrics": {"loss": 0.41}}`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    iteration: Option<u64>,
    compute_seconds: Option<f64>,
    time: Option<Timestamp>,
    #[serde(default)]
    metrics: BTreeMap<String, f64>,
}

const LOSS: &str = "loss";

/// Seconds that an iteration may take.
const LIKELY: std::ops::Range<f64> = 1e-6..86_400.0;

impl Report {
    pub fn read(text: &str) -> Result<Self, serde_json::Error> {
        let Written { iteration, compute_seconds, time, metrics } = serde_json::from_str(text)?;
        Ok(Self {
            done: iteration.map(Done::Iterations),
            loss: metrics.get(LOSS).copied(),
            at: time.and_then(instant),
            computes: compute_seconds.filter(|seconds| LIKELY.contains(seconds)).map(seconds),
        })
    }

    /// `status.trainerStatus`, where metrics are texts.
    fn of_trainer(status: &Value) -> Self {
        let percent = status["progressPercentage"].as_u64().filter(|percent| *percent <= 100);
        let metrics = status["metrics"].as_array().into_iter().flatten();
        let loss =
            metrics.filter(|metric| metric["name"] == LOSS).find_map(|metric| metric["value"].as_str());
        let time = status["lastUpdatedTime"].as_str().and_then(|text| text.parse().ok());
        Self {
            done: percent.map(Done::Percent),
            loss: loss.and_then(|text| text.parse().ok()),
            at: time.and_then(instant),
            computes: None,
        }
    }
}

fn seconds(seconds: f64) -> Duration {
    Duration((seconds * 1e9) as u64)
}

fn instant(time: Timestamp) -> Option<Instant> {
    u64::try_from(time.as_nanosecond()).ok().map(Instant)
}

/// A job of Kubeflow's Trainer, as far as it says how far it is.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainJob {
    pub namespace: Arc<str>,
    pub name: Arc<str>,
    pub report: Report,
}

impl TrainJob {
    pub fn read(object: &DynamicObject) -> Self {
        let text = |text: &Option<String>| Arc::from(text.as_deref().unwrap_or_default());
        Self {
            namespace: text(&object.metadata.namespace),
            name: text(&object.metadata.name),
            report: Report::of_trainer(&object.data["status"]["trainerStatus"]),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_report_says_what_it_says_and_no_more() {
        let report = Report::read(
            r#"{"iteration": 1200, "time": "2026-11-15T18:00:00Z", "metrics": {"loss": 0.41, "accuracy": 0.9}}"#,
        );
        let report = report.unwrap();
        assert_eq!((report.done, report.loss), (Some(Done::Iterations(1200)), Some(0.41)));
        assert!(report.at.is_some());
        assert_eq!(Report::read("{}").unwrap(), Report::default());
        assert!(Report::read("halfway").is_err());
        assert!(Report::read(r#"{"iteration": -1}"#).is_err());
    }

    #[test]
    fn a_pod_says_how_long_it_computes_if_that_can_be() {
        let computes = |text| Report::read(text).unwrap().computes;
        assert_eq!(computes(r#"{"computeSeconds": 0.25}"#), Some(Duration::from_millis(250)));
        for nonsense in
            [r#"{"computeSeconds": 0}"#, r#"{"computeSeconds": -1}"#, r#"{"computeSeconds": 1e300}"#]
        {
            assert_eq!(computes(nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn a_trainer_says_it_in_percent_and_texts() {
        let status = json!({
            "progressPercentage": 45, "lastUpdatedTime": "2026-11-15T18:00:00Z",
            "metrics": [{"name": "accuracy", "value": "0.9"}, {"name": "loss", "value": "0.23"}],
        });
        let report = Report::of_trainer(&status);
        assert_eq!((report.done, report.loss), (Some(Done::Percent(45)), Some(0.23)));
        assert_eq!(Report::of_trainer(&json!({"progressPercentage": 101})), Report::default());
        assert_eq!(Report::of_trainer(&Value::Null), Report::default());
    }
}
