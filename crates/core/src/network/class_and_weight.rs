//! How a flow stands among those it meets: its class and weight, which may follow what it has sent.
//!
//! Where a traffic policy says so, an iteration's bytes are divided by a few *marks*; with each mark that a flow passes,
//! its standing changes, and rates are shared anew. So what is smooth in the world is a stair here, with few
//! steps, each at an exact time. Between marks nothing changes, and what a flow does is as exact as without.

use crate::model::cluster::Keeping;
use crate::traffic::{Follows, TrafficPolicy};

use super::sharing::{CLASSES, MOST_WEIGHT};

/// The class and weight of a flow at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) class: u8,
    pub(super) weight: u32,
}

/// A traffic policy with the marks of an iteration.
#[derive(Clone, Debug)]
pub(super) struct Ladder {
    traffic: TrafficPolicy,
    /// Bytes sent in an iteration at which the standing changes, in ascending order.
    marks: Vec<f64>,
    keeping: Keeping,
}

/// A mark counts as passed a billionth before it is: times are whole nanoseconds, and a flow must not wait for the next.
const PASSED: f64 = 1.0 + 1e-9;

impl Ladder {
    /// For iterations that send so many bytes, at this rate if nobody else is there.
    pub(super) fn of(traffic: TrafficPolicy, bytes: f64, best: Option<f64>, keeping: Keeping) -> Self {
        Self { traffic, marks: traffic.follows.marks(bytes, best), keeping }
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
        let TrafficPolicy { class, weight, follows, .. } = self.traffic;
        let (behind, part) = match (self.keeping, follows) {
            (Keeping::Exactly, Follows::BytesLeft | Follows::PartLeft) => {
                (follows.classes_behind(rung, self.marks.len()), 1)
            }
            _ => (0, follows.part(rung, self.marks.len())),
        };
        let (class, weight) = (class.saturating_add(behind), weight.saturating_mul(part));
        Standing { class: class.min(CLASSES - 1), weight: weight.clamp(1, MOST_WEIGHT) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traffic(follows: Follows) -> TrafficPolicy {
        TrafficPolicy { follows, ..TrafficPolicy::default() }
    }

    fn exactly(traffic: TrafficPolicy, bytes: f64, best: Option<f64>) -> Ladder {
        Ladder::of(traffic, bytes, best, Keeping::Exactly)
    }

    #[test]
    fn whoever_has_little_left_to_send_is_in_the_first_class_at_once() {
        let classes = |bytes: f64| {
            let ladder = exactly(traffic(Follows::BytesLeft), bytes, Some(1.0));
            (ladder.standing(ladder.rung(0.0)).class, ladder.standing(ladder.rung(bytes)).class)
        };
        assert_eq!(classes(11e6), (0, 0));
        assert_eq!(classes(39e6), (1, 0));
        assert_eq!(classes(119e6), (2, 0));
        assert_eq!(classes(121e6), (3, 0));
    }

    #[test]
    fn with_every_quarter_that_is_sent_the_class_is_higher_however_short_a_burst_is() {
        let ladder = exactly(traffic(Follows::PartLeft), 8.0, Some(1.0));
        let class = |sent: f64| ladder.standing(ladder.rung(sent)).class;
        assert_eq!([0.0, 2.0, 4.0, 6.0, 8.0].map(class), [3, 2, 1, 0, 0]);
    }

    #[test]
    fn on_a_host_classes_within_an_iteration_are_parts_of_a_link() {
        let traffic = TrafficPolicy { class: 3, ..traffic(Follows::PartLeft) };
        let ladder = Ladder::of(traffic, 8.0, Some(1.0), Keeping::Roughly);
        let standing = |sent: f64| ladder.standing(ladder.rung(sent));
        let weights = [0.0, 2.0, 4.0, 6.0].map(|sent| standing(sent).weight);
        assert!(weights.is_sorted_by(|one, next| one < next), "{weights:?}");
        assert!([0.0, 6.0].into_iter().all(|sent| standing(sent).class == 3));
    }

    #[test]
    fn a_fixed_lane_stands_where_it_is() {
        let fixed = TrafficPolicy { class: 9, weight: 0, ..TrafficPolicy::default() };
        let ladder = exactly(fixed, 1e9, Some(1.0));
        assert!(!ladder.changes());
        assert_eq!(ladder.standing(0), Standing { class: 7, weight: 1 });
    }
}
