//! How much of its node's CPU each job has, where jobs can use more than there is.
//!
//! Those who are served first have as much more weight than the others as it is sure what they have left; the others keep
//! the usual one, so nobody stops. Of whom nothing is known yet is let in a little, so that it can show what it does.
//! A weight follows from what is known now: deciding again gives the same.

use std::collections::BTreeMap;

use super::cpu_sharing::{Crowds, Mate, cores, in_order, is_crowded};
use super::draft::Draft;
use crate::model::cpu_weight::CpuWeight;
use crate::model::id::JobId;
use crate::model::policy::{Moving, Policy, Throttling};
use crate::observe::progress::CHECKED_EVERY;

pub(super) fn throttle(policy: &Policy, draft: &mut Draft<'_>) {
    let crowds = match (policy.throttling, policy.moving) {
        (Throttling::Never, Moving::Never) => Crowds::default(),
        _ => Crowds::of(draft),
    };
    let capacity = |node| cores(draft.snapshot.cluster.node(node).capacity.cpu);
    let crowded = || crowds.iter().filter(|(node, mates)| is_crowded(mates, capacity(*node)));
    let mut weights = BTreeMap::new();
    if policy.throttling == Throttling::LeastLeftFirst {
        for (node, mates) in crowded() {
            weights.extend(ahead(&in_order(mates, capacity(node), crowds.usual), capacity(node)));
        }
    }
    let looks_again = crowds.iter().next().is_some();
    draft.weights = changes(draft.snapshot.plan.weights(), &weights);
    if looks_again {
        // What jobs report meanwhile may put them in another order, or make it worth moving somebody.
        let next = (draft.snapshot.now + crate::model::units::Duration(1)).rounded_up(CHECKED_EVERY);
        draft.wake = Some(draft.wake.map_or(next, |wake| wake.min(next)));
    }
}

/// Those who can use all there is together, in the order in which they are served.
fn ahead(order: &[Mate], capacity: f64) -> BTreeMap<JobId, CpuWeight> {
    let mut free = capacity;
    let mut weights = BTreeMap::new();
    for mate in order {
        if free > 0.0 || !mate.is_known() {
            weights.insert(mate.job, CpuWeight::ahead(mate.confidence));
        }
        free -= if mate.is_known() { mate.cores } else { 0.0 };
    }
    weights.retain(|_, weight| !weight.is_default());
    weights
}

fn changes(
    before: &BTreeMap<JobId, CpuWeight>,
    after: &BTreeMap<JobId, CpuWeight>,
) -> Vec<(JobId, CpuWeight)> {
    let given_up = before.keys().filter(|job| !after.contains_key(job)).map(|job| (*job, CpuWeight::USUAL));
    let new = after.iter().filter(|(job, weight)| before.get(job) != Some(weight));
    let mut changes: Vec<(JobId, CpuWeight)> =
        given_up.chain(new.map(|(job, weight)| (*job, *weight))).collect();
    changes.sort_unstable();
    changes
}
