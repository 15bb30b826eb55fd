use std::sync::Arc;

use super::*;
use crate::model::job::{Gang, Role, Shape};
use crate::model::units::Resources;
use crate::tuning::ObserveTuning;

/// A job of one to 32 members with this declared serial part.
fn declared_with(serial: u32) -> JobSpec {
    let mut spec = JobSpec::workers("job", Gang::elastic(1, 32).unwrap(), Resources::NONE);
    spec.scaling = Some(Arc::new(Scaling::with_serial_part(1..=32, Share(serial))));
    spec
}

/// Measurements of the given seconds at each size with this real serial part; intervals deviate by `noise` up and
/// down in turn.
fn seen(serial: f64, sizes: &[(u32, u64)], noise: f64) -> Measured {
    let mut measured = Measured::default();
    for (members, seconds) in sizes {
        let each = serial + (1.0 - serial) / f64::from(*members);
        for (look, time) in (0..*seconds).step_by(10).enumerate() {
            let off = if (look + time as usize / 10) % 4 < 2 { 1.0 + noise } else { 1.0 - noise };
            let done = (10.0 / each * 1000.0 * off) as u64;
            measured.note(*members, Iterations(done), Duration::from_secs(10), &ObserveTuning::DEFAULT);
        }
    }
    measured
}

/// Relative error of the fitted speed.
fn misjudged(spec: &JobSpec, measured: &Measured, serial: f64, members: u32) -> f64 {
    let speed = 1.0 / (serial + (1.0 - serial) / f64::from(members));
    let fit = Fit::of(spec, measured).unwrap();
    (as_factor(fit.speed(members)) - speed).abs() / speed
}

#[test]
fn a_job_without_measurements_has_no_fit() {
    assert!(Fit::of(&declared_with(0), &Measured::default()).is_none());
    let mut still = Measured::default();
    still.note(4, Iterations(0), Duration::HOUR, &ObserveTuning::DEFAULT);
    assert!(Fit::of(&declared_with(0), &still).is_none());
}

#[test]
fn one_measured_size_scales_the_declaration_and_does_not_bend_it() {
    let spec = declared_with(20_000);
    let fit = Fit::of(&spec, &seen(0.3, &[(8, 300)], 0.0)).map(|fit| fit.speeds_for(spec_sizes(&spec)));
    assert_eq!(fit.as_deref(), Some(spec_sizes(&spec)));
    let measured = seen(0.3, &[(8, 300)], 0.0);
    let work = Fit::of(&spec, &measured).unwrap().work(Iterations(1000));
    let (took, declared) = (0.3 + 0.7 / 8.0, 0.02 + 0.98 / 8.0);
    assert!((work.as_secs_f64() - took / declared).abs() < 0.001, "{work:?}");
}

fn spec_sizes(spec: &JobSpec) -> &[(u32, Speed)] {
    spec.scaling.as_ref().unwrap().sizes()
}

#[test]
fn two_measured_sizes_determine_the_serial_part() {
    for said in [0, 50_000, 300_000] {
        let spec = declared_with(said);
        let measured = seen(0.1, &[(2, 600), (8, 600)], 0.0);
        for members in [1, 4, 16, 32] {
            let off = misjudged(&spec, &measured, 0.1, members);
            assert!(off < 0.04, "{said}: {members} members are off by {off}");
        }
    }
}

#[test]
fn a_job_without_a_declared_table_has_a_fit() {
    let spec = JobSpec { scaling: None, ..declared_with(0) };
    let measured = seen(0.2, &[(1, 300), (4, 300)], 0.0);
    assert!(misjudged(&spec, &measured, 0.2, 16) < 0.05);
}

#[test]
fn noise_is_averaged_and_raises_the_error() {
    let spec = declared_with(0);
    let measured = seen(0.05, &[(2, 300), (8, 300)], 0.1);
    assert!(misjudged(&spec, &measured, 0.05, 16) < 0.1);
    let exact = Fit::of(&spec, &seen(0.05, &[(2, 300), (8, 300)], 0.0)).unwrap().error();
    let noisy = Fit::of(&spec, &measured).unwrap().error();
    assert!(exact < Share(5_000) && noisy > Share(10_000) && noisy < Share(100_000), "{exact:?} {noisy:?}");
}

#[test]
fn sizes_close_together_hardly_bend_the_declaration() {
    let spec = declared_with(0);
    let mut measured = seen(0.0, &[(12, 60)], 0.0);
    measured.note(16, Iterations(130_000), Duration::from_secs(10), &ObserveTuning::DEFAULT);
    assert!(misjudged(&spec, &measured, 0.0, 32) < 0.35);
}

