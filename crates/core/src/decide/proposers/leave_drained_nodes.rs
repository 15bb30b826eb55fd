//! One job leaves a node that is about to go: its whole gang, while there is time to save its work, into free capacity.
//!
//! A job that ends before its node goes stays, and so does a job that cannot be moved, has no other place, or would miss the
//! deadline that it is booked for. One job is moved at a time, the job whose node goes first before others, and the next
//! look is a little later: saving work loads the cluster.

use crate::decide::ledger::{Ledger, Proposal};
use crate::decide::movable::{
    self, beside_reservations, can_be_moved, is_time_to_look, look_again_soon, may_be_moved, takes,
};
use crate::decide::placement;
use crate::decide::proposer::Proposer;
use crate::decide::snapshot::Snapshot;
use crate::decide::view::View;
use crate::model::cluster::NodeState;
use crate::model::id::{JobId, NodeId};
use crate::model::job::Job;
use crate::model::plan::Assignment;
use crate::model::policy::Moving;
use crate::model::units::{Duration, Instant};
use crate::traffic::decision_inputs::Why;

/// A job, and the first of its nodes to go, with the time.
type Leaving = (Instant, JobId, NodeId);

#[derive(Default)]
pub(in crate::decide) struct LeaveDrainedNodes;

impl<'a> Proposer<'a> for LeaveDrainedNodes {
    fn propose(&mut self, view: &View<'a>, ledger: &mut Ledger<'a>) -> Option<Proposal> {
        if view.policy.moving != Moving::ForGain {
            return None;
        }
        let leaving = to_leave(view, ledger);
        if leaving.is_empty() {
            return None;
        }
        look_again_soon(view, ledger);
        if ledger.report.cut_short || !is_time_to_look(view, view.snapshot.tuning.observe.evaluation_interval)
        {
            return None;
        }
        let worth_it = leaving.into_iter().filter(|leaving| is_worth_it(view, leaving));
        let mut candidates = worth_it.take(view.snapshot.tuning.decide.max_move_candidates);
        let (node, id, place) = beside_reservations(ledger, |ledger| {
            candidates.find_map(|(_, id, node)| Some((node, id, elsewhere(view, ledger, id)?)))
        })?;
        let saves = at_stake(&view.snapshot.jobs[id], view.snapshot.now);
        Some(movable::proposal(id, place, Why::Drained { node }, saves))
    }
}

/// The work since its last checkpoint, at most: that would be lost with its node.
fn at_stake(job: &Job, now: Instant) -> Duration {
    let done = job.progress.reliable_work(now);
    job.spec.checkpointing.and_then(|costs| costs.every).map_or(done, |every| done.min(every))
}

fn elsewhere<'a>(view: &View<'a>, ledger: &mut Ledger<'a>, id: JobId) -> Option<Assignment> {
    let job = &view.snapshot.jobs[id];
    placement::options(view, &mut ledger.draft, job).ok()?.into_iter().next()
}

/// Jobs whose node goes while there is time to save their work, the most urgent first.
fn to_leave(view: &View<'_>, ledger: &Ledger<'_>) -> Vec<Leaving> {
    let is_draining = |state: NodeState| matches!(state, NodeState::Draining { .. });
    if !view.snapshot.cluster.nodes().values().any(|node| is_draining(node.state)) {
        return Vec::new();
    }
    let planned = view.snapshot.plan.iter().filter(|(id, _)| !ledger.draft.is_changed(*id));
    let drained = planned.filter_map(|(id, held)| {
        let (at, node) = goes_first(view, held)?;
        Some((at, id, node))
    });
    let mut leaving: Vec<Leaving> = drained
        .filter(|(_, id, _)| may_be_moved(view, *id) && keeps_its_promise(view, ledger, *id))
        .filter(|(at, id, _)| has_time_to_save(&view.snapshot.jobs[*id], view.snapshot.now, *at))
        .collect();
    leaving.sort_unstable();
    leaving
}

/// Whether a job would be in time after the move: it is booked for the size that it asks for, and has time to spare.
fn keeps_its_promise(view: &View<'_>, ledger: &Ledger<'_>, id: JobId) -> bool {
    if !ledger.bookings.govern(id) {
        return true;
    }
    let Snapshot { jobs, plan, now, .. } = *view.snapshot;
    let (job, held) = (&jobs[id], plan.get(id).map(|held| held.members()));
    let entry = ledger.bookings.timetable.get(id).filter(|entry| entry.node.is_none());
    let (Some(booking), Some(deadline)) = (entry.and_then(|entry| entry.booking.as_ref()), job.spec.deadline)
    else {
        return false;
    };
    let is_as_asked = held == Some(job.spec.members()) && booking.members_at(now) == job.spec.members();
    is_as_asked && booking.ends + takes(job) <= deadline.at
}

/// The first of the nodes of an assignment to go, and when; late, where that is not stated; none where all stay.
fn goes_first(view: &View<'_>, held: &Assignment) -> Option<(Instant, NodeId)> {
    let goes = held.nodes().filter_map(|node| match view.snapshot.cluster.node(node).state {
        NodeState::Draining { until } => Some((until.unwrap_or(Instant(u64::MAX)), node)),
        _ => None,
    });
    goes.min()
}

fn has_time_to_save(job: &Job, now: Instant, goes: Instant) -> bool {
    now + job.spec.checkpointing.map_or(Duration::ZERO, |costs| costs.takes) < goes
}

/// Whether a job can be moved now, and would not have ended by then anyway.
fn is_worth_it(view: &View<'_>, (goes, id, _): &Leaving) -> bool {
    let (job, now) = (&view.snapshot.jobs[*id], view.snapshot.now);
    let cost = Duration((view.snapshot.tuning.decide.min_move_gain * takes(job).0 as f64) as u64);
    let is_done_before = job.time_left(now).is_some_and(|left| now + left <= *goes && goes.0 != u64::MAX);
    let is_nearly_done = job.time_left(now).is_some_and(|left| left <= cost);
    can_be_moved(view, *id) && !is_done_before && !is_nearly_done
}
