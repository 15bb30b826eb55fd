//! The pipeline: from a snapshot to a plan with reasons, in six stages.

mod admission_loop;
mod admit;
mod burst_compatibility;
mod cpu_sharing;
mod cpu_weights;
mod deadlines;
mod draft;
mod fits;
mod group_counts;
pub(crate) mod infeasible;
mod interleave;
mod migrate;
pub(crate) mod order;
mod peak_bandwidth;
pub(crate) mod place;
mod placement_cost;
mod preempt;
pub(crate) mod queue_shares;
mod reservations;
mod size;
pub mod snapshot;

use crate::decide::snapshot::Snapshot;
use crate::model::id::NodeId;
use crate::model::job::Job;
use crate::model::plan::Amendment;
use crate::model::policy::Policy;
use crate::model::report::Report;
use crate::model::units::Instant;

pub(crate) use deadlines::{Advice, advise};
pub use order::Line;

/// A change of the plan, why, and when to decide again.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct Decision {
    pub amendment: Amendment,
    pub report: Report,
    /// When to decide again even if nothing happens.
    pub wake: Option<Instant>,
}

/// Decides. The same snapshot and policy give the same bytes, and deciding again on what was decided gives no
/// change.
pub fn decide(snapshot: &Snapshot<'_>, policy: &Policy) -> Decision {
    let ranker = order::order(snapshot, policy);
    let placer = place::placer(policy.placement);
    let rules = admit::Rules::of(snapshot, policy, size::Sizes::Least, placer);
    let schedule = deadlines::schedule(&rules);
    let mut draft = admit::admit(&rules, &ranker, schedule);
    migrate::migrate(&rules, policy, &mut draft);
    placement_cost::look_again(&mut draft);
    cpu_weights::throttle(policy, &mut draft);
    // Last, as it is about the places that everybody has in the end.
    interleave::interleave(policy, &mut draft);
    draft.finish(ranker.wake())
}

/// The nodes on which a job of one member could be placed beside the plan; none for a gang.
pub(crate) fn feasible(snapshot: &Snapshot<'_>, policy: &Policy, job: &Job) -> Vec<NodeId> {
    place::placer(policy.placement).feasible(snapshot, job, size::Sizes::Least)
}
