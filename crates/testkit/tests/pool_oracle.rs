//! On a pool of GPUs the engine in its simulated world does what the plainest simulator does, second by second.

use metronome_core::model::job::{Gang, JobSpec};
use metronome_core::model::policy::Order;
use metronome_core::model::units::{Duration, GpuTime};
use metronome_sim::outcome::Outcome;
use metronome_testkit::build::{gpus, policy, pool, preemptible, run, scenario};
use metronome_testkit::pool::{PoolJob, PoolPolicy, PoolResult, simulate};
use rand::RngExt;
use rand_pcg::Pcg64;

const LIMITS: (u64, u64) = (3250, 7200);

const POLICIES: [(&str, PoolPolicy); 5] = [
    ("fifo", PoolPolicy::Fifo),
    ("fifo-skip", PoolPolicy::FifoSkip),
    ("srtf", PoolPolicy::Srtf),
    ("srsf", PoolPolicy::Srsf),
    ("tiresias", PoolPolicy::TwoLevels(LIMITS.0, LIMITS.1)),
];

fn spec(index: usize, job: &PoolJob) -> JobSpec {
    let one = Gang::rigid(1).unwrap();
    let mut spec = JobSpec::workers(&format!("job-{index}"), one, gpus(job.gpus));
    spec.work.alone = Some(Duration::from_secs(job.seconds));
    preemptible(spec)
}

fn by_the_engine(jobs: &[PoolJob], capacity: u64, name: &str) -> Outcome {
    let jobs = jobs.iter().enumerate().map(|(index, job)| (job.submit, spec(index, job)));
    run(&scenario(pool(capacity), jobs), policy(name), 1)
}

fn as_pool_result(outcome: &Outcome) -> PoolResult {
    PoolResult {
        ends: outcome
            .jobs
            .iter()
            .map(|job| job.end.expect("every job ends").0 / Duration::SECOND.0)
            .collect(),
        preemptions: outcome.jobs.iter().map(|job| u64::from(job.preemptions)).sum(),
    }
}

/// Few distinct lengths and sizes, so that ties are common; long enough to cross both limits.
fn random_trace(seed: u64) -> (Vec<PoolJob>, u64) {
    let mut chance = Pcg64::new(u128::from(seed), 7);
    let capacity = [8, 12, 16, 64][chance.random_range(0..4)];
    let mut submit = 0;
    let count = chance.random_range(5..40);
    let jobs = (0..count).map(|_| {
        submit += [0, 0, 1, 7, 30, 120][chance.random_range(0..6)];
        let gpus = [1, 1, 2, 3, 4, 7, 8][chance.random_range(0..7)];
        let seconds = match chance.random_range(0..4) {
            0 => 100 * chance.random_range(1..5),
            1 => chance.random_range(1..600),
            2 => chance.random_range(500..2000),
            _ => chance.random_range(2000..9000),
        };
        PoolJob { submit, gpus, seconds }
    });
    (jobs.collect(), capacity)
}

#[test]
fn a_thousand_random_traces_agree_with_the_oracle_under_every_policy() {
    let mut crossings = [0u32; 2];
    for seed in 0..1000 {
        let (jobs, capacity) = random_trace(seed);
        for (name, pool_policy) in POLICIES {
            let expected = simulate(&jobs, capacity, pool_policy);
            let outcome = by_the_engine(&jobs, capacity, name);
            assert_eq!((outcome.alarms, outcome.violations.len()), (0, 0), "seed {seed}, {name}");
            assert_eq!(as_pool_result(&outcome), expected, "seed {seed}, {name}, {capacity} GPUs, {jobs:?}");
        }
        for (limit, crossed) in [LIMITS.0, LIMITS.1].into_iter().zip(&mut crossings) {
            *crossed += u32::from(jobs.iter().any(|job| job.gpus * job.seconds > limit));
        }
    }
    assert!(crossings.iter().all(|crossed| *crossed > 900), "the traces cross both limits: {crossings:?}");
}

#[test]
fn the_oracle_and_the_policy_have_the_same_limits() {
    let limits = vec![GpuTime::gpu_seconds(LIMITS.0), GpuTime::gpu_seconds(LIMITS.1)];
    assert_eq!(policy("tiresias").order, Order::LeastAttained { limits });
}
