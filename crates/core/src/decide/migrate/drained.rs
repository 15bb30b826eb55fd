//! Moves away from nodes that are about to go: whole gangs, while there is time to save what they did, into room that is free.
//!
//! Whoever is done before its node goes stays, and so does whoever cannot be moved, has no other place, or would miss the
//! deadline that it is booked for. One job is moved at a time, those whose node goes first before others, and the next look
//! is a little later: saving is work for a cluster.

use super::super::admit::Rules;
use super::super::draft::Draft;
use super::{
    GAIN_OVER_COST, MOST_LOOKED_AT, can_be_moved, is_time_to_look, look_again_soon, may_be_moved, takes,
};
use crate::decide::snapshot::Snapshot;
use crate::model::cluster::NodeState;
use crate::model::id::{JobId, NodeId};
use crate::model::job::Job;
use crate::model::plan::Assignment;
use crate::model::units::{Duration, Instant};
use crate::observe::progress::CHECKED_EVERY;
use crate::traffic::decision_inputs::{Reconfiguration, What, Why};

/// Somebody whose node goes then.
type Leaving = (Instant, JobId, NodeId);

pub(super) fn leave_drained<'a>(rules: &Rules<'a>, draft: &mut Draft<'a>) {
    let leaving = to_leave(rules, draft);
    if leaving.is_empty() {
        return;
    }
    look_again_soon(rules, draft);
    if draft.report.cut_short || !is_time_to_look(rules, CHECKED_EVERY) {
        return;
    }
    // Whoever waits for room that is kept has waited long enough.
    draft.heed(|_| true);
    let worth_it = leaving.into_iter().filter(|leaving| is_worth_it(rules, leaving));
    let looked_at = worth_it.take(MOST_LOOKED_AT);
    let found = looked_at.filter_map(|(_, id, node)| Some((node, id, elsewhere(rules, draft, id)?))).next();
    draft.heed(|_| false);
    if let Some((node, id, place)) = found {
        let job = &rules.snapshot.jobs[id];
        let (why, what, jobs) = (Why::Drained { node }, What::Place, vec![id]);
        let saves = at_stake(job, rules.snapshot.now);
        draft.report.reconfigured.push(Reconfiguration { why, what, jobs, saves });
        draft.relocate(id, job, place);
    }
}

/// What it has done since it last saved its work, at most: that would be lost with its node.
fn at_stake(job: &Job, now: Instant) -> Duration {
    let done = job.progress.counted_on(now);
    job.spec.checkpointing.and_then(|costs| costs.every).map_or(done, |every| done.min(every))
}

fn elsewhere<'a>(rules: &Rules<'a>, draft: &mut Draft<'a>, id: JobId) -> Option<Assignment> {
    let job = &rules.snapshot.jobs[id];
    rules.placer.alternatives(draft, job, rules.sizes).ok()?.into_iter().next()
}

/// Those whose node goes, while there is time to save what they did, the most urgent first.
fn to_leave(rules: &Rules<'_>, draft: &Draft<'_>) -> Vec<Leaving> {
    let is_draining = |state: NodeState| matches!(state, NodeState::Draining { .. });
    if !rules.snapshot.cluster.nodes().values().any(|node| is_draining(node.state)) {
        return Vec::new();
    }
    let planned = rules.snapshot.plan.iter().filter(|(id, _)| !draft.is_changed(*id));
    let drained = planned.filter_map(|(id, held)| {
        let (at, node) = goes_first(rules, held)?;
        Some((at, id, node))
    });
    let mut leaving: Vec<Leaving> = drained
        .filter(|(_, id, _)| may_be_moved(rules, *id) && keeps_its_promise(rules, draft, *id))
        .filter(|(at, id, _)| has_time_to_save(&rules.snapshot.jobs[*id], rules.snapshot.now, *at))
        .collect();
    leaving.sort_unstable();
    leaving
}

/// Whether it would be in time all the same: who is booked for the size that it asks for, and has time to spare.
fn keeps_its_promise(rules: &Rules<'_>, draft: &Draft<'_>, id: JobId) -> bool {
    if !draft.timetable.governs(id) {
        return true;
    }
    let Snapshot { jobs, plan, now, .. } = *rules.snapshot;
    let (job, held) = (&jobs[id], plan.get(id).map(|held| held.members()));
    let entry = draft.timetable.get(id).filter(|entry| entry.node.is_none());
    let (Some(booking), Some(deadline)) = (entry.and_then(|entry| entry.booking.as_ref()), job.spec.deadline)
    else {
        return false;
    };
    let is_as_asked = held == Some(job.spec.members()) && booking.members_at(now) == job.spec.members();
    is_as_asked && booking.ends + takes(job) <= deadline.at
}

/// The first node under somebody that goes, and when; late, where that is not said; none where all stay.
fn goes_first(rules: &Rules<'_>, held: &Assignment) -> Option<(Instant, NodeId)> {
    let goes = held.nodes().filter_map(|node| match rules.snapshot.cluster.node(node).state {
        NodeState::Draining { until } => Some((until.unwrap_or(Instant(u64::MAX)), node)),
        _ => None,
    });
    goes.min()
}

fn has_time_to_save(job: &Job, now: Instant, goes: Instant) -> bool {
    now + job.spec.checkpointing.map_or(Duration::ZERO, |costs| costs.takes) < goes
}

/// Whether it can go now, and would not be done by then anyhow.
fn is_worth_it(rules: &Rules<'_>, (goes, id, _): &Leaving) -> bool {
    let (job, now) = (&rules.snapshot.jobs[*id], rules.snapshot.now);
    let cost = Duration((GAIN_OVER_COST * takes(job).0 as f64) as u64);
    let is_done_before = job.time_left(now).is_some_and(|left| now + left <= *goes && goes.0 != u64::MAX);
    let is_nearly_done = job.time_left(now).is_some_and(|left| left <= cost);
    can_be_moved(rules, *id) && !is_done_before && !is_nearly_done
}
