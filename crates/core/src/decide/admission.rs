//! Where a waiting job may start from free capacity: beside quotas, bookings and reservations.

use super::draft::Reach;
use super::estimates::end_if_started;
use super::ledger::{Entry, Ledger, Request, Room, lacks_capacity};
use super::member_fits::Fits;
use super::order::Rank;
use super::placement;
use super::preemption_rules::{gains, is_exempt};
use super::view::View;
use crate::decide::gang_size::GangSize;
use crate::decide::snapshot::Snapshot;
use crate::model::id::JobId;
use crate::model::plan::Assignment;
use crate::model::policy::Preemption;
use crate::model::report::Reason;

/// The place at which a job starts, taken in the draft.
pub(super) fn admit<'a>(
    view: &View<'a>,
    ledger: &mut Ledger<'a>,
    id: JobId,
    reach: Reach,
) -> Result<Assignment, Reason> {
    let job = &view.snapshot.jobs[id];
    view.quota_allows(&ledger.draft, job)?;
    view.borrowing_allows(&ledger.draft, job)?;
    ledger.bookings_allow(view, id)?;
    placement::start(view, &mut ledger.draft, id, reach)
}

/// The entries by which a request starts where that delays no reservation of a job of higher rank. Its place is taken in
/// the draft.
pub(super) fn admit_beside_reservations<'a>(
    view: &View<'a>,
    ledger: &mut Ledger<'a>,
    Request { job, class }: Request,
) -> Result<Vec<Entry>, Reason> {
    let start = |place| Entry::Start { job, place, room: Room::Taken };
    if ledger.draft.reservations.is_empty() {
        return Ok(vec![start(admit(view, ledger, job, Reach::Unclaimed)?)]);
    }
    let Snapshot { jobs, now, waiting, .. } = *view.snapshot;
    let rank = waiting.class(class).map(|class| view.ranker.rank_of(job, class));
    let end = end_if_started(&jobs[job], now);
    let kept = ledger.draft.reservations.iter();
    let delayed = kept.filter(|kept| kept.job != job && end.is_none_or(|end| end > kept.from));
    let ahead = delayed.filter(|kept| rank_in_class(view, kept.job).is_some_and(|ahead| Some(ahead) < rank));
    let enforced: Vec<JobId> =
        ahead.map(|kept| kept.job).filter(|ahead| !would_make_room(view, *ahead, job)).collect();
    ledger.draft.enforce_reservations(|kept| enforced.contains(&kept.job));
    let admitted = match only_reserved(view, ledger, job) {
        Some(reason) => Err(reason),
        None => admit(view, ledger, job, Reach::Unclaimed),
    };
    let admitted = admitted.map_err(|reason| or_reserved(view, ledger, job, reason));
    ledger.draft.enforce_reservations(|_| false);
    Ok(vec![start(admitted?), Entry::ReleaseReservation(job), Entry::UseSpareCapacity { job, end }])
}

fn rank_in_class(view: &View<'_>, job: JobId) -> Option<Rank> {
    let class = view.snapshot.jobs.get(job)?.class?;
    Some(view.ranker.rank_of(job, view.snapshot.waiting.class(class)?))
}

/// Whether a job of higher rank, once started, would make room for this one again: then there is no point in waiting for it.
fn would_make_room(view: &View<'_>, ahead: JobId, job: JobId) -> bool {
    let Snapshot { jobs, now, .. } = view.snapshot;
    view.policy.preemption == Preemption::ByGain
        && !is_exempt(&jobs[ahead], view.ranker, *now)
        && gains(view, &jobs[job], &jobs[ahead])
}

/// The refusal of a job that only reservations hold up, where counting tells: while much is reserved, very many jobs
/// would search for a place in vain.
fn only_reserved(view: &View<'_>, ledger: &Ledger<'_>, id: JobId) -> Option<Reason> {
    let job = &view.snapshot.jobs[id];
    let fits = Fits::of(job).filter(|_| !ledger.draft.enforces_no_reservation())?;
    let fits_beside = ledger.draft.fits_beside_reservations(*job.shapes.first()?) >= fits.wanted;
    let refused = fits_beside || placement::refusal_by_counts(view, &ledger.draft, job).is_some();
    if refused { None } else { first_reserved(ledger, id) }
}

fn first_reserved(ledger: &Ledger<'_>, job: JobId) -> Option<Reason> {
    let kept = ledger.draft.reservations.iter().filter(|kept| kept.job != job);
    let first = kept.min_by_key(|kept| kept.from)?;
    Some(Reason::ReservedUntil { ahead: first.job, until: first.from })
}

/// The reason for a refusal, replaced where the job would fit without the reservations.
fn or_reserved<'a>(view: &View<'a>, ledger: &mut Ledger<'a>, id: JobId, reason: Reason) -> Reason {
    if ledger.draft.enforces_no_reservation() || !lacks_capacity(&reason) {
        return reason;
    }
    let Some(reserved) = first_reserved(ledger, id) else { return reason };
    ledger.draft.enforce_reservations(|_| false);
    let job = &view.snapshot.jobs[id];
    let fits = placement::fit(view, &mut ledger.draft, job, GangSize::Minimum, Reach::Unclaimed).is_ok();
    if fits { reserved } else { reason }
}
