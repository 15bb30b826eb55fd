//! What the engine is told about how long jobs take, and how they scale. Owners misjudge; the world knows.

use std::sync::Arc;

use metronome_core::model::job::{JobSpec, Work};
use metronome_core::model::units::{Duration, Share};
use metronome_core::observe::scaling::{Scaling, Speed};
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
    /// How fast each job is with the most members is off by up to this part of it, more or less; with fewer by so much less
    /// as they are fewer times as many as the least. Jobs say every minute how far they have come.
    Scaling { error: Share },
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
            Self::Uniform { error } | Self::Scaling { error } => {
                1.0 + error.as_f64() * (2.0 * random.random::<f64>() - 1.0)
            }
        };
        (0..jobs).map(factor).collect()
    }
}

impl Estimates {
    /// The job as the engine hears of it.
    pub(super) fn misjudged(self, spec: &Arc<JobSpec>, factor: f64) -> Arc<JobSpec> {
        match self {
            Self::Scaling { .. } => scaling_otherwise(spec, factor),
            _ => longer(spec, factor),
        }
    }
}

fn longer(spec: &Arc<JobSpec>, factor: f64) -> Arc<JobSpec> {
    let Some(alone) = spec.work.alone.filter(|_| factor != 1.0) else { return spec.clone() };
    let alone = Duration((alone.0 as f64 * factor).round() as u64).max(Duration(1));
    Arc::new(JobSpec { work: Work { alone: Some(alone), ..spec.work }, ..(**spec).clone() })
}

/// A job that is so many times as fast with the most members, by its owner's word.
fn scaling_otherwise(spec: &Arc<JobSpec>, factor: f64) -> Arc<JobSpec> {
    let Some(scaling) = spec.scaling.as_ref().filter(|_| factor != 1.0) else { return spec.clone() };
    let sizes = scaling.sizes();
    let doublings = |members: u32| (f64::from(members) / f64::from(sizes[0].0)).log2();
    let all = sizes.last().map_or(1.0, |(most, _)| doublings(*most)).max(f64::MIN_POSITIVE);
    let said = |(members, speed): &(u32, Speed)| {
        let by = factor.powf(doublings(*members) / all);
        (*members, Speed((speed.0 as f64 * by).round().max(1.0) as u64))
    };
    let said = Scaling::new(sizes.iter().map(said).collect()).expect("the least is as fast as it is");
    Arc::new(JobSpec { scaling: Some(Arc::new(said)), ..(**spec).clone() })
}

#[cfg(test)]
mod tests {
    use metronome_core::model::job::Gang;
    use metronome_core::model::units::Resources;

    use super::*;

    #[test]
    fn a_table_lies_most_about_the_most_members() {
        let mut spec = JobSpec::workers("job", Gang::elastic(1, 4).unwrap(), Resources::NONE);
        let sizes = [(1, 1_000_000), (2, 1_800_000), (4, 3_000_000)];
        let scaling = Scaling::new(sizes.map(|(members, speed)| (members, Speed(speed))).to_vec()).unwrap();
        spec.scaling = Some(Arc::new(scaling));
        let said = Estimates::Scaling { error: Share(500_000) }.misjudged(&Arc::new(spec), 1.44);
        let said = said.scaling.as_ref().unwrap().sizes();
        assert_eq!(
            said,
            [(1, 1_000_000), (2, 2_160_000), (4, 4_320_000)].map(|(n, speed)| (n, Speed(speed)))
        );
    }
}
