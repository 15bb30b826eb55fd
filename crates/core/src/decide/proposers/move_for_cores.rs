//! One job leaves a node on which jobs share too few cores, if that saves all jobs together more than the move costs.
//!
//! Saved time is weighed by how much each job still learns. No job on the other node may end much later for it, and a
//! job that was just moved stays for a while. One job is moved at a time, and the next look is at the next report.

use std::collections::BTreeMap;

use crate::decide::cpu_sharing::{CoreSharer, CoreSharing, cores, finishes, is_crowded};
use crate::decide::draft::Draft;
use crate::decide::ledger::{Ledger, Proposal};
use crate::decide::movable::{self, beside_reservations, is_movable, is_time_to_look, takes, whole_on};
use crate::decide::proposer::Proposer;
use crate::decide::view::View;
use crate::model::cluster::NodeState;
use crate::model::id::{JobId, NodeId};
use crate::model::plan::Assignment;
use crate::model::policy::Moving;
use crate::model::units::Duration;
use crate::traffic::decision_inputs::Why;

/// A job that would be moved, and the seconds that all jobs save by it.
struct Gain {
    job: JobId,
    to: NodeId,
    saves: f64,
}

#[derive(Default)]
pub(in crate::decide) struct MoveForCores;

impl<'a> Proposer<'a> for MoveForCores {
    fn propose(&mut self, view: &View<'a>, ledger: &mut Ledger<'a>) -> Option<Proposal> {
        let looks = view.policy.moving == Moving::ForGain && !ledger.report.cut_short;
        if !looks || !is_time_to_look(view, view.snapshot.tuning.observe.evaluation_interval) {
            return None;
        }
        let best = beside_reservations(ledger, |ledger| best_move(view, ledger));
        let (id, place, saves) = best?;
        Some(movable::proposal(id, place, Why::Room, Duration((saves * 1e9) as u64)))
    }
}

/// The move that saves most, if one is worth it.
fn best_move<'a>(view: &View<'a>, ledger: &Ledger<'a>) -> Option<(JobId, Assignment, f64)> {
    let draft = &ledger.draft;
    let crowds = CoreSharing::of(draft);
    let (last, first) = (ending_last(draft, &crowds), ending_first(draft, &crowds));
    let moves = last.into_iter().flat_map(|from| worth_it(view, ledger, &crowds, from, &first));
    let best = moves.max_by(|one, other| {
        one.saves.total_cmp(&other.saves).then(other.job.cmp(&one.job)).then(other.to.cmp(&one.to))
    })?;
    Some((best.job, whole_on(view, ledger, best.job, best.to)?, best.saves))
}

fn has(draft: &Draft<'_>, node: NodeId) -> f64 {
    cores(draft.snapshot.cluster.node(node).capacity.cpu)
}

/// Crowded nodes, the one whose jobs end last first.
fn ending_last(draft: &Draft<'_>, crowds: &CoreSharing) -> Vec<NodeId> {
    let crowded = crowds.iter().filter(|(node, mates)| {
        is_crowded(mates, has(draft, *node))
            && mates.len() <= draft.snapshot.tuning.decide.max_jobs_compared_on_node
    });
    let mut nodes: Vec<(f64, NodeId)> =
        crowded.map(|(node, _)| (crowds.drains(node, has(draft, node)), node)).collect();
    nodes.sort_unstable_by(|(one, first), (other, second)| other.total_cmp(one).then(first.cmp(second)));
    nodes.truncate(draft.snapshot.tuning.decide.max_nodes_compared);
    nodes.into_iter().map(|(_, node)| node).collect()
}

