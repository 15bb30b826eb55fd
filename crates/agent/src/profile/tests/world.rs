//! Training loops over a link of the fluid network, and counters that are read as an agent reads them.

use std::sync::Arc;

use metronome_core::model::id::{IdVec, LinkId};
use metronome_core::model::profile::{Bucket, Iteration, ring_load};
use metronome_core::model::units::{Bandwidth, Bytes, Duration, Instant};
use metronome_core::network::{Jitter, LinkTransmission, Network, Pattern, Route, Sharing, Training};
use metronome_core::traffic::TrafficPolicy;
use rand::{Rng, RngExt};
use rand_pcg::Pcg64;
use serde::Deserialize;

use crate::profile::Sample;

/// All rates and bytes of a cluster of 100 Gbit/s are divided by this.
const SCALE: u64 = 500;
pub(super) const LINK: Bandwidth = Bandwidth(100_000_000_000 / SCALE);

#[derive(Clone, Debug)]
pub(super) struct Model {
    pub(super) name: String,
    pub(super) iteration: Iteration,
}

#[derive(Deserialize)]
struct Measured {
    model: String,
    batch: u32,
    forward_ms: f64,
    backward_ms: f64,
    optimizer_ms: f64,
    buckets: Vec<(u64, f64)>,
}

/// Thirteen models at two batch sizes each, scaled.
pub(super) fn models() -> Vec<Model> {
    let text = include_str!("../../../../sim/models/h200-profiles.json");
    let measured: Vec<Measured> = serde_json::from_str(text).unwrap();
    let nanos = |ms: f64| Duration((ms * 1e6) as u64);
    let bucket = |(bytes, ready): &(u64, f64)| Bucket { ready: nanos(*ready), bytes: Bytes(bytes / SCALE) };
    measured
        .into_iter()
        .map(|measured| Model {
            name: format!("{}/{}", measured.model, measured.batch),
            iteration: Iteration {
                compute: nanos(measured.forward_ms + measured.backward_ms),
                buckets: measured.buckets.iter().map(bucket).collect(),
                finish: nanos(measured.optimizer_ms),
            },
        })
        .collect()
}

#[derive(Clone, Debug)]
struct Normal(Pcg64, f64);

impl Normal {
    fn deviate(dice: &mut impl Rng) -> f64 {
        (0..12).map(|_| dice.random::<f64>()).sum::<f64>() - 6.0
    }
}

impl Jitter for Normal {
    fn draw(&mut self) -> f64 {
        (1.0 + self.1 * Self::deviate(&mut self.0)).max(self.least())
    }

    fn least(&self) -> f64 {
        0.5
    }

    fn again(&self) -> Box<dyn Jitter> {
        Box::new(self.clone())
    }
}

/// A ring of so many members.
pub(super) struct Ring<'a> {
    pub(super) model: &'a Model,
    pub(super) members: u32,
}

/// What was sent by each, and how long its iterations took on average.
pub(super) struct Trained {
    pub(super) sent: Vec<LinkTransmission>,
    pub(super) period: f64,
}

/// Rings that share one link, for so long, with compute that varies by one percent.
pub(super) fn train(rings: &[Ring], lasts: Instant, seed: u64) -> Vec<Trained> {
    let mut rates: IdVec<LinkId, Bandwidth> = IdVec::new();
    rates.push(LINK);
    let mut network = Network::new(&rates, Sharing::default());
    network.watch(LinkId(0));
    for (key, ring) in rings.iter().enumerate() {
        let jitter = Normal(Pcg64::new(u128::from(seed), key as u128), 0.01);
        let training = Training {
            pattern: Arc::new(Pattern::buckets(&ring.model.iteration).unwrap()),
            route: Route::over(&[(LinkId(0), ring_load(ring.members))]),
            iterations: u64::MAX,
            jitter: Some(Box::new(jitter)),
            traffic: TrafficPolicy::default(),
        };
        network.start(Instant(0), key, training);
    }
    assert_eq!(network.run_until(lasts), None);
    let all = network.watched();
    let of = |key: usize| all.iter().filter(|sent| sent.key == key).copied().collect();
    (0..rings.len())
        .map(|key| Trained { sent: of(key), period: network.result(key).mean.unwrap().0 as f64 })
        .collect()
}

/// How a counter is read: every so often, a little late, and what is sent comes in packets and bunches.
pub(super) fn read(
    sent: &[LinkTransmission],
    lasts: Instant,
    step_ms: std::ops::Range<f64>,
    seed: u64,
) -> Vec<Sample> {
    let mut dice = Pcg64::new(u128::from(seed), 77);
    let mut samples = Vec::new();
    let (mut at, mut before, mut overhead, mut next) = (0.0, 0.0, 0.0, 0);
    let mut done = 0.0;
    while at < lasts.0 as f64 {
        // Segments wait in queues for a little while.
        let seen = at - 0.3e6 * dice.random::<f64>();
        while next < sent.len() && sent[next].to.0 as f64 <= seen {
            done += sent[next].bytes;
            next += 1;
        }
        let open = sent.get(next).map_or(0.0, |open| {
            let part = (seen - open.from.0 as f64) / (open.to.0 - open.from.0) as f64;
            open.bytes * part.clamp(0.0, 1.0)
        });
        let clean: f64 = f64::max(done + open, before);
        // Acknowledgements, and now and then a segment that is sent again.
        overhead += (clean - before) * 0.02 * dice.random::<f64>();
        before = clean;
        let bytes = ((clean + overhead) / 1500.0) as u64 * 1500 + 1_000_000;
        samples.push(Sample { at: 1_700_000_000_000_000_000 + at as u64, bytes });
        at += dice.random_range(step_ms.clone()) * 1e6;
    }
    samples
}
