//! One job leaves a node on which a member falls behind its peers: the whole gang waits for it in every iteration.
//!
//! A job is moved only if it has measured itself that it is held up, whole, into free capacity on other nodes, if what it
//! saves exceeds what the move takes by half as much again. One job is moved at a time, the job that saves most first.

use std::cmp::Reverse;

use crate::decide::ledger::{Ledger, Proposal};
use crate::decide::movable::{
    self, beside_reservations, is_movable, is_time_to_look, look_again_soon, may_be_moved, takes,
};
use crate::decide::placement;
use crate::decide::proposer::Proposer;
use crate::decide::view::View;
use crate::model::id::{JobId, NodeId};
use crate::model::plan::Assignment;
use crate::model::policy::Moving;
use crate::model::units::Duration;
use crate::observe::scaling::Speed;
use crate::traffic::decision_inputs::Why;

/// A job that is held up by a member on a node, and the part of its speed at which it goes.
type HeldUp = (JobId, NodeId, Speed);

/// The same, with what it would save elsewhere.
type WorthIt = (Reverse<Duration>, JobId, NodeId);

#[derive(Default)]
pub(in crate::decide) struct LeaveSlowNodes;

impl<'a> Proposer<'a> for LeaveSlowNodes {
    fn propose(&mut self, view: &View<'a>, ledger: &mut Ledger<'a>) -> Option<Proposal> {
        if view.policy.moving != Moving::ForGain {
            return None;
        }
        let held_up = held_up(view, ledger);
        if held_up.is_empty() {
            return None;
        }
        look_again_soon(view, ledger);
        if ledger.report.cut_short || !is_time_to_look(view, view.snapshot.tuning.observe.evaluation_interval)
        {
            return None;
        }
        let mut worth_it: Vec<WorthIt> =
            held_up.into_iter().filter_map(|held_up| worth_it(view, held_up)).collect();
        worth_it.sort_unstable();
        let mut candidates = worth_it.into_iter().take(view.snapshot.tuning.decide.max_move_candidates);
        let (saves, id, node, place) = beside_reservations(ledger, |ledger| {
            candidates
                .find_map(|(Reverse(saves), id, node)| Some((saves, id, node, elsewhere(view, ledger, id)?)))
        })?;
        Some(movable::proposal(id, place, Why::SlowNode { node }, saves))
    }
}

/// A place on no slow node.
fn elsewhere<'a>(view: &View<'a>, ledger: &mut Ledger<'a>, id: JobId) -> Option<Assignment> {
    let job = &view.snapshot.jobs[id];
    let places = placement::options(view, &mut ledger.draft, job).ok()?;
    places.into_iter().find(|place| !place.nodes().any(|node| ledger.draft.is_slow(node)))
}

/// Movable jobs that wait for a member on a slow node in every iteration.
fn held_up(view: &View<'_>, ledger: &Ledger<'_>) -> Vec<HeldUp> {
    if view.snapshot.slow.is_empty() {
        return Vec::new();
    }
    let stays = view.snapshot.plan.iter().filter(|(id, _)| !ledger.draft.is_changed(*id));
    let touching = stays.filter(|(_, held)| held.nodes().any(|node| ledger.draft.is_slow(node)));
    let movable = touching.filter(|(id, _)| !ledger.bookings.govern(*id) && may_be_moved(view, *id));
    let held_up = movable.filter_map(|(id, _)| {
        let progress = &view.snapshot.jobs[id].progress;
        let (node, speed) = progress.held_up(|node| ledger.draft.is_slow(node), view.snapshot.now)?;
        Some((id, node, speed))
    });
    held_up.collect()
}

/// The time that a job saves elsewhere: what is left takes as much longer as its slowest member does.
fn worth_it(view: &View<'_>, (id, node, speed): HeldUp) -> Option<WorthIt> {
    let job = &view.snapshot.jobs[id];
    let left = job.foreseen(view.snapshot.now).filter(|_| is_movable(view, id))?;
    let saves = left - Duration((left.0 as f64 * speed.0 as f64 / Speed::PLAIN.0 as f64) as u64);
    let cost = takes(job).as_secs_f64() * view.snapshot.tuning.decide.min_move_gain;
    (saves.as_secs_f64() > cost).then_some((Reverse(saves), id, node))
}
