//! Time division of links: the traffic policies of jobs that share links, and how they are chosen.
//!
//! What belongs here: traffic policies and their wire format, the contention graph (which jobs share links), the slowdown
//! model (how much slower each job becomes), the search for phase offsets, and the choice among candidates.
//!
//! A traffic policy is a class, a weight or an offset, and not a rate: the rate of a job follows from the jobs that send at
//! the same moment.

pub mod affinity;
pub mod burst_order;
mod candidates;
pub mod choose;
pub mod circle;
mod class_steps;
pub mod contention_graph;
pub mod decision_inputs;
mod directive;
pub mod paced_offset;
pub mod phase_solver;
mod rotation;
pub mod slowdown_model;

use serde::{Deserialize, Serialize};

use crate::model::units::{Duration, Instant};

pub use directive::{Held, TrafficDirective};
pub use rotation::{Rotation, Slot};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TrafficPolicy {
    /// From 0, served first, to 7.
    #[serde(default, skip_serializing_if = "is_first_class")]
    pub class: u8,
    /// The share of a link relative to other jobs of the same class, from 1 to 65,536.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub weight: u32,
    #[serde(default, skip_serializing_if = "Follows::is_nothing")]
    pub follows: Follows,
    /// The phase offset at which an iteration begins. The job is held once, until its turn, and again only if `watch` says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<Turn>,
    /// The phase offset at which every iteration begins: the job is held in each of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pace: Option<Pace>,
    /// Class and `follows` by time window; replaces those above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotation: Option<Rotation>,
}

/// The quantity that changes the class or weight of a job in the course of an iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Follows {
    #[default]
    Nothing,
    /// The weight grows with the bytes sent, so that a burst that is nearly over ends soon.
    BytesSent,
    /// The class rises as fewer bytes are left, among four classes.
    BytesLeft,
    /// The class rises as a smaller part of the bytes is left, among four classes: bursts of every length are treated alike.
    PartLeft,
    /// First come, first served: a job that begins to send waits for the jobs that send already ([`burst_order`]). FIFO
    /// scheduling of coflows, with the iteration as the coflow.
    FirstCome,
    /// The job with least left to send is served first, as found when its burst begins: shortest remaining time first.
    LeastLeft,
}

/// A phase offset on a period. User documents call it a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Turn {
    pub period: Duration,
    /// Counted from the beginning of the world's clock.
    pub offset: Duration,
    /// The tolerance beyond which the job is held again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch: Option<Watch>,
}

/// A job whose iteration begins too far from its turn is held again until the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Watch {
    /// The distance from the turn, before or after, that is accepted.
    pub tolerance: Duration,
    /// The least time between two holds.
    pub pause: Duration,
}

/// A turn that is kept in every iteration. A job that is early waits for it; a job that is late begins at once and catches up
/// by the cushion of its period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pace {
    pub turn: Turn,
    /// The time for which the turns would hold without any hold: until noise exceeds the slack of a job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holds_by_itself: Option<Duration>,
}

impl Turn {
    /// The first turn from `at` on.
    pub fn next(self, at: Instant) -> Instant {
        let period = self.period.0.max(1);
        let (reached, wanted) = (at.0 % period, self.offset.0 % period);
        Instant(at.0.saturating_add((wanted + period - reached) % period))
    }

    /// The distance from a moment to the nearest turn, before or after.
    pub fn distance(self, at: Instant) -> Duration {
        let ahead = self.next(at).since(at);
        Duration(ahead.0.min(self.period.0.max(1) - ahead.0))
    }

    /// Whether both give the same moments.
    pub fn is_with(self, other: Self) -> bool {
        (self.period, self.offset) == (other.period, other.offset)
    }
}

impl Default for TrafficPolicy {
    /// Fair sharing.
    fn default() -> Self {
        Self { class: 0, weight: 1, follows: Follows::Nothing, turn: None, pace: None, rotation: None }
    }
}

impl TrafficPolicy {
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// The class and `follows` at a moment of the world's clock.
    pub fn slot_at(&self, now: Instant) -> Slot {
        let fixed = Slot { class: self.class, follows: self.follows };
        self.rotation.map_or(fixed, |rotation| rotation.at(now))
    }
}

impl Follows {
    /// For serde: a missing field has this value.
    fn is_nothing(&self) -> bool {
        *self == Self::Nothing
    }

    /// Whether the class of a job depends on the bursts under way when its own begins.
    pub const fn orders_bursts(self) -> bool {
        matches!(self, Self::FirstCome | Self::LeastLeft)
    }
}

fn is_first_class(class: &u8) -> bool {
    *class == 0
}

fn is_one(weight: &u32) -> bool {
    *weight == 1
}

fn one() -> u32 {
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_comes_once_a_period() {
        let turn = Turn { period: Duration(100), offset: Duration(30), watch: None };
        assert_eq!(turn.next(Instant(0)), Instant(30));
        assert_eq!(turn.next(Instant(30)), Instant(30));
        assert_eq!(turn.next(Instant(31)), Instant(130));
        assert_eq!(turn.next(Instant(1_099)), Instant(1_130));
    }

    #[test]
    fn the_nearest_turn_may_be_over_or_to_come() {
        let turn = Turn { period: Duration(100), offset: Duration(30), watch: None };
        let distance = |at: u64| turn.distance(Instant(at)).0;
        assert_eq!([0, 29, 30, 31, 80, 81, 129].map(distance), [30, 1, 0, 1, 50, 49, 1]);
    }
}
