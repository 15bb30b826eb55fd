//! What a job may do on links: how it stands among those it meets there.
//!
//! A traffic policy is a standing, not a rate: what a job in fact gets follows from who else is sending at the moment. Traffic policies take no
//! resources, so they need no steps of their own: they are a part of what was decided, and a world makes its links so.

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
    /// Its part of a link relative to others of its class, from 1 to 65,536.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub weight: u32,
    #[serde(default, skip_serializing_if = "Follows::is_nothing")]
    pub follows: Follows,
    /// When its iterations are to begin. It is held once, until its turn, and then left alone, unless its turn is watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<Turn>,
    /// Where each of its iterations is to begin, if it is held every time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pace: Option<Pace>,
    /// Class and `follows` by time window, in place of those above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotation: Option<Rotation>,
}

/// What class and weight of a job follow, in the course of an iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Follows {
    #[default]
    Nothing,
    /// The more it has sent, the greater its weight: who is about to be done is let through.
    BytesSent,
    /// The less it has left to send, the higher its class, among four.
    BytesLeft,
    /// The smaller the part of its bytes that is left, the higher its class, among four: bursts of whatever length.
    PartLeft,
    /// First come, first served: a job that begins to send waits for the jobs that send already ([`order`]). FIFO scheduling
    /// of coflows, with the iteration as the coflow.
    FirstCome,
    /// The job with least left to send is served first, as found when its burst begins: shortest remaining time first.
    LeastLeft,
}

/// A position on a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Turn {
    pub period: Duration,
    /// Counted from the beginning of time.
    pub offset: Duration,
    /// Whether it is held again once it has drifted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch: Option<Watch>,
}

/// A job is held again, until its turn, when an iteration begins too far from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Watch {
    /// So far it may begin before or after its turn.
    pub tolerance: Duration,
    /// So long it is left alone after it was held.
    pub pause: Duration,
}

/// A turn that is kept: whoever is early waits for its place, whoever is late goes at once and has caught up when the
/// cushion in the period has made up for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pace {
    pub turn: Turn,
    /// How long the turns would hold if nobody were held: until noise has moved somebody by the room that it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holds_by_itself: Option<Duration>,
}

impl Turn {
    /// The first such moment from `at` on.
    pub fn next(self, at: Instant) -> Instant {
        let period = self.period.0.max(1);
        let (reached, wanted) = (at.0 % period, self.offset.0 % period);
        Instant(at.0.saturating_add((wanted + period - reached) % period))
    }

    /// How far it is from a moment to the nearest such one, before or after.
    pub fn distance(self, at: Instant) -> Duration {
        let ahead = self.next(at).since(at);
        Duration(ahead.0.min(self.period.0.max(1) - ahead.0))
    }

    /// Whether both say the same moments.
    pub fn is_with(self, other: Self) -> bool {
        (self.period, self.offset) == (other.period, other.offset)
    }
}

impl Default for TrafficPolicy {
    /// Nothing is done: everybody shares fairly.
    fn default() -> Self {
        Self { class: 0, weight: 1, follows: Follows::Nothing, turn: None, pace: None, rotation: None }
    }
}

impl TrafficPolicy {
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Class and `follows` at a moment of the world's clock.
    pub fn slot_at(&self, now: Instant) -> Slot {
        let fixed = Slot { class: self.class, follows: self.follows };
        self.rotation.map_or(fixed, |rotation| rotation.at(now))
    }
}

impl Follows {
    /// For serde: what is left out means this.
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
