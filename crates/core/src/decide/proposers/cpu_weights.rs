//! CPU weights of jobs that can use more cores than their node has.
//!
//! The jobs that are served first have more weight than the others, the more certain their remaining work is; the
//! others keep the default, so no job stops. A job of which nothing is known yet gets a little more than the default,
//! so that it shows what it does. Weights follow from what is known now: deciding again gives the same.

use std::collections::BTreeMap;

use crate::decide::cpu_sharing::{CoreSharer, CoreSharing, cores, in_order, is_crowded};
use crate::decide::ledger::{Entry, Ledger, Proposal};
use crate::decide::proposer::Proposer;
use crate::decide::view::View;
use crate::model::cpu_weight::CpuWeight;
use crate::model::id::JobId;
use crate::model::policy::{Moving, Throttling};
use crate::model::units::Duration;

#[derive(Default)]
pub(in crate::decide) struct CpuWeights;

impl<'a> Proposer<'a> for CpuWeights {
    fn propose(&mut self, view: &View<'a>, ledger: &mut Ledger<'a>) -> Option<Proposal> {
        let crowds = match (view.policy.throttling, view.policy.moving) {
            (Throttling::Never, Moving::Never) => CoreSharing::default(),
            _ => CoreSharing::of(&ledger.draft),
        };
        let capacity = |node| cores(view.snapshot.cluster.node(node).capacity.cpu);
        let crowded = || crowds.iter().filter(|(node, mates)| is_crowded(mates, capacity(*node)));
        let mut weights = BTreeMap::new();
        if view.policy.throttling == Throttling::LeastLeftFirst {
            for (node, mates) in crowded() {
                weights.extend(ahead(
                    &in_order(&view.snapshot.tuning.decide, mates, capacity(node), crowds.usual),
                    capacity(node),
                ));
            }
        }
        if crowds.iter().next().is_some() {
            // Reports that come meanwhile may change the order, or make a move worth it.
            ledger.wake_at(
                (view.snapshot.now + Duration(1))
                    .rounded_up(view.snapshot.tuning.observe.evaluation_interval),
            );
        }
        let changes = changes(view.snapshot.plan.weights(), &weights);
        (!changes.is_empty()).then(|| Proposal::of(vec![Entry::CpuWeights(changes)]))
    }
}

/// The jobs that together can use all cores, in the order in which they are served.
fn ahead(order: &[CoreSharer], capacity: f64) -> BTreeMap<JobId, CpuWeight> {
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
