//! Jobs on links as nobody would want them: hundreds on one, more than it carries, periods that have nothing in common.
//! Decisions take bounded work, and never make things worse than leaving the network alone.

use std::sync::Arc;

use metronome_core::model::id::{IdVec, LinkId};
use metronome_core::model::profile::{Phase, Traffic, ring_load};
use metronome_core::model::units::{Bandwidth, Bytes, Duration, Instant, Share};
use metronome_core::network::{Network, Pattern, Route, Sharing, Training, alone};
use metronome_core::traffic::TrafficPolicy;
use metronome_core::traffic::choose::{Stake, choose};
use metronome_core::traffic::contention_graph::Flow;
use metronome_core::traffic::slowdown_model::{Care, SlowdownModel};
use metronome_core::tuning::TrafficTuning;
use metronome_sim::model;
use metronome_sim::noise::Noise;
use rand::RngExt;
use rand_pcg::Pcg64;

const GBPS: u64 = 1_000_000_000;
const ALIKE: Stake = Stake { counts: 1.0, tier: 0, is_first: false };

type Rates = IdVec<LinkId, Bandwidth>;

fn links(rates: impl IntoIterator<Item = u64>) -> Rates {
    rates.into_iter().map(|gbps| Bandwidth(gbps * GBPS)).collect()
}

fn flow(pattern: Pattern, route: Route, rates: &Rates) -> Flow {
    let alone = alone(&pattern, &route, rates);
    Flow { fingerprint: pattern.fingerprint(), pattern: Arc::new(pattern), route, alone }
}

fn of_model(index: usize, over: &[u32], rates: &Rates) -> Flow {
    let pattern = Pattern::buckets(&model::all()[index].iteration).expect("a measured model can be run");
    let loads: Vec<(LinkId, f64)> = over.iter().map(|link| (LinkId(*link), ring_load(8))).collect();
    flow(pattern, Route::over(&loads), rates)
}

/// Lanes as decisions choose them, among equals.
fn chosen(flows: &[Flow], rates: &Rates) -> Vec<TrafficPolicy> {
    let mut foresight = SlowdownModel::default();
    choose(&TrafficTuning::DEFAULT, &vec![ALIKE; flows.len()], |lanes| {
        let in_lanes: Vec<(&Flow, TrafficPolicy)> = flows.iter().zip(lanes.iter().copied()).collect();
        foresight.slowdowns(&in_lanes, Care::Look, |link| rates[link])
    })
}

/// How much slower than alone they are on average, in a network with noise of its own.
fn mean_slowdown(flows: &[Flow], lanes: &[TrafficPolicy], rates: &Rates, seed: u64) -> f64 {
    let mut network = Network::new(rates, Sharing::default());
    let mut dice = Pcg64::new(u128::from(seed), 7);
    let start = |flow: &Flow| Instant((flow.alone.0 as f64 * dice.random::<f64>()) as u64);
    let mut starts: Vec<(Instant, usize)> = flows.iter().map(start).zip(0..).collect();
    starts.sort_unstable();
    for (start, key) in starts {
        let (pattern, route) = (flows[key].pattern.clone(), flows[key].route.clone());
        let jitter = Noise::Gaussian(Share(10_000)).stream(seed * 16 + key as u64);
        network.start(
            start,
            key,
            Training { pattern, route, iterations: u64::MAX, jitter, traffic: lanes[key] },
        );
    }
    network.run_until(Instant::from_secs(60));
    let slowdown = |(key, flow): (usize, &Flow)| {
        let mean = network.result(key).mean.unwrap_or(Duration::MINUTE);
        mean.0 as f64 / flow.alone.0 as f64
    };
    flows.iter().enumerate().map(slowdown).sum::<f64>() / flows.len() as f64
}

/// Random sets of two to six models, each over some of so many links; the mean under chosen lanes over that of none, and
/// the worst of any set.
fn against_nothing(sets: u64, links_of: &[u64], most_links: usize) -> (f64, f64) {
    let rates = links(links_of.iter().copied());
    let (mut ours, mut fair, mut worst) = (0.0, 0.0, 0.0_f64);
    for seed in 0..sets {
        let mut dice = Pcg64::new(u128::from(seed), 3);
        let count = dice.random_range(2..=6);
        let flows: Vec<Flow> = (0..count)
            .map(|_| {
                let from = dice.random_range(0..links_of.len());
                let over = dice.random_range(1..=most_links);
                let over: Vec<u32> = (0..over).map(|hop| ((from + hop) % links_of.len()) as u32).collect();
                of_model(dice.random_range(0..model::all().len()), &over, &rates)
            })
            .collect();
        let lanes = chosen(&flows, &rates);
        let nothing = vec![TrafficPolicy::default(); flows.len()];
        let one = mean_slowdown(&flows, &nothing, &rates, seed);
        let other = if lanes == nothing { one } else { mean_slowdown(&flows, &lanes, &rates, seed) };
        (ours, fair, worst) = (ours + other, fair + one, worst.max(other / one));
    }
    println!("{sets} sets over {links_of:?} Gbps: {:.4} of fair sharing, at worst {worst:.4}", ours / fair);
    (ours / fair, worst)
}

