//! What is worth moving: a job that runs apart, meets others on links or is held up by one of its nodes goes to a better
//! place once there is room for it, if that saves everybody more than the move costs.
//!
//! A move saves the job's work and starts it again elsewhere. It is made whole, into room that is free, one job in a
//! decision, and only if what all lose at the old place exceeds what they would lose at the new one by half as much again
//! as the move takes. So nobody is moved to and fro: each move makes things better by more than it costs. Who has rules
//! about others, or others about it, stays where it is.

mod cpu_contention;
mod defragmentation;
mod drained;
mod slow_nodes;
mod speculative;

use std::cmp::Reverse;

use super::admit::Rules;
use super::draft::{Draft, Reach};
use super::interleave::why_moved;
use super::placement_cost::{counts, may_look, outlook};
use crate::model::id::{JobId, NodeId};
use crate::model::job::{Job, Life};
use crate::model::plan::{Assignment, Part};
use crate::model::policy::{Moving, Policy};
use crate::model::units::{Duration, Instant};
use crate::observe::progress::CHECKED_EVERY;
use crate::traffic::decision_inputs::{Reconfiguration, What, Why};

pub(super) use defragmentation::{Gathering, Least};

/// So many jobs are looked at in one decision, those with the most left to do first.
const MOST_LOOKED_AT: usize = 16;

/// What a move saves, over what it takes.
const GAIN_OVER_COST: f64 = 1.5;

/// A job runs for so many times as long as a move takes before it is moved again.
const RUNS_BETWEEN: u64 = 10;

pub(super) fn migrate<'a>(rules: &Rules<'a>, policy: &Policy, draft: &mut Draft<'a>) {
    match policy.moving {
        Moving::Never => {}
        Moving::Speculative => speculative::speculate(rules, draft),
        Moving::ForGain => {
            drained::leave_drained(rules, draft);
            slow_nodes::leave_slow(rules, draft);
            move_for_links(rules, draft);
            move_for_cores(rules, draft);
        }
    }
}

/// Somebody goes to where there are more cores for it, and for those it leaves.
fn move_for_cores<'a>(rules: &Rules<'a>, draft: &mut Draft<'a>) {
    if draft.report.cut_short || !is_time_to_look(rules, CHECKED_EVERY) {
        return;
    }
    // Whoever waits for room that is kept has waited long enough.
    draft.heed(|_| true);
    let best = cpu_contention::best_move(rules, draft);
    draft.heed(|_| false);
    if let Some((id, place, saves)) = best {
        let (why, what, jobs) = (Why::Room, What::Place, vec![id]);
        let saves = Duration((saves * 1e9) as u64);
        draft.report.reconfigured.push(Reconfiguration { why, what, jobs, saves });
        draft.relocate(id, &rules.snapshot.jobs[id], place);
    }
}

fn move_for_links<'a>(rules: &Rules<'a>, draft: &mut Draft<'a>) {
    if draft.contention.knows_no_links() || !may_look(draft) || draft.report.cut_short {
        return;
    }
    let movable = longest_first(rules, draft);
    let better = movable.into_iter().find_map(|id| Some((id, better_place(rules, draft, id)?)));
    if let Some((id, (place, saves))) = better {
        let (why, what, jobs) = (why_moved(draft, id), What::Place, vec![id]);
        draft.report.reconfigured.push(Reconfiguration { why, what, jobs, saves });
        draft.relocate(id, &rules.snapshot.jobs[id], place);
        // What it leaves may be of use to who was looked at before.
        draft.report.cut_short = true;
    }
}

/// Those that could be moved and may have a reason to be, the longest first.
fn longest_first<'a>(rules: &Rules<'a>, draft: &Draft<'a>) -> Vec<JobId> {
    let (jobs, now) = (rules.snapshot.jobs, rules.snapshot.now);
    let flows =
        draft.contention.flows().filter(|(id, flow)| draft.assigned(*id).is_none() && !flow.is_local());
    let mut movable: Vec<(Reverse<Duration>, JobId)> = flows
        .filter(|(id, _)| !draft.is_leaving(*id) && !draft.timetable.governs(*id) && is_movable(rules, *id))
        .filter_map(|(id, _)| Some((Reverse(jobs[id].remaining(now).filter(|left| !left.is_zero())?), id)))
        .collect();
    movable.sort_unstable();
    movable.truncate(MOST_LOOKED_AT);
    movable.into_iter().map(|(_, id)| id).collect()
}

