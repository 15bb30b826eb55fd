//! Runs every policy with every seed on one scenario, several at a time, in an order that does not depend on which
//! of them is done first.

use std::ops::RangeInclusive;

use rayon::prelude::*;

use metronome_core::model::policy::Policy;

use crate::outcome::Outcome;
use crate::scenario::Scenario;
use crate::world::{self, Keep, RunOptions};

/// How far one run of a comparison is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Which run, counted from 0 in the order of the outcomes.
    pub run: usize,
    pub at: world::Progress,
}

/// Outcomes by policy as given, then by seed.
pub fn compare(
    scenario: &Scenario,
    policies: &[Policy],
    seeds: RangeInclusive<u64>,
    keep: Keep,
    progress: &(dyn Fn(Progress) + Sync),
) -> Vec<Outcome> {
    let runs: Vec<(&Policy, u64)> =
        policies.iter().flat_map(|policy| seeds.clone().map(move |seed| (policy, seed))).collect();
    runs.into_par_iter()
        .enumerate()
        .map(|(run, (policy, seed))| {
            let options = RunOptions { seed, keep, ..RunOptions::new(policy.clone()) };
            world::run(scenario, options, &|at| progress(Progress { run, at }))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use metronome_core::model::cluster::Cluster;
    use metronome_core::model::id::IdVec;
    use metronome_core::model::units::Duration;

    use crate::scenario::{Costs, Departures};

    fn nothing_to_do() -> Scenario {
        Scenario {
            name: "empty".into(),
            cluster: Cluster::new(&[]).unwrap(),
            queues: IdVec::filled(metronome_core::model::queue::Queue::open("default"), 1),
            policies: Vec::new(),
            sources: Vec::new(),
            within_node: None,
            round: Duration::ZERO,
            rounds: Default::default(),
            tick: Duration::ZERO,
            costs: Costs::default(),
            departures: Departures::default(),
            estimates: world::Estimates::Exact,
            faults: Vec::new(),
            commands: Default::default(),
        }
    }

    #[test]
    fn outcomes_come_by_policy_then_seed() {
        let policies = ["srtf", "fifo"].map(|name| Policy::named(name).unwrap());
        let outcomes = compare(&nothing_to_do(), &policies, 1..=2, Keep::Figures, &|_| {});
        let order: Vec<_> = outcomes.iter().map(|outcome| (outcome.policy.as_str(), outcome.seed)).collect();
        assert_eq!(order, [("srtf", 1), ("srtf", 2), ("fifo", 1), ("fifo", 2)]);
    }
}
