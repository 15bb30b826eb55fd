//! Figures by name: `jct_s.mean` is what the JSON of `sim compare` has there, so that every figure can be a bar or a
//! chart and none has a second name.

use serde::Serialize;
use serde_json::Value;

use crate::results::Figures;

fn at(document: &Value, metric: &str) -> Option<Value> {
    document.pointer(&format!("/{}", metric.replace('.', "/"))).cloned()
}

/// Nothing where it was not measured.
pub(super) fn value(figures: &impl Serialize, metric: &str) -> Option<f64> {
    let document = serde_json::to_value(figures).expect("figures are numbers");
    at(&document, metric)?.as_f64()
}

/// Whether there is such a figure at all. How long decisions took is none: it differs between machines.
pub(super) fn is_known(metric: &str) -> bool {
    let document = serde_json::to_value(Figures::<f64>::default()).expect("figures are numbers");
    at(&document, metric).is_some_and(|value| value.is_number() || value.is_null())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_is_a_path_into_the_figures() {
        let mut figures = Figures::<f64>::default();
        figures.jct_s.mean = Some(12.5);
        assert_eq!(value(&figures, "jct_s.mean"), Some(12.5));
        assert_eq!(value(&figures, "jct_s.p99"), None);
        assert_eq!(value(&figures, "jobs.deadlocked"), Some(0.0));
        assert!(is_known("by_priority.high.slowdown_p99") && is_known("makespan_s"));
        assert!(!is_known("jct_s") && !is_known("jct.mean") && !is_known("decisions.p99_ms"));
    }
}
