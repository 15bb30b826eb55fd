//! The smallest size that gets a job done in time, with what is free last used first.

use super::{Booking, Grid, Need, Outlook, Piece, Segment, Stops, Walk};
use crate::model::units::{Duration, Instant};
use crate::observe::progress::Pace;

/// A plan by which a job is done in time and takes as little as need be: at the smallest size with which it gets done
/// in the time before its deadline, counted from the back; before that time at the size below. `None` where even its
/// fastest size does not do.
///
/// It is walked through from the front, with every pause on the way. Where the pauses cost too much, the time of the
/// larger size begins earlier.
pub(crate) fn fill(outlook: &Outlook, need: &Need, grid: &Grid) -> Option<Booking> {
    if need.work.is_zero() {
        return Some(Booking { segments: Vec::new(), ends: need.now });
    }
    let target = need.target();
    if target <= need.now {
        return None;
    }
    let pieces = outlook.between(need.now, grid.up(target));
    let filling = |most| Filling { need, grid, pieces: &pieces, target, most, stops: Stops::AtAnyTime };
    (0..need.sizes.len()).find_map(|most| filling(most).book())
}

/// The same for a job that has some size from its start to its end: who runs already has so from now on.
pub(super) fn fill_without_a_gap(outlook: &Outlook, need: &Need, grid: &Grid) -> Option<Booking> {
    let target = need.target();
    if target <= need.now {
        return None;
    }
    let pieces = outlook.between(need.now, grid.up(target));
    let starts = if need.has.members > 0 { 1 } else { pieces.len().min(MOST_STARTS) };
    let stops = Stops::Never;
    (0..need.sizes.len()).find_map(|most| {
        (0..starts)
            .find_map(|start| Filling { need, grid, pieces: &pieces[start..], target, most, stops }.book())
    })
}

/// So many times are tried at which a job might start that never stops from then on.
const MOST_STARTS: usize = 16;

struct Filling<'f> {
    need: &'f Need,
    grid: &'f Grid,
    pieces: &'f [Piece],
    target: Instant,
    /// The largest size it may have.
    most: usize,
    stops: Stops,
}

impl Filling<'_> {
    fn book(&self) -> Option<Booking> {
        let (mut done, mut next, mut gap) = (Duration::ZERO, usize::MAX, 1);
        for at in (0..self.pieces.len()).rev() {
            let piece = &self.pieces[at];
            let Some(size) = self.need.largest(piece.free, self.most) else { continue };
            let time = piece.to.min(self.target).since(piece.from);
            done += Pace::at(self.need.sizes[size].speed).work(time);
            // Each walk that fails lets more pieces pass before the next: few are short of time by more than a pause or two.
            if done < self.need.work || at > next && at > 0 {
                continue;
            }
            if let Some(booking) = self.walk(at) {
                return Some(booking);
            }
            (next, gap) = (at.saturating_sub(gap), gap * 2);
        }
        None
    }

    /// From the front, with the largest size from a piece on and the size below before it.
    fn walk(&self, large_from: usize) -> Option<Booking> {
        let mut walk = Walk::of(self.need);
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
            let segment = Segment { from: piece.from, to: piece.to, members: size.members };
            match walk.run(size, piece.from, to) {
                Some(end) => {
                    segments.push(Segment { to: self.grid.up(end).min(piece.to), ..segment });
                    return Some(Booking::of(segments, end));
                }
                None => segments.push(segment),
            }
        }
        None
    }
}

/// A plan by which a job that cannot be in time is done as soon as it may be: the largest size that is free at each
/// time. `None` if nothing is ever free for it.
pub(crate) fn as_soon_as_may_be(outlook: &Outlook, need: &Need, grid: &Grid) -> Option<Booking> {
    let mut walk = Walk::of(need);
    let mut segments = Vec::new();
    for piece in outlook.between(need.now, Instant(u64::MAX)) {
        let Some(size) = need.largest(piece.free, need.sizes.len() - 1) else { continue };
        let size = need.sizes[size];
        if walk.is_too_short(size, piece.from, piece.to) {
            continue;
        }
        let segment = Segment { from: piece.from, to: piece.to, members: size.members };
        match walk.run(size, piece.from, piece.to) {
            Some(end) => {
                segments.push(Segment { to: grid.up(end).min(piece.to), ..segment });
                return Some(Booking::of(segments, end));
            }
            None => segments.push(segment),
        }
    }
    None
}
