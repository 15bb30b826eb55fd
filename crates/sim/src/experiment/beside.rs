//! A policy in simulation beside the same policy elsewhere, job by job: means may agree where jobs do not.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Part;
use crate::outcome::{Fate, JobOutcome, Outcome};
use crate::results::statistics::Sorted;

/// Over the jobs that completed in both.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Beside {
    pub scenario: String,
    pub policy: String,
    pub observed: String,
    pub jobs: usize,
    /// Simulated over observed completion time.
    pub jct_ratio: Spread,
    /// How far the two completion times are apart on average, over the mean of the observed ones.
    pub jct_distance: f64,
    /// Whether the same jobs are late: the correlation of their ranks by completion time, 1 where the order is the same.
    pub rank_correlation: Option<f64>,
    pub simulated_starts: u64,
    pub observed_starts: u64,
}

/// Percentiles by nearest rank.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    pub p10: f64,
    pub median: f64,
    pub p90: f64,
}

/// Each observation of a scenario beside the first run of its policy; nothing where no job completed in both.
pub fn beside(part: &Part, outcomes: &[Outcome]) -> Vec<Beside> {
    let find = |policy: &str| outcomes.iter().find(|outcome| outcome.policy == policy);
    let pair =
        |observed: &super::Observed| compare(&part.name, find(&observed.policy)?, find(&observed.name)?);
    part.observed.iter().filter_map(pair).collect()
}

fn compare(scenario: &str, simulated: &Outcome, observed: &Outcome) -> Option<Beside> {
    let pairs = pairs(simulated, observed);
    let seconds: Vec<(f64, f64)> = pairs.iter().map(|(a, b)| (seconds(a), seconds(b))).collect();
    let ratios = Sorted::ratios(seconds.iter().filter(|(_, seen)| *seen > 0.0).map(|(a, b)| a / b));
    let total: f64 = seconds.iter().map(|(_, seen)| seen).sum();
    let starts = |of: fn(&(&JobOutcome, &JobOutcome)) -> u32| {
        pairs.iter().map(|pair| 1 + u64::from(of(pair))).sum::<u64>()
    };
    Some(Beside {
        scenario: scenario.to_owned(),
        policy: simulated.policy.clone(),
        observed: observed.policy.clone(),
        jobs: pairs.len(),
        jct_ratio: Spread {
            p10: ratios.percentile(10)?,
            median: ratios.percentile(50)?,
            p90: ratios.percentile(90)?,
        },
        jct_distance: seconds.iter().map(|(a, b)| (a - b).abs()).sum::<f64>() / total,
        rank_correlation: correlation(
            &ranks(seconds.iter().map(|pair| pair.0)),
            &ranks(seconds.iter().map(|pair| pair.1)),
        ),
        simulated_starts: starts(|pair| pair.0.preemptions),
        observed_starts: starts(|pair| pair.1.preemptions),
    })
}

/// By name, in the order of the simulated jobs.
fn pairs<'a>(simulated: &'a Outcome, observed: &'a Outcome) -> Vec<(&'a JobOutcome, &'a JobOutcome)> {
    let seen: BTreeMap<&str, &JobOutcome> = completed(observed).map(|job| (&*job.name, job)).collect();
    completed(simulated).filter_map(|job| Some((job, *seen.get(&*job.name)?))).collect()
}

fn completed(outcome: &Outcome) -> impl Iterator<Item = &JobOutcome> {
    outcome.jobs.iter().filter(|job| job.fate == Fate::Completed)
}

fn seconds(job: &JobOutcome) -> f64 {
    job.end.map_or(0.0, |end| end.since(job.submit).as_secs_f64())
}

/// The place of each value in ascending order; equals have the mean of their places.
fn ranks(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let values: Vec<f64> = values.collect();
    let place = |value: &f64| {
        let less = values.iter().filter(|other| *other < value).count() as f64;
        let equal = values.iter().filter(|other| *other == value).count() as f64;
        less + (equal - 1.0) / 2.0
    };
    values.iter().map(place).collect()
}

/// Nothing where one of the two does not vary.
fn correlation(a: &[f64], b: &[f64]) -> Option<f64> {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (mean_a, mean_b) = (mean(a), mean(b));
    let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
        a.iter().zip(b).map(|(a, b)| of(a - mean_a, b - mean_b)).sum()
    };
    let spread = (sum(&|a, _| a * a) * sum(&|_, b| b * b)).sqrt();
    (spread > 0.0).then(|| sum(&|a, b| a * b) / spread)
}
