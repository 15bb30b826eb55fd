//! Whole runs of random jobs over random links: bytes are conserved, short cuts agree with the long way round, and
//! nothing depends on who looks, or when.

mod network_common;

use std::sync::Arc;

use metronome_core::model::id::LinkId;
use metronome_core::model::profile::{Bucket, Iteration};
use metronome_core::model::units::{Bytes, Duration, Instant, Share};
use metronome_core::network::{Completion, Network, Pattern, Route, Training};
use metronome_core::traffic::{Follows, Pace, TrafficPolicy, Turn, Watch};
use metronome_sim::noise::Noise;
use proptest::prelude::*;

use network_common::*;

const LINKS: usize = 6;

#[derive(Clone, Debug)]
struct Job {
    start: u64,
    training: Training,
}

fn pattern() -> impl Strategy<Value = Arc<Pattern>> {
    let buckets = proptest::collection::vec((0..60_u64, 100_000..20_000_000_u64), 1..6);
    (20..100_u64, buckets, 0..5_u64).prop_map(|(compute, buckets, finish)| {
        let bucket =
            |(ready, bytes): (u64, u64)| Bucket { ready: ms(ready.min(compute)), bytes: Bytes(bytes) };
        let buckets = buckets.into_iter().map(bucket).collect();
        Arc::new(Pattern::buckets(&Iteration { compute: ms(compute), buckets, finish: ms(finish) }).unwrap())
    })
}

fn lane() -> impl Strategy<Value = TrafficPolicy> {
    let rules = vec![Follows::Nothing, Follows::BytesSent, Follows::BytesLeft, Follows::PartLeft];
    let watch = proptest::option::of((0..20_u64, 0..500_u64));
    let turn = proptest::option::of((1..200_u64, 0..200_u64, watch));
    let pace = proptest::option::of((50..200_u64, 0..200_u64));
    let all = (0..3_u8, 1..4_u32, proptest::sample::select(rules), turn, pace);
    all.prop_map(|(class, weight, follows, turn, pace)| {
        let watch = |(tolerance, pause)| Watch { tolerance: ms(tolerance), pause: ms(pause) };
        let turn = turn.map(|(period, offset, watched)| Turn {
            period: ms(period),
            offset: ms(offset),
            watch: watched.map(watch),
        });
        let pace = pace.map(|(period, offset)| Pace {
            turn: Turn { period: ms(period), offset: ms(offset), watch: None },
            holds_by_itself: None,
        });
        TrafficPolicy { class, weight, follows, turn, pace, ..TrafficPolicy::default() }
    })
}

fn job(noise: Share) -> impl Strategy<Value = Job> {
    let route = proptest::collection::btree_map(0..LINKS as u32, 1..8_u32, 0..3);
    (0..100_u64, pattern(), route, 1..60_u64, any::<u64>(), lane()).prop_map(
        move |(start, pattern, route, iterations, seed, lane)| {
            let links: Vec<(LinkId, f64)> =
                route.into_iter().map(|(link, load)| (LinkId(link), f64::from(load) / 4.0)).collect();
            let (route, jitter) = (Route::over(&links), Noise::Gaussian(noise).stream(seed));
            Job { start, training: Training { pattern, route, iterations, jitter, traffic: lane } }
        },
    )
}

fn jobs(noise: Share) -> impl Strategy<Value = Vec<Job>> {
    proptest::collection::vec(job(noise), 1..8)
}

/// Starts every job at its time; returns all completions.
fn run_all(network: &mut Network, jobs: &[Job]) -> Vec<Completion> {
    let mut in_time: Vec<usize> = (0..jobs.len()).collect();
    in_time.sort_by_key(|key| jobs[*key].start);
    let mut over = Vec::new();
    for key in in_time {
        while let Some(completion) = network.run_until(at_ms(jobs[key].start)) {
            over.push(completion);
        }
        network.start(at_ms(jobs[key].start), key, jobs[key].training.clone());
    }
    over.extend(run(network));
    over
}

