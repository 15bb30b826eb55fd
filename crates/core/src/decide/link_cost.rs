//! What a place on the links costs everybody, and whether to wait for a better one.
//!
//! Where jobs meet on links, each gets slower. A job that starts at a place loses by that, and so do those it meets; the
//! losses of all, in seconds of training, each counted by its priority, are what places are compared by. A job waits
//! rather than starting at the best of them
//!
//! - while the loss exceeds a small part of what it has left to do, and also what waiting costs: those it meets are
//!   expected to leave, and until the first of them does nothing is won by waiting;
//! - while somebody of the highest priority would be slowed down noticeably; or
//! - while a link on its way is down;
//!
//! and never longer than a few times its own length from when it came: whoever has waited so long starts anywhere.

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

/// Whether this decision has not looked at links for long enough.
pub(super) fn may_predict(draft: &Draft<'_>) -> bool {
    draft.link_predictions.get() < draft.snapshot.tuning.decide.max_link_predictions
}

/// Whether the policy weighs links for a job, and something is known of what it would cross.
pub(super) fn is_weighed(view: &View<'_>, draft: &Draft<'_>, job: &Job) -> bool {
    let sends = || job.spec.profile.as_ref().is_some_and(|profile| profile.exchange().is_some());
    let weighs = view.policy.slowdowns != Slowdowns::Unseen && !draft.contention.knows_no_links();
    weighs && may_predict(draft) && sends()
}

/// What it costs that a job is at a place.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LinkCost {
    /// Seconds of training that all lose together, each counted by its priority.
    pub(super) loss: f64,
    /// When the first of those it meets is expected to leave.
    eases: Option<Instant>,
    /// Whether somebody of the highest priority is slowed down noticeably.
    hurts_the_first: bool,
    /// Whether a link on its way is down.
    stalls: bool,
}

/// The place at which everybody loses least; an error where none is good enough to start at.
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

/// Whether a job does better to wait than to take a place from which these have left.
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

/// What it would cost that a job is at a place, beside how it would go alone on the fewest nodes, with those thought away
/// who are gone.
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
    let met = contention.met_nearby(&flow.route, |other| other == id || gone.contains(&other));
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
    /// Somebody takes so much longer, as a part of what it has left, and is slowed down so far in all.
    fn add(&mut self, snapshot: &Snapshot<'_>, job: &Job, longer: f64, slowdown: f64) {
        self.loss += priority_weight(snapshot, job) * seconds_left(snapshot, job) * longer;
        self.hurts_the_first |=
            slowdown > snapshot.tuning.decide.max_slowdown_of_highest_priority && is_first(snapshot, job);
    }
}

/// Whether a job that would start now at such a place does better to wait.
fn is_worth_waiting(snapshot: &Snapshot<'_>, job: &Job, cost: &LinkCost) -> bool {
    let Some(eases) = cost.eases else { return cost.stalls };
    let loss = cost.loss / priority_weight(snapshot, job);
    let wait = eases.since(snapshot.now).as_secs_f64();
    let tuning = &snapshot.tuning.decide;
    let pays = loss > tuning.negligible_loss_part * seconds_left(snapshot, job)
        && loss > tuning.min_loss_per_wait * wait;
    pays || cost.hurts_the_first || cost.stalls
}

/// How long a job waits in all before it starts wherever it can.
fn patience(snapshot: &Snapshot<'_>, job: &Job) -> Duration {
    let tuning = &snapshot.tuning.decide;
    let length = job.spec.work.alone.unwrap_or(tuning.assumed_training_time);
    let lengths = if is_first(snapshot, job) { tuning.max_wait_for_place_of_highest_priority } else { tuning.max_wait_for_place };
    length.times(lengths)
}

/// How much longer an iteration takes there than on the fewest nodes, without others.
pub(super) fn stretch(job: &Job, flow: &Flow) -> f64 {
    match (job.spec.work.alone, job.spec.work.iterations) {
        (Some(alone), Some(iterations)) if !alone.is_zero() => {
            (flow.alone.as_secs_f64() * iterations.0 as f64 / alone.as_secs_f64()).max(1.0)
        }
        _ => 1.0,
    }
}

/// Seconds that a job still has to train alone.
pub(super) fn seconds_left(snapshot: &Snapshot<'_>, job: &Job) -> f64 {
    let now = snapshot.now;
    let unknown = || job.progress.executed(now).max(snapshot.tuning.decide.assumed_training_time);
    job.remaining(now).filter(|left| !left.is_zero()).unwrap_or_else(unknown).as_secs_f64()
}

/// How much a job's loss counts: from once to four times, by its priority.
pub(super) fn priority_weight(snapshot: &Snapshot<'_>, job: &Job) -> f64 {
    1.0 + snapshot.tuning.decide.extra_loss_weight_of_highest_priority
        * priority_share(snapshot.priorities, job.spec.priority).as_f64()
}

/// Whether nobody has a higher priority, and somebody a lower one.
pub(super) fn is_first(snapshot: &Snapshot<'_>, job: &Job) -> bool {
    let highest = snapshot.priorities.last_key_value().map(|(priority, _)| *priority);
    snapshot.priorities.len() > 1 && highest == Some(job.spec.priority)
}
