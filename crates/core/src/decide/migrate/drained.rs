//! Moves away from nodes that are about to go: whole gangs, while there is time to save what they did, into room that is free.
//!
//! Whoever is done before its node goes stays, and so does whoever cannot be moved or has no other place. One job is moved
//! at a time, those whose node goes first before others, and the next look is a little later: saving is work for a cluster.

use super::super::admit::Rules;
use super::super::draft::Draft;
use super::{GAIN_OVER_COST, MOST_LOOKED_AT, can_be_moved, is_time_to_look, takes};
use crate::cluster::NodeState;
use crate::id::JobId;
use crate::job::Job;
use crate::plan::Assignment;
use crate::progress::CHECKED_EVERY;
use crate::units::{Duration, Instant};

pub(super) fn leave_drained<'a>(rules: &Rules<'a>, draft: &mut Draft<'a>) {
    let leaving = to_leave(rules, draft);
    if leaving.is_empty() {
        return;
    }
    let next = (rules.snapshot.now + Duration(1)).rounded_up(CHECKED_EVERY);
    draft.wake = Some(draft.wake.map_or(next, |wake| wake.min(next)));
    if draft.report.cut_short || !is_time_to_look(rules, CHECKED_EVERY) {
        return;
    }
    // Whoever waits for room that is kept has waited long enough.
    draft.heed(|_| true);
    let found =
        leaving.into_iter().take(MOST_LOOKED_AT).find_map(|id| Some((id, elsewhere(rules, draft, id)?)));
    draft.heed(|_| false);
    if let Some((id, place)) = found {
        draft.relocate(id, &rules.snapshot.jobs[id], place);
    }
}

fn elsewhere<'a>(rules: &Rules<'a>, draft: &mut Draft<'a>, id: JobId) -> Option<Assignment> {
    let job = &rules.snapshot.jobs[id];
    rules.placer.alternatives(draft, job, rules.sizes).ok()?.into_iter().next()
}

/// Those who are to go elsewhere, the most urgent first.
fn to_leave(rules: &Rules<'_>, draft: &Draft<'_>) -> Vec<JobId> {
    let is_draining = |state: NodeState| matches!(state, NodeState::Draining { .. });
    if !rules.snapshot.cluster.nodes().values().any(|node| is_draining(node.state)) {
        return Vec::new();
    }
    let planned = rules.snapshot.plan.iter().filter(|(id, _)| !draft.is_changed(*id));
    let drained = planned.filter_map(|(id, held)| Some((goes_at(rules, held)?, id)));
    let mut leaving: Vec<(Instant, JobId)> = drained
        .filter(|(_, id)| !draft.timetable.governs(*id) && can_be_moved(rules, *id))
        .filter(|(at, id)| is_worth_it(&rules.snapshot.jobs[*id], rules.snapshot.now, *at))
        .collect();
    leaving.sort_unstable();
    leaving.into_iter().map(|(_, id)| id).collect()
}

/// When the first node under somebody goes; late, where that is not said; none where all stay.
fn goes_at(rules: &Rules<'_>, held: &Assignment) -> Option<Instant> {
    let goes = held.nodes().filter_map(|node| match rules.snapshot.cluster.node(node).state {
        NodeState::Draining { until } => Some(until.unwrap_or(Instant(u64::MAX))),
        _ => None,
    });
    goes.min()
}

/// Whether there is time to save what it did, and it would not be done by then anyhow.
fn is_worth_it(job: &Job, now: Instant, goes: Instant) -> bool {
    let save = job.spec.checkpointing.map_or(Duration::ZERO, |costs| costs.takes);
    let cost = Duration((GAIN_OVER_COST * takes(job).0 as f64) as u64);
    let is_done_before = job.time_left(now).is_some_and(|left| now + left <= goes && goes.0 != u64::MAX);
    let is_nearly_done = job.time_left(now).is_some_and(|left| left <= cost);
    now + save < goes && !is_done_before && !is_nearly_done
}
