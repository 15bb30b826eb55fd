//! One, two and three jobs on a link, worked out by hand: each computes for 60 ms, then sends for 20 ms if alone.

mod network_common;

use metronome_core::model::cluster::{Fabric, Vertex};
use metronome_core::model::id::NodeId;
use metronome_core::model::profile::ring_load;
use metronome_core::model::units::{Bytes, Duration, Instant, Share};
use metronome_core::network::{Contention, Network, Pattern, Route, Sharing, Training, alone};
use metronome_core::traffic::TrafficPolicy;
use metronome_sim::model;

use network_common::*;

fn job(iterations: u64) -> Training {
    training(&burst(ms(60), ms(20)), iterations)
}

#[test]
fn alone_an_iteration_takes_compute_and_burst() {
    let mut network = network(1);
    network.start(at_ms(7), 0, job(1000));
    assert_eq!(network.run_until(at_ms(7 + 80 * 1000 - 1)), None);
    assert_eq!(network.iterations(0), 999);
    let over = network.run_until(END).unwrap();
    assert_eq!((over.at, over.iterations, over.mean), (at_ms(7 + 80 * 1000), 1000, Some(ms(80))));
    assert_eq!(network.run_until(END), None);
    assert_eq!(network.carried()[LINK], 20e6 * 1000.0);
}

#[test]
fn two_equal_jobs_in_phase_collide_for_ever() {
    let mut network = network(1);
    for key in 0..2 {
        network.start(Instant::START, key, job(50));
    }
    // Both send from 60 ms on at half the rate: 60 + 40.
    assert_eq!(ends(&mut network), [(0, 5e6), (1, 5e6)]);
}

#[test]
fn three_equal_jobs_in_phase_take_three_bursts() {
    let mut network = network(1);
    for key in 0..3 {
        network.start(Instant::START, key, job(50));
    }
    assert_eq!(ends(&mut network), [0, 1, 2].map(|key| (key, 6e6)));
}

#[test]
fn two_equal_jobs_out_of_phase_keep_their_distance() {
    // The first sends 5 ms alone and the rest at half the rate: 60 + 5 + 2·15; the other ends 5 ms later.
    let mut network = network(1);
    network.start(at_ms(0), 0, job(10));
    network.start(at_ms(5), 1, job(10));
    assert_eq!(ends(&mut network), [(0, 950e3), (1, 955e3)]);
}

#[test]
fn jobs_a_burst_apart_do_not_meet() {
    let mut network = network(1);
    for (key, start) in [(0, 0), (1, 20), (2, 40)] {
        network.start(at_ms(start), key, job(10));
    }
    assert_eq!(ends(&mut network), [(0, 800e3), (1, 820e3), (2, 840e3)]);
}

#[test]
fn jobs_of_unequal_weight_slide_apart() {
    // In phase the heavier gets two thirds: 60 + 30 and 60 + 40. Then it is 10 ms ahead, sends 10 ms alone and the
    // other half in 15: 85 and 90. Then 15 ms ahead: 82.5 and 85.
    let mut network = network(1);
    network.start(
        Instant::START,
        0,
        Training { traffic: TrafficPolicy { weight: 2, ..TrafficPolicy::default() }, ..job(3) },
    );
    network.start(Instant::START, 1, job(3));
    assert_eq!(ends(&mut network), [(0, 90e3 + 85e3 + 82.5e3), (1, 100e3 + 90e3 + 85e3)]);
}

#[test]
fn a_strict_class_pushes_the_other_out_of_its_way() {
    // The lower class waits for 20 ms once; after that they never meet.
    let mut network = Network::new(&rates(1), sharing(Share::NONE));
    network.start(Instant::START, 0, Training { traffic: in_class(1), ..job(10) });
    network.start(Instant::START, 1, job(10));
    assert_eq!(ends(&mut network), [(1, 800e3), (0, 820e3)]);
}

#[test]
fn the_floor_is_kept_for_the_lower_class() {
    // 95 % of the link: 20 / 0.95 ms. The lower class has had the rest meanwhile, and ends when both bursts are sent.
    let mut network = Network::new(&rates(1), sharing(Share(50_000)));
    network.start(Instant::START, 0, Training { traffic: in_class(5), ..job(1) });
    network.start(Instant::START, 1, job(1));
    let ends = ends(&mut network);
    assert_eq!((ends[0].0, ends[1]), (1, (0, 100e3)));
    assert!((ends[0].1 - (60e3 + 20e3 / 0.95)).abs() < 2e-3, "{ends:?}");
}

#[test]
fn without_contention_everyone_is_alone() {
    let sharing = Sharing { contention: Contention::None, ..Sharing::default() };
    let mut network = Network::new(&rates(1), sharing);
    for key in 0..3 {
        network.start(Instant::START, key, job(50));
    }
    assert_eq!(ends(&mut network), [0, 1, 2].map(|key| (key, 4e6)));
}

#[test]
fn a_phase_waits_for_the_one_before_it() {
    // 30 ms from 10 ms on, and 20 ms from 20 ms on: the second is sent by 60 ms, after the period of 50.
    let phases = [(ms(10), Bytes(30_000_000)), (ms(20), Bytes(20_000_000))];
    let pattern = std::sync::Arc::new(Pattern::phases(ms(50), &phases).unwrap());
    let mut network = network(1);
    network.start(Instant::START, 0, training(&pattern, 10));
    assert_eq!(ends(&mut network), [(0, 600e3)]);
}

#[test]
fn two_rings_of_different_length_get_equal_parts_of_their_link() {
    let pattern = burst(ms(60), ms(20));
    let mut network = network(1);
    for (key, load) in [(0, ring_load(2)), (1, ring_load(8))] {
        let route = Route::over(&[(LINK, load)]);
        network.start(Instant::START, key, Training { route, ..training(&pattern, 1) });
    }
    network.run_until(at_ms(61));
    let traffic = [network.rate(0) * ring_load(2), network.rate(1) * ring_load(8)].map(f64::round);
    assert_eq!(traffic, [5e8, 5e8]);
}

#[test]
fn measured_models_alone_take_as_long_as_their_formula_says() {
    let mut fabric = Fabric::default();
    let switch = fabric.add_switch("switch");
    let nodes: Vec<NodeId> = (0..4).map(NodeId).collect();
    for node in &nodes {
        fabric.connect(Vertex::Node(*node), switch, RATE, |vertex| format!("{vertex:?}")).unwrap();
    }
    let rates = fabric.links().values().map(|link| link.rate).collect();
    for model in model::all() {
        let pattern = std::sync::Arc::new(Pattern::buckets(&model.iteration).unwrap());
        for count in [1, 2, 4] {
            let route = Route::ring(&fabric, &nodes[..count]).unwrap();
            let formula = model.iteration.alone(ring_load(count as u32), RATE);
            let said = alone(&pattern, &route, &rates);
            assert!(said.0.abs_diff(formula.0) <= 1, "{}: {said} and {formula}", model.name);
            let mut network = Network::new(&rates, Sharing::default());
            network.start(Instant::START, 0, Training { route, ..training(&pattern, 7) });
            let over = network.run_until(END).unwrap();
            assert_eq!(over.at, Instant::START + Duration(said.0 * 7), "{} on {count}", model.name);
        }
    }
}
