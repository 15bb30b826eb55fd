//! `cargo bench -p metronome-testkit --bench turns`: how long turns take, and how far from proven they are. Prints one
//! JSON line a case, over random sets of loops that bring their links to a given load.

use std::time::Instant as WallClock;

use metronome_core::model::id::LinkId;
use metronome_core::model::profile::Phase;
use metronome_core::model::units::{Bandwidth, Duration, Share};
use metronome_core::traffic::phase_solver::{Budget, Loop, Problem, Turns, solve};
use metronome_core::tuning::TrafficTuning;
use rand::RngExt;
use rand_pcg::Pcg64;
use serde_json::json;

const CAPACITY: Bandwidth = Bandwidth(100_000_000_000);
const CIRCLE: Duration = Duration(600_000_000);
const SETS: u64 = 40;

struct Case {
    name: &'static str,
    loops: usize,
    links: u32,
    links_each: u32,
    phases: u64,
    appearances: &'static [u64],
    /// Rates of bursts, in percent of a link.
    rates: (u64, u64),
    nodes: u64,
}

const ALONE: Case = Case {
    name: "",
    loops: 6,
    links: 1,
    links_each: 1,
    phases: 1,
    appearances: &[1],
    rates: (40, 100),
    nodes: 20_000,
};

fn main() {
    let ring = Case { links: 6, links_each: 3, ..ALONE };
    let cases = [
        Case { name: "3, full rate", loops: 3, rates: (100, 100), ..ALONE },
        Case { name: "6, full rate", rates: (100, 100), ..ALONE },
        Case { name: "6", ..ALONE },
        Case { name: "6, twice and thrice", appearances: &[1, 2, 3], ..ALONE },
        Case { name: "6, three phases", phases: 3, ..ALONE },
        Case { name: "6 over rings", ..ring },
        Case { name: "12, full rate", loops: 12, rates: (100, 100), nodes: 8_000, ..ALONE },
        Case { name: "12", loops: 12, nodes: 8_000, ..ALONE },
        Case { name: "12, twice and thrice", loops: 12, appearances: &[1, 2, 3], nodes: 8_000, ..ALONE },
        Case { name: "12 over rings", loops: 12, nodes: 8_000, ..ring },
    ];
    for case in &cases {
        for load in [80, 100, 120] {
            run(case, load);
        }
    }
    many();
}

fn run(case: &Case, load: u64) {
    let mut times = Vec::new();
    let mut gaps = Vec::new();
    let mut proven = 0;
    for seed in 0..SETS {
        let problem = drawn(case, load, seed);
        let clock = WallClock::now();
        let found = solve(&TrafficTuning::DEFAULT, &problem, Budget(case.nodes));
        times.push(clock.elapsed().as_secs_f64() * 1000.0);
        proven += u64::from(found.is_proven());
        gaps.push(gap(&problem, &found));
    }
    times.sort_by(f64::total_cmp);
    gaps.sort_by(f64::total_cmp);
    let at = |values: &[f64], percent: usize| values[(values.len() - 1) * percent / 100];
    let within = |bar: f64| gaps.iter().filter(|gap| **gap <= bar).count() as f64 / SETS as f64;
    println!(
        "{}",
        json!({
            "case": case.name, "load": load, "proven": proven as f64 / SETS as f64,
            "ms p50": rounded(at(&times, 50)), "ms p95": rounded(at(&times, 95)), "ms max": rounded(at(&times, 100)),
            "gap of bytes p50": rounded(at(&gaps, 50)), "gap of bytes max": rounded(at(&gaps, 100)),
            "within 1 %": within(0.01),
        })
    );
}

fn rounded(value: f64) -> f64 {
    (value * 10_000.0).round() / 10_000.0
}

/// How far from the bound, as a share of all that is sent.
fn gap(problem: &Problem, found: &Turns) -> f64 {
    let sent = |one: &Loop| {
        let phase = |phase: &Phase| phase.length.0 as f64 * phase.rate.0 as f64 / CAPACITY.0 as f64;
        let each: f64 = one.phases.iter().map(phase).sum();
        each * (problem.circle().0 / one.period.0) as f64 * one.links.len() as f64
    };
    let all: f64 = problem.loops().iter().map(sent).sum();
    (found.excess().0 - found.bound().0) as f64 / 1e9 / all
}

/// Loops over consecutive links; together they send `load` percent of what the links carry.
fn drawn(case: &Case, load: u64, seed: u64) -> Problem {
    let mut chance = Pcg64::new(u128::from(seed), 5);
    let shares: Vec<f64> = (0..case.loops).map(|_| chance.random_range(0.5..1.5)).collect();
    let whole: f64 = shares.iter().sum::<f64>() * f64::from(case.links_each) / f64::from(case.links);
    let loops = shares.iter().map(|share| drawn_loop(&mut chance, case, share / whole * load as f64 / 100.0));
    let loops = loops.collect();
    let links = (0..case.links).map(|link| (LinkId(link), CAPACITY)).collect();
    Problem::new(CIRCLE, links, loops).expect("what is drawn makes sense")
}

fn drawn_loop(chance: &mut Pcg64, case: &Case, duty: f64) -> Loop {
    let appearances = case.appearances[chance.random_range(0..case.appearances.len())];
    let period = CIRCLE.0 / appearances;
    let percent = chance.random_range(case.rates.0..=case.rates.1);
    let length = duty * period as f64 * 100.0 / percent as f64 / case.phases as f64;
    let slot = period / case.phases;
    let phase = |number: u64| Phase {
        offset: Duration(number * slot + chance.random_range(0..=slot / 4)),
        length: Duration((length as u64).min(slot / 2)),
        rate: Bandwidth(CAPACITY.0 / 100 * percent),
    };
    let phases = (0..case.phases).map(phase).collect();
    let first = chance.random_range(0..case.links);
    let links = (0..case.links_each).map(|hop| (LinkId((first + hop) % case.links), Share::WHOLE)).collect();
    Loop { period: Duration(period), phases, links, tier: 0, weight: 1 }
}

/// Hundreds of loops on one link, sixteen phases each, twelve times around: bounded, whatever it is worth.
fn many() {
    let case = Case { loops: 300, phases: 16, appearances: &[1, 4, 12], nodes: 0, ..ALONE };
    let problem = drawn(&case, 150, 1);
    let clock = WallClock::now();
    let found = solve(&TrafficTuning::DEFAULT, &problem, Budget(case.nodes));
    let ms = clock.elapsed().as_secs_f64() * 1000.0;
    println!("{}", json!({ "case": "300 of 16 phases", "ms": ms, "gap of bytes": gap(&problem, &found) }));
}
