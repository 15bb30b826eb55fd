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

use crate::deadlines::Timetable;
use crate::decide::snapshot::Snapshot;
use crate::model::cpu_weight::CpuWeight;
use crate::model::id::{JobId, NodeId};
use crate::model::job::{Job, Standing};
use crate::model::plan::{Amendment, Reservation};
use crate::model::policy::Policy;
use crate::model::report::{Reason, Report};
use crate::model::units::Instant;
use crate::traffic::TrafficPolicy;
use crate::traffic::decision_inputs::DecisionInputs;

pub(crate) use deadlines::{Advice, advise};
pub use order::Line;

/// What was decided: a change of the plan, and why.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct Decision {
    pub amendment: Amendment,
    pub report: Report,
    /// Places among equals that this pass gives.
    pub standings: Vec<(JobId, Standing)>,
    /// What jobs may do on links from now on, where that changes.
    pub traffic: Vec<(JobId, TrafficPolicy)>,
    /// What that was decided on.
    pub decision_inputs: Vec<DecisionInputs>,
    /// How much of their nodes' CPU jobs have beside others from now on, where that changes.
    pub weights: Vec<(JobId, CpuWeight)>,
    /// Who waits for a time at which there is room.
    pub reservations: Vec<Reservation>,
    /// What is booked for jobs with deadlines.
    pub timetable: Timetable,
    /// Who will never run, and why.
    pub refused: Vec<(JobId, Reason)>,
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
