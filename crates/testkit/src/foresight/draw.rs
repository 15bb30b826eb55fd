//! Random clusters and jobs, by seed.

use std::sync::Arc;

use metronome_core::model::job::{Capabilities, Checkpointing, Gang, JobSpec, Priority};
use metronome_core::model::units::{Duration, GpuTime, Gpus, Instant};
use metronome_sim::scenario::{Arrival, Scenario, Source};
use rand::{Rng, RngExt};
use rand_pcg::Pcg64;

use crate::build::{gpus, racks, scenario};

/// A run, and the time at which somebody asks.
#[derive(Clone, Debug)]
pub struct Case {
    pub seed: u64,
    pub scenario: Scenario,
    pub at: Instant,
}

/// The stream of random numbers for this purpose.
const STREAM: u128 = 31;

/// Up to 32 nodes in up to four racks, 60 to 120 jobs of up to half the cluster at 80 to 140 % of what it can do, so
/// that there is a line.
pub fn case(seed: u64) -> Case {
    let random = &mut Pcg64::new(u128::from(seed), STREAM);
    let (count, per_rack) = (random.random_range(1..=4), random.random_range(2..=8));
    let per_node = 1 << random.random_range(0..=3);
    let cluster = racks(count, per_rack, per_node);
    let capacity = cluster.capacity().gpus;
    let jobs = random.random_range(60..=120);
    let specs: Vec<JobSpec> = (0..jobs).map(|index| job(index, per_node, capacity, random)).collect();
    let load = random.random_range(0.8..1.4);
    let arrivals = arrive(specs, capacity, load, random);
    let last = arrivals.last().map_or(Instant::START, |arrival| arrival.at);
    let at = Instant((last.0 as f64 * random.random_range(0.25..0.75)) as u64);
    let scenario = Scenario { sources: vec![Source::Listed(arrivals)], ..scenario(cluster, []) };
    Case { seed, scenario, at }
}

/// Members of a power of two of GPUs; a gang of up to half the cluster, as often small as large; ten minutes in the
/// median, at most two hours. Every second job saves its work and may be stopped.
fn job(index: u32, per_node: u64, capacity: Gpus, random: &mut impl Rng) -> JobSpec {
    let each = 1 << random.random_range(0..=per_node.ilog2());
    let most = (capacity.0 / Gpus::whole(1).0 / each / 2).max(1);
    let members = (most as f64).powf(random.random::<f64>()).round() as u64;
    let gang = Gang::rigid(members.max(1)).expect("a positive number of members");
    let mut spec = JobSpec::workers(&format!("job-{index}"), gang, gpus(each));
    spec.priority = match random.random_range(0..10) {
        0..2 => Priority::HIGH,
        2..7 => Priority::NORMAL,
        _ => Priority::LOW,
    };
    let minutes = 10.0 * gaussian(random).exp();
    spec.work.alone = Some(Duration::from_millis((minutes.clamp(0.2, 120.0) * 60_000.0) as u64));
    if index.is_multiple_of(2) {
        spec.capabilities = Capabilities::CHECKPOINTED;
        let (takes, restart) = (Duration::from_secs(10), Duration::from_secs(20));
        spec.checkpointing = Some(Checkpointing { every: None, takes, restart });
    }
    spec
}

/// Poisson arrivals at a share of what the cluster can do.
fn arrive(specs: Vec<JobSpec>, capacity: Gpus, load: f64, random: &mut impl Rng) -> Vec<Arrival> {
    let work = |spec: &JobSpec| GpuTime::of(spec.gpus(), spec.work.alone.unwrap_or_default());
    let total = specs.iter().map(work).fold(GpuTime::default(), |sum, work| sum + work);
    let gap = total.0 as f64 / specs.len() as f64 / (capacity.0 as f64 * load);
    let mut at = Instant::START;
    let arrive = |spec| {
        at = at + Duration((-gap * (1.0 - random.random::<f64>()).ln()) as u64);
        Arrival { at, spec: Arc::new(spec), training: None, asks: None, learning: None, quality: None }
    };
    specs.into_iter().map(arrive).collect()
}

/// Of mean zero and standard deviation one, by the method of Box and Muller.
fn gaussian(random: &mut impl Rng) -> f64 {
    let (radius, angle) = (1.0 - random.random::<f64>(), random.random::<f64>());
    (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}
