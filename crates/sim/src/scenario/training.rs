//! From a pattern and an amount of work to a training loop, and to what the scheduler knows of it.

use std::sync::Arc;

use metronome_core::model::job::{JobSpec, Work};
use metronome_core::model::profile::{Compute, Profile};
use metronome_core::model::units::{Duration, Iterations};

use crate::model::alone::Alone;
use crate::model::{Pattern, TrainingModel};
use crate::noise::Noise;

/// How much there is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Amount {
    Iterations(u64),
    /// As many iterations as come nearest to this, alone on the fewest nodes; at least one.
    Lasting(Duration),
}

/// What all jobs of a scenario train on.
#[derive(Debug)]
pub(crate) struct Ground {
    pub(crate) alone: Alone,
    pub(crate) noise: Noise,
}

impl Ground {
    /// Makes a training loop of `spec`, and tells it how much work that is. None if so many iterations take longer than
    /// can be counted.
    pub(crate) fn train(
        &self,
        spec: &mut JobSpec,
        pattern: Pattern,
        amount: Amount,
    ) -> Option<Arc<TrainingModel>> {
        let iteration = self.alone.iteration(&pattern, spec);
        let iterations = match amount {
            Amount::Iterations(count) => count,
            Amount::Lasting(time) => nearest_count(time, iteration),
        };
        let total = match (iteration.0.checked_mul(iterations), amount) {
            (Some(total), _) if total <= LONGEST => total,
            // One iteration over a link that hardly moves: it is as long as anything can be.
            (_, Amount::Lasting(_)) => LONGEST,
            (_, Amount::Iterations(_)) => return None,
        };
        let (count, alone) = (Iterations(iterations), Duration(total));
        spec.work = Work { iterations: Some(count), alone: Some(alone), ..Work::default() };
        spec.profile = Some(Arc::new(profile(&pattern, spec.members())));
        Some(Arc::new(TrainingModel { pattern, iterations, noise: self.noise.clone() }))
    }
}

/// Half of what fits, so that sums of two times still do.
const LONGEST: u64 = u64::MAX / 2;

fn nearest_count(time: Duration, iteration: Duration) -> u64 {
    let rounded = (u128::from(time.0) + u128::from(iteration.0 / 2)) / u128::from(iteration.0.max(1));
    u64::try_from(rounded).unwrap_or(u64::MAX).max(1)
}

/// What the scheduler may know of a pattern: the compute of a model, the traffic that was declared.
pub(crate) fn profile(pattern: &Pattern, members: u32) -> Profile {
    match pattern {
        Pattern::Gradients(model) => {
            let time = model.iteration.compute + model.iteration.finish;
            let compute = Compute { gpu_type: None, members, time };
            let known = Profile::new(vec![compute], None).expect("a model computes, and a job has members");
            known.reducing(model.iteration.clone())
        }
        Pattern::Phases(traffic) => declared(traffic.clone()),
    }
}

/// The profile of a job of which nothing but its traffic is known.
pub(crate) fn declared(traffic: metronome_core::model::profile::Traffic) -> Profile {
    Profile::new(Vec::new(), Some(traffic)).expect("no compute to be wrong")
}
