//! The network against a second simulator, which knows nothing of events: it moves three jobs on by a twentieth of a
//! millisecond at a time.
//!
//! Where both agree and a published table does not, the difference is not in how time is counted here.

mod network_common;

use metronome_core::model::units::{Duration, Instant, Share};
use metronome_core::network::{Network, Training};
use metronome_core::traffic::{Follows, TrafficPolicy};
use rand::RngExt;
use rand_pcg::Pcg64;

use network_common::*;

/// Milliseconds.
const STEP: f64 = 0.05;
const FROM: f64 = 12_000.0;
const TO: f64 = 60_000.0;

const SETS: u64 = 24;
const LOAD: f64 = 0.8;

/// Three loops on a link, in milliseconds, with periods near 1 : 2 : 0.5.
struct Set {
    computes: [f64; 3],
    sends: [f64; 3],
    starts: [f64; 3],
}

fn drawn(set: u64) -> Set {
    let mut dice = Pcg64::new(u128::from(set), 17);
    let base = 100.0 * 10_f64.powf(dice.random());
    let periods = [1.0, 2.0, 0.5].map(|ratio| base * ratio * dice.random_range(0.97..1.03));
    let parts: [f64; 3] = std::array::from_fn(|_| dice.random_range(0.5..1.5));
    let sends = std::array::from_fn(|at| periods[at] * LOAD * parts[at] / parts.iter().sum::<f64>());
    let computes = std::array::from_fn(|at| periods[at] - sends[at]);
    Set { computes, sends, starts: periods.map(|period| period * dice.random::<f64>()) }
}

/// A loop as the clock sees it.
#[derive(Clone, Copy)]
enum Does {
    Computes { left: f64 },
    Sends { left: f64 },
}

/// Iterations of each between the two times, parts of one counted.
fn by_the_clock(set: &Set, follows: Follows) -> [f64; 3] {
    let mut does: [Does; 3] =
        std::array::from_fn(|at| Does::Computes { left: set.starts[at] + set.computes[at] });
    let mut done = [0.0; 3];
    let steps = (TO / STEP) as u64;
    for step in 0..steps {
        let counts = step as f64 * STEP >= FROM;
        let gets = shares(&does, follows);
        for at in 0..3 {
            let period = set.computes[at] + set.sends[at];
            let passed = match &mut does[at] {
                Does::Computes { left } => (left, STEP),
                Does::Sends { left } => (left, STEP * gets[at]),
            };
            let moved = passed.1.min(*passed.0);
            *passed.0 -= passed.1;
            done[at] += if counts { moved / period } else { 0.0 };
            does[at] = match does[at] {
                Does::Computes { left } if left <= 0.0 => Does::Sends { left: set.sends[at] + left },
                Does::Sends { left } if left <= 0.0 => Does::Computes { left: set.computes[at] + left },
                same => same,
            };
        }
    }
    done
}

/// The part of the link that each has: the same for all who send, or for those of them with the fewest bytes left.
fn shares(does: &[Does; 3], follows: Follows) -> [f64; 3] {
    let class = does.map(|does| match does {
        Does::Computes { .. } => usize::MAX,
        Does::Sends { .. } if follows == Follows::Nothing => 0,
        Does::Sends { left } => [12.0, 40.0, 120.0].iter().filter(|bound| left >= **bound).count(),
    });
    let first = class.into_iter().min().unwrap_or_default();
    let together = class.iter().filter(|class| **class == first).count() as f64;
    class.map(|class| if class == first && class != usize::MAX { 1.0 / together } else { 0.0 })
}

fn slowdown_by_the_clock(set: &Set, follows: Follows) -> f64 {
    let done = by_the_clock(set, follows);
    let of_job = |at: usize| (TO - FROM) / done[at] / (set.computes[at] + set.sends[at]);
    (0..3).map(of_job).sum::<f64>() / 3.0
}

/// The same from the network that decisions look ahead with, without a floor for the lower classes.
fn slowdown_by_events(set: &Set, follows: Follows) -> f64 {
    let nanos = |ms: f64| (ms * 1e6) as u64;
    let mut network = Network::new(&rates(1), sharing(Share::NONE));
    let mut in_time = [0, 1, 2];
    in_time.sort_by(|one, other| set.starts[*one].total_cmp(&set.starts[*other]));
    for at in in_time {
        let pattern = burst(Duration(nanos(set.computes[at])), Duration(nanos(set.sends[at])));
        let lane = TrafficPolicy { follows, ..TrafficPolicy::default() };
        let start = Instant(nanos(set.starts[at]));
        network.start(start, at, Training { traffic: lane, ..training(&pattern, u64::MAX) });
    }
    let ended = |network: &mut Network, at: usize| {
        let done = network.result(at);
        let mean = done.mean.map_or(0.0, |mean| mean.0 as f64 / 1e6);
        (set.starts[at] + mean * done.iterations as f64, done.iterations as f64)
    };
    network.run_until(Instant(nanos(FROM)));
    let begun: [(f64, f64); 3] = std::array::from_fn(|at| ended(&mut network, at));
    network.run_until(Instant(nanos(TO)));
    let of_job = |at: usize| {
        let (end, count) = ended(&mut network, at);
        (end - begun[at].0) / (count - begun[at].1) / (set.computes[at] + set.sends[at])
    };
    (0..3).map(of_job).sum::<f64>() / 3.0
}

/// Of each set, and over all of them far better: a minute may begin in another order of bursts after a rounded step, and
/// what is cut off at both its ends cancels out.
fn agree(follows: Follows) {
    let sets: Vec<Set> = (0..SETS).map(drawn).collect();
    let clock: Vec<f64> = sets.iter().map(|set| slowdown_by_the_clock(set, follows)).collect();
    let events: Vec<f64> = sets.iter().map(|set| slowdown_by_events(set, follows)).collect();
    let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len() as f64;
    println!("{follows:?}: {:.4} by the clock, {:.4} by events", mean(&clock), mean(&events));
    let apart = clock.iter().zip(&events).map(|(clock, events)| (clock - events).abs());
    assert!(apart.clone().all(|apart| apart < 0.05), "{:?}", apart.collect::<Vec<f64>>());
    assert!((mean(&clock) - mean(&events)).abs() < 0.003, "{} {}", mean(&clock), mean(&events));
}

#[test]
fn fair_sharing_costs_the_same_by_the_clock() {
    agree(Follows::Nothing);
}

#[test]
fn fewest_bytes_first_costs_the_same_by_the_clock() {
    agree(Follows::BytesLeft);
}
