//! Whether the traffic policies of running jobs are worth changing.
//!
//! The best traffic policies may differ from the current ones and be hardly better. A change has a cost, and its gain is only
//! predicted. So traffic policies stay unless the best ones win more than a margin, or unless the current ones no longer help
//! or slow down a job beyond its bound.

use super::windows::bounds_of_windows;
use super::{Bounds, Choice, Prediction, Stake, TrafficPolicy, most_slowdown, total_weight};
use crate::tuning::TrafficTuning;

/// The result of comparing current traffic policies with the best.
#[derive(Clone, Debug, PartialEq)]
pub struct Reconsidered {
    pub call: Call,
    /// The best traffic policies.
    pub traffic: Vec<TrafficPolicy>,
    /// By how much the slowdown of each job would fall.
    pub eased: Vec<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// The current traffic policies are the best, or hardly worse.
    Keep,
    /// Other policies are better by more than the margin.
    Change,
    /// The current traffic policies harm a job or do not help.
    Must,
}

/// Compares current traffic policies with the best that were found.
pub fn reconsider(
    tuning: &TrafficTuning,
    stakes: &[Stake],
    current: &[TrafficPolicy],
    traffic: Vec<TrafficPolicy>,
    predict: impl FnMut(&[TrafficPolicy]) -> Vec<f64>,
) -> Reconsidered {
    let mut choice = Choice { tuning, stakes, predict };
    let [fair, now, best] = [vec![TrafficPolicy::default(); stakes.len()], current.to_vec(), traffic.clone()]
        .map(|traffic| choice.attempt(traffic));
    let eased = now.slowdowns.iter().zip(&best.slowdowns).map(|(now, best)| now - best).collect();
    let bounds = Bounds { tuning, most: most_slowdown(tuning, stakes, &fair), fair: &fair };
    let is_allowed = bounds.allow(&now, stakes) && keeps_bounds_of_windows(tuning, stakes, &fair, &now);
    Reconsidered { call: call(&choice, [&fair, &now, &best], is_allowed), traffic, eased }
}

/// Whether no job loses more in the rotation that it has than a rotation may be chosen for. A rotation harms a job if others
/// on its links are served before it because nothing was known of them when the rotation was chosen.
fn keeps_bounds_of_windows(
    tuning: &TrafficTuning,
    stakes: &[Stake],
    fair: &Prediction,
    now: &Prediction,
) -> bool {
    let rotates = now.traffic.iter().any(|traffic| traffic.rotation.is_some());
    let bounds = bounds_of_windows(tuning, stakes, &fair.slowdowns);
    !rotates
        || now
            .slowdowns
            .iter()
            .zip(bounds)
            .all(|(slowdown, most)| *slowdown <= most + tuning.prediction_tolerance)
}

/// `is_allowed` tells whether the current traffic policies keep the bounds of all jobs.
fn call<P: FnMut(&[TrafficPolicy]) -> Vec<f64>>(
    choice: &Choice<'_, P>,
    [fair, now, best]: [&Prediction; 3],
    is_allowed: bool,
) -> Call {
    if now.traffic == best.traffic {
        return Call::Keep;
    }
    let all = total_weight(choice.tuning, choice.stakes);
    let nothing = now.traffic == fair.traffic;
    let helps = nothing || choice.loss(now) < choice.loss(fair) - choice.tuning.prediction_tolerance * all;
    match helps && is_allowed {
        false => Call::Must,
        true if choice.loss(best) < choice.loss(now) - choice.tuning.min_gain_of_change * all => Call::Change,
        // Against fair sharing the best were found to win enough already.
        true if nothing => Call::Change,
        true => Call::Keep,
    }
}

#[cfg(test)]
mod tests {
    use super::super::choose;
    use super::*;
    use crate::model::units::Duration;
    use crate::traffic::{Follows, Rotation, Slot};

    fn reconsidered(
        current: &[TrafficPolicy],
        predict: impl Fn(&[TrafficPolicy]) -> Vec<f64>,
    ) -> Reconsidered {
        reconsider(
            &TrafficTuning::DEFAULT,
            &[LOW; 2],
            current,
            choose(&TrafficTuning::DEFAULT, &[LOW; 2], &predict),
            &predict,
        )
    }

    const LOW: Stake = Stake { counts: 1.0, tier: 1, is_first: false };

    fn following(follows: Follows) -> Vec<TrafficPolicy> {
        vec![TrafficPolicy { class: 2, follows, ..TrafficPolicy::default() }; 2]
    }

    /// The slowdown of two jobs under fair sharing, weights and classes.
    fn slowed(by: [f64; 3]) -> impl Fn(&[TrafficPolicy]) -> Vec<f64> {
        move |traffic| {
            let slowdown = |traffic: &TrafficPolicy| match traffic.follows {
                Follows::Nothing => by[0],
                Follows::BytesSent => by[1],
                Follows::BytesLeft | Follows::PartLeft | Follows::FirstCome | Follows::LeastLeft => by[2],
            };
            traffic.iter().map(slowdown).collect()
        }
    }

    #[test]
    fn traffic_policies_that_are_hardly_worse_than_the_best_are_kept() {
        let current = following(Follows::BytesSent);
        let hardly = reconsidered(&current, slowed([1.2, 1.05, 1.041]));
        assert_eq!(hardly.call, Call::Keep);
        let much = reconsidered(&current, slowed([1.2, 1.05, 1.02]));
        assert_eq!((much.call, much.traffic), (Call::Change, following(Follows::BytesLeft)));
        assert!(much.eased.iter().all(|eased| (eased - 0.03).abs() < 1e-9));
    }

    #[test]
    fn traffic_policies_that_no_longer_help_are_withdrawn() {
        let current = following(Follows::BytesSent);
        let nothing_is_as_good = reconsidered(&current, slowed([1.05, 1.05, 1.06]));
        assert_eq!(nothing_is_as_good.call, Call::Must);
        assert!(nothing_is_as_good.traffic.iter().all(TrafficPolicy::is_default));
    }

    #[test]
    fn a_rotation_that_harms_a_job_since_more_is_known_of_others_is_replaced() {
        let rotation = Rotation { window: Duration(1), slots: [Slot::first_come(0); Rotation::WINDOWS] };
        let rotating = TrafficPolicy { rotation: Some(rotation), ..TrafficPolicy::default() };
        let current = [rotating, TrafficPolicy::default()];
        let by = |slowed: [f64; 2]| {
            move |traffic: &[TrafficPolicy]| match (traffic[0].rotation, traffic[1].rotation) {
                (None, None) => vec![1.3, 1.3],
                (Some(_), None) => slowed.to_vec(),
                _ => vec![1.1, 1.1],
            }
        };
        let best = vec![rotating; 2];
        let harms = by([1.35, 1.0]);
        assert_eq!(
            reconsider(&TrafficTuning::DEFAULT, &[LOW; 2], &current, best.clone(), harms).call,
            Call::Must
        );
        let helps_both = by([1.11, 1.1]);
        assert_eq!(
            reconsider(&TrafficTuning::DEFAULT, &[LOW; 2], &current, best, helps_both).call,
            Call::Keep
        );
    }

    #[test]
    fn jobs_without_traffic_policies_get_the_best() {
        let none = vec![TrafficPolicy::default(); 2];
        assert_eq!(reconsidered(&none, slowed([1.2, 1.195, 1.193])).call, Call::Change);
        assert_eq!(reconsidered(&none, slowed([1.2, 1.2, 1.2])).call, Call::Keep);
    }
}