/// Once in each such stretch of time: reports come so often, and so few moves are made in a minute.
fn is_time_to_look(rules: &Rules<'_>, every: Duration) -> bool {
    let stretch = |at: Instant| at.0 / every.0;
    rules.snapshot.last_pass.is_some_and(|last| stretch(last) < stretch(rules.snapshot.now))
}

/// Whoever could not go yet may be able to at the next look.
fn look_again_soon(rules: &Rules<'_>, draft: &mut Draft<'_>) {
    let next = (rules.snapshot.now + Duration(1)).rounded_up(CHECKED_EVERY);
    draft.wake = Some(draft.wake.map_or(next, |wake| wake.min(next)));
}

/// The whole of a job of one role without GPUs on one node, if there is room for it.
fn whole_on(rules: &Rules<'_>, draft: &Draft<'_>, id: JobId, to: NodeId) -> Option<Assignment> {
    let spec = &rules.snapshot.jobs[id].spec;
    let here = rules.snapshot.plan.get(id).filter(|_| !draft.timetable.governs(id))?;
    let [role] = &spec.roles[..] else { return None };
    let plain = role.shape.each.gpus.is_zero() && role.shape.rules.is_empty() && role.shape.groups.is_empty();
    let fits = draft.fit_on(to, &role.shape, Reach::Unclaimed) >= here.members();
    let part = Part::of(0, to, here.members());
    Assignment::whole(spec, vec![part]).ok().filter(|_| plain && fits)
}

fn is_movable(rules: &Rules<'_>, id: JobId) -> bool {
    can_be_moved(rules, id) && has_run_for_long(rules, &rules.snapshot.jobs[id])
}

/// Whether it could go elsewhere, were it worth it.
fn can_be_moved(rules: &Rules<'_>, id: JobId) -> bool {
    may_be_moved(rules, id) && rules.snapshot.jobs[id].not_before <= rules.snapshot.now
}

/// Whether it could go elsewhere now or after a while, if it stays as it is.
fn may_be_moved(rules: &Rules<'_>, id: JobId) -> bool {
    let job = &rules.snapshot.jobs[id];
    let settled = matches!(&job.life, Life::Running(at) if rules.snapshot.plan.get(id) == Some(at));
    let unruled =
        job.spec.roles.iter().all(|role| role.shape.rules.is_empty() && role.shape.groups.is_empty());
    settled && unruled && job.spec.capabilities.relocate
}

/// Whether it was not just started or moved.
fn has_run_for_long(rules: &Rules<'_>, job: &Job) -> bool {
    job.ripe(runs_at_least(rules, job)).is_some_and(|ripe| ripe <= rules.snapshot.now)
}

/// For how long it stays where it is at least.
fn runs_at_least(rules: &Rules<'_>, job: &Job) -> Duration {
    takes(job).times(RUNS_BETWEEN).max(rules.snapshot.min_run)
}

/// How long a job does not train when it is moved.
fn takes(job: &Job) -> Duration {
    job.spec.checkpointing.map_or(Duration::ZERO, |costs| costs.takes + costs.restart)
}

/// A place that is better by more than the move costs, if there is one, with what all save by it.
fn better_place<'a>(rules: &Rules<'a>, draft: &mut Draft<'a>, id: JobId) -> Option<(Assignment, Duration)> {
    let job = &rules.snapshot.jobs[id];
    let here = rules.snapshot.plan.get(id)?;
    let loss_here = outlook(rules.snapshot, draft, id, here, &[]).loss;
    let cost = GAIN_OVER_COST * counts(rules.snapshot, job) * takes(job).as_secs_f64();
    if loss_here <= cost {
        return None;
    }
    // Whoever waits for room that is kept has waited long enough.
    draft.heed(|_| true);
    let places = rules.placer.alternatives(draft, job, rules.sizes).unwrap_or_default();
    draft.heed(|_| false);
    let looked =
        places.into_iter().map(|place| (outlook(rules.snapshot, draft, id, &place, &[]).loss, place));
    let (loss, place) = looked.min_by(|(one, _), (other, _)| one.total_cmp(other))?;
    let saves = loss_here - loss;
    (saves > cost).then_some((place, Duration((saves * 1e9) as u64)))
}
