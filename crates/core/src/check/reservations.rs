//! The rules of backfill reservations.

use super::Violation;
use crate::deadlines::DeadlineVerdict;
use crate::decide::snapshot::Snapshot;
use crate::model::plan::{Amendment, Reservation};
use crate::model::units::Resources;

/// Passes reservations of jobs that wait without a booking, on nodes of the cluster.
pub(super) fn keeps_rules_of_reservations(
    snapshot: &Snapshot<'_>,
    amendment: &Amendment,
) -> Result<(), Violation> {
    let kept = snapshot.plan.reservations();
    let reservations = amendment.reservations.as_deref().unwrap_or(kept);
    reservations.iter().try_for_each(|reservation| passes(snapshot, amendment, reservation))
}

fn passes(
    snapshot: &Snapshot<'_>,
    amendment: &Amendment,
    reservation: &Reservation,
) -> Result<(), Violation> {
    let job = reservation.job;
    if snapshot.jobs.get(job).is_none() || super::runs(snapshot, amendment, job) {
        return Err(Violation::ReservationWithoutWaitingJob(job));
    }
    let entry = match amendment.bookings.get(&job) {
        Some(changed) => changed.as_ref(),
        None => snapshot.plan.timetable().get(job),
    };
    if entry.is_some_and(|entry| entry.verdict != DeadlineVerdict::Pending) {
        return Err(Violation::ReservedAndBooked(job));
    }
    let capacity = |node| snapshot.cluster.nodes().get(node).map(|described| described.capacity);
    let is_there = |node, spare: &Resources| capacity(node).is_some_and(|all| spare.fits_in(all));
    let mut beyond = reservation.spare.iter().filter(|(node, spare)| !is_there(**node, spare));
    beyond.next().map_or(Ok(()), |(node, _)| Err(Violation::ReservedBeyond(job, *node)))
}
