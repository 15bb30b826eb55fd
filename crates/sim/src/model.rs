//! Models: what one iteration of a training job computes and sends, as measured on an H200.

pub mod alone;

use std::sync::{Arc, LazyLock};

use metronome_core::profile::Traffic;
use metronome_core::units::{Bandwidth, Bytes, Duration};
use serde::Deserialize;

use crate::network::Noise;

/// One iteration: compute, during which gradients become ready bucket by bucket and are sent in order; then, when
/// compute and sending are both over, the optimiser's step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Iteration {
    /// Forward and backward pass.
    pub compute: Duration,
    pub buckets: Vec<Bucket>,
    /// The optimiser's step, after everything else.
    pub finish: Duration,
}

/// Gradients that become ready together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Since the beginning of the iteration.
    pub ready: Duration,
    pub bytes: Bytes,
}

impl Iteration {
    pub fn bytes(&self) -> Bytes {
        self.buckets.iter().map(|bucket| bucket.bytes).sum()
    }

    /// How long an iteration takes alone, where each byte of gradient puts `load` bytes on the narrowest link of its
    /// way, of that rate. Nothing is sent where the load is zero.
    pub fn alone(&self, load: f64, rate: Bandwidth) -> Duration {
        let mut sent = 0.0_f64;
        if load > 0.0 {
            for bucket in &self.buckets {
                let nanos = bucket.bytes.0 as f64 * load * 8e9 / rate.0 as f64;
                sent = sent.max(bucket.ready.0 as f64) + nanos;
            }
        }
        Duration(self.compute.0.max(sent.round() as u64)) + self.finish
    }
}

/// The bytes that a ring all-reduce over so many nodes puts on each of its hops, for each byte of gradient.
pub fn ring_load(nodes: u32) -> f64 {
    if nodes < 2 { 0.0 } else { 2.0 * f64::from(nodes - 1) / f64::from(nodes) }
}

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

    #[test]
    fn alone_an_iteration_waits_for_the_slower_of_compute_and_sending() {
        let ms = Duration::from_millis;
        let bucket = |ready, bytes| Bucket { ready: ms(ready), bytes: Bytes(bytes) };
        let iteration = Iteration {
            compute: ms(100),
            buckets: vec![bucket(50, 10_000_000), bucket(90, 10_000_000)],
            finish: ms(5),
        };
        // 10 MB take 20 ms at 4 Gbps and a load of 1.
        assert_eq!(iteration.alone(1.0, Bandwidth(4_000_000_000)), ms(115));
        assert_eq!(iteration.alone(0.0, Bandwidth(4_000_000_000)), ms(105));
        assert_eq!(ring_load(1), 0.0);
        assert_eq!(ring_load(4), 1.5);
    }
}
