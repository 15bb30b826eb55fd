//! For each set of jobs that share links, the traffic policies under which they are predicted to lose least.
//!
//! A set is looked at again where the inputs of the last decision about it have changed. Then its policies stay,
//! unless others are better by a margin (`traffic::choose`) and by more than the change costs, and not sooner than a
//! while after the last change in the set; policies that do harm are changed at once.

use std::collections::BTreeMap;

use crate::decide::draft::Draft;
use crate::decide::ledger::{Basis, Ledger};
use crate::decide::link_cost::{is_first, priority_weight, seconds_left};
use crate::decide::snapshot::Snapshot;
use crate::decide::traffic_inputs::{Before, Last, ground, groups, stake, why};
use crate::model::cluster::Keeping;
use crate::model::id::JobId;
use crate::model::units::{Duration, Share};
use crate::traffic::TrafficPolicy;
use crate::traffic::choose::{
    Call, Reconsidered, Stake, choose_windows, choose_with, predict_windows, reconsider,
};
use crate::traffic::contention_graph::Flow;
use crate::traffic::decision_inputs::{DecisionInputs, Reconfiguration, What};
use crate::traffic::paced_offset::{PacedLoop, paced};

pub(super) fn traffic(ledger: &mut Ledger<'_>, basis: &mut Basis) -> BTreeMap<JobId, TrafficPolicy> {
    let last = Last::of(ledger.draft.snapshot.decision_inputs);
    let mut traffic = BTreeMap::new();
    for jobs in groups(&ledger.draft.contention) {
        let chosen = policies_of(ledger, basis, &jobs, &last.about(&jobs));
        let named = jobs.into_iter().zip(chosen);
        traffic.extend(named.filter(|(_, traffic)| !traffic.is_default()));
    }
    traffic
}

/// The traffic policies of a set of jobs from now on. Their inputs, and the reason for a change, are written down.
fn policies_of(
    ledger: &mut Ledger<'_>,
    basis: &mut Basis,
    jobs: &[JobId],
    before: &Before<'_>,
) -> Vec<TrafficPolicy> {
    let snapshot = ledger.draft.snapshot;
    let current: Vec<TrafficPolicy> = jobs.iter().map(|job| snapshot.plan.traffic_policy(*job)).collect();
    let now = DecisionInputs { changed: before.changed(), ..ground(&ledger.draft, jobs) };
    if before.is_still(&now) {
        basis.inputs.push(now);
        basis.slowdowns.extend(slowdowns_as_chosen(snapshot, jobs, &current));
        return current;
    }
    let stays = now
        .changed
        .map(|changed| changed + snapshot.tuning.decide.min_time_between_traffic_changes)
        .filter(|until| *until > snapshot.now);
    // Where a node has not applied a directive, the jobs that meet share fairly for now, whatever the plan says.
    let in_effect = match jobs.iter().any(|job| snapshot.unconfirmed.contains(job)) {
        true => vec![TrafficPolicy::default(); jobs.len()],
        false => current.clone(),
    };
    let verdict = judge(&ledger.draft, jobs, &in_effect);
    let call = match verdict.call {
        _ if verdict.traffic == current => Call::Keep,
        // Fair sharing is best, and a policy is on its way to a node: it is withdrawn.
        Call::Keep if in_effect != current && verdict.traffic == in_effect => Call::Must,
        call => call,
    };
    let verdict = Verdict { call, ..verdict };
    // What is predicted of policies when they are chosen is written down: policies that stay may have come to be worse.
    basis.slowdowns.extend(match (&verdict.call, stays) {
        (Call::Keep, _) | (Call::Change, Some(_)) => slowdowns_as_chosen(snapshot, jobs, &current),
        (Call::Change | Call::Must, _) => slowdowns_of_the_first(&ledger.draft, jobs, &verdict.traffic),
    });
    let inputs = &mut basis.inputs;
    match (verdict, stays) {
        (Verdict { call: Call::Keep, .. }, _) => {
            inputs.push(now);
            current
        }
        (Verdict { call: Call::Change, .. }, Some(until)) => {
            keep_inputs(inputs, before);
            ledger.wake_at(until);
            current
        }
        (Verdict { traffic, changed, saves, .. }, _) => {
            let reason = why(&ledger.draft, before, &now);
            inputs.push(if changed.is_empty() { now } else { now.changed_at(snapshot.now) });
            note(ledger, Reconfiguration { why: reason, what: What::Lanes, jobs: changed, saves });
            traffic
        }
    }
}

