//! Which running jobs may be moved, how often moves are looked for, and what a move takes.
//!
//! A move saves the job's work and starts it again elsewhere. It is made whole, into free capacity, and only if what all jobs
//! lose at the old place exceeds what they would lose at the new one by half as much again as the move takes. So no job is
//! moved to and fro: each move makes things better by more than it costs. A job with rules about other members, or that
//! the rules of others look at, stays where it is.

use super::draft::Reach;
use super::ledger::{Entry, Ledger, Proposal};
use super::view::View;
use crate::model::id::{JobId, NodeId};
use crate::model::job::{Job, Life};
use crate::model::plan::{Assignment, Part};
use crate::model::units::{Duration, Instant};
use crate::traffic::decision_inputs::{Reconfiguration, What, Why};

/// True once in each interval: reports come that often, and so few moves are made in a minute.
pub(super) fn is_time_to_look(view: &View<'_>, every: Duration) -> bool {
    let stretch = |at: Instant| at.0 / every.0;
    view.snapshot.last_pass.is_some_and(|last| stretch(last) < stretch(view.snapshot.now))
}

/// Asks for a decision at the next look: a job that cannot be moved yet may be movable then.
pub(super) fn look_again_soon(view: &View<'_>, ledger: &mut Ledger<'_>) {
    let next = (view.snapshot.now + Duration(1)).rounded_up(view.snapshot.tuning.observe.evaluation_interval);
    ledger.wake_at(next);
}

/// A place for a job of one role without GPUs, whole on one node, if it fits there.
pub(super) fn whole_on(view: &View<'_>, ledger: &Ledger<'_>, id: JobId, to: NodeId) -> Option<Assignment> {
    let spec = &view.snapshot.jobs[id].spec;
    let here = view.snapshot.plan.get(id).filter(|_| !ledger.bookings.govern(id))?;
    let [role] = &spec.roles[..] else { return None };
    let plain = role.shape.each.gpus.is_zero() && role.shape.rules.is_empty() && role.shape.groups.is_empty();
    let fits = ledger.draft.fit_on(to, &role.shape, Reach::Unclaimed) >= here.members();
    let part = Part::of(0, to, here.members());
    Assignment::whole(spec, vec![part]).ok().filter(|_| plain && fits)
}

pub(super) fn is_movable(view: &View<'_>, id: JobId) -> bool {
    can_be_moved(view, id) && has_run_for_long(view, &view.snapshot.jobs[id])
}

/// Whether a job could be moved now, if it were worth it.
pub(super) fn can_be_moved(view: &View<'_>, id: JobId) -> bool {
    may_be_moved(view, id) && view.snapshot.jobs[id].not_before <= view.snapshot.now
}

/// Whether a job could be moved now or later, if it stays as it is.
pub(super) fn may_be_moved(view: &View<'_>, id: JobId) -> bool {
    let job = &view.snapshot.jobs[id];
    let settled = matches!(&job.life, Life::Running(at) if view.snapshot.plan.get(id) == Some(at));
    let unruled =
        job.spec.roles.iter().all(|role| role.shape.rules.is_empty() && role.shape.groups.is_empty());
    settled && unruled && job.spec.capabilities.relocate
}

/// Whether a job has run long enough since it was started or moved.
pub(super) fn has_run_for_long(view: &View<'_>, job: &Job) -> bool {
    job.ripe(runs_at_least(view, job)).is_some_and(|ripe| ripe <= view.snapshot.now)
}

/// The time for which a job stays where it is at least.
pub(super) fn runs_at_least(view: &View<'_>, job: &Job) -> Duration {
    takes(job).times(view.snapshot.tuning.decide.min_run_between_moves).max(view.snapshot.min_run)
}

/// The time for which a job does not train when it is moved.
pub(super) fn takes(job: &Job) -> Duration {
    job.spec.checkpointing.map_or(Duration::ZERO, |costs| costs.takes + costs.restart)
}

/// The move of one job, with its reason.
pub(super) fn proposal(job: JobId, to: Assignment, why: Why, saves: Duration) -> Proposal {
    let (what, jobs) = (What::Place, vec![job]);
    Proposal::of(vec![Entry::Report(Reconfiguration { why, what, jobs, saves }), Entry::Move { job, to }])
}

/// The result of a search that leaves all reservations alone: a job with a reservation has waited long enough.
pub(super) fn beside_reservations<'a, T>(
    ledger: &mut Ledger<'a>,
    find: impl FnOnce(&mut Ledger<'a>) -> T,
) -> T {
    ledger.draft.enforce_reservations(|_| true);
    let found = find(ledger);
    ledger.draft.enforce_reservations(|_| false);
    found
}
