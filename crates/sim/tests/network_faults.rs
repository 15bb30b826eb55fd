//! Links that degrade, fail and recover, jobs that stop half-way, and input that can lead nowhere.

mod network_common;

use std::sync::Arc;

use metronome_core::model::id::LinkId;
use metronome_core::model::units::{Bandwidth, Duration, Instant};
use metronome_core::network::{Network, Pattern, Route, Sharing, Training, alone};
use metronome_core::traffic::TrafficPolicy;
use metronome_sim::noise::{Factors, Noise};

use network_common::*;

fn job(iterations: u64) -> Training {
    training(&burst(ms(60), ms(20)), iterations)
}

#[test]
fn a_failed_link_stalls_its_flows_until_it_recovers() {
    let mut network = network(2);
    network.start(Instant::START, 0, job(2));
    let elsewhere = Training { route: Route::over(&[(LinkId(1), 1.0)]), ..job(2) };
    network.start(Instant::START, 1, elsewhere);
    network.run_until(at_ms(70));
    network.set_rate(at_ms(70), LINK, Bandwidth::ZERO);
    assert_eq!(network.rate(0), 0.0);
    let over = network.run_until(at_ms(1000)).unwrap();
    assert_eq!((over.key, over.at), (1, at_ms(160)), "others do not notice");
    assert_eq!(network.run_until(at_ms(1000)), None);
    assert_eq!(network.carried()[LINK], 10e6);
    network.set_rate(at_ms(1000), LINK, RATE);
    // Ten milliseconds of the burst were left.
    assert_eq!(network.run_until(END).unwrap().at, at_ms(1000 + 10 + 80));
}

#[test]
fn at_half_the_rate_a_burst_takes_twice_as_long() {
    let mut network = network(1);
    network.start(Instant::START, 0, job(3));
    network.run_until(at_ms(70));
    network.set_rate(at_ms(70), LINK, Bandwidth(RATE.0 / 2));
    // Half of the first burst at full rate and half at half of it, then two whole bursts at half.
    assert_eq!(network.run_until(END).unwrap().at, at_ms(60 + 10 + 20 + 2 * 100));
}

#[test]
fn a_flow_that_can_never_go_on_ends_nothing_and_hangs_nothing() {
    let mut network = Network::new(&[Bandwidth::ZERO, RATE].into_iter().collect(), Sharing::default());
    network.start(Instant::START, 0, job(5));
    let over_both = Training { route: Route::over(&[(LINK, 1.0), (LinkId(1), 1.0)]), ..job(5) };
    network.start(Instant::START, 1, over_both);
    let beside = Training { route: Route::over(&[(LinkId(1), 1.0)]), ..job(5) };
    network.start(Instant::START, 2, beside);
    assert_eq!(ends(&mut network), [(2, 400e3)]);
    assert_eq!(network.run_until(END), None);
    assert_eq!(network.iterations(0), 0);
    let rates = [Bandwidth::ZERO].into_iter().collect();
    let pattern = burst(ms(60), ms(20));
    assert_eq!(alone(&pattern, &Route::over(&[(LINK, 1.0)]), &rates), Duration(u64::MAX));
}

#[test]
fn a_starved_class_goes_on_when_it_can() {
    let mut network = Network::new(&rates(1), sharing(metronome_core::model::units::Share::NONE));
    network.start(Instant::START, 0, Training { traffic: in_class(3), ..job(1) });
    let greedy = training(&burst(ms(1), ms(1000)), 1);
    network.start(at_ms(70), 1, greedy);
    assert_eq!(ends(&mut network), [(1, 1071e3), (0, 1080e3)]);
}

