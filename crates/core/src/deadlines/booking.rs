//! Bookings: the size of a job over time.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use super::{BookingSize, DEADLINE_MARGIN, PoolDemand, PresentSize, ResizePauses};
use crate::model::units::{Duration, Instant};
use crate::observe::progress::WorkPace;

/// A size of a job and the time for which the job has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BookingSegment {
    pub from: Instant,
    pub to: Instant,
    pub members: u32,
}

/// Capacity that is reserved so that a job meets its deadline: segments in order of time, none of them empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Booking {
    pub segments: Vec<BookingSegment>,
    /// Time at which the job completes.
    pub ends: Instant,
}

impl Booking {
    /// Size of the job at a time; zero while it waits.
    pub fn members_at(&self, at: Instant) -> u32 {
        let there = self.segments.iter().find(|segment| segment.from <= at && at < segment.to);
        there.map_or(0, |segment| segment.members)
    }

    /// Next time after `now` at which the size changes or the last segment ends.
    pub fn next_change(&self, now: Instant) -> Option<Instant> {
        let edges = self.segments.iter().flat_map(|segment| [segment.from, segment.to]);
        edges.filter(|edge| *edge > now && *edge < Instant(u64::MAX)).min()
    }

    /// First time from `now` on at which the job has members.
    pub fn starts(&self, now: Instant) -> Option<Instant> {
        self.segments.iter().find(|segment| segment.to > now).map(|segment| segment.from.max(now))
    }

    /// Part of the booking from `now` on.
    pub(crate) fn rest_from(&self, now: Instant) -> Self {
        let left = self.segments.iter().filter(|segment| segment.to > now);
        let segments =
            left.map(|segment| BookingSegment { from: segment.from.max(now), ..*segment }).collect();
        Self { segments, ends: self.ends }
    }

    /// Creates a booking; merges adjacent segments of equal size.
    pub(super) fn of(mut segments: Vec<BookingSegment>, ends: Instant) -> Self {
        segments.dedup_by(|next, before| {
            let continues = before.to == next.from && before.members == next.members;
            if continues {
                before.to = next.to;
            }
            continues
        });
        Self { segments, ends }
    }

    /// Prepends a segment that ends where the booking begins.
    pub(crate) fn after(mut self, first: BookingSegment) -> Self {
        self.segments.insert(0, first);
        Self::of(self.segments, self.ends)
    }

    /// Completion time of a job that follows the booking; `None` if work is left at its end.
    pub(crate) fn end_of(&self, need: &PoolDemand) -> Option<Instant> {
        let mut walk = WorkSimulation::of(need);
        for segment in &self.segments {
            let size = need.size(segment.members)?;
            if let Some(end) = walk.run(size, segment.from, segment.to) {
                return Some(end);
            }
        }
        // A rounding error is no delay.
        (walk.left <= DEADLINE_MARGIN).then_some(self.segments.last().map_or(need.now, |last| last.to))
    }
}

/// Simulation of a job over the segments of a booking: remaining work and present size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkSimulation<'n> {
    need: &'n PoolDemand,
    left: Duration,
    has: PresentSize,
    until: Instant,
}

impl<'n> WorkSimulation<'n> {
    pub(crate) fn of(need: &'n PoolDemand) -> Self {
        Self { need, left: need.work, has: need.has, until: need.now }
    }

    /// Remaining work.
    pub(crate) fn left(&self) -> Duration {
        self.left
    }

    /// Present size.
    pub(crate) fn has(&self) -> PresentSize {
        self.has
    }

    /// Time without progress when the job continues with `size` at `from`.
    fn pause(&self, size: BookingSize, from: Instant) -> Duration {
        let ResizePauses { first, again, more, fewer } = self.need.pauses;
        let runs = self.until == from && self.has.members > 0;
        let untouched = self.has.members == 0 && self.left == self.need.work;
        match size.members.cmp(&self.has.members) {
            Ordering::Equal if runs => self.has.pause,
            // The job has not yet finished the pause of its previous change.
            Ordering::Less if runs => fewer.max(self.has.pause),
            Ordering::Greater if runs => more.max(self.has.pause),
            _ if untouched => first,
            _ => again,
        }
    }

    /// Whether the job continues without a change of size.
    fn continues_unchanged(&self, size: BookingSize, from: Instant) -> bool {
        self.has.members == size.members && self.until == from
    }

    /// Whether an interval is not longer than the pause before it.
    pub(crate) fn is_too_short(&self, size: BookingSize, from: Instant, to: Instant) -> bool {
        !self.continues_unchanged(size, from) && to.since(from) <= self.pause(size, from)
    }

    /// Runs the job with a size for an interval; returns its completion time if it completes within the interval.
    pub(crate) fn run(&mut self, size: BookingSize, from: Instant, to: Instant) -> Option<Instant> {
        let (time, pause) = (to.since(from), self.pause(size, from));
        let useful = time - pause;
        let pace = WorkPace::at(size.speed);
        let done = pace.work(useful);
        if !useful.is_zero() && done >= self.left {
            return Some(from + pause + pace.time(self.left));
        }
        self.left -= done;
        self.has = PresentSize { members: size.members, pause: pause - time };
        self.until = to;
        None
    }
}
