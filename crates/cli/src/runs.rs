//! Simulations with a progress bar.

use std::ops::RangeInclusive;

use metronome_core::model::policy::Policy;
use metronome_sim::compare::compare;
use metronome_sim::outcome::Outcome;
use metronome_sim::scenario::Scenario;
use metronome_sim::world::Keep;

use crate::progress::Progress;

/// Outcomes by policy, then by seed.
pub(crate) fn run(
    scenario: &Scenario,
    policies: &[Policy],
    seeds: RangeInclusive<u64>,
    keep: Keep,
) -> Vec<Outcome> {
    let runs = policies.len() * seeds.clone().count();
    let progress = Progress::of(runs, scenario.job_count());
    compare(scenario, policies, seeds, keep, &|at| progress.step(at.run, at.at))
}
