//! Smallest sufficient size of a job, with the latest free capacity used first.

use super::{Booking, BookingSegment, Grid, Outlook, OutlookPiece, PoolDemand, Stops, WorkSimulation};
use crate::model::units::{Duration, Instant};
use crate::observe::progress::WorkPace;
use crate::tuning::DeadlinesTuning;

/// Booking with which a job meets its deadline at minimum capacity: the smallest size that suffices in the time
/// before the deadline, counted backwards; before that time, the next smaller size. `None` if even its fastest size
/// does not suffice.
///
/// A forward simulation includes every pause. Where pauses cost too much, the time of the larger size begins earlier.
pub(crate) fn fill(outlook: &Outlook, need: &PoolDemand, grid: &Grid) -> Option<Booking> {
    if need.work.is_zero() {
        return Some(Booking { segments: Vec::new(), ends: need.now });
    }
    let target = need.target();
    if target <= need.now {
        return None;
    }
    let pieces = outlook.between(need.now, grid.up(target));
    let search = |most| FillSearch { need, grid, pieces: &pieces, target, most, stops: Stops::AtAnyTime };
    (0..need.sizes.len()).find_map(|most| search(most).book())
}

/// The same for a job that has members from its start to its end without a gap; a running job has started already.
pub(super) fn fill_without_a_gap(
    outlook: &Outlook,
    need: &PoolDemand,
    grid: &Grid,
    tuning: &DeadlinesTuning,
) -> Option<Booking> {
    let target = need.target();
    if target <= need.now {
        return None;
    }
    let pieces = outlook.between(need.now, grid.up(target));
    let starts = if need.has.members > 0 { 1 } else { pieces.len().min(tuning.max_start_times) };
    let stops = Stops::Never;
    (0..need.sizes.len()).find_map(|most| {
        (0..starts)
            .find_map(|start| FillSearch { need, grid, pieces: &pieces[start..], target, most, stops }.book())
    })
}

/// Search for a booking with sizes up to `most`.
struct FillSearch<'f> {
    need: &'f PoolDemand,
    grid: &'f Grid,
    pieces: &'f [OutlookPiece],
    target: Instant,
    /// Index of the largest size.
    most: usize,
    stops: Stops,
}

impl FillSearch<'_> {
    fn book(&self) -> Option<Booking> {
        let (mut done, mut next, mut gap) = (Duration::ZERO, usize::MAX, 1);
        for at in (0..self.pieces.len()).rev() {
            let piece = &self.pieces[at];
            let Some(size) = self.need.largest(piece.free, self.most) else { continue };
            let time = piece.to.min(self.target).since(piece.from);
            done += WorkPace::at(self.need.sizes[size].speed).work(time);
            // The step doubles with each simulation that fails: few bookings lack more time than one or two pauses.
            if done < self.need.work || at > next && at > 0 {
                continue;
            }
            if let Some(booking) = self.simulate(at) {
                return Some(booking);
            }
            (next, gap) = (at.saturating_sub(gap), gap * 2);
        }
        None
    }

    /// Forward simulation with the largest size from a piece on and the next smaller size before it.
    fn simulate(&self, large_from: usize) -> Option<Booking> {
        let mut walk = WorkSimulation::of(self.need);
        let mut segments = Vec::new();
        for (at, piece) in self.pieces.iter().enumerate() {
            let most = if at >= large_from { Some(self.most) } else { self.most.checked_sub(1) };
            let size = most.and_then(|most| self.need.largest(piece.free, most));
            let to = piece.to.min(self.target);
            let size = match (size.map(|size| self.need.sizes[size]), self.stops) {
                (Some(size), Stops::AtAnyTime) if !walk.is_too_short(size, piece.from, to) => size,
                (Some(size), Stops::Never) => size,
                (None, Stops::Never) => return None,
                (_, Stops::AtAnyTime) => continue,
            };
            let segment = BookingSegment { from: piece.from, to: piece.to, members: size.members };
            match walk.run(size, piece.from, to) {
                Some(end) => {
                    segments.push(BookingSegment { to: self.grid.up(end).min(piece.to), ..segment });
                    return Some(Booking::of(segments, end));
                }
                None => segments.push(segment),
            }
        }
        None
    }
}

/// Booking with which a job that cannot meet its deadline completes as early as possible: the largest size that fits
/// at each time. `None` if no size ever fits.
pub(crate) fn fill_as_early_as_possible(
    outlook: &Outlook,
    need: &PoolDemand,
    grid: &Grid,
) -> Option<Booking> {
    let mut walk = WorkSimulation::of(need);
    let mut segments = Vec::new();
    for piece in outlook.between(need.now, Instant(u64::MAX)) {
        let Some(size) = need.largest(piece.free, need.sizes.len() - 1) else { continue };
        let size = need.sizes[size];
        if walk.is_too_short(size, piece.from, piece.to) {
            continue;
        }
        let segment = BookingSegment { from: piece.from, to: piece.to, members: size.members };
        match walk.run(size, piece.from, piece.to) {
            Some(end) => {
                segments.push(BookingSegment { to: grid.up(end).min(piece.to), ..segment });
                return Some(Booking::of(segments, end));
            }
            None => segments.push(segment),
        }
    }
    None
}
