//! One job that meets others on links, or lies apart, goes to a better place once there is capacity for it.

use std::cmp::Reverse;

use crate::decide::ledger::{Entry, Ledger, Proposal};
use crate::decide::link_cost::{cost_at, may_predict, priority_weight};
use crate::decide::movable::{self, beside_reservations, is_movable, takes};
use crate::decide::placement;
use crate::decide::proposer::Proposer;
use crate::decide::traffic_inputs::why_moved;
use crate::decide::view::View;
use crate::model::id::JobId;
use crate::model::plan::Assignment;
use crate::model::policy::Moving;
use crate::model::units::Duration;

#[derive(Default)]
pub(in crate::decide) struct MoveForLinks;

impl<'a> Proposer<'a> for MoveForLinks {
    fn propose(&mut self, view: &View<'a>, ledger: &mut Ledger<'a>) -> Option<Proposal> {
        let looks = view.policy.moving == Moving::ForGain && !ledger.report.cut_short;
        if !looks || ledger.draft.contention.has_no_links() || !may_predict(&ledger.draft) {
            return None;
        }
        let mut candidates = longest_first(view, ledger).into_iter();
        let better = candidates.find_map(|id| Some((id, better_place(view, ledger, id)?)));
        let (id, (place, saves)) = better?;
        let mut proposal = movable::proposal(id, place, why_moved(&ledger.draft, id), saves);
        // The place that it leaves may be better for a job that was looked at before.
        proposal.entries.push(Entry::DecideAgain);
        Some(proposal)
    }
}

/// Movable jobs that send over links, those with most left to do first.
fn longest_first<'a>(view: &View<'a>, ledger: &Ledger<'a>) -> Vec<JobId> {
    let (jobs, now) = (view.snapshot.jobs, view.snapshot.now);
    let flows = ledger
        .draft
        .contention
        .flows()
        .filter(|(id, flow)| ledger.draft.assigned(*id).is_none() && !flow.is_local());
    let mut movable: Vec<(Reverse<Duration>, JobId)> = flows
        .filter(|(id, _)| {
            !ledger.draft.is_leaving(*id) && !ledger.bookings.govern(*id) && is_movable(view, *id)
        })
        .filter_map(|(id, _)| Some((Reverse(jobs[id].remaining(now).filter(|left| !left.is_zero())?), id)))
        .collect();
    movable.sort_unstable();
    movable.truncate(view.snapshot.tuning.decide.max_move_candidates);
    movable.into_iter().map(|(_, id)| id).collect()
}

/// A place that is better by more than the move costs, with what all jobs save by it.
fn better_place<'a>(view: &View<'a>, ledger: &mut Ledger<'a>, id: JobId) -> Option<(Assignment, Duration)> {
    let job = &view.snapshot.jobs[id];
    let here = view.snapshot.plan.get(id)?;
    let loss_here = cost_at(view.snapshot, &ledger.draft, id, here, &[]).loss;
    let cost = view.snapshot.tuning.decide.min_move_gain
        * priority_weight(view.snapshot, job)
        * takes(job).as_secs_f64();
    if loss_here <= cost {
        return None;
    }
    let places = beside_reservations(ledger, |ledger| placement::options(view, &mut ledger.draft, job));
    let places = places.unwrap_or_default();
    let compared =
        places.into_iter().map(|place| (cost_at(view.snapshot, &ledger.draft, id, &place, &[]).loss, place));
    let (loss, place) = compared.min_by(|(one, _), (other, _)| one.total_cmp(other))?;
    let saves = loss_here - loss;
    (saves > cost).then_some((place, Duration((saves * 1e9) as u64)))
}
