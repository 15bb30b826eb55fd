//! SpeCon, as published: a job that learns little is moved once to where it is in the way least, and now and then a
//! job is moved from a node with more jobs than usual to one with fewer.
//!
//! The score of a node is `n w`, with `n` its jobs and `w` twice those that progress, one and a half times those that
//! are watched, and those that have converged; for a job that would come, `(n + 1) (w + 1)`. The least score wins, and
//! among equals the node of the job. What a move costs does not count.

use std::collections::VecDeque;

use crate::decide::cpu_sharing::CoreSharing;
use crate::decide::draft::Draft;
use crate::decide::ledger::{Entry, Ledger, Proposal};
use crate::decide::movable::{is_time_to_look, whole_on};
use crate::decide::proposer::Proposer;
use crate::decide::view::View;
use crate::model::cluster::NodeState;
use crate::model::id::{JobId, NodeId};
use crate::model::job::Life;
use crate::model::policy::Moving;
use crate::model::units::Instant;
use crate::observe::progress::Category;

/// Proposes one move after the other.
#[derive(Default)]
pub(in crate::decide) struct Speculate {
    /// Jobs that have converged; `None` before the first question.
    converged: Option<VecDeque<JobId>>,
    has_rebalanced: bool,
}

impl<'a> Proposer<'a> for Speculate {
    fn propose(&mut self, view: &View<'a>, ledger: &mut Ledger<'a>) -> Option<Proposal> {
        if view.policy.moving != Moving::Speculative
            || !is_time_to_look(view, view.snapshot.tuning.observe.evaluation_interval)
        {
            return None;
        }
        let converged = self.converged.get_or_insert_with(|| newly_converged(view, &ledger.draft));
        while let Some(id) = converged.pop_front() {
            let to = least_in_the_way(&ledger.draft, &CoreSharing::of(&ledger.draft), id);
            if let Some(proposal) = to.and_then(|to| go(view, ledger, id, to)) {
                return Some(proposal);
            }
        }
        let tuning = view.snapshot.tuning;
        let rebalance_interval = tuning.observe.evaluation_interval.times(tuning.decide.rebalance_interval);
        if std::mem::replace(&mut self.has_rebalanced, true) || !is_time_to_look(view, rebalance_interval) {
            return None;
        }
        let (id, to) = evened_out(view, &ledger.draft, &CoreSharing::of(&ledger.draft))?;
        go(view, ledger, id, to)
    }
}

/// Jobs that have converged since the last look: each is moved once.
fn newly_converged(view: &View<'_>, draft: &Draft<'_>) -> VecDeque<JobId> {
    let interval = view.snapshot.tuning.observe.evaluation_interval;
    let looks = view.snapshot.now.0 / interval.0;
    let since = Instant(looks.saturating_sub(1) * interval.0);
    let crowds = CoreSharing::of(draft);
    let mates = crowds.iter().flat_map(|(_, mates)| mates.iter());
    let converged = mates.filter(|mate| mate.category == Category::Converged).filter(|mate| {
        let learning = &view.snapshot.jobs[mate.job].progress.learning;
        learning.changed().is_some_and(|changed| changed > since)
    });
    converged.map(|mate| mate.job).filter(|id| is_settled(view, *id)).collect()
}

fn is_settled(view: &View<'_>, id: JobId) -> bool {
    let job = &view.snapshot.jobs[id];
    let at_rest = matches!(&job.life, Life::Running(at) if view.snapshot.plan.get(id) == Some(at));
    at_rest && job.spec.capabilities.relocate && job.not_before <= view.snapshot.now
}

/// The node with the least score, unless that is its own.
fn least_in_the_way(draft: &Draft<'_>, crowds: &CoreSharing, id: JobId) -> Option<NodeId> {
    let nodes = draft.snapshot.cluster.nodes().iter();
    let ready = nodes.filter(|(_, node)| node.state == NodeState::Ready).map(|(node, _)| node);
    let is_here = |node: NodeId| crowds.on(node).iter().any(|mate| mate.job == id);
    let scored = ready.map(|node| {
        let (n, w) = burden(crowds, node);
        let score = if is_here(node) { n * w } else { (n + 1.0) * (w + 1.0) };
        (score, !is_here(node), node)
    });
    let (_, elsewhere, best) = scored
        .min_by(|one, other| one.0.total_cmp(&other.0).then((one.1, one.2).cmp(&(other.1, other.2))))?;
    Some(best).filter(|_| elsewhere)
}

fn burden(crowds: &CoreSharing, node: NodeId) -> (f64, f64) {
    let mates = crowds.on(node);
    (mates.len() as f64, mates.iter().map(|mate| mate.category_weight).sum())
}

/// A job that learns least on the fullest node, to the emptiest, if they are above and below the mean and would not
/// just change places.
fn evened_out(view: &View<'_>, draft: &Draft<'_>, crowds: &CoreSharing) -> Option<(JobId, NodeId)> {
    let nodes = draft.snapshot.cluster.nodes().iter();
    let ready: Vec<NodeId> =
        nodes.filter(|(_, node)| node.state == NodeState::Ready).map(|(node, _)| node).collect();
    let many = |node: &NodeId| crowds.on(*node).len();
    let mean = ready.iter().map(many).sum::<usize>() as f64 / ready.len().max(1) as f64;
    let fullest = ready.iter().rev().copied().max_by_key(many).filter(|node| many(node) as f64 > mean)?;
    let emptiest = ready.iter().copied().min_by_key(many).filter(|node| (many(node) as f64) < mean)?;
    if many(&fullest) < many(&emptiest) + 2 {
        return None;
    }
    let movable = crowds.on(fullest).iter().filter(|mate| mate.category != Category::Progressing);
    let least = movable.filter(|mate| is_settled(view, mate.job) && !draft.is_changed(mate.job));
    least.max_by_key(|mate| (mate.category, std::cmp::Reverse(mate.job))).map(|mate| (mate.job, emptiest))
}

fn go(view: &View<'_>, ledger: &Ledger<'_>, job: JobId, to: NodeId) -> Option<Proposal> {
    let place = whole_on(view, ledger, job, to).filter(|_| !ledger.draft.is_changed(job))?;
    Some(Proposal::of(vec![Entry::Move { job, to: place }]))
}
