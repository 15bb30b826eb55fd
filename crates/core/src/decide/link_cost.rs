//! What a place costs all jobs on links, and whether to wait for a better one.
//!
//! Jobs that meet on links slow each other down. A job that starts at a place loses by that, and so do the jobs it
//! meets; places are compared by the losses of all, in seconds of training, each counted by the priority of its job. A
//! job waits rather than starting at the best place
//!
//! - while the loss exceeds a small part of what it has left to do, and also what waiting costs: the jobs it meets are
//!   expected to end, and until the first of them does nothing is won by waiting;
//! - while a job of the highest priority would be slowed down noticeably; or
//! - while a link on its route is down;
//!
//! and never longer than a few times its own length after its submission: then it starts anywhere.

use super::draft::Draft;
use super::estimates::expected_end;
use super::order::priority_share;
use super::peak_bandwidth;
use super::view::View;
use crate::decide::snapshot::Snapshot;
use crate::model::id::JobId;
use crate::model::job::Job;
use crate::model::plan::Assignment;
use crate::model::policy::Slowdowns;
use crate::model::report::Reason;
use crate::model::units::{Duration, Instant};
use crate::traffic::contention_graph::{Flow, pattern_of};
use crate::traffic::slowdown_model::Care;

/// Whether this decision may predict more slowdowns.
pub(super) fn may_predict(draft: &Draft<'_>) -> bool {
    draft.link_predictions.get() < draft.snapshot.tuning.decide.max_link_predictions
}

/// Whether the policy weighs links for a job, and the traffic of the job and the links are known.
pub(super) fn is_weighed(view: &View<'_>, draft: &Draft<'_>, job: &Job) -> bool {
    let sends = || job.spec.profile.as_ref().is_some_and(|profile| profile.exchange().is_some());
    let weighs = view.policy.slowdowns != Slowdowns::Unseen && !draft.contention.has_no_links();
    weighs && may_predict(draft) && sends()
}

/// What a place on links costs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LinkCost {
    /// Seconds of training that all jobs lose together, each weighted by its priority.
    pub(super) loss: f64,
    /// The expected end of the first of the jobs that it meets.
    eases: Option<Instant>,
    /// Whether a job of the highest priority is slowed down noticeably.
    hurts_the_first: bool,
    /// Whether a link on its route is down.
    stalls: bool,
}

/// The place at which all jobs lose least; an error where a job does better to wait.
pub(super) fn choose(
    view: &View<'_>,
    draft: &Draft<'_>,
    id: JobId,
    places: Vec<Assignment>,
) -> Result<Assignment, Reason> {
    let job = &view.snapshot.jobs[id];
    let with_cost = |place| (cost_at(view.snapshot, draft, id, &place, &[]), place);
    let compared: Vec<(LinkCost, Assignment)> = places.into_iter().map(with_cost).collect();
    let best = compared.into_iter().min_by(|(one, _), (other, _)| one.loss.total_cmp(&other.loss));
    let (cost, place) = best.expect("there is a place, or a reason why not");
    if waits(view, job, &cost) {
        return Err(Reason::BandwidthContended { patience: Some(patience(view.snapshot, job)) });
    }
    Ok(place)
}

/// Whether a job does better to wait than to take a place from which these jobs have left.
pub(super) fn is_not_worth_taking(
    view: &View<'_>,
    draft: &Draft<'_>,
    id: JobId,
    place: &Assignment,
    gone: &[JobId],
) -> bool {
    let job = &view.snapshot.jobs[id];
    is_weighed(view, draft, job)
        && match view.policy.slowdowns {
            Slowdowns::Reserved => !peak_bandwidth::is_left(draft, job, place, gone),
            _ => waits(view, job, &cost_at(view.snapshot, draft, id, place, gone)),
        }
}

fn waits(view: &View<'_>, job: &Job, cost: &LinkCost) -> bool {
    view.policy.slowdowns == Slowdowns::WaitedOut
        && view.snapshot.now < job.submitted + patience(view.snapshot, job)
        && is_worth_waiting(view.snapshot, job, cost)
}

