//! `cargo bench -p metronome-testkit --bench network`: how many flow events a second the fluid network simulates.
//! Prints one JSON line a case.

use std::sync::Arc;
use std::time::Instant as WallClock;

use metronome_core::model::id::{IdVec, LinkId};
use metronome_core::model::units::{Bandwidth, Instant, Share};
use metronome_core::network::{Network, Pattern, Route, Sharing, Training};
use metronome_core::traffic::TrafficPolicy;
use metronome_sim::model;
use metronome_sim::noise::Noise;
use rand::RngExt;
use rand_pcg::Pcg64;
use serde_json::json;

const LINKS: u32 = 20;
const RATE: Bandwidth = Bandwidth(100_000_000_000);

struct Case {
    name: &'static str,
    jobs: usize,
    links_each: u32,
    classes: u8,
    noise: Noise,
    simulated_s: u64,
}

fn main() {
    let percent = |percent: u32| Noise::Gaussian(Share(percent * 10_000));
    let case = |name, jobs, links_each, classes, noise, simulated_s| Case {
        name,
        jobs,
        links_each,
        classes,
        noise,
        simulated_s,
    };
    let cases = [
        case("alone", 1, 8, 1, percent(1), 200_000),
        case("alone, no noise", 1, 8, 1, Noise::None, 200_000),
        case("10 jobs", 10, 8, 1, percent(1), 20_000),
        case("10 jobs in 4 classes", 10, 8, 4, percent(1), 20_000),
        case("10 jobs, no noise", 10, 8, 1, Noise::None, 20_000),
        case("30 jobs", 30, 8, 1, percent(1), 5_000),
        case("100 jobs", 100, 8, 1, percent(1), 500),
    ];
    for case in cases {
        run(&case);
    }
}

/// Measured models at random places, each over some of the links.
fn trainings(case: &Case) -> Vec<Training> {
    let mut dice = Pcg64::new(1, 1);
    let one = |key: usize| {
        let known = model::all();
        let model = &known[dice.random_range(0..known.len())];
        let first = dice.random_range(0..LINKS);
        let links: Vec<(LinkId, f64)> =
            (0..case.links_each).map(|hop| (LinkId((first + hop) % LINKS), 1.75)).collect();
        Training {
            pattern: Arc::new(Pattern::buckets(&model.iteration).expect("measured models can be run")),
            route: Route::over(&links),
            iterations: u64::MAX,
            jitter: case.noise.stream(key as u64),
            traffic: TrafficPolicy { class: dice.random_range(0..case.classes), ..TrafficPolicy::default() },
        }
    };
    (0..case.jobs).map(one).collect()
}

fn run(case: &Case) {
    let rates: IdVec<LinkId, Bandwidth> = IdVec::filled(RATE, LINKS as usize);
    let mut network = Network::new(&rates, Sharing::default());
    for (key, training) in trainings(case).into_iter().enumerate() {
        network.start(Instant::START, key, training);
    }
    let clock = WallClock::now();
    network.run_until(Instant::from_secs(case.simulated_s));
    let iterations: u64 = (0..case.jobs).map(|key| network.iterations(key)).sum();
    let wall_s = clock.elapsed().as_secs_f64();
    println!(
        "{}",
        json!({
            "bench": "network",
            "case": case.name,
            "jobs": case.jobs,
            "simulatedSeconds": case.simulated_s,
            "iterations": iterations,
            "events": network.events(),
            "seconds": wall_s,
            "eventsPerSecond": network.events() as f64 / wall_s,
        })
    );
}