/// Reports a change; where only jobs that start get a traffic policy, nothing changes for a running one.
fn note(ledger: &mut Ledger<'_>, made: Reconfiguration) {
    if !made.jobs.is_empty() {
        ledger.report.reconfigured.push(made);
    }
}

/// Keeps the inputs of the last decision where it is too soon for a change, so that the next decision looks again.
fn keep_inputs(inputs: &mut Vec<DecisionInputs>, before: &Before<'_>) {
    for ground in before.decision_inputs() {
        if !inputs.contains(ground) {
            inputs.push((*ground).clone());
        }
    }
}

/// The best traffic policies of a set, and what is to be done about them.
struct Verdict {
    call: Call,
    /// The best policies.
    traffic: Vec<TrafficPolicy>,
    /// Running jobs whose policy would change.
    changed: Vec<JobId>,
    /// What all jobs save by the change together.
    saves: Duration,
}

/// The slowdowns that the plan has for jobs whose traffic policies stay; none where all of them share fairly.
fn slowdowns_as_chosen(
    snapshot: &Snapshot<'_>,
    jobs: &[JobId],
    current: &[TrafficPolicy],
) -> Vec<(JobId, Share)> {
    if current.iter().all(TrafficPolicy::is_default) {
        return Vec::new();
    }
    jobs.iter().filter_map(|job| Some((*job, snapshot.plan.slowdown_vs_fair(*job)?))).collect()
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
        _ if !is_measured => choose_with(
            &snapshot.tuning.traffic,
            &stakes,
            |slowdowns| turns(draft, &flows, &stakes, slowdowns),
            predict,
        ),
        Keeping::Exactly => choose_with(
            &snapshot.tuning.traffic,
            &stakes,
            |slowdowns| turns(draft, &flows, &stakes, slowdowns),
            predict,
        ),
        Keeping::Roughly => {
            let alone: Vec<Duration> = flows.iter().map(|flow| flow.alone).collect();
            choose_windows(&snapshot.tuning.traffic, &stakes, &alone, predict)
        }
    };
    let Reconsidered { call, traffic, eased } =
        reconsider(&snapshot.tuning.traffic, &stakes, current, best, predict);
    let call =
        if is_harmed && current.iter().any(|traffic| !traffic.is_default()) { Call::Must } else { call };
    let changed = changed(snapshot, jobs, current, &traffic);
    let saves = saves(snapshot, jobs, &eased);
    let pays = saves > snapshot.tuning.decide.traffic_change_cost.times(changed.len() as u64);
    let call = if call == Call::Change && !pays { Call::Keep } else { call };
    Verdict { call, traffic, changed, saves }
}

/// Phase offsets for all jobs, if their periods fit on a circle and keeping to it costs less than it saves.
fn turns(
    draft: &Draft<'_>,
    flows: &[&Flow],
    stakes: &[Stake],
    slowdowns: &[f64],
) -> Option<Vec<TrafficPolicy>> {
    let beating = |((flow, stake), slowdown): ((&&Flow, &Stake), &f64)| PacedLoop {
        period: flow.alone,
        sends: draft.contention.sends(flow),
        links: draft.contention.demands(flow),
        tier: stake.tier,
        slowdown: *slowdown,
    };
    let all = flows.iter().zip(stakes).zip(slowdowns);
    let beating: Vec<PacedLoop> = all.map(beating).collect();
    paced(&draft.snapshot.tuning.traffic, &beating, draft.contention.keeping())
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
        priority_weight(snapshot, job) * seconds_left(snapshot, job) * eased
    };
    let seconds: f64 = jobs.iter().zip(eased).map(saved).sum();
    Duration((seconds.max(0.0) * 1e9) as u64)
}
