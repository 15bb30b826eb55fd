//! Every way to share links that is tried on the predictor.
//!
//! Weights by what each has sent; classes by what each has left, or by which part of it; the same inside priorities, and
//! priorities alone. Among few jobs also one before the others, or after them: where periods differ, no rule that treats
//! all alike lets those through who come back with more soonest.

use super::choose::Stake;
use super::{Follows, TrafficPolicy};
use crate::tuning::TrafficTuning;

/// What each does who is let through by a class.
const IN_CLASSES: [Follows; 3] = [Follows::Nothing, Follows::BytesLeft, Follows::PartLeft];

pub(super) fn ways(tuning: &TrafficTuning, stakes: &[Stake]) -> Vec<Vec<TrafficPolicy>> {
    let alike = [Follows::BytesSent, Follows::BytesLeft, Follows::PartLeft];
    let mut ways: Vec<Vec<TrafficPolicy>> =
        alike.into_iter().map(|follows| vec![in_class(tuning, 0, follows); stakes.len()]).collect();
    if stakes.iter().any(|stake| stake.tier != stakes[0].tier) {
        ways.extend(by_priority(tuning, stakes));
    }
    if stakes.len() <= tuning.max_jobs_for_job_apart {
        ways.extend((0..stakes.len()).flat_map(|one| apart(tuning, one, stakes.len())));
    }
    ways
}

pub(super) fn in_class(tuning: &TrafficTuning, class: u8, follows: Follows) -> TrafficPolicy {
    TrafficPolicy { class: tuning.max_promotions.saturating_add(class), follows, ..TrafficPolicy::default() }
}

/// Priorities alone; or the highest before all others, and in each of the two whoever has sent most, or has least left.
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

/// One before the others, or after them, with what each has left considered or not.
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
    fn the_number_of_ways_is_bounded_by_how_many_share() {
        assert_eq!(ways(&TrafficTuning::DEFAULT, &stakes(&[1, 1])).len(), 3 + 2 * 6);
        assert_eq!(ways(&TrafficTuning::DEFAULT, &stakes(&[0, 1, 1])).len(), 3 + 4 + 3 * 6);
        assert_eq!(ways(&TrafficTuning::DEFAULT, &stakes(&[0; 40])).len(), 3);
    }

    #[test]
    fn whoever_goes_first_has_a_higher_class_than_all_others() {
        let first = apart(&TrafficTuning::DEFAULT, 1, 3)
            .into_iter()
            .filter(|traffic| traffic[1].class < traffic[0].class);
        for traffic in first {
            assert!(traffic[0] == traffic[2] && traffic[1].follows == traffic[0].follows, "{traffic:?}");
        }
    }
}
