//! How a flow stands among those it meets: its class and weight, which may follow what it has sent.
//!
//! Where a lane says so, an iteration's bytes are divided by a few *marks*; with each mark that a flow passes,
//! its standing changes, and rates are shared anew. So what is smooth in the world is a stair here, with few
//! steps, each at an exact time. Between marks nothing changes, and what a flow does is as exact as without.

use crate::lane::{Follows, Lane};

use super::sharing::{CLASSES, MOST_WEIGHT};

/// The class and weight of a flow at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) class: u8,
    pub(super) weight: u32,
}

/// A lane with the marks of an iteration.
#[derive(Clone, Debug)]
pub(super) struct Ladder {
    lane: Lane,
    /// Bytes sent in an iteration at which the standing changes, in ascending order.
    marks: Vec<f64>,
}

/// In so many parts of equal size an iteration's bytes are divided where the weight follows what was sent.
const PARTS: u32 = 8;

/// What is left of an iteration, in nanoseconds of sending at full rate, at which the class rises.
const LEFT: [f64; 3] = [120e6, 40e6, 12e6];

/// What is sent of an iteration when the class rises that follows the part that is left.
const QUARTERS: [f64; 3] = [0.25, 0.5, 0.75];

/// A mark counts as passed a billionth before it is: times are whole nanoseconds, and a flow must not wait for the next.
const PASSED: f64 = 1.0 + 1e-9;

impl Ladder {
    /// For iterations that send so many bytes, at this rate if nobody else is there.
    pub(super) fn of(lane: Lane, bytes: f64, best: Option<f64>) -> Self {
        let part = |count: u32| bytes * f64::from(count) / f64::from(PARTS);
        let marks = match lane.follows {
            Follows::Nothing => Vec::new(),
            Follows::BytesSent => (1..PARTS).map(part).collect(),
            Follows::BytesLeft => {
                let sent = LEFT.map(|left| bytes - left * best.unwrap_or(0.0));
                sent.into_iter().filter(|sent| *sent > 0.0 && *sent < bytes).collect()
            }
            Follows::PartLeft => QUARTERS.map(|part| part * bytes).to_vec(),
        };
        Self { lane, marks }
    }

    pub(super) fn changes(&self) -> bool {
        !self.marks.is_empty()
    }

    /// How many marks a flow has passed that has sent so much.
    pub(super) fn rung(&self, sent: f64) -> u8 {
        self.marks.partition_point(|mark| *mark <= sent * PASSED) as u8
    }

    /// What is to be sent in all when the next mark is passed.
    pub(super) fn next_mark(&self, rung: u8) -> Option<f64> {
        self.marks.get(usize::from(rung)).copied()
    }

    pub(super) fn standing(&self, rung: u8) -> Standing {
        let (class, weight) = match self.lane.follows {
            Follows::Nothing => (self.lane.class, self.lane.weight),
            Follows::BytesSent => (self.lane.class, self.lane.weight.saturating_mul(2 * u32::from(rung) + 1)),
            Follows::BytesLeft | Follows::PartLeft => {
                let ahead = self.marks.len() as u8 - rung;
                (self.lane.class.saturating_add(ahead), self.lane.weight)
            }
        };
        Standing { class: class.min(CLASSES - 1), weight: weight.clamp(1, MOST_WEIGHT) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(follows: Follows) -> Lane {
        Lane { follows, ..Lane::default() }
    }

    #[test]
    fn whoever_has_little_left_to_send_is_in_the_first_class_at_once() {
        let classes = |bytes: f64| {
            let ladder = Ladder::of(lane(Follows::BytesLeft), bytes, Some(1.0));
            (ladder.standing(ladder.rung(0.0)).class, ladder.standing(ladder.rung(bytes)).class)
        };
        assert_eq!(classes(11e6), (0, 0));
        assert_eq!(classes(39e6), (1, 0));
        assert_eq!(classes(119e6), (2, 0));
        assert_eq!(classes(121e6), (3, 0));
    }

    #[test]
    fn with_every_quarter_that_is_sent_the_class_is_higher_however_short_a_burst_is() {
        let ladder = Ladder::of(lane(Follows::PartLeft), 8.0, Some(1.0));
        let class = |sent: f64| ladder.standing(ladder.rung(sent)).class;
        assert_eq!([0.0, 2.0, 4.0, 6.0, 8.0].map(class), [3, 2, 1, 0, 0]);
    }

    #[test]
    fn weight_grows_with_every_part_that_is_sent() {
        let ladder = Ladder::of(lane(Follows::BytesSent), f64::from(PARTS), None);
        let weights: Vec<u32> =
            (0..PARTS).map(|sent| ladder.standing(ladder.rung(f64::from(sent))).weight).collect();
        assert!(weights.is_sorted_by(|one, next| one + 2 == *next), "{weights:?}");
    }

    #[test]
    fn a_fixed_lane_stands_where_it_is() {
        let fixed = Lane { class: 9, weight: 0, ..Lane::default() };
        let ladder = Ladder::of(fixed, 1e9, Some(1.0));
        assert!(!ladder.changes());
        assert_eq!(ladder.standing(0), Standing { class: 7, weight: 1 });
    }
}
