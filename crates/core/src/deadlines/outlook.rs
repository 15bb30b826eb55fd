//! Free capacity of a pool from now on.

use super::{Booking, PoolDemand, Units};
use crate::model::units::Instant;

/// Free capacity of a pool over time: a step function whose last piece lasts forever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outlook {
    pieces: Vec<(Instant, Units)>,
}

/// An interval of constant free capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutlookPiece {
    pub from: Instant,
    pub to: Instant,
    pub free: Units,
}

impl Outlook {
    pub(crate) fn new(now: Instant, free: Units) -> Self {
        Self { pieces: vec![(now, free)] }
    }

    pub(crate) fn free_now(&self) -> Units {
        self.pieces[0].1
    }

    /// First change of the free capacity after now.
    pub(crate) fn first_change(&self) -> Option<Instant> {
        self.pieces.get(1).map(|(at, _)| *at)
    }

    /// Pieces of an interval.
    pub(crate) fn between(&self, from: Instant, to: Instant) -> Vec<OutlookPiece> {
        let first = self.pieces.partition_point(|(at, _)| *at <= from).saturating_sub(1);
        let ends = self.pieces[first + 1..].iter().map(|(at, _)| *at).chain([Instant(u64::MAX)]);
        let pieces = self.pieces[first..].iter().zip(ends);
        let cut = pieces.map(|((at, free), end)| OutlookPiece {
            from: (*at).max(from),
            to: end.min(to),
            free: *free,
        });
        cut.take_while(|piece| piece.from < to).collect()
    }

    /// Smallest free capacity within an interval.
    pub(crate) fn least(&self, from: Instant, to: Instant) -> Units {
        self.between(from, to).iter().map(|piece| piece.free).min().unwrap_or(Units::MAX)
    }

    /// Allocates units for an interval; a negative number releases them.
    pub(crate) fn take(&mut self, from: Instant, to: Instant, units: Units) {
        let from = from.max(self.pieces[0].0);
        if from >= to || units == 0 {
            return;
        }
        let first = self.split(from);
        let end = if to.0 == u64::MAX { self.pieces.len() } else { self.split(to) };
        self.pieces[first..end].iter_mut().for_each(|(_, free)| *free -= units);
        self.join(end);
        self.join(first);
    }

    /// Splits the piece at a time; returns the index of the piece that begins there.
    fn split(&mut self, at: Instant) -> usize {
        match self.pieces.binary_search_by_key(&at, |(from, _)| *from) {
            Ok(there) => there,
            Err(after) => {
                let free = self.pieces[after.saturating_sub(1)].1;
                self.pieces.insert(after, (at, free));
                after
            }
        }
    }

    /// Merges a piece with the one before it if both have the same free capacity.
    fn join(&mut self, at: usize) {
        if at > 0 && at < self.pieces.len() && self.pieces[at].1 == self.pieces[at - 1].1 {
            self.pieces.remove(at);
        }
    }

    pub(crate) fn book(&mut self, need: &PoolDemand, booking: &Booking) {
        self.take_segments(need, booking, 1);
    }

    pub(crate) fn cancel(&mut self, need: &PoolDemand, booking: &Booking) {
        self.take_segments(need, booking, -1);
    }

    fn take_segments(&mut self, need: &PoolDemand, booking: &Booking, sign: Units) {
        for segment in &booking.segments {
            let units = need.size(segment.members).map_or(0, |size| size.units);
            self.take(segment.from, segment.to, sign * units);
        }
    }

    /// Converts the free capacity to other units.
    pub(crate) fn map_units(&self, told: impl Fn(Units) -> Units) -> Self {
        let mut pieces: Vec<(Instant, Units)> =
            self.pieces.iter().map(|(at, free)| (*at, told(*free))).collect();
        pieces.dedup_by_key(|(_, free)| *free);
        Self { pieces }
    }

    /// Free capacity of two pools together, for jobs that draw from both.
    pub(crate) fn common(&self, other: &Self) -> Self {
        let mut times: Vec<Instant> = self.pieces.iter().chain(&other.pieces).map(|(at, _)| *at).collect();
        times.sort_unstable();
        times.dedup();
        let mut pieces: Vec<(Instant, Units)> = Vec::with_capacity(times.len());
        for at in times {
            let free = self.free_at(at).min(other.free_at(at));
            if pieces.last().is_none_or(|(_, before)| *before != free) {
                pieces.push((at, free));
            }
        }
        Self { pieces }
    }

    fn free_at(&self, at: Instant) -> Units {
        let after = self.pieces.partition_point(|(from, _)| *from <= at);
        self.pieces[after.saturating_sub(1)].1
    }
}
