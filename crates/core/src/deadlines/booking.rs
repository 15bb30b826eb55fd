//! A job's plan: which size it has from when to when.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use super::{GUARD, Has, Need, Pauses, Size};
use crate::model::units::{Duration, Instant};
use crate::observe::progress::Pace;

/// So many members from one time to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    pub from: Instant,
    pub to: Instant,
    pub members: u32,
}

/// What is kept for a job so that it is done in time: segments in order, none of them empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Booking {
    pub segments: Vec<Segment>,
    /// When its work will be done.
    pub ends: Instant,
}

impl Booking {
    /// How many members it is to have at a time; none while it waits.
    pub fn members_at(&self, at: Instant) -> u32 {
        let there = self.segments.iter().find(|segment| segment.from <= at && at < segment.to);
        there.map_or(0, |segment| segment.members)
    }

    /// The next time after `now` at which another size begins, or the last one ends.
    pub fn next_change(&self, now: Instant) -> Option<Instant> {
        let edges = self.segments.iter().flat_map(|segment| [segment.from, segment.to]);
        edges.filter(|edge| *edge > now && *edge < Instant(u64::MAX)).min()
    }

    /// When it first has any members from `now` on.
    pub fn starts(&self, now: Instant) -> Option<Instant> {
        self.segments.iter().find(|segment| segment.to > now).map(|segment| segment.from.max(now))
    }

    /// What is left of it from `now` on.
    pub(crate) fn rest_from(&self, now: Instant) -> Self {
        let left = self.segments.iter().filter(|segment| segment.to > now);
        let segments = left.map(|segment| Segment { from: segment.from.max(now), ..*segment }).collect();
        Self { segments, ends: self.ends }
    }

    /// The same with neighbours of one size put together.
    pub(super) fn of(mut segments: Vec<Segment>, ends: Instant) -> Self {
        segments.dedup_by(|next, before| {
            let continues = before.to == next.from && before.members == next.members;
            if continues {
                before.to = next.to;
            }
            continues
        });
        Self { segments, ends }
    }

    /// The same after a segment that ends when it begins.
    pub(crate) fn after(mut self, first: Segment) -> Self {
        self.segments.insert(0, first);
        Self::of(self.segments, self.ends)
    }

    /// When a job is done that keeps to it; `None` if its work is not done by the end.
    pub(crate) fn end_of(&self, need: &Need) -> Option<Instant> {
        let mut walk = Walk::of(need);
        for segment in &self.segments {
            let size = need.size(segment.members)?;
            if let Some(end) = walk.run(size, segment.from, segment.to) {
                return Some(end);
            }
        }
        // A rounding is no delay.
        (walk.left <= GUARD).then_some(self.segments.last().map_or(need.now, |last| last.to))
    }
}

/// A job on its way through its segments: what is left to do, and what it costs to go on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walk<'n> {
    need: &'n Need,
    left: Duration,
    has: Has,
    until: Instant,
}

impl<'n> Walk<'n> {
    pub(crate) fn of(need: &'n Need) -> Self {
        Self { need, left: need.work, has: need.has, until: need.now }
    }

    /// What is left to do.
    pub(crate) fn left(&self) -> Duration {
        self.left
    }

    /// What it has by now.
    pub(crate) fn has(&self) -> Has {
        self.has
    }

    /// How long it does nothing when it goes on with a size at a time.
    fn pause(&self, size: Size, from: Instant) -> Duration {
        let Pauses { first, again, more, fewer } = self.need.pauses;
        let runs = self.until == from && self.has.members > 0;
        let untouched = self.has.members == 0 && self.left == self.need.work;
        match size.members.cmp(&self.has.members) {
            Ordering::Equal if runs => self.has.pause,
            // It has not yet begun to do anything with what it has.
            Ordering::Less if runs => fewer.max(self.has.pause),
            Ordering::Greater if runs => more.max(self.has.pause),
            _ if untouched => first,
            _ => again,
        }
    }

    fn goes_on(&self, size: Size, from: Instant) -> bool {
        self.has.members == size.members && self.until == from
    }

    /// Whether a time is too short to be worth the pause before it.
    pub(crate) fn is_too_short(&self, size: Size, from: Instant, to: Instant) -> bool {
        !self.goes_on(size, from) && to.since(from) <= self.pause(size, from)
    }

    /// Lets it have a size for a time; says when it is done, if that is before the end of it.
    pub(crate) fn run(&mut self, size: Size, from: Instant, to: Instant) -> Option<Instant> {
        let (time, pause) = (to.since(from), self.pause(size, from));
        let useful = time - pause;
        let pace = Pace::at(size.speed);
        let done = pace.work(useful);
        if !useful.is_zero() && done >= self.left {
            return Some(from + pause + pace.time(self.left));
        }
        self.left -= done;
        self.has = Has { members: size.members, pause: pause - time };
        self.until = to;
        None
    }
}
