//! Elastic gangs give back members that they measurably do not use, whether a job waits for them or not.
//!
//! The job's reports tell how many those are (`Job::idle`); it gets no more before it uses nearly all that it has left. A
//! gang whose size the timetable decides keeps what its deadline needs.

use std::sync::Arc;

use crate::decide::draft::Draft;
use crate::decide::elastic_gang::ElasticGang;
use crate::decide::ledger::{Entry, Ledger, Proposal};
use crate::decide::proposer::Proposer;
use crate::decide::snapshot::Snapshot;
use crate::decide::view::View;
use crate::model::id::JobId;
use crate::model::plan::Assignment;
use crate::model::policy::Sizing;

/// Proposes all such resizes at once.
#[derive(Default)]
pub(in crate::decide) struct UnusedMembers;

impl<'a> Proposer<'a> for UnusedMembers {
    fn propose(&mut self, view: &View<'a>, ledger: &mut Ledger<'a>) -> Option<Proposal> {
        let Snapshot { elastic, plan, jobs, now, .. } = *view.snapshot;
        let resizes = view.policy.sizing != Sizing::Least;
        let idle = elastic.iter().filter(|id| resizes && jobs[**id].idle.enough().is_some());
        let unbooked: Vec<JobId> = idle
            .copied()
            .filter(|id| !ledger.draft.is_changed(*id) && !ledger.bookings.govern(*id))
            .collect();
        let mut entries = Vec::new();
        for job in unbooked {
            let Some((gang, held)) = ElasticGang::of(job, &jobs[job]).zip(plan.get(job)) else { continue };
            let Some(smaller) = smaller(&ledger.draft, &gang, held) else { continue };
            match gang.job.ripe(view.snapshot.tuning.decide.resize_interval).filter(|rested| *rested > now) {
                Some(rested) => ledger.wake_at(rested),
                None => entries.push(Entry::Resize { job, from: held.clone(), to: Arc::new(smaller) }),
            }
        }
        (!entries.is_empty()).then(|| Proposal::of(entries))
    }
}

/// The gang without its unused members; `None` if it uses all, or ends before the change pays.
fn smaller<'a>(draft: &Draft<'a>, gang: &ElasticGang<'a>, held: &Arc<Assignment>) -> Option<Assignment> {
    let enough = gang.job.idle.enough()?.max(gang.least());
    let count = gang.members(held).saturating_sub(enough) / gang.unit();
    let left = gang.job.time_left(draft.snapshot.now);
    let ends_soon =
        left.is_some_and(|left| left <= gang.cost().times(draft.snapshot.tuning.decide.min_resize_gain));
    let may = count > 0 && !ends_soon && gang.may_change(draft.snapshot, held);
    may.then(|| gang.without(draft.snapshot.cluster, held, count)).flatten()
}
