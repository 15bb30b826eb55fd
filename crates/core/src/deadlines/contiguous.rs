//! Bookings for jobs that cannot be preempted: without a gap from start to end, with one size if the size cannot
//! change.

use super::fill::fill_without_a_gap;
use super::{Booking, BookingSegment, BookingSize, Grid, Outlook, PoolDemand};
use crate::model::units::{Duration, Instant};
use crate::observe::progress::WorkPace;
use crate::tuning::DeadlinesTuning;

/// Booking of the smallest size with which a non-preemptible job meets its deadline, from the first time at which
/// there is capacity until its end. A running job continues.
pub(crate) fn book_without_gap(
    outlook: &Outlook,
    need: &PoolDemand,
    grid: &Grid,
    tuning: &DeadlinesTuning,
) -> Option<Booking> {
    match (need.size(need.has.members), &need.sizes[..]) {
        (Some(size), [_]) => single_segment(need, grid, size, need.now, need.has.pause),
        (None, [size]) => earliest_fit(outlook, need, grid, *size),
        _ => fill_without_a_gap(outlook, need, grid, tuning),
    }
}

/// First booking of a rigid job for which there is capacity and which meets the deadline.
fn earliest_fit(outlook: &Outlook, need: &PoolDemand, grid: &Grid, size: BookingSize) -> Option<Booking> {
    let pieces = outlook.between(need.now, need.target());
    let starts = pieces.iter().filter(|piece| piece.free >= size.units).map(|piece| piece.from);
    let mut bookings = starts.map_while(|start| single_segment(need, grid, size, start, need.pauses.first));
    bookings.find(|booking| {
        booking.segments.iter().all(|segment| outlook.least(segment.from, segment.to) >= size.units)
    })
}

/// Booking with one segment; `None` if it misses the deadline.
fn single_segment(
    need: &PoolDemand,
    grid: &Grid,
    size: BookingSize,
    from: Instant,
    pause: Duration,
) -> Option<Booking> {
    let ends = from + pause + WorkPace::at(size.speed).time(need.work);
    let segment = BookingSegment { from, to: grid.up(ends), members: size.members };
    (ends <= need.target()).then(|| Booking { segments: vec![segment], ends })
}