/// What jobs that have run to their end have put on each link.
fn expected(jobs: &[Job]) -> Vec<f64> {
    let mut bytes = vec![0.0; LINKS];
    for Job { training, .. } in jobs {
        for (link, load) in training.route.links() {
            bytes[link.0 as usize] += load * training.pattern.bytes() * training.iterations as f64;
        }
    }
    bytes
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn links_carry_what_was_sent_and_no_more_than_they_can(jobs in jobs(Share(30_000))) {
        let mut network = network(LINKS);
        network.record_loads(ms(10));
        let over = run_all(&mut network, &jobs);
        prop_assert_eq!(over.len(), jobs.len());
        let (carried, loads) = (network.carried(), network.loads().unwrap());
        for (link, bytes) in expected(&jobs).into_iter().enumerate() {
            let link = LinkId(link as u32);
            prop_assert!(close(carried[link], bytes), "{} and {}", carried[link], bytes);
            prop_assert!(close(loads.bins(link).iter().sum(), bytes));
            // A burst ends at the nearest nanosecond, and there are at most a few bursts a bin.
            let most = loads.width().0 as f64 + 100.0;
            prop_assert!(loads.bins(link).iter().all(|bin| *bin <= most));
        }
    }

    #[test]
    fn skipping_what_repeats_changes_nothing(jobs in jobs(Share::NONE)) {
        let (mut quick, mut exact) = (network(LINKS), network(LINKS));
        exact.record_loads(ms(100));
        prop_assert_eq!(run_all(&mut quick, &jobs), run_all(&mut exact, &jobs));
        let (quick, exact) = (quick.carried(), exact.carried());
        prop_assert!(quick.iter().all(|(link, bytes)| close(*bytes, exact[link])));
    }

    #[test]
    fn looking_changes_nothing(jobs in jobs(Share(10_000)), stride in 1..400_u64) {
        let mut left_alone = network(LINKS);
        let expected = run_all(&mut left_alone, &jobs);
        let mut watched = network(LINKS);
        let mut over = Vec::new();
        let mut waiting: Vec<usize> = (0..jobs.len()).collect();
        waiting.sort_by_key(|key| std::cmp::Reverse(jobs[*key].start));
        for now in 0..100 {
            over.extend(std::iter::from_fn(|| watched.run_until(at_ms(now))));
            while waiting.last().is_some_and(|key| jobs[*key].start == now) {
                let key = waiting.pop().unwrap();
                watched.start(at_ms(now), key, jobs[key].training.clone());
            }
        }
        for look in 1.. {
            over.extend(std::iter::from_fn(|| watched.run_until(at_ms(100 + look * stride))));
            if over.len() == jobs.len() {
                break;
            }
            watched.carried();
        }
        prop_assert_eq!(over, expected);
    }

    #[test]
    fn the_order_of_starts_at_one_instant_does_not_matter(jobs in jobs(Share(10_000)), turn in 0..8_usize) {
        let mut in_order = network(LINKS);
        let mut turned = network(LINKS);
        let mut keys: Vec<usize> = (0..jobs.len()).collect();
        for key in &keys {
            in_order.start(Instant::START, *key, jobs[*key].training.clone());
        }
        keys.rotate_left(turn % jobs.len());
        for key in &keys {
            turned.start(Instant::START, *key, jobs[*key].training.clone());
        }
        prop_assert_eq!(run(&mut in_order), run(&mut turned));
    }

    #[test]
    fn the_little_loop_of_a_lone_job_does_what_a_component_does(job in job(Share(20_000))) {
        let mut alone = network(LINKS);
        alone.start(Instant::START, 0, job.training.clone());
        // A neighbour on every link that has nothing to send before the end of the run.
        let mut beside = network(LINKS);
        let all: Vec<(LinkId, f64)> = (0..LINKS as u32).map(|link| (LinkId(link), 1.0)).collect();
        let silent = burst(Duration::HOUR.times(10_000), ms(1));
        let silent = Training { route: Route::over(&all), ..training(&silent, 1) };
        beside.start(Instant::START, 1, silent);
        beside.start(Instant::START, 0, job.training);
        prop_assert_eq!(alone.run_until(END), beside.run_until(END));
        prop_assert_eq!(alone.events(), beside.events());
    }
}

#[test]
fn a_steady_state_is_skipped_in_no_time() {
    let mut network = network(1);
    let job = |iterations| training(&burst(ms(60), ms(20)), iterations);
    network.start(at_ms(0), 0, job(1_000_000_000));
    network.start(at_ms(5), 1, job(500_000_000));
    let over = run(&mut network);
    assert_eq!(over[0].at, at_ms(5 + 95 * 500_000_000), "both take 95 ms while both run");
    assert_eq!(over[0].key, 1);
    assert_eq!((over[1].key, over[1].iterations), (0, 1_000_000_000));
    assert!(network.events() < 5000, "{} events", network.events());
}

/// Alone 120, 60 and 40 ms, with room for all: the third must find its place between the others first.
#[test]
fn harmonic_periods_repeat_too() {
    let start_all = |network: &mut Network| {
        for (key, compute, sends) in [(0, 100, 20), (1, 50, 10), (2, 37, 3)] {
            network.start(at_ms(key * 7), key as usize, training(&burst(ms(compute), ms(sends)), 100_000));
        }
    };
    let (mut quick, mut exact) = (network(1), network(1));
    exact.record_loads(ms(1000));
    start_all(&mut quick);
    start_all(&mut exact);
    assert_eq!(run(&mut quick), run(&mut exact));
    assert!(10 * quick.events() < exact.events(), "{} instead of {}", quick.events(), exact.events());
}

/// Three of each measured model meet on a link. The light ones settle into a repetition; where the link is overloaded
/// most do not.
#[test]
fn measured_models_give_the_same_result_with_and_without_skipping() {
    let mut saved = 0;
    for model in metronome_sim::model::all() {
        let pattern = Arc::new(Pattern::buckets(&model.iteration).unwrap());
        let start_all = |network: &mut Network| {
            for key in 0..3 {
                let route = Route::over(&[(LINK, 0.175), (LinkId(1 + key as u32), 0.175)]);
                let job = Training { route, ..training(&pattern, 2000) };
                network.start(Instant(7_654_321 * key), key as usize, job);
            }
        };
        let (mut quick, mut exact) = (network(4), network(4));
        exact.record_loads(ms(1000));
        start_all(&mut quick);
        start_all(&mut exact);
        assert_eq!(run(&mut quick), run(&mut exact), "{}", model.name);
        saved += usize::from(10 * quick.events() < exact.events());
    }
    assert!(saved >= 4, "only {saved} settle");
}