/// The cost of a place for a job, beside how it would run alone on the fewest nodes, without the jobs that are gone.
pub(super) fn cost_at(
    snapshot: &Snapshot<'_>,
    draft: &Draft<'_>,
    id: JobId,
    place: &Assignment,
    gone: &[JobId],
) -> LinkCost {
    let job = &snapshot.jobs[id];
    let contention = &*draft.contention;
    let flow = pattern_of(&job.spec).and_then(|pattern| contention.flow_at(&job.spec, &pattern, place));
    let Some(flow) = flow else { return LinkCost::default() };
    let met = contention.jobs_sharing_links_nearby(&flow.route, |other| other == id || gone.contains(&other));
    let met: Vec<JobId> = met.into_iter().collect();
    let others: Vec<&Flow> = met.iter().filter_map(|met| contention.flow(*met)).collect();
    let care = if others.len() < snapshot.tuning.traffic.crowd_size { Care::Glance } else { Care::Estimate };
    let before = contention.slowdowns(&others, care);
    let after = contention.slowdowns(&[&others[..], &[&flow]].concat(), care);
    let own = after.last().copied().unwrap_or(1.0);
    draft.link_predictions.set(draft.link_predictions.get() + 1 + met.len() as u64);
    let mut cost = LinkCost { stalls: flow.is_stalled(), ..LinkCost::default() };
    cost.add(snapshot, job, stretch(job, &flow) * own - 1.0, own);
    for (at, other) in met.iter().map(|met| &snapshot.jobs[*met]).enumerate() {
        cost.add(snapshot, other, after[at] - before[at], after[at]);
        let leaves = expected_end(snapshot, other);
        cost.eases = Some(cost.eases.map_or(leaves, |eases| eases.min(leaves)));
    }
    cost
}

impl LinkCost {
    /// Adds the loss of one job: it takes longer by this part of what it has left, and its slowdown in all is
    /// `slowdown`.
    fn add(&mut self, snapshot: &Snapshot<'_>, job: &Job, longer: f64, slowdown: f64) {
        self.loss += priority_weight(snapshot, job) * seconds_left(snapshot, job) * longer;
        self.hurts_the_first |=
            slowdown > snapshot.tuning.decide.max_slowdown_of_highest_priority && is_first(snapshot, job);
    }
}

/// Whether a job does better to wait than to start now at this cost.
fn is_worth_waiting(snapshot: &Snapshot<'_>, job: &Job, cost: &LinkCost) -> bool {
    let Some(eases) = cost.eases else { return cost.stalls };
    let loss = cost.loss / priority_weight(snapshot, job);
    let wait = eases.since(snapshot.now).as_secs_f64();
    let tuning = &snapshot.tuning.decide;
    let pays = loss > tuning.negligible_loss_part * seconds_left(snapshot, job)
        && loss > tuning.min_loss_per_wait * wait;
    pays || cost.hurts_the_first || cost.stalls
}

/// The longest that a job waits before it starts at any place.
fn patience(snapshot: &Snapshot<'_>, job: &Job) -> Duration {
    let tuning = &snapshot.tuning.decide;
    let length = job.spec.work.alone.unwrap_or(tuning.assumed_training_time);
    let lengths = if is_first(snapshot, job) {
        tuning.max_wait_for_place_of_highest_priority
    } else {
        tuning.max_wait_for_place
    };
    length.times(lengths)
}

/// The ratio of an iteration alone at a place to one on the fewest nodes.
pub(super) fn stretch(job: &Job, flow: &Flow) -> f64 {
    match (job.spec.work.alone, job.spec.work.iterations) {
        (Some(alone), Some(iterations)) if !alone.is_zero() => {
            (flow.alone.as_secs_f64() * iterations.0 as f64 / alone.as_secs_f64()).max(1.0)
        }
        _ => 1.0,
    }
}

/// Seconds of training that a job has left alone.
pub(super) fn seconds_left(snapshot: &Snapshot<'_>, job: &Job) -> f64 {
    let now = snapshot.now;
    let unknown = || job.progress.executed(now).max(snapshot.tuning.decide.assumed_training_time);
    job.remaining(now).filter(|left| !left.is_zero()).unwrap_or_else(unknown).as_secs_f64()
}

/// The weight of a loss by the priority of its job: one for the lowest.
pub(super) fn priority_weight(snapshot: &Snapshot<'_>, job: &Job) -> f64 {
    1.0 + snapshot.tuning.decide.extra_loss_weight_of_highest_priority
        * priority_share(snapshot.priorities, job.spec.priority).as_f64()
}

/// Whether a job has the highest priority of several.
pub(super) fn is_first(snapshot: &Snapshot<'_>, job: &Job) -> bool {
    let highest = snapshot.priorities.last_key_value().map(|(priority, _)| *priority);
    snapshot.priorities.len() > 1 && highest == Some(job.spec.priority)
}
