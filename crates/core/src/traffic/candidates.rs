//! Candidates: the traffic policies that are tried on the predictor.
//!
//! Weights by bytes sent; classes by bytes left, or by the part that is left; the same within priorities, and priorities
//! alone. Among few jobs also one job before or after all others: where periods differ, no rule that treats all jobs alike
//! serves the job first that comes back soonest with more bytes.

use super::choose::Stake;
use super::{Follows, TrafficPolicy};
use crate::tuning::TrafficTuning;

/// What classes follow where one job has a class of its own.
const IN_CLASSES: [Follows; 3] = [Follows::Nothing, Follows::BytesLeft, Follows::PartLeft];

pub(super) fn candidates(tuning: &TrafficTuning, stakes: &[Stake]) -> Vec<Vec<TrafficPolicy>> {
    let alike = [Follows::BytesSent, Follows::BytesLeft, Follows::PartLeft];
    let mut candidates: Vec<Vec<TrafficPolicy>> =
        alike.into_iter().map(|follows| vec![in_class(tuning, 0, follows); stakes.len()]).collect();
    if stakes.iter().any(|stake| stake.tier != stakes[0].tier) {
        candidates.extend(by_priority(tuning, stakes));
    }
    if stakes.len() <= tuning.max_jobs_for_job_apart {
        candidates.extend((0..stakes.len()).flat_map(|one| apart(tuning, one, stakes.len())));
    }
    candidates
}

pub(super) fn in_class(tuning: &TrafficTuning, class: u8, follows: Follows) -> TrafficPolicy {
    TrafficPolicy { class: tuning.max_promotions.saturating_add(class), follows, ..TrafficPolicy::default() }
}

/// Priorities alone; or the highest before all others, with weights by bytes sent or classes by bytes left in both groups.
fn by_priority(tuning: &TrafficTuning, stakes: &[Stake]) -> [Vec<TrafficPolicy>; 4] {
    let traffic = |class: fn(u8) -> u8, follows: Follows| {
        stakes.iter().map(|stake| in_class(tuning, class(stake.tier), follows)).collect()
    };
    [
        traffic(|tier| tier, Follows::Nothing),
        traffic(|tier| tier.min(1), Follows::BytesSent),
        traffic(|tier| 3 * tier.min(1), Follows::BytesLeft),
        traffic(|tier| 3 * tier.min(1), Follows::PartLeft),
    ]
}

/// One job before the others, or after them, with classes that follow nothing, bytes left or the part left.
fn apart(tuning: &TrafficTuning, one: usize, count: usize) -> Vec<Vec<TrafficPolicy>> {
    let traffic = |(own, theirs): (u8, u8), follows: Follows| {
        let class = |at: usize| if at == one { own } else { theirs };
        (0..count).map(|at| in_class(tuning, class(at), follows)).collect()
    };
    let orders = [(0, 1), (1, 0)];
    orders.into_iter().flat_map(|order| IN_CLASSES.map(|follows| traffic(order, follows))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stakes(tiers: &[u8]) -> Vec<Stake> {
        tiers.iter().map(|tier| Stake { counts: 1.0, tier: *tier, is_first: false }).collect()
    }

    #[test]
    fn the_number_of_candidates_is_bounded_by_the_number_of_jobs() {
        assert_eq!(candidates(&TrafficTuning::DEFAULT, &stakes(&[1, 1])).len(), 3 + 2 * 6);
        assert_eq!(candidates(&TrafficTuning::DEFAULT, &stakes(&[0, 1, 1])).len(), 3 + 4 + 3 * 6);
        assert_eq!(candidates(&TrafficTuning::DEFAULT, &stakes(&[0; 40])).len(), 3);
    }

    #[test]
    fn a_job_that_goes_first_has_a_higher_class_than_all_others() {
        let first = apart(&TrafficTuning::DEFAULT, 1, 3)
            .into_iter()
            .filter(|traffic| traffic[1].class < traffic[0].class);
        for traffic in first {
            assert!(traffic[0] == traffic[2] && traffic[1].follows == traffic[0].follows, "{traffic:?}");
        }
    }
}
