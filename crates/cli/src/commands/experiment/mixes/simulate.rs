//! What the simulator says of a run: the same nodes, links and starts, and each job as it was traced on links of its own.

use std::path::Path;
use std::sync::Arc;

use metronome_core::model::job::JobSpec;
use metronome_core::model::policy::Policy;
use metronome_core::model::profile::{Bucket, Iteration};
use metronome_core::model::units::{Bytes, Duration, Instant, Iterations, Share};
use metronome_sim::model::{Model, Pattern, TrainingModel};
use metronome_sim::noise::Noise;
use metronome_sim::scenario::{Arrival, Scenario, Source};
use metronome_sim::world::{self, RunOptions};

use super::definition::{FAIR, Mix, SEPARATE, Set, job_name};
use super::runs::{JobRun, Loop, Run};
use super::scenario::{Wiring, documents};
use crate::failure::Failure;
use crate::local::kept_by_the_kernel;
use crate::policies;

/// Jobs that outlast the first one train fewer iterations in the next simulation, until all end together.
const ROUNDS: usize = 4;

/// The mean iteration time of each job of a run in milliseconds; none where a job was not traced. `separate` is the
/// reference run of the mix.
pub(super) fn simulated(
    set: &Set,
    mix: &Mix,
    run: &Run,
    separate: &Run,
) -> Result<Option<Vec<f64>>, Failure> {
    let Some(simulation) = Simulation::of(set, mix, run, separate)? else { return Ok(None) };
    let mut counts: Vec<u64> =
        mix.jobs.iter().map(|job| job.iterations.saturating_sub(FIRST_SIMULATED as u64).max(1)).collect();
    for _ in 0..ROUNDS {
        let Some(trained) = simulation.train(&counts) else { return Ok(None) };
        let first_end = trained.iter().map(|job| job.ends).fold(f64::INFINITY, f64::min);
        let until = |(job, count): (&Trained, &u64)| {
            ((first_end - job.begins) / job.each(*count)).round().clamp(1.0, *count as f64) as u64
        };
        let fewer: Vec<u64> = trained.iter().zip(&counts).map(until).collect();
        if fewer == counts || run.policy == SEPARATE {
            break;
        }
        counts = fewer;
    }
    let trained = simulation.train(&counts);
    Ok(trained.map(|jobs| jobs.iter().zip(&counts).map(|(job, count)| job.each(*count)).collect()))
}

/// When a job began and ended to train, in milliseconds.
struct Trained {
    begins: f64,
    ends: f64,
}

impl Trained {
    fn each(&self, count: u64) -> f64 {
        (self.ends - self.begins) / count as f64
    }
}

struct Simulation {
    scenario: Scenario,
    policy: Policy,
    seed: u64,
    /// What each job trains, and when it begins and its profile is first used, in milliseconds.
    jobs: Vec<(TrainingModel, f64, Option<f64>)>,
}

impl Simulation {
    fn of(set: &Set, mix: &Mix, run: &Run, separate: &Run) -> Result<Option<Self>, Failure> {
        let models = separate.jobs.iter().map(|job| traced(job, set.scale));
        let Some(models) = models.collect::<Option<Vec<TrainingModel>>>() else { return Ok(None) };
        let (wiring, name) = match run.policy.as_str() {
            SEPARATE => (Wiring::Separate, FAIR),
            policy => (Wiring::Shared, policy),
        };
        let text = documents(set, mix, wiring, &vec![vec!["simulated".to_owned()]; mix.jobs.len()]);
        let scenario = Scenario::read_from(text.as_bytes(), &mix.name, Path::new(""))?;
        let scenario = kept_by_the_kernel(&scenario);
        let begins = begins(run);
        let learned = run.jobs.iter().zip(&begins).map(|(job, begins)| {
            Some((job.first_used_at? - job.times.get(FIRST_SIMULATED)? + begins).max(*begins))
        });
        let jobs = models.into_iter().zip(&begins).zip(learned);
        let jobs = jobs.map(|((model, begins), learned)| (model, *begins, learned)).collect();
        Ok(Some(Self { policy: policies::find(name, &scenario)?, scenario, seed: run.start, jobs }))
    }

    /// So many iterations of each job; none if a job does not end.
    fn train(&self, counts: &[u64]) -> Option<Vec<Trained>> {
        let arrivals = self.scenario.arrivals(self.seed).into_iter().zip(&self.jobs).zip(counts);
        let arrival =
            |((arrival, (model, begins, _)), count): ((Arrival, &(TrainingModel, f64, _)), &u64)| {
                let mut spec = JobSpec::clone(&arrival.spec);
                spec.work.iterations = Some(Iterations(*count));
                Arrival {
                    at: Instant((begins * 1e6) as u64),
                    spec: Arc::new(spec),
                    training: Some(Arc::new(TrainingModel { iterations: *count, ..model.clone() })),
                    ..arrival
                }
            };
        let sources = vec![Source::Listed(arrivals.map(arrival).collect())];
        let scenario = Scenario { sources, ..self.scenario.clone() };
        let outcome = world::run(&scenario, self.options(), &|_| {});
        // Arrivals are sorted by time, so places are found by name.
        let of = |place: usize| {
            let job = outcome.jobs.iter().find(|job| *job.name == *job_name(place))?;
            Some(Trained { begins: job.start?.0 as f64 / 1e6, ends: job.end?.0 as f64 / 1e6 })
        };
        (0..self.jobs.len()).map(of).collect()
    }

