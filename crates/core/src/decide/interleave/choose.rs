//! For each set of jobs that share links, the traffic policies in which they are predicted to lose least.
//!
//! They are looked at again where the ground of the last decision about them has changed. Then traffic policies stay as they are,
//! unless others are better by a margin (`traffic policy::choose`) and by more than the change costs, and not sooner than a while
//! after the last change among these jobs; traffic policies that do harm are changed at once.

use std::collections::BTreeMap;

use super::inputs::{Before, Last, ground, groups, why};
use crate::decide::draft::Draft;
use crate::decide::placement_cost::{counts, is_first, left};
use crate::decide::snapshot::Snapshot;
use crate::model::cluster::Keeping;
use crate::model::id::JobId;
use crate::model::job::Job;
use crate::model::units::{Duration, Instant, Share};
use crate::traffic::TrafficPolicy;
use crate::traffic::choose::{
    Call, Reconsidered, Stake, choose_windows, choose_with, predict_windows, reconsider,
};
use crate::traffic::contention_graph::Flow;
use crate::traffic::decision_inputs::{DecisionInputs, Reconfiguration, What};
use crate::traffic::paced_offset::{Beating, paced};

/// A change of its traffic policy takes a running job about so long until links are shaped anew: what all save is to be more.
const COST: Duration = Duration::from_millis(100);

/// A job whose traffic policy was changed keeps it at least so long, unless that does harm.
const STAYS: Duration = Duration::from_secs(2);

pub(super) fn traffic(draft: &mut Draft<'_>) -> BTreeMap<JobId, TrafficPolicy> {
    let last = Last::of(draft.snapshot.decision_inputs);
    let mut traffic = BTreeMap::new();
    for jobs in groups(&draft.contention) {
        let chosen = lanes_of(draft, &jobs, &last.about(&jobs));
        let named = jobs.into_iter().zip(chosen);
        traffic.extend(named.filter(|(_, traffic)| !traffic.is_default()));
    }
    traffic
}

/// The traffic policies of those who meet from now on. What that rests on, and why it is other than before, is written down.
fn lanes_of(draft: &mut Draft<'_>, jobs: &[JobId], before: &Before<'_>) -> Vec<TrafficPolicy> {
    let snapshot = draft.snapshot;
    let current: Vec<TrafficPolicy> = jobs.iter().map(|job| snapshot.plan.traffic_policy(*job)).collect();
    let now = DecisionInputs { changed: before.changed(), ..ground(draft, jobs) };
    if before.is_still(&now) {
        draft.decision_inputs.push(now);
        let known = |job: &JobId| Some((*job, snapshot.plan.slowdown_vs_fair(*job)?));
        draft.slowdowns.extend(jobs.iter().filter_map(known));
        return current;
    }
    let stays = now.changed.map(|changed| changed + STAYS).filter(|until| *until > snapshot.now);
    let verdict = judge(draft, jobs, &current);
    let chosen = match (&verdict.call, stays) {
        (Call::Keep, _) | (Call::Change, Some(_)) => &current,
        (Call::Change | Call::Must, _) => &verdict.traffic,
    };
    let slowdowns = slowdowns_of_the_first(draft, jobs, chosen);
    draft.slowdowns.extend(slowdowns);
    match (verdict, stays) {
        (Verdict { call: Call::Keep, .. }, _) => {
            draft.decision_inputs.push(now);
            current
        }
        (Verdict { call: Call::Change, .. }, Some(until)) => {
            look_again(draft, before, until);
            current
        }
        (Verdict { traffic, changed, saves, .. }, _) => {
            let reason = why(draft, before, &now);
            draft.decision_inputs.push(if changed.is_empty() { now } else { now.changed_at(snapshot.now) });
            note(draft, Reconfiguration { why: reason, what: What::Lanes, jobs: changed, saves });
            traffic
        }
    }
}

/// Nothing is changed for anybody who runs where only newcomers get a traffic policy.
fn note(draft: &mut Draft<'_>, made: Reconfiguration) {
    if !made.jobs.is_empty() {
        draft.report.reconfigured.push(made);
    }
}

/// Too soon: the ground is left as it was, so that there is still something to look at.
fn look_again(draft: &mut Draft<'_>, before: &Before<'_>, until: Instant) {
    for ground in before.decision_inputs() {
        if !draft.decision_inputs.contains(ground) {
            draft.decision_inputs.push((*ground).clone());
        }
    }
    draft.wake = draft.wake.into_iter().chain([until]).min();
}

/// What is to be done about traffic policies.
struct Verdict {
    call: Call,
    /// The best there are.
    traffic: Vec<TrafficPolicy>,
    /// Those who run already and have another traffic policy by that.
    changed: Vec<JobId>,
    /// What all save by it together.
    saves: Duration,
}