#[test]
fn a_stopped_job_has_done_its_whole_iterations_and_leaves_the_link_to_others() {
    let mut network = network(1);
    network.start(Instant::START, 0, job(100));
    network.start(Instant::START, 1, job(2));
    network.run_until(at_ms(180));
    let done = network.stop(at_ms(180), 0);
    assert_eq!((done.iterations, done.mean), (1, Some(ms(100))));
    // From 160 ms on both sent at half the rate; the one that stays has sent half of its burst by 180.
    let over = network.run_until(END).unwrap();
    assert_eq!((over.key, over.at), (1, at_ms(190)));
    assert_eq!(network.carried()[LINK], 20e6 + 2.0 * 20e6 + 10e6);
}

#[test]
fn class_and_weight_can_be_changed_while_flows_are_sending() {
    let mut network = Network::new(&rates(1), sharing(metronome_core::model::units::Share::NONE));
    network.start(Instant::START, 0, job(1));
    network.start(Instant::START, 1, job(1));
    network.run_until(at_ms(70));
    network.set_traffic_policy(at_ms(70), 0, TrafficPolicy { weight: 3, ..TrafficPolicy::default() });
    network.run_until(at_ms(80));
    assert_eq!((network.rate(0), network.rate(1)), (0.75e9, 0.25e9));
    network.set_traffic_policy(at_ms(80), 0, TrafficPolicy { weight: 3, ..in_class(1) });
    // By 80 ms they have sent 12.5 and 7.5 of 20; now the second goes first.
    assert_eq!(ends(&mut network), [(1, 92.5e3), (0, 100e3)]);
}

#[test]
fn jobs_that_end_together_are_reported_in_the_order_of_their_keys() {
    let mut network = network(3);
    for key in [2, 0, 1] {
        let route = Route::over(&[(LinkId(key as u32), 1.0)]);
        network.start(Instant::START, key, Training { route, ..job(4) });
    }
    network.start(Instant::START, 9, job(0));
    assert_eq!(ends(&mut network), [(9, 0.0), (0, 320e3), (1, 320e3), (2, 320e3)]);
}

#[test]
fn completions_nobody_asked_for_are_kept() {
    let mut network = network(1);
    network.start(Instant::START, 0, job(1));
    network.start(at_ms(500), 1, job(1));
    assert_eq!(ends(&mut network), [(0, 80e3), (1, 580e3)]);
}

#[test]
fn a_job_on_one_node_only_computes() {
    let mut network = network(1);
    let local = Training { route: Route::nothing(), ..job(100_000_000_000) };
    network.start(Instant::START, 0, local);
    let only_compute = Arc::new(Pattern::compute(ms(10)).unwrap());
    network.start(Instant::START, 1, training(&only_compute, 3));
    assert_eq!(ends(&mut network), [(1, 30e3), (0, 60e3 * 1e11)]);
    assert!(network.events() < 100);
}

#[test]
fn more_iterations_than_time_has_room_for_never_end() {
    let mut network = network(1);
    network.start(Instant::START, 0, job(u64::MAX));
    assert_eq!(network.run_until(END), None);
}

#[test]
fn the_heavy_tail_of_real_workers_stretches_iterations_around_their_mean() {
    let default = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let folder = std::env::var_os("METRONOME_DATA").map_or(default, std::path::PathBuf::from);
    let Ok(file) = std::fs::File::open(folder.join("jitter/job_4_norm.csv.gz")) else {
        return metronome_skip::skip(
            "jitter/job_4_norm.csv.gz is not in the folder of data (METRONOME_DATA)",
        );
    };
    let factors = Factors::from_csv(flate2::read::GzDecoder::new(file), "batch_time_norm").unwrap();
    let largest = *factors.values().last().unwrap();
    assert!(largest > 3.0, "a heavy tail: {largest}");
    let noise = Noise::Measured(Arc::new(factors));
    let mut network = network(1);
    network.start(Instant::START, 0, Training { jitter: noise.stream(1), ..job(200_000) });
    let mean = network.run_until(END).unwrap().mean.unwrap().0 as f64;
    assert!((mean / 80e6 - 1.0).abs() < 0.01, "{mean}");
}
