//! Moves away from nodes on which a member falls behind its peers: the whole gang waits for it in every iteration.
//!
//! Only who has itself measured that it is held up is moved, whole, into free room on other nodes, if what it saves exceeds
//! by half as much again what the move takes. One job is moved at a time, those that save most first.

use std::cmp::Reverse;

use super::super::admit::Rules;
use super::super::draft::Draft;
use super::{
    GAIN_OVER_COST, MOST_LOOKED_AT, is_movable, is_time_to_look, look_again_soon, may_be_moved, takes,
};
use crate::model::id::{JobId, NodeId};
use crate::model::plan::Assignment;
use crate::model::units::Duration;
use crate::observe::progress::CHECKED_EVERY;
use crate::observe::scaling::Speed;
use crate::traffic::decision_inputs::{Reconfiguration, What, Why};

/// Somebody who is held up by a member on a node, and at which part of its speed it goes.
type HeldUp = (JobId, NodeId, Speed);

/// The same, with what it would save elsewhere.
type WorthIt = (Reverse<Duration>, JobId, NodeId);

pub(super) fn leave_slow<'a>(rules: &Rules<'a>, draft: &mut Draft<'a>) {
    let held_up = held_up(rules, draft);
    if held_up.is_empty() {
        return;
    }
    look_again_soon(rules, draft);
    if draft.report.cut_short || !is_time_to_look(rules, CHECKED_EVERY) {
        return;
    }
    let mut worth_it: Vec<WorthIt> =
        held_up.into_iter().filter_map(|held_up| worth_it(rules, held_up)).collect();
    worth_it.sort_unstable();
    // Whoever waits for room that is kept has waited long enough.
    draft.heed(|_| true);
    let looked_at = worth_it.into_iter().take(MOST_LOOKED_AT);
    let found = looked_at
        .filter_map(|(Reverse(saves), id, node)| Some((saves, id, node, elsewhere(rules, draft, id)?)))
        .next();
    draft.heed(|_| false);
    if let Some((saves, id, node, place)) = found {
        let (why, what, jobs) = (Why::SlowNode { node }, What::Place, vec![id]);
        draft.report.reconfigured.push(Reconfiguration { why, what, jobs, saves });
        draft.relocate(id, &rules.snapshot.jobs[id], place);
    }
}

/// A place where nobody is known to fall behind.
fn elsewhere<'a>(rules: &Rules<'a>, draft: &mut Draft<'a>, id: JobId) -> Option<Assignment> {
    let job = &rules.snapshot.jobs[id];
    let places = rules.placer.alternatives(draft, job, rules.sizes).ok()?;
    places.into_iter().find(|place| !place.nodes().any(|node| draft.is_slow(node)))
}

/// Those who wait for a member on a slow node in every iteration.
fn held_up(rules: &Rules<'_>, draft: &Draft<'_>) -> Vec<HeldUp> {
    if rules.snapshot.slow.is_empty() {
        return Vec::new();
    }
    let stays = rules.snapshot.plan.iter().filter(|(id, _)| !draft.is_changed(*id));
    let touching = stays.filter(|(_, held)| held.nodes().any(|node| draft.is_slow(node)));
    let movable = touching.filter(|(id, _)| !draft.timetable.governs(*id) && may_be_moved(rules, *id));
    let held_up = movable.filter_map(|(id, _)| {
        let progress = &rules.snapshot.jobs[id].progress;
        let (node, speed) = progress.held_up(|node| draft.is_slow(node), rules.snapshot.now)?;
        Some((id, node, speed))
    });
    held_up.collect()
}

/// What is left takes as much longer as the slowest member does: that is what it would save, less what the move takes.
fn worth_it(rules: &Rules<'_>, (id, node, speed): HeldUp) -> Option<WorthIt> {
    let job = &rules.snapshot.jobs[id];
    let left = job.foreseen(rules.snapshot.now).filter(|_| is_movable(rules, id))?;
    let saves = left - Duration((left.0 as f64 * speed.0 as f64 / Speed::PLAIN.0 as f64) as u64);
    let cost = takes(job).as_secs_f64() * GAIN_OVER_COST;
    (saves.as_secs_f64() > cost).then_some((Reverse(saves), id, node))
}