/// Iteration times of highest-priority jobs under traffic policies, relative to fair sharing; none where all jobs share fairly.
fn slowdowns_of_the_first(
    draft: &Draft<'_>,
    jobs: &[JobId],
    traffic: &[TrafficPolicy],
) -> Vec<(JobId, Share)> {
    let is_first = |job: &JobId| is_first(draft.snapshot, &draft.snapshot.jobs[*job]);
    if traffic.iter().all(TrafficPolicy::is_default) || !jobs.iter().any(is_first) {
        return Vec::new();
    }
    let fair = slowdowns(draft, jobs, &vec![TrafficPolicy::default(); jobs.len()]);
    let directed = slowdowns(draft, jobs, traffic);
    let each = jobs.iter().zip(directed.iter().zip(fair)).filter(|(job, _)| is_first(job));
    let ratio = |directed: f64, fair: f64| (directed / fair * f64::from(Share::WHOLE.0)) as u32;
    each.map(|(job, (directed, fair))| (*job, Share(ratio(*directed, fair)))).collect()
}

/// How much slower than alone each job is under traffic policies, by the slowdown model.
fn slowdowns(draft: &Draft<'_>, jobs: &[JobId], traffic: &[TrafficPolicy]) -> Vec<f64> {
    let flows = jobs.iter().filter_map(|job| draft.contention.flow(*job));
    let flows: Vec<&Flow> = flows.collect();
    predict_windows(traffic, |traffic| {
        let directed: Vec<(&Flow, TrafficPolicy)> =
            flows.iter().copied().zip(traffic.iter().copied()).collect();
        draft.contention.slowdowns_under(&directed)
    })
}

fn judge(draft: &Draft<'_>, jobs: &[JobId], current: &[TrafficPolicy]) -> Verdict {
    let snapshot = draft.snapshot;
    let flows: Vec<&Flow> = jobs.iter().filter_map(|job| draft.contention.flow(*job)).collect();
    let stakes: Vec<Stake> = jobs.iter().map(|job| stake(draft, &snapshot.jobs[*job])).collect();
    let predict = |traffic: &[TrafficPolicy]| slowdowns(draft, jobs, traffic);
    let is_harmed = jobs.iter().any(|job| snapshot.jobs[*job].slower_than_fair.is_some());
    let is_measured = jobs.iter().all(|job| snapshot.jobs[*job].times_measured > 0);
    let best = match draft.contention.keeping() {
        _ if is_harmed => vec![TrafficPolicy::default(); jobs.len()],
        // A rotation rests on bursts as the agent finds them, so declared loops are shared as before.
        _ if !is_measured => {
            choose_with(&stakes, |slowdowns| turns(draft, &flows, &stakes, slowdowns), predict)
        }
        Keeping::Exactly => {
            choose_with(&stakes, |slowdowns| turns(draft, &flows, &stakes, slowdowns), predict)
        }
        Keeping::Roughly => {
            let alone: Vec<Duration> = flows.iter().map(|flow| flow.alone).collect();
            choose_windows(&stakes, &alone, predict)
        }
    };
    let Reconsidered { call, traffic, eased } = reconsider(&stakes, current, best, predict);
    let call =
        if is_harmed && current.iter().any(|traffic| !traffic.is_default()) { Call::Must } else { call };
    let changed = changed(snapshot, jobs, current, &traffic);
    let saves = saves(snapshot, jobs, &eased);
    let pays = saves > COST.times(changed.len() as u64);
    let call = if call == Call::Change && !pays { Call::Keep } else { call };
    Verdict { call, traffic, changed, saves }
}

/// Turns for all of them, if their periods fit on a circle and keeping to it costs less than it saves.
fn turns(
    draft: &Draft<'_>,
    flows: &[&Flow],
    stakes: &[Stake],
    slowdowns: &[f64],
) -> Option<Vec<TrafficPolicy>> {
    let beating = |((flow, stake), slowdown): ((&&Flow, &Stake), &f64)| Beating {
        period: flow.alone,
        sends: draft.contention.sends(flow),
        links: draft.contention.demands(flow),
        tier: stake.tier,
        slowdown: *slowdown,
    };
    let all = flows.iter().zip(stakes).zip(slowdowns);
    paced(&all.map(beating).collect::<Vec<Beating>>(), draft.contention.keeping())
}

fn changed(
    snapshot: &Snapshot<'_>,
    jobs: &[JobId],
    current: &[TrafficPolicy],
    traffic: &[TrafficPolicy],
) -> Vec<JobId> {
    let each = jobs.iter().zip(current.iter().zip(traffic));
    let other = each.filter(|(job, (was, is))| was != is && snapshot.plan.get(**job).is_some());
    other.map(|(job, _)| *job).collect()
}

fn saves(snapshot: &Snapshot<'_>, jobs: &[JobId], eased: &[f64]) -> Duration {
    let saved = |(job, eased): (&JobId, &f64)| {
        let job = &snapshot.jobs[*job];
        counts(snapshot, job) * left(job, snapshot.now) * eased
    };
    let seconds: f64 = jobs.iter().zip(eased).map(saved).sum();
    Duration((seconds.max(0.0) * 1e9) as u64)
}

pub(super) fn stake(draft: &Draft<'_>, job: &Job) -> Stake {
    let snapshot = draft.snapshot;
    let higher = snapshot.priorities.keys().filter(|other| **other > job.spec.priority).count();
    Stake {
        counts: counts(snapshot, job),
        tier: u8::try_from(higher).unwrap_or(u8::MAX),
        is_first: is_first(snapshot, job),
    }
}