#[test]
fn fitted_speeds_stay_within_bounds_for_any_report() {
    let spec = declared_with(20_000);
    for (few, many) in [(1, 1_000_000_000_000), (1_000_000_000_000, 1), (1, 1), (u64::MAX, u64::MAX)] {
        let mut measured = Measured::default();
        measured.note(1, Iterations(few), Duration::from_secs(100), &ObserveTuning::DEFAULT);
        measured.note(32, Iterations(many), Duration::from_secs(100), &ObserveTuning::DEFAULT);
        let fit = Fit::of(&spec, &measured).unwrap();
        let sizes = fit.speeds_for(spec_sizes(&spec));
        assert_eq!(sizes[0].1, Speed::PLAIN);
        assert!(sizes.windows(2).all(|pair| pair[0].1 <= pair[1].1), "{sizes:?}");
        assert!(sizes.iter().all(|(members, speed)| as_factor(*speed) <= f64::from(*members) + 1e-6));
        assert!(fit.error() <= Share(500_000));
    }
}

#[test]
fn a_small_change_of_a_fit_is_no_news() {
    let spec = declared_with(0);
    let mut measured = seen(0.0, &[(4, 300)], 0.0);
    let takes = Fit::of(&spec, &measured).unwrap().thousand_iterations();
    assert!(measured.is_news(takes, &ObserveTuning::DEFAULT));
    assert!(!measured.is_news((takes.0 + Duration(takes.0.0 / 50), takes.1), &ObserveTuning::DEFAULT));
    assert!(measured.is_news((takes.0, takes.1.times(2)), &ObserveTuning::DEFAULT));
}

/// Cost coefficients of an iteration with workers and servers.
#[derive(Clone, Copy)]
struct Exchange {
    shared: f64,
    own: f64,
    received: f64,
    workers: f64,
    servers: f64,
}

/// More than about a dozen workers with four servers are slower than fewer.
const CROWDED: Exchange = Exchange { shared: 1.0, own: 0.02, received: 0.02, workers: 0.002, servers: 0.003 };

impl Exchange {
    fn takes(self, workers: u32, servers: u32) -> f64 {
        let (w, p) = (f64::from(workers), f64::from(servers));
        self.shared / w + self.own + self.received * w / p + self.workers * w + self.servers * p
    }
}

fn beside_servers(workers: Gang, servers: Gang) -> JobSpec {
    let mut spec = JobSpec::workers("job", workers, Resources::NONE);
    let role = Role { kind: RoleKind::Ps, gang: servers, shape: Shape::of(Resources::NONE) };
    spec.roles.insert(0, role);
    spec
}

fn elastic(most: u64) -> Gang {
    Gang::elastic(1, most).unwrap()
}

/// Measurements of five minutes at each size, in intervals of ten seconds that deviate by `noise` up and down in
/// turn.
fn seen_to_take(sizes: &[u32], noise: f64, takes: impl Fn(u32) -> f64) -> Measured {
    let mut measured = Measured::default();
    for members in sizes {
        for look in 0..30 {
            let off = if look % 4 < 2 { 1.0 + noise } else { 1.0 - noise };
            let done = (10.0 / takes(*members) * 1000.0 * off) as u64;
            measured.note(*members, Iterations(done), Duration::from_secs(10), &ObserveTuning::DEFAULT);
        }
    }
    measured
}

/// Time at the size that the fit would choose over the time at the best size.
fn chosen_over_best(spec: &JobSpec, measured: &Measured, most: u32, takes: impl Fn(u32) -> f64) -> f64 {
    let fit = Fit::of(spec, measured).unwrap();
    let chosen = (1..=most).rev().max_by_key(|members| fit.speed(*members)).unwrap();
    let best = (1..=most).map(&takes).fold(f64::MAX, f64::min);
    takes(chosen) / best
}

#[test]
fn three_measured_sizes_determine_the_best_number_of_workers() {
    let spec = beside_servers(elastic(64), Gang::rigid(4).unwrap());
    let takes = |workers| CROWDED.takes(workers, 4);
    let measured = seen_to_take(&[1, 4, 12], 0.0, takes);
    let fit = Fit::of(&spec, &measured).unwrap();
    for workers in [2, 8, 16, 32, 64] {
        let found = takes(1) / as_factor(fit.speed(workers));
        let off = (found - takes(workers)).abs() / takes(workers);
        assert!(off < 0.1, "{workers} workers are off by {off}");
    }
    assert!(chosen_over_best(&spec, &measured, 64, takes) < 1.01);
    assert!(fit.error() < Share(20_000), "{:?}", fit.error());
}

