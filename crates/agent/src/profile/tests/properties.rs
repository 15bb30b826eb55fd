//! What holds of every input.

use proptest::prelude::*;
use rand::RngExt;
use rand_pcg::Pcg64;

use crate::profile::{Learned, NoProfile, Observer, Sample, Sending, learn};

const MS: u64 = 1_000_000;

/// Bursts of so many bytes at these milliseconds of a period, read every 5 to 10 ms.
fn bursts(period_ms: u64, bursts: &[(u64, u64, u64)], seconds: u64, seed: u64) -> Vec<Sample> {
    let mut dice = Pcg64::new(u128::from(seed), 5);
    let sent = |at: u64| -> u64 {
        let (whole, within) = (at / (period_ms * MS), at % (period_ms * MS));
        let of = |(from, length, bytes): &(u64, u64, u64)| {
            let done = within.saturating_sub(from * MS).min(length * MS);
            whole * bytes + (u128::from(*bytes) * u128::from(done) / u128::from(length * MS)) as u64
        };
        bursts.iter().map(of).sum()
    };
    let mut at = 0;
    let mut samples = Vec::new();
    while at < seconds * 1000 * MS {
        samples.push(Sample { at, bytes: sent(at) });
        at += dice.random_range(5 * MS..10 * MS);
    }
    samples
}

fn period_ms(learned: &Result<Learned, NoProfile>) -> f64 {
    learned.as_ref().map_or(0.0, |learned| learned.traffic.period().0 as f64 / 1e6)
}

#[test]
fn equal_bursts_at_unequal_distances_are_one_iteration() {
    let two = [(20, 40, 1_000_000), (100, 40, 1_000_000)];
    assert!((period_ms(&learn(&bursts(210, &two, 20, 1))) - 210.0).abs() < 1.0);
    let three = [(0, 30, 900_000), (60, 30, 900_000), (150, 30, 900_000)];
    assert!((period_ms(&learn(&bursts(300, &three, 20, 2))) - 300.0).abs() < 1.5);
}

#[test]
fn one_burst_is_not_taken_for_two_iterations() {
    for period in [23, 61, 150, 700, 2100] {
        let found = period_ms(&learn(&bursts(period, &[(3, period / 3, 5_000_000)], 20, 3)));
        assert!((found - period as f64).abs() < 0.005 * period as f64, "{period}: {found}");
    }
}

/// Of every so many iterations one sends a part of its bytes again.
fn sent_again(samples: &[Sample], period_ms: u64, bytes: u64, one_of: u64, part: f64) -> Vec<Sample> {
    let again = (part * bytes as f64) as u64;
    let more = |sample: &Sample| {
        let (whole, within) = (sample.bytes / bytes, sample.bytes % bytes);
        let now = if whole % one_of == one_of - 1 { (within as f64 * part) as u64 } else { 0 };
        Sample { bytes: sample.bytes + whole / one_of * again + now, ..*sample }
    };
    assert!(samples.last().unwrap().at / MS > 10 * period_ms);
    samples.iter().map(more).collect()
}

#[test]
fn what_is_sent_again_neither_adds_iterations_nor_blurs_them() {
    for (seed, one_of) in [(11, 3), (12, 7), (13, 20)] {
        // A small burst ahead of the main one, as most models have.
        let clean = bursts(82, &[(5, 2, 12_000), (28, 53, 1_338_000)], 20, seed);
        let found = learn(&sent_again(&clean, 82, 1_350_000, one_of, 0.07));
        assert!((period_ms(&found) - 82.0).abs() < 0.1, "one of {one_of}: {found:?}");
        let found = found.unwrap();
        let mut truth = Sending::default();
        truth.add(5.0 / 82.0..7.0 / 82.0, 12.0);
        truth.add(28.0 / 82.0..81.0 / 82.0, 1338.0);
        let displaced = truth.displacement(&Sending::of(&found.traffic));
        assert!(displaced < 0.03, "one of {one_of}: {displaced} {:?}", found.traffic);
    }
}

#[test]
fn silence_constant_traffic_and_noise_have_no_profile() {
    let steps = |of: &mut dyn FnMut(u64) -> u64| -> Vec<Sample> {
        let mut bytes = 0;
        (0..4000)
            .map(|step| {
                bytes += of(step);
                Sample { at: step * 5 * MS, bytes }
            })
            .collect()
    };
    assert_eq!(learn(&[]), Err(NoProfile::TooShort));
    assert_eq!(learn(&steps(&mut |_| 0)), Err(NoProfile::Silent));
    assert_eq!(learn(&steps(&mut |_| 125_000)), Err(NoProfile::Constant));
    for seed in 0..40 {
        let mut dice = Pcg64::new(seed, 9);
        let noise = learn(&steps(&mut |_| dice.random_range(0..250_000)));
        assert!(noise.is_err(), "white noise, seed {seed}: {noise:?}");
        let mut dice = Pcg64::new(seed, 10);
        let (mut left, mut sends) = (0, false);
        // Bursts and pauses whose lengths are as random as can be.
        let coin = learn(&steps(&mut |_| {
            if left == 0 {
                sends = !sends;
                left = 1 + (-20.0 * dice.random::<f64>().max(1e-9).ln()) as u64;
            }
            left -= 1;
            if sends { dice.random_range(100_000..150_000) } else { 0 }
        }));
        assert!(coin.is_err(), "random bursts, seed {seed}: {coin:?}");
    }
}