#[test]
fn lanes_are_never_worse_than_leaving_links_alone() {
    let cases: [(&[u64], usize); 4] = [(&[100], 1), (&[400], 1), (&[100, 150, 200], 3), (&[25], 1)];
    for (rates, most_links) in cases {
        let (mean, worst) = against_nothing(50, rates, most_links);
        assert!(mean <= 1.005, "{rates:?}: {mean:.4} of fair sharing");
        // One set may be predicted wrongly, by as much as predictions are wrong.
        assert!(worst <= 1.055, "{rates:?}: {worst:.4} of fair sharing in one set");
    }
}

#[test]
fn hundreds_on_one_link_share_it_fairly() {
    let rates = links([1000]);
    let flows: Vec<Flow> = (0..300).map(|index| of_model(index % 26, &[0], &rates)).collect();
    let asked: Vec<(&Flow, TrafficPolicy)> =
        flows.iter().map(|flow| (flow, TrafficPolicy::default())).collect();
    let slowdowns = SlowdownModel::default().slowdowns(&asked, Care::Look, |link| rates[link]);
    let asks = |flow: &Flow| flow.pattern.bytes() * ring_load(8) * 8.0 / flow.alone.as_secs_f64();
    let busy = flows.iter().map(asks).sum::<f64>() / rates[LinkId(0)].0 as f64;
    assert!(busy > 5.0 && slowdowns.iter().all(|slowdown| (slowdown - busy).abs() < 1e-6), "{busy}");
    assert!(chosen(&flows, &rates).iter().all(TrafficPolicy::is_default));
}

#[test]
fn what_a_prediction_runs_ahead_is_bounded_whatever_the_periods() {
    let rates = links([100, 100]);
    let once = |period: Duration| Pattern::phases(period, &[(Duration::ZERO, Bytes(1))]).unwrap();
    let shared = || Route::over(&[(LinkId(0), 1.0)]);
    let quick = flow(once(Duration(1)), shared(), &rates);
    let slow = flow(once(Duration(u64::MAX / 4)), shared(), &rates);
    let asked = [(&quick, TrafficPolicy::default()), (&slow, TrafficPolicy::default())];
    let slowdowns = SlowdownModel::default().slowdowns(&asked, Care::Look, |link| rates[link]);
    assert_eq!(slowdowns, [1.0, 1.0]);
}

#[test]
fn whoever_waits_for_a_link_that_is_down_slows_nobody() {
    let rates = links([100, 0]);
    let waits = of_model(3, &[0, 1], &rates);
    let goes = of_model(3, &[0], &rates);
    assert!(waits.is_stalled() && !goes.is_stalled());
    let asked = [(&waits, TrafficPolicy::default()), (&goes, TrafficPolicy::default())];
    assert_eq!(SlowdownModel::default().slowdowns(&asked, Care::Look, |link| rates[link]), [1.0, 1.0]);
}

#[test]
fn loops_that_make_no_sense_are_refused() {
    let phase = |length| Phase { offset: Duration::ZERO, length, rate: Bandwidth(GBPS) };
    let second = Duration::SECOND;
    assert!(Traffic::new(Duration::ZERO, vec![phase(second)]).is_err());
    assert!(Traffic::new(second, vec![phase(second.times(2))]).is_err());
    let for_ever = Traffic::new(Duration(u64::MAX), vec![phase(Duration(u64::MAX))]).unwrap();
    let endless = flow(Pattern::traffic(&for_ever).unwrap(), Route::over(&[(LinkId(0), 1.0)]), &links([100]));
    let asked = [(&endless, TrafficPolicy::default()), (&endless, TrafficPolicy::default())];
    assert_eq!(SlowdownModel::default().slowdowns(&asked, Care::Look, |_| Bandwidth(100 * GBPS)).len(), 2);
}