#[test]
fn two_measured_sizes_determine_no_coordination_cost() {
    let spec = beside_servers(elastic(32), Gang::rigid(2).unwrap());
    let alone = Exchange { shared: 0.9, own: 0.1, received: 0.0, workers: 0.0, servers: 0.0 };
    let measured = seen_to_take(&[2, 8], 0.0, |workers| alone.takes(workers, 2));
    let fit = Fit::of(&spec, &measured).unwrap();
    let off = |workers: u32| as_factor(fit.speed(workers)) * alone.takes(workers, 2) - 1.0;
    assert!([1, 4, 8, 32].into_iter().all(|workers| off(workers).abs() < 0.05));
}

#[test]
fn a_fit_finds_the_coordination_cost_through_noise_and_gaps() {
    let spec = beside_servers(elastic(64), Gang::rigid(4).unwrap());
    let takes = |workers| CROWDED.takes(workers, 4);
    for sizes in [&[1, 4, 24][..], &[2, 3, 40], &[1, 2, 3, 8, 48]] {
        let exact = Fit::of(&spec, &seen_to_take(sizes, 0.0, takes)).unwrap().error();
        let measured = seen_to_take(sizes, 0.1, takes);
        let worse = chosen_over_best(&spec, &measured, 64, takes);
        assert!(worse < 1.1, "{sizes:?}: {worse}");
        let noisy = Fit::of(&spec, &measured).unwrap().error();
        assert!(noisy > exact && noisy < Share(150_000), "{sizes:?}: {exact:?} {noisy:?}");
    }
}

#[test]
fn elastic_servers_have_a_fit_too() {
    let spec = beside_servers(Gang::rigid(16).unwrap(), elastic(16));
    let exchange = Exchange { received: 0.05, servers: 0.02, ..CROWDED };
    let takes = |servers| exchange.takes(16, servers);
    let measured = seen_to_take(&[1, 2, 8], 0.02, takes);
    assert!(chosen_over_best(&spec, &measured, 16, takes) < 1.05);
}

#[test]
fn a_declared_table_keeps_its_shape_until_measurements_differ() {
    let mut spec = beside_servers(elastic(8), Gang::rigid(2).unwrap());
    let falls = [(1, 1_000_000), (2, 1_800_000), (4, 2_500_000), (8, 2_000_000)];
    let falls: Vec<(u32, Speed)> = falls.map(|(members, speed)| (members, Speed(speed))).to_vec();
    spec.scaling = Some(Arc::new(Scaling::new(falls.clone()).unwrap()));
    let one = seen_to_take(&[4], 0.0, |_| 0.3);
    assert_eq!(Fit::of(&spec, &one).unwrap().speeds_for(&falls), falls);
    let worse = seen_to_take(&[1, 2, 4], 0.0, |workers| [0.0, 1.0, 0.6, 0.0, 0.8][workers as usize]);
    let found = Fit::of(&spec, &worse).unwrap().speeds_for(&falls);
    assert!(found[2].1 < found[1].1, "{found:?}");
}

#[test]
fn fitted_speeds_with_servers_stay_within_bounds_for_any_report() {
    let spec = beside_servers(elastic(32), Gang::rigid(2).unwrap());
    let reports = [1, 7, 1_000_000_000_000, u64::MAX];
    for at in 0..reports.len().pow(3) {
        let [few, some, many] = [at / 16, at / 4, at].map(|at| reports[at % 4]);
        let mut measured = Measured::default();
        for (members, done) in [(1, few), (8, some), (32, many)] {
            measured.note(members, Iterations(done), Duration::from_secs(100), &ObserveTuning::DEFAULT);
        }
        let fit = Fit::of(&spec, &measured).unwrap();
        assert_eq!(fit.speed(1), Speed::PLAIN);
        let speeds = [2, 8, 16, 32].map(|members| (members, as_factor(fit.speed(members))));
        let sane = |(members, speed): &(u32, f64)| *speed >= 0.124 && *speed <= f64::from(*members) + 1e-6;
        assert!(speeds.iter().all(sane), "{speeds:?}");
        assert!(fit.error() <= Share(500_000));
    }
}
