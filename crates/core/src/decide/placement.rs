//! Placement of jobs: every proposer asks this file, and no other file calls the search
//! (`placement/search.rs`).
//!
//! | function | answers | leaves the draft |
//! |---|---|---|
//! | `start` | where a waiting job starts now | with the place taken |
//! | `fit` | a place for a job of a given size | as it was |
//! | `fit_released` | a place in a trial in which running jobs were released | as it was |
//! | `options` | all places worth comparing, in free capacity | as it was |
//! | `shortage`, `refusal_by_counts` | the reason why a job gets no place, by counts alone | as it was |

mod search;

use super::draft::{Draft, Reach};
use super::gang_size::GangSize;
use super::link_cost;
use super::view::View;
use super::{burst_compatibility, peak_bandwidth};
use crate::decide::snapshot::Snapshot;
use crate::model::id::{JobId, NodeId};
use crate::model::job::Job;
use crate::model::plan::Assignment;
use crate::model::policy::{Placement, Policy, Slowdowns};
use crate::model::report::Reason;
use search::Placer;

/// The place at which a waiting job starts, taken in the draft: the least costly one on links, where the policy weighs
/// links; else the first that the policy's placement finds in free capacity, or with `Reach::Claimed` in capacity that
/// jobs of lower rank hold.
pub(super) fn start<'a>(
    view: &View<'a>,
    draft: &mut Draft<'a>,
    id: JobId,
    reach: Reach,
) -> Result<Assignment, Reason> {
    let job = &view.snapshot.jobs[id];
    if reach == Reach::Unclaimed && link_cost::is_weighed(view, draft, job) {
        let place = start_by_links(view, draft, id).map_err(|reason| view.or_hopeless(job, reason))?;
        draft.take_all(job, &place);
        return Ok(place);
    }
    let placer = placer(view.policy);
    let mut placed = placer.place(draft, job, GangSize::Minimum, Reach::Unclaimed);
    if placed.is_err() && reach == Reach::Claimed {
        placed = placer.place(draft, job, GangSize::Minimum, Reach::Claimed);
    }
    placed.map_err(|reason| view.or_hopeless(job, reason))
}

fn start_by_links<'a>(view: &View<'a>, draft: &mut Draft<'a>, id: JobId) -> Result<Assignment, Reason> {
    let job = &view.snapshot.jobs[id];
    let places = options(view, draft, job)?;
    match view.policy.slowdowns {
        Slowdowns::Unseen | Slowdowns::Weighed | Slowdowns::WaitedOut => {
            link_cost::choose(view, draft, id, places)
        }
        Slowdowns::Reserved => peak_bandwidth::choose(draft, job, places),
        Slowdowns::Compatible => Ok(burst_compatibility::most_compatible(draft, job, places)),
        Slowdowns::KeptApart => Ok(burst_compatibility::nearest_compatible(draft, job, places)),
    }
}

/// A place for a job of the given size. Nothing stays taken.
pub(super) fn fit<'a>(
    view: &View<'a>,
    draft: &mut Draft<'a>,
    job: &'a Job,
    size: GangSize,
    reach: Reach,
) -> Result<Assignment, Reason> {
    let mark = draft.mark();
    let placed = placer(view.policy).place(draft, job, size, reach);
    draft.rollback(mark);
    placed
}

/// A place for a job in a trial in which running jobs were released since the last question.
pub(super) fn fit_released<'a>(view: &View<'a>, trial: &mut Draft<'a>, job: &'a Job) -> Option<Assignment> {
    trial.forget_fits();
    fit(view, trial, job, GangSize::Minimum, Reach::Claimed).ok()
}

/// Places in free capacity that differ in the links they cross; the first is the one that `fit` finds.
pub(super) fn options<'a>(
    view: &View<'a>,
    draft: &mut Draft<'a>,
    job: &'a Job,
) -> Result<Vec<Assignment>, Reason> {
    placer(view.policy).alternatives(draft, job, GangSize::Minimum)
}

/// The reason why a job fits nowhere, where counts alone tell; exact for gangs of one role.
pub(super) fn shortage(draft: &Draft<'_>, job: &Job) -> Option<Reason> {
    search::shortage(draft, job, GangSize::Minimum)
}

/// The reason why a waiting job gets no place, where counts alone tell.
pub(super) fn refusal_by_counts(view: &View<'_>, draft: &Draft<'_>, job: &Job) -> Option<Reason> {
    let bounded = view.quota_allows(draft, job).and_then(|()| view.borrowing_allows(draft, job)).err();
    bounded.or_else(|| shortage(draft, job).map(|reason| view.or_hopeless(job, reason)))
}

/// The nodes beside the plan that could take the single member of a job; none for a gang.
pub(super) fn feasible_nodes(snapshot: &Snapshot<'_>, placement: Placement, job: &Job) -> Vec<NodeId> {
    Placer::new(placement).feasible(snapshot, job, GangSize::Minimum)
}

fn placer(policy: &Policy) -> Placer {
    Placer::new(policy.placement)
}