#[test]
fn gaps_wraps_and_new_beginnings_are_survived() {
    let mut samples = bursts(180, &[(10, 60, 40_000_000)], 40, 4);
    for sample in &mut samples {
        sample.bytes %= 1 << 32;
    }
    samples.drain(900..960);
    samples.drain(2000..2100);
    let found = learn(&samples);
    assert!((period_ms(&found) - 180.0).abs() < 1.0, "{found:?}");
    let half = samples.len() / 3;
    let base = samples[half].bytes;
    for sample in &mut samples[..half] {
        sample.bytes += base + 7_000_000_000;
    }
    let found = learn(&samples);
    assert!((period_ms(&found) - 180.0).abs() < 1.0, "{found:?}");
}

#[test]
fn an_observer_tells_what_is_new_once_and_what_has_changed_again() {
    let mut observer = Observer::default();
    let mut told = Vec::new();
    let first = bursts(120, &[(0, 50, 2_000_000)], 60, 6);
    let (after, sent) = (first.last().unwrap().at + 5 * MS, first.last().unwrap().bytes);
    let second = bursts(170, &[(0, 50, 2_000_000)], 60, 7);
    let second = second.iter().map(|sample| Sample { at: after + sample.at, bytes: sent + sample.bytes });
    for sample in first.iter().copied().chain(second) {
        if observer.feed(sample)
            && let Some(learned) = observer.look()
        {
            told.push(learned.traffic.period().0 / MS);
        }
    }
    assert!((119..=120).contains(told.first().unwrap()), "{told:?}");
    assert!((169..=170).contains(told.last().unwrap()), "{told:?}");
    assert!(told.len() <= 10, "{told:?}");
}

#[test]
fn short_iterations_take_a_closer_look() {
    let usual = std::time::Duration::from_millis(6);
    let mut observer = Observer::default();
    assert_eq!(observer.pace(usual), usual, "nothing is known");
    let mut paces = |period| {
        observer.forget();
        for sample in bursts(period, &[(1, 3, 28_000)], 8, 15) {
            if observer.feed(sample) {
                observer.look();
            }
        }
        observer.pace(usual).as_micros()
    };
    assert_eq!(paces(150), 6000);
    assert!((1700..2100).contains(&paces(15)));
}

#[test]
fn a_period_too_long_for_the_samples_kept_is_found_in_coarser_steps() {
    let mut observer = Observer::default();
    for sample in bursts(12_000, &[(0, 4_000, 90_000_000)], 240, 8) {
        if observer.feed(sample) {
            observer.look();
        }
    }
    let known = observer.known().map(|learned| learned.traffic.period().0 / MS);
    assert!(known.is_some_and(|period| (11_950..12_050).contains(&period)), "{known:?}");
}

fn any_samples() -> impl Strategy<Value = Vec<Sample>> {
    let step =
        (prop_oneof![Just(0_u64), 0..20 * MS, any::<u64>()], prop_oneof![0..100_000_u64, any::<u64>()]);
    prop::collection::vec(step, 0..400).prop_map(|steps| {
        let mut at = 0_u64;
        let sample = |(step, bytes)| {
            at = at.wrapping_add(step);
            Sample { at, bytes }
        };
        steps.into_iter().map(sample).collect()
    })
}

fn any_bursts() -> impl Strategy<Value = (u64, Vec<Sample>)> {
    (40_u64..400, 10_u64..70, any::<u64>()).prop_map(|(period, busy, seed)| {
        (period, bursts(period, &[(2, (period * busy / 100).max(5), 3_000_000)], 15, seed))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_input_makes_it_fail(samples in any_samples()) {
        if let Ok(learned) = learn(&samples) {
            prop_assert!((0.0..=1.0).contains(&learned.confidence));
            prop_assert!(learned.noise.is_finite() && learned.rates.iter().all(|rate| rate.is_finite()));
        }
    }

    #[test]
    fn when_and_at_which_count_a_counter_began_does_not_matter((period, samples) in any_bursts(), at in 0..1_u64 << 60, bytes in 0..1_u64 << 40) {
        let moved: Vec<Sample> =
            samples.iter().map(|sample| Sample { at: sample.at + at, bytes: sample.bytes + bytes }).collect();
        let (one, other) = (learn(&samples), learn(&moved));
        prop_assert!((period_ms(&one) - period as f64).abs() < 0.01 * period as f64, "{one:?}");
        let (one, other) = (one.unwrap(), other.unwrap());
        prop_assert_eq!(one.traffic, other.traffic);
        prop_assert_eq!(one.began + at, other.began);
    }

    #[test]
    fn a_link_that_is_so_many_times_as_fast_gives_so_many_times_the_rates((_, samples) in any_bursts(), times in 2_u64..50) {
        let faster: Vec<Sample> =
            samples.iter().map(|sample| Sample { bytes: sample.bytes * times, ..*sample }).collect();
        let (one, other) = (learn(&samples).unwrap(), learn(&faster).unwrap());
        prop_assert_eq!(one.traffic.period(), other.traffic.period());
        for (one, other) in one.traffic.phases().iter().zip(other.traffic.phases()) {
            prop_assert_eq!(one.offset, other.offset);
            let ratio = other.rate.0 as f64 / one.rate.0 as f64;
            prop_assert!((ratio / times as f64 - 1.0).abs() < 1e-3);
        }
    }
}
