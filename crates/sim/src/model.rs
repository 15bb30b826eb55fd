//! Models: what one iteration of a training job computes and sends, as measured on an H200.

pub mod alone;

use std::sync::{Arc, LazyLock};

use metronome_core::model::profile::{Bucket, Exchange, Iteration, Traffic};
use metronome_core::model::units::{Bytes, Duration};
use metronome_core::network;
use serde::Deserialize;

use crate::noise::Noise;

/// A known model at a known batch size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    /// `resnet50/512`: the model and its batch size on each GPU.
    pub name: String,
    pub iteration: Iteration,
}

/// What a job computes and sends in each of its iterations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// A model's gradients, all-reduced over the job's nodes.
    Gradients(Arc<Model>),
    /// Bursts at declared offsets on a declared period.
    Phases(Traffic),
}

impl Pattern {
    pub fn exchange(&self) -> Exchange<'_> {
        match self {
            Self::Gradients(model) => Exchange::Gradients(&model.iteration),
            Self::Phases(traffic) => Exchange::Phases(traffic),
        }
    }

    /// What it does in each iteration, as the network runs it. A scenario has no pattern that cannot be.
    pub fn as_loop(&self) -> Arc<network::Pattern> {
        Arc::new(network::Pattern::of(self.exchange()).expect("patterns are checked when a scenario is read"))
    }
}

/// A job as a training loop.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainingModel {
    pub pattern: Pattern,
    pub iterations: u64,
    /// How the compute time of an iteration varies.
    pub noise: Noise,
}

/// Every known model, in the order of the measurements.
pub fn all() -> &'static [Arc<Model>] {
    static MODELS: LazyLock<Vec<Arc<Model>>> = LazyLock::new(|| {
        let measured: Vec<Measured> = serde_json::from_str(include_str!("../models/h200-profiles.json"))
            .expect("the measurements that come with this crate are well-formed");
        measured.into_iter().map(|model| Arc::new(model.into())).collect()
    });
    &MODELS
}

pub fn named(name: &str) -> Option<Arc<Model>> {
    all().iter().find(|model| model.name == name).cloned()
}

#[derive(Deserialize)]
struct Measured {
    model: String,
    batch: u32,
    forward_ms: f64,
    backward_ms: f64,
    optimizer_ms: f64,
    /// Bytes, and milliseconds since the beginning of the iteration.
    buckets: Vec<(u64, f64)>,
}

impl From<Measured> for Model {
    fn from(measured: Measured) -> Self {
        let nanos = |ms: f64| Duration((ms * 1e6).round() as u64);
        let buckets = measured.buckets.iter();
        Self {
            name: format!("{}/{}", measured.model, measured.batch),
            iteration: Iteration {
                compute: nanos(measured.forward_ms + measured.backward_ms),
                buckets: buckets
                    .map(|(bytes, ready)| Bucket { ready: nanos(*ready), bytes: Bytes(*bytes) })
                    .collect(),
                finish: nanos(measured.optimizer_ms),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_thirteen_models_at_two_batch_sizes_each() {
        assert_eq!(all().len(), 26);
        assert_eq!(named("resnet50/512").unwrap().name, "resnet50/512");
        assert_eq!(named("resnet50"), None);
        for model in all() {
            let last = model.iteration.buckets.iter().map(|bucket| bucket.ready).max().unwrap();
            let computed = model.iteration.compute + Duration::from_millis(1);
            assert!(last <= computed, "{}: gradients are ready when compute is over", model.name);
        }
    }
}
