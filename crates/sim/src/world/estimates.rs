//! What the engine is told about how long jobs take. Owners misjudge; the world knows.

use std::sync::Arc;

use metronome_core::job::{JobSpec, Work};
use metronome_core::units::{Duration, Share};
use rand::RngExt;
use rand_pcg::Pcg64;

use crate::scenario::gaussian;

/// How well the engine knows how long jobs take.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Estimates {
    #[default]
    Exact,
    /// Each job's length is multiplied by a number of median one, lognormal with this standard deviation.
    Lognormal { sigma: f64 },
    /// Each job's length is off by up to this part of it, more or less, as likely by one part as by another.
    Uniform { error: Share },
}

impl Estimates {
    /// What is asked for, unless nothing is: then as the scenario says.
    pub(super) fn or(self, scenario: Self) -> Self {
        if self == Self::Exact { scenario } else { self }
    }
}

/// The stream of random numbers for this purpose: 1 and 2 are for steps, 11 to 15 for jobs that are drawn.
const STREAM: u128 = 21;

impl Estimates {
    /// By what each of so many jobs is misjudged. A job's own does not depend on how many come after it.
    pub(super) fn factors(self, seed: u64, jobs: usize) -> Vec<f64> {
        let mut random = Pcg64::new(u128::from(seed), STREAM);
        let factor = |_| match self {
            Self::Exact => 1.0,
            Self::Lognormal { sigma } => (sigma * gaussian(&mut random)).exp(),
            Self::Uniform { error } => 1.0 + error.as_f64() * (2.0 * random.random::<f64>() - 1.0),
        };
        (0..jobs).map(factor).collect()
    }
}

/// The job as the engine hears of it.
pub(super) fn misjudged(spec: &Arc<JobSpec>, factor: f64) -> Arc<JobSpec> {
    let Some(alone) = spec.work.alone.filter(|_| factor != 1.0) else { return spec.clone() };
    let alone = Duration((alone.0 as f64 * factor).round() as u64).max(Duration(1));
    Arc::new(JobSpec { work: Work { alone: Some(alone), ..spec.work }, ..(**spec).clone() })
}
