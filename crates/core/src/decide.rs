//! From a snapshot to a plan with reasons: proposers are asked in order, and one ledger writes down what they propose.

mod admission;
mod burst_compatibility;
mod cpu_sharing;
mod deadlines;
mod draft;
mod elastic_gang;
mod estimates;
mod gang_size;
mod group_counts;
mod growth_cost;
pub(crate) mod infeasible;
mod ledger;
mod link_cost;
mod member_fits;
mod movable;
mod node_filters;
pub(crate) mod order;
mod peak_bandwidth;
mod placement;
mod preemption_rules;
mod proposer;
mod proposers;
pub(crate) mod queue_shares;
mod reservations;
pub mod snapshot;
mod traffic_inputs;
mod view;

use crate::decide::snapshot::Snapshot;
use crate::model::id::NodeId;
use crate::model::job::Job;
use crate::model::plan::{Amendment, Generation, difference};
use crate::model::policy::{Policy, Preemption};
use crate::model::report::{Reason, Report};
use crate::model::units::Instant;
use ledger::Ledger;
use proposer::{Proposer, Then};
use proposers::{
    bookings, cpu_weights, defragment, free_capacity, grow, leave_drained_nodes, leave_slow_nodes,
    move_for_cores, move_for_links, preempt, rank_order, reclaim, speculate, traffic, unused_members,
};
use view::View;

pub(crate) use deadlines::{Advice, advise};
pub use order::QueueCursor;

/// A change of the plan, why, and when to decide again.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct Decision {
    pub amendment: Amendment,
    pub report: Report,
    /// When to decide again even if nothing happens.
    pub wake: Option<Instant>,
}

/// Decides. The same snapshot and policy give the same bytes, and deciding again on what was decided gives no
/// change.
pub fn decide(snapshot: &Snapshot<'_>, policy: &Policy) -> Decision {
    let ranker = order::order(snapshot, policy);
    let view = View::of(snapshot, policy, &ranker);
    let (mut ledger, mut proposers) = match policy.preemption {
        Preemption::ByRank => (Ledger::from_empty(&view), proposers_by_rank()),
        Preemption::Never | Preemption::ByPriority | Preemption::ByGain => {
            (Ledger::beside_the_plan(&view, deadlines::schedule(&view)), proposers_beside_the_plan())
        }
    };
    let mut next = 0;
    while let Some((proposer, then)) = proposers.get_mut(next) {
        let proposal = proposer.propose(&view, &mut ledger);
        let then = if proposal.is_some() { *then } else { Then::Next };
        proposal.into_iter().for_each(|proposal| ledger.apply(&view, proposal));
        next = match then {
            Then::SameAgain => next,
            Then::ServeAgain => first_to_serve(&proposers),
            Then::Next => next + 1,
        };
    }
    close(&view, ledger)
}

type Proposers<'a> = Vec<(Box<dyn Proposer<'a> + 'a>, Then)>;

/// The proposers in the order in which they are asked, each with the one that is asked after it has proposed something.
fn proposers_beside_the_plan<'a>() -> Proposers<'a> {
    let mut proposers: Proposers<'a> = vec![
        // What does not depend on waiting jobs.
        (Box::new(bookings::Bookings::default()), Then::SameAgain),
        (Box::new(unused_members::UnusedMembers), Then::Next),
        // Waiting jobs, in the order of what serving them disturbs.
        (Box::new(free_capacity::FreeCapacity), Then::ServeAgain),
        (Box::new(reclaim::Reclaim::default()), Then::ServeAgain),
        (Box::new(preempt::Preempt::default()), Then::ServeAgain),
        (Box::new(defragment::Defragment::default()), Then::ServeAgain),
        (Box::new(bookings::BookingsOverQuota::default()), Then::SameAgain),
        // What is left over.
        (Box::new(grow::Grow), Then::Next),
    ];
    proposers.extend(proposers_for_running_jobs());
    proposers
}