/// Nodes to which a job could be moved, the one whose jobs end first first.
fn ending_first(draft: &Draft<'_>, crowds: &CoreSharing) -> Vec<(f64, NodeId)> {
    let nodes = draft.snapshot.cluster.nodes().iter();
    let is_well = |node: NodeId, state| state == NodeState::Ready && !draft.is_slow(node);
    let ready = nodes.filter(|(node, spec)| {
        is_well(*node, spec.state)
            && crowds.on(*node).len() < draft.snapshot.tuning.decide.max_jobs_compared_on_node
    });
    let mut nodes: Vec<(f64, NodeId)> =
        ready.map(|(node, _)| (crowds.drains(node, has(draft, node)), node)).collect();
    nodes.sort_unstable_by(|(one, first), (other, second)| one.total_cmp(other).then(first.cmp(second)));
    nodes.truncate(draft.snapshot.tuning.decide.max_nodes_compared);
    nodes
}

fn worth_it(
    view: &View<'_>,
    ledger: &Ledger<'_>,
    crowds: &CoreSharing,
    from: NodeId,
    ending_first: &[(f64, NodeId)],
) -> Vec<Gain> {
    let tuning = &view.snapshot.tuning.decide;
    let ends = crowds.drains(from, has(&ledger.draft, from));
    let stay = finishes(tuning, crowds.on(from), has(&ledger.draft, from), crowds.usual);
    let movable = crowds.on(from).iter().filter(|mate| is_settled_and_known(view, ledger, mate));
    movable
        .filter_map(|mate| {
            let emptier = ending_first.iter().filter(|(done, _)| *done < ends).map(|(_, node)| *node);
            let gains = emptier
                .filter(|to| whole_on(view, ledger, mate.job, *to).is_some())
                .filter_map(|to| gain(view, ledger, crowds, (from, &stay), mate, to));
            gains.max_by(|one, other| one.saves.total_cmp(&other.saves).then(other.to.cmp(&one.to)))
        })
        .collect()
}

fn is_settled_and_known(view: &View<'_>, ledger: &Ledger<'_>, mate: &CoreSharer) -> bool {
    mate.is_known() && !ledger.draft.is_changed(mate.job) && is_movable(view, mate.job)
}

/// What all jobs on both nodes save by the move of one; none where a job would end much later.
fn gain(
    view: &View<'_>,
    ledger: &Ledger<'_>,
    crowds: &CoreSharing,
    (from, stay): (NodeId, &BTreeMap<JobId, f64>),
    mate: &CoreSharer,
    to: NodeId,
) -> Option<Gain> {
    let (usual, now) = (crowds.usual, view.snapshot.now);
    let tuning = &view.snapshot.tuning.decide;
    let cost = takes(&view.snapshot.jobs[mate.job]).as_secs_f64();
    let there = crowds.on(to);
    let before = finishes(tuning, there, has(&ledger.draft, to), usual);
    let left: Vec<CoreSharer> =
        crowds.on(from).iter().filter(|other| other.job != mate.job).copied().collect();
    let after_here = finishes(tuning, &left, has(&ledger.draft, from), usual);
    let after_there = finishes(tuning, &[there, &[*mate]].concat(), has(&ledger.draft, to), usual);
    let was = |job: JobId| stay.get(&job).or(before.get(&job)).copied().unwrap_or_default();
    let is = |other: &CoreSharer| {
        let ends = after_here.get(&other.job).or(after_there.get(&other.job)).copied().unwrap_or_default();
        if other.job == mate.job { ends + cost } else { ends }
    };
    let suffers = |other: &&CoreSharer| {
        let age = other.age(now);
        age + is(other) > view.snapshot.tuning.decide.max_delay_by_move * (age + was(other.job))
    };
    if there.iter().chain([mate]).any(|other| suffers(&other)) {
        return None;
    }
    let all = left.iter().chain(there).chain([mate]);
    let saves: f64 = all.map(|other| other.category_weight * (was(other.job) - is(other))).sum();
    let last = |ends: &BTreeMap<JobId, f64>| ends.values().copied().fold(0.0, f64::max);
    let sooner = last(stay).max(last(&before)) - last(&after_here).max(last(&after_there));
    let saves = saves + sooner;
    (saves > view.snapshot.tuning.decide.min_move_gain * mate.category_weight * cost).then_some(Gain {
        job: mate.job,
        to,
        saves,
    })
}
