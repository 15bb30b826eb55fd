//! What fair sharing costs: three jobs on one link at 80 % load, as measured before this simulator existed.

mod network_common;

use metronome_core::network::{Network, Training};
use metronome_core::units::{Duration, Instant, Share};
use metronome_sim::noise::Noise;
use rand::RngExt;
use rand_pcg::Pcg64;

use network_common::*;

const SETS: u64 = 400;
const LOAD: f64 = 0.8;

#[derive(Clone, Copy, Debug)]
enum Periods {
    Equal,
    NearHarmonic,
    Random,
}

/// Periods in nanoseconds.
fn periods(kind: Periods, dice: &mut Pcg64) -> [f64; 3] {
    let mut log_uniform = || 100e6 * 10_f64.powf(dice.random::<f64>());
    match kind {
        Periods::Equal => [log_uniform(); 3],
        Periods::Random => [log_uniform(), log_uniform(), log_uniform()],
        Periods::NearHarmonic => {
            let base = log_uniform();
            [1.0, 2.0, 0.5].map(|ratio| base * ratio * dice.random_range(0.97..1.03))
        }
    }
}

/// When the last whole iteration by now had ended, and how many there were.
fn ended(network: &mut Network, key: usize, start: Instant) -> (f64, f64) {
    let done = network.result(key);
    let mean = done.mean.map_or(0.0, |mean| mean.0 as f64);
    (start.0 as f64 + mean * done.iterations as f64, done.iterations as f64)
}

/// Mean over three jobs of iteration time over alone, in a minute without its first fifth.
fn slowdown(kind: Periods, noise: Share, set: u64) -> f64 {
    let mut dice = Pcg64::new(u128::from(set), 11);
    let periods = periods(kind, &mut dice);
    let parts: [f64; 3] = std::array::from_fn(|_| dice.random_range(0.5..1.5));
    let starts: [Instant; 3] = periods.map(|period| Instant((period * dice.random::<f64>()) as u64));
    let mut network = network(1);
    let mut in_time = [0, 1, 2];
    in_time.sort_by_key(|key| starts[*key]);
    for key in in_time {
        let sends = periods[key] * LOAD * parts[key] / parts.iter().sum::<f64>();
        let pattern = burst(Duration((periods[key] - sends) as u64), Duration(sends as u64));
        let jitter = Noise::Gaussian(noise).stream(set * 3 + key as u64);
        network.start(starts[key], key, Training { jitter, ..training(&pattern, u64::MAX) });
    }
    network.run_until(Instant::from_secs(12));
    let begun: [(f64, f64); 3] = std::array::from_fn(|key| ended(&mut network, key, starts[key]));
    network.run_until(Instant::from_secs(60));
    let of_job = |key: usize| {
        let (end, count) = ended(&mut network, key, starts[key]);
        (end - begun[key].0) / (count - begun[key].1) / periods[key]
    };
    (0..3).map(of_job).sum::<f64>() / 3.0
}

fn mean_slowdown(kind: Periods, noise: Share) -> f64 {
    (0..SETS).map(|set| slowdown(kind, noise, set)).sum::<f64>() / SETS as f64
}

#[test]
fn fair_sharing_costs_what_was_measured() {
    let rows = [
        (Periods::Equal, 0, Some(1.155), 0.03),
        (Periods::Equal, 10_000, Some(1.146), 0.03),
        (Periods::Equal, 20_000, Some(1.169), 0.03),
        (Periods::NearHarmonic, 0, None, 0.01),
        (Periods::NearHarmonic, 10_000, None, 0.01),
        (Periods::NearHarmonic, 20_000, Some(1.159), 0.01),
        (Periods::Random, 0, None, 0.01),
        (Periods::Random, 10_000, None, 0.01),
        (Periods::Random, 20_000, Some(1.159), 0.01),
    ];
    let mut wrong = Vec::new();
    for (kind, noise, measured, tolerance) in rows {
        let found = mean_slowdown(kind, Share(noise));
        println!("{:<14} {:>3} %  {found:.4}  {measured:?}", format!("{kind:?}"), noise / 10_000);
        if measured.is_some_and(|measured: f64| (found - measured).abs() > tolerance) {
            wrong.push((kind, noise, found));
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}
