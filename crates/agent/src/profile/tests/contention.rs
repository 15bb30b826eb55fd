//! Jobs that exchange their gradients in buckets of equal size and were never alone on their link.

use metronome_core::model::profile::{Bucket, Iteration};
use metronome_core::model::units::{Bytes, Duration, Instant};

use super::world::{LINK, Model, Ring, read, train};
use crate::profile::learn;

const LASTS: Instant = Instant(8_000_000_000);

/// Two members exchange as many bytes as there are gradients.
const MEMBERS: u32 = 2;

const BUCKETS: u64 = 6;

/// A job whose last two thirds of compute are the backward pass, with a bucket at the end of each layer.
fn bucketed(name: &str, compute_ms: u64, bytes: u64) -> Model {
    let ready = |layer: u64| Duration::from_millis(compute_ms / 3 + compute_ms * 2 / 3 * layer / BUCKETS);
    let buckets = (1..=BUCKETS).map(|layer| Bucket { ready: ready(layer), bytes: Bytes(bytes / BUCKETS) });
    let compute = Duration::from_millis(compute_ms);
    let iteration = Iteration { compute, buckets: buckets.collect(), finish: Duration::from_millis(2) };
    Model { name: name.into(), iteration }
}

/// An iteration without others, in nanoseconds: the last bucket is sent when the compute is over, unless all take longer.
fn alone(model: &Model) -> f64 {
    let compute = model.iteration.compute.0 as f64;
    let (first, all) = (
        compute / 3.0 * (1.0 + 2.0 / BUCKETS as f64),
        model.iteration.bytes().0 as f64 * 8e9 / LINK.0 as f64,
    );
    (first + all).max(compute + all / BUCKETS as f64) + model.iteration.finish.0 as f64
}

/// What is learned of each job within eight seconds, at a link that all share.
fn judge(models: &[Model], max_period_error: f64) {
    let rings: Vec<Ring> = models.iter().map(|model| Ring { model, members: MEMBERS }).collect();
    for seed in 1..=5 {
        for (model, trained) in models.iter().zip(train(&rings, LASTS, seed)) {
            let learned = learn(&read(&trained.sent, LASTS, 5.0..7.5, seed)).unwrap();
            let (bytes, name) = (model.iteration.bytes().0 as f64, &model.name);
            let bytes_error = learned.bytes / bytes - 1.0;
            assert!((0.0..0.04).contains(&bytes_error), "{name}, seed {seed}: bytes off by {bytes_error}");
            let found = learned.alone(LINK.0 as f64 / 8e9).unwrap();
            let error = found.period / alone(model) - 1.0;
            assert!(error.abs() < max_period_error, "{name}, seed {seed}: {found:?}, off by {error}");
            assert!(found.at_least < 1.02 * alone(model), "{name}, seed {seed}: {found:?}");
        }
    }
}

#[test]
fn a_bucket_is_not_taken_for_an_iteration_beside_five_other_jobs() {
    let model = |job: u64| match job / 2 {
        0 => bucketed("200 ms", 194, 1_000_000),
        1 => bucketed("250 ms", 243, 1_250_000),
        _ => bucketed("300 ms", 293, 1_000_000),
    };
    // Their bursts run into each other, so that pauses are seldom seen.
    judge(&(0..6).map(model).collect::<Vec<_>>(), 0.45);
}

#[test]
fn jobs_of_one_model_that_always_meet_are_known_as_they_would_be_alone() {
    let twins = [bucketed("first", 135, 2_250_000), bucketed("second", 135, 2_250_000)];
    judge(&twins, 0.05);
}

#[test]
fn two_jobs_with_iterations_of_different_length_are_known_as_they_would_be_alone() {
    judge(&[bucketed("short", 114, 900_000), bucketed("long", 162, 2_700_000)], 0.05);
}
