//! Plans for jobs that cannot be stopped: from a start to the end without a gap, with one size where that cannot change.

use super::fill::fill_without_a_gap;
use super::{Booking, Grid, Need, Outlook, Segment, Size};
use crate::model::units::{Duration, Instant};
use crate::observe::progress::Pace;

/// The smallest size with which a job that is never stopped is done in time, started as soon as there is room for it
/// until its end. Who runs already goes on.
pub(crate) fn book_in_one_piece(outlook: &Outlook, need: &Need, grid: &Grid) -> Option<Booking> {
    match (need.size(need.has.members), &need.sizes[..]) {
        (Some(size), [_]) => in_time(need, grid, size, need.now, need.has.pause),
        (None, [size]) => earliest(outlook, need, grid, *size),
        _ => fill_without_a_gap(outlook, need, grid),
    }
}

fn earliest(outlook: &Outlook, need: &Need, grid: &Grid, size: Size) -> Option<Booking> {
    let pieces = outlook.between(need.now, need.target());
    let starts = pieces.iter().filter(|piece| piece.free >= size.units).map(|piece| piece.from);
    let mut bookings = starts.map_while(|start| in_time(need, grid, size, start, need.pauses.first));
    bookings.find(|booking| {
        booking.segments.iter().all(|segment| outlook.least(segment.from, segment.to) >= size.units)
    })
}

fn in_time(need: &Need, grid: &Grid, size: Size, from: Instant, pause: Duration) -> Option<Booking> {
    let ends = from + pause + Pace::at(size.speed).time(need.work);
    let segment = Segment { from, to: grid.up(ends), members: size.members };
    (ends <= need.target()).then(|| Booking { segments: vec![segment], ends })
}