    /// Profiles are used from when they were used in fact, or never.
    fn options(&self) -> RunOptions {
        let seen = |(place, (_, begins, learned)): (usize, &(TrainingModel, f64, Option<f64>))| {
            let after = learned.map(|learned| Duration(((learned - begins) * 1e6) as u64));
            (job_name(place).into(), after)
        };
        let loops_seen = self.jobs.iter().enumerate().map(seen).collect();
        RunOptions { seed: self.seed, loops_seen, ..RunOptions::new(self.policy.clone()) }
    }
}

/// The first iteration sets up buckets: how bursts meet depends on when the next one begins.
const FIRST_SIMULATED: usize = 1;

/// When each job began its first simulated iteration, since the first job did.
fn begins(run: &Run) -> Vec<f64> {
    let begins = |job: &JobRun| job.times.get(FIRST_SIMULATED).copied().unwrap_or_default();
    let first = run.jobs.iter().map(begins).fold(f64::INFINITY, f64::min);
    run.jobs.iter().map(|job| begins(job) - first).collect()
}

/// A job of a run on separate links: its loop, with compute that varies as its iterations did.
fn traced(job: &JobRun, scale: u64) -> Option<TrainingModel> {
    let traced = job.facts.as_ref()?.r#loop.as_ref()?;
    let model = Model { name: job.job.clone(), iteration: iteration(traced, scale) };
    Some(TrainingModel { pattern: Pattern::Gradients(Arc::new(model)), iterations: 1, noise: noise(job) })
}

/// Bytes are those of the cluster, before rates are divided.
fn iteration(traced: &Loop, scale: u64) -> Iteration {
    let time = |milliseconds: f64| Duration((milliseconds * 1e6).round() as u64);
    let bucket = |(ready, bytes): &(f64, u64)| Bucket { ready: time(*ready), bytes: Bytes(bytes * scale) };
    Iteration {
        compute: time(traced.compute_ms),
        buckets: traced.buckets.iter().map(bucket).collect(),
        finish: time(traced.finish_ms),
    }
}

/// Later iterations only: the first ones set up buckets.
const WARM: usize = 2;

fn noise(job: &JobRun) -> Noise {
    let times: Vec<f64> = job.times.windows(2).skip(WARM).map(|ends| ends[1] - ends[0]).collect();
    let count = times.len().max(1) as f64;
    let mean = times.iter().sum::<f64>() / count;
    let variance = times.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / count;
    Noise::Gaussian(Share(
        (variance.sqrt() / mean.max(1e-9) * f64::from(Share::WHOLE.0)).min(MOST_NOISE) as u32
    ))
}

const MOST_NOISE: f64 = 200_000.0;

#[cfg(test)]
mod tests {
    use super::super::definition::tests::mixes;
    use super::super::rows::tests::job;
    use super::super::runs::Facts;
    use super::super::runs::tests::run;
    use super::*;

    /// A job that computes for 100 ms and sends 1.25 MB at its end, over links of 25 MB/s.
    fn traced_job(place: usize) -> JobRun {
        let buckets = vec![(100.0, 1_250_000)];
        let facts = Facts {
            torch: "2".into(),
            members: 2,
            nodes: 2,
            threads: 1,
            batch: 1,
            bytes: 1_250_000,
            r#loop: Some(Loop { compute_ms: 100.0, finish_ms: 0.0, buckets }),
        };
        JobRun { facts: Some(facts), ..job(place, 5, 150.0) }
    }

    #[test]
    fn jobs_on_separate_links_take_what_they_compute_and_send_and_more_on_shared_ones() {
        let mixes = mixes();
        let (set, mut mix) = (&mixes.sets[0], mixes.sets[0].mixes[0].clone());
        mix.jobs[0].iterations = 60;
        mix.jobs[1].iterations = 90;
        let of = |policy| Run { jobs: vec![traced_job(0), traced_job(1)], ..run("twins", 1, policy) };
        let separate = of(SEPARATE);
        let alone = simulated(set, &mix, &separate, &separate).unwrap().unwrap();
        assert!(alone.iter().all(|each| (each - 150.0).abs() < 0.5), "{alone:?}");
        let fair = simulated(set, &mix, &of(FAIR), &separate).unwrap().unwrap();
        assert!(fair.iter().all(|each| (each - 200.0).abs() < 2.0), "they begin together: {fair:?}");
    }

    #[test]
    fn a_job_that_was_not_traced_is_not_simulated() {
        let mixes = mixes();
        let set = &mixes.sets[0];
        let untraced = Run { jobs: vec![traced_job(0), job(1, 5, 150.0)], ..run("twins", 1, SEPARATE) };
        assert_eq!(simulated(set, &set.mixes[0], &untraced, &untraced).unwrap(), None);
    }
}
