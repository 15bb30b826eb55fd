//! Class and weight of a flow, which may depend on the bytes that it has sent.
//!
//! Where a traffic policy says so, a few byte *thresholds* divide an iteration; each time the flow passes one, its
//! class or weight changes, and the solver computes new rates. A smooth function of the sent bytes becomes a step
//! function with few steps, each at an exact time. Between thresholds nothing changes, so the simulation stays exact.

use crate::model::cluster::Keeping;
use crate::traffic::{Follows, TrafficPolicy};

/// Traffic classes; class 0 has the highest priority. HTB has eight priorities.
pub(super) const CLASS_COUNT: u8 = 8;
/// Upper bound of a flow's weight.
const MAX_WEIGHT: u32 = 1 << 16;

/// Class and weight of a flow at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClassAndWeight {
    pub(super) class: u8,
    pub(super) weight: u32,
}

/// A traffic policy and its byte thresholds for one iteration.
#[derive(Clone, Debug)]
pub(super) struct Thresholds {
    traffic: TrafficPolicy,
    /// Bytes sent in an iteration at which class or weight changes, in ascending order.
    thresholds: Vec<f64>,
    keeping: Keeping,
}

/// Relative tolerance at a threshold. Event times are whole nanoseconds, so a flow may arrive up to one rounding
/// error short of the threshold; it counts as passed and the flow does not wait for the next nanosecond.
const THRESHOLD_TOLERANCE_FACTOR: f64 = 1.0 + 1e-9;

impl Thresholds {
    /// Thresholds of an iteration that sends `bytes` bytes, and `best` bytes per nanosecond when no other flow is
    /// present.
    pub(super) fn of(traffic: TrafficPolicy, bytes: f64, best: Option<f64>, keeping: Keeping) -> Self {
        Self { traffic, thresholds: traffic.follows.marks(bytes, best), keeping }
    }

    /// Whether class or weight changes within an iteration.
    pub(super) fn vary(&self) -> bool {
        !self.thresholds.is_empty()
    }

    /// Number of thresholds passed by a flow that has sent `sent` bytes.
    pub(super) fn passed(&self, sent: f64) -> u8 {
        self.thresholds.partition_point(|threshold| *threshold <= sent * THRESHOLD_TOLERANCE_FACTOR) as u8
    }

    /// Bytes sent in the iteration at which the flow passes its next threshold.
    pub(super) fn next_threshold(&self, passed: u8) -> Option<f64> {
        self.thresholds.get(usize::from(passed)).copied()
    }

    /// Class and weight after `passed` thresholds. A host with exact priorities moves the flow between classes; a
    /// host with HTB classes expresses the same preference as a multiple of the weight.
    pub(super) fn class_and_weight(&self, passed: u8) -> ClassAndWeight {
        let TrafficPolicy { class, weight, follows, .. } = self.traffic;
        let (behind, part) = match (self.keeping, follows) {
            (Keeping::Exactly, Follows::BytesLeft | Follows::PartLeft) => {
                (follows.classes_behind(passed, self.thresholds.len()), 1)
            }
            _ => (0, follows.part(passed, self.thresholds.len())),
        };
        let (class, weight) = (class.saturating_add(behind), weight.saturating_mul(part));
        ClassAndWeight { class: class.min(CLASS_COUNT - 1), weight: weight.clamp(1, MAX_WEIGHT) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traffic(follows: Follows) -> TrafficPolicy {
        TrafficPolicy { follows, ..TrafficPolicy::default() }
    }

    fn exactly(traffic: TrafficPolicy, bytes: f64, best: Option<f64>) -> Thresholds {
        Thresholds::of(traffic, bytes, best, Keeping::Exactly)
    }

    #[test]
    fn a_flow_with_few_bytes_left_is_in_the_first_class_at_once() {
        let classes = |bytes: f64| {
            let thresholds = exactly(traffic(Follows::BytesLeft), bytes, Some(1.0));
            (
                thresholds.class_and_weight(thresholds.passed(0.0)).class,
                thresholds.class_and_weight(thresholds.passed(bytes)).class,
            )
        };
        assert_eq!(classes(11e6), (0, 0));
        assert_eq!(classes(39e6), (1, 0));
        assert_eq!(classes(119e6), (2, 0));
        assert_eq!(classes(121e6), (3, 0));
    }

    #[test]
    fn a_flow_moves_up_one_class_with_every_quarter_of_its_burst() {
        let thresholds = exactly(traffic(Follows::PartLeft), 8.0, Some(1.0));
        let class = |sent: f64| thresholds.class_and_weight(thresholds.passed(sent)).class;
        assert_eq!([0.0, 2.0, 4.0, 6.0, 8.0].map(class), [3, 2, 1, 0, 0]);
    }

    #[test]
    fn a_host_with_htb_classes_gets_weights_in_place_of_classes_within_an_iteration() {
        let traffic = TrafficPolicy { class: 3, ..traffic(Follows::PartLeft) };
        let thresholds = Thresholds::of(traffic, 8.0, Some(1.0), Keeping::Roughly);
        let class_and_weight = |sent: f64| thresholds.class_and_weight(thresholds.passed(sent));
        let weights = [0.0, 2.0, 4.0, 6.0].map(|sent| class_and_weight(sent).weight);
        assert!(weights.is_sorted_by(|one, next| one < next), "{weights:?}");
        assert!([0.0, 6.0].into_iter().all(|sent| class_and_weight(sent).class == 3));
    }

    #[test]
    fn a_fixed_policy_keeps_class_and_weight_within_bounds() {
        let fixed = TrafficPolicy { class: 9, weight: 0, ..TrafficPolicy::default() };
        let thresholds = exactly(fixed, 1e9, Some(1.0));
        assert!(!thresholds.vary());
        assert_eq!(thresholds.class_and_weight(0), ClassAndWeight { class: 7, weight: 1 });
    }
}