/// The same for policies that hand out all capacity anew at every decision.
fn proposers_by_rank<'a>() -> Proposers<'a> {
    let mut proposers: Proposers<'a> = vec![(Box::new(rank_order::RankOrder::default()), Then::SameAgain)];
    proposers.extend(proposers_for_running_jobs());
    proposers
}

/// Better places for running jobs, then what each may take of its nodes' CPU and of links.
fn proposers_for_running_jobs<'a>() -> Proposers<'a> {
    vec![
        (Box::new(speculate::Speculate::default()), Then::SameAgain),
        (Box::new(leave_drained_nodes::LeaveDrainedNodes), Then::Next),
        (Box::new(leave_slow_nodes::LeaveSlowNodes), Then::Next),
        (Box::new(move_for_links::MoveForLinks), Then::Next),
        (Box::new(move_for_cores::MoveForCores), Then::Next),
        (Box::new(cpu_weights::CpuWeights), Then::Next),
        (Box::new(traffic::Traffic), Then::Next),
    ]
}

fn first_to_serve(proposers: &Proposers<'_>) -> usize {
    proposers.iter().position(|(_, then)| *then == Then::ServeAgain).unwrap_or(0)
}

/// The decision that the ledger comes to.
fn close<'a>(view: &View<'a>, mut ledger: Ledger<'a>) -> Decision {
    ledger.close_queue(view);
    let waits_for_links = |(_, reason): &(_, Reason)| matches!(reason, Reason::BandwidthContended { .. });
    let others_start = ledger.draft.starting().next().is_some();
    // A job that waits for a better place is looked at again when others have got theirs: the best that it saw may be gone,
    // and another not worth waiting for.
    ledger.report.cut_short |= others_start && ledger.report.waiting.iter().any(waits_for_links);
    let (changes, reservations) = ledger.draft.into_changes();
    let starts = reservations.iter().map(|reservation| reservation.from);
    let wake = starts.chain(view.ranker.wake()).chain(ledger.wake).min();
    let (before, directives, timetable) = (view.snapshot.plan, ledger.directives, ledger.bookings.timetable);
    let changes_what_worlds_do =
        !(changes.is_empty() && directives.traffic.is_empty() && directives.weights.is_empty());
    let amendment = Amendment {
        generation: Generation(before.generation().0 + u64::from(changes_what_worlds_do)),
        assignments: changes,
        traffic: directives.traffic.into_iter().collect(),
        weights: directives.weights.into_iter().collect(),
        slowdowns: difference(before.slowdowns(), &directives.slowdowns),
        reservations: Some(reservations).filter(|kept| kept != before.reservations()),
        bookings: difference(&before.timetable().entries, &timetable.entries),
    };
    let report = Report {
        standings: ledger.standings,
        decision_inputs: directives.inputs,
        refused: ledger.bookings.refused,
        timetable_basis: timetable.basis(),
        ..ledger.report
    };
    Decision { amendment, report, wake }
}

/// The nodes on which a job of one member could be placed beside the plan; none for a gang.
pub(crate) fn feasible(snapshot: &Snapshot<'_>, policy: &Policy, job: &Job) -> Vec<NodeId> {
    placement::feasible_nodes(snapshot, policy.placement, job)
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_proposer_is_listed_and_described() {
        let (list, readme) = (include_str!("decide.rs"), include_str!("decide/README.md"));
        let modules = include_str!("decide/proposers.rs").lines();
        let names = modules.filter_map(|line| line.strip_prefix("pub(super) mod ")?.strip_suffix(';'));
        let names: Vec<&str> = names.collect();
        assert!(names.len() > 10, "{names:?}");
        for name in names {
            assert!(list.contains(&format!("Box::new({name}::")), "`decide` does not list `{name}`");
            assert!(readme.contains(&format!("`{name}`")), "the README does not describe `{name}`");
        }
    }
}
