//! The traffic policies in which jobs that share links are predicted to lose least.
//!
//! Candidates ([`super::candidates`]) are tried on a predictor. The choice is the candidate with the least weighted loss of all
//! jobs together, if
//!
//! - its loss is less than that of fair sharing by more than the tolerance of predictions;
//! - no job is slowed down beyond a bound that it keeps under fair sharing: such a job is promoted first; and
//! - no job of the highest priority loses by it.
//!
//! The bound is the worst slowdown under fair sharing and a little more: on a full link one job has to wait so that all
//! together gain. Only a higher priority may cost other jobs more.

mod reconsider;
mod windows;

use super::TrafficPolicy;
use super::candidates::candidates;
use crate::tuning::TrafficTuning;

pub use reconsider::{Call, Reconsidered, reconsider};
pub use windows::{choose_windows, predict_windows};

/// How much one of the jobs counts in the choice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stake {
    /// The weight of its loss.
    pub counts: f64,
    /// The number of priorities above its own.
    pub tier: u8,
    /// Whether the job has the highest priority and must not lose by the choice.
    pub is_first: bool,
}

/// The best traffic policies by a predictor, which returns the slowdown of each job in given traffic policies.
pub fn choose(
    tuning: &TrafficTuning,
    stakes: &[Stake],
    predict: impl FnMut(&[TrafficPolicy]) -> Vec<f64>,
) -> Vec<TrafficPolicy> {
    choose_with(tuning, stakes, |_| None, predict)
}

/// As [`choose`], with one more candidate that `more` may derive from the slowdowns under fair sharing.
pub fn choose_with(
    tuning: &TrafficTuning,
    stakes: &[Stake],
    more: impl FnOnce(&[f64]) -> Option<Vec<TrafficPolicy>>,
    predict: impl FnMut(&[TrafficPolicy]) -> Vec<f64>,
) -> Vec<TrafficPolicy> {
    let mut choice = Choice { tuning, stakes, predict };
    let fair = choice.attempt(vec![TrafficPolicy::default(); stakes.len()]);
    if fair.slowdowns.iter().all(|slowdown| *slowdown <= 1.0 + tuning.prediction_tolerance) {
        return fair.traffic;
    }
    let bounds = Bounds { tuning, most: most_slowdown(tuning, stakes, &fair), fair: &fair };
    let mut best: Option<Prediction> = None;
    let mut least = choice.loss(&fair) - tuning.prediction_tolerance * total_weight(tuning, stakes);
    for traffic in candidates(tuning, stakes).into_iter().chain(more(&fair.slowdowns)) {
        let tried = choice.promote(traffic, &bounds);
        if choice.loss(&tried) < least && bounds.allow(&tried, stakes) {
            least = choice.loss(&tried);
            best = Some(tried);
        }
    }
    best.unwrap_or(fair).traffic
}

fn most_slowdown(tuning: &TrafficTuning, stakes: &[Stake], fair: &Prediction) -> f64 {
    most_slowdown_of(tuning, stakes, &fair.slowdowns)
}

fn most_slowdown_of(tuning: &TrafficTuning, stakes: &[Stake], fair: &[f64]) -> f64 {
    let worst = fair.iter().copied().fold(1.0, f64::max) * tuning.max_slowdown_vs_worst_fair;
    let hurts = |(stake, slowdown): (&Stake, &f64)| stake.is_first && *slowdown > tuning.noticeable_slowdown;
    if stakes.iter().all(|stake| stake.tier == stakes[0].tier) {
        worst
    } else if stakes.iter().zip(fair).any(hurts) {
        worst.max(tuning.max_slowdown_for_highest_priority)
    } else {
        worst.max(tuning.max_slowdown_for_higher_priority)
    }
}

/// The weight of the loss of a job.
fn weight(tuning: &TrafficTuning, stake: &Stake) -> f64 {
    if stake.is_first { tuning.highest_priority_loss_weight * stake.counts } else { stake.counts }
}

fn total_weight(tuning: &TrafficTuning, stakes: &[Stake]) -> f64 {
    stakes.iter().map(|stake| weight(tuning, stake)).sum()
}

/// Traffic policies with the predicted slowdown of each job.
struct Prediction {
    traffic: Vec<TrafficPolicy>,
    slowdowns: Vec<f64>,
}

struct Choice<'s, P> {
    tuning: &'s TrafficTuning,
    stakes: &'s [Stake],
    predict: P,
}

impl<P: FnMut(&[TrafficPolicy]) -> Vec<f64>> Choice<'_, P> {
    fn attempt(&mut self, traffic: Vec<TrafficPolicy>) -> Prediction {
        Prediction { slowdowns: (self.predict)(&traffic), traffic }
    }

    /// Predicts traffic policies, and promotes the job furthest beyond the bound by one class until no job is beyond it.
    fn promote(&mut self, traffic: Vec<TrafficPolicy>, bounds: &Bounds<'_>) -> Prediction {
        let mut tried = self.attempt(traffic);
        for _ in 0..self.tuning.max_promotions {
            let most = bounds.furthest_beyond(&tried);
            let Some(job) = most.filter(|job| tried.traffic[*job].class > 0) else { break };
            tried.traffic[job].class -= 1;
            tried = self.attempt(tried.traffic);
        }
        tried
    }

    /// The weighted loss of all jobs.
    fn loss(&self, tried: &Prediction) -> f64 {
        let each = self.stakes.iter().zip(&tried.slowdowns);
        each.map(|(stake, slowdown)| weight(self.tuning, stake) * (slowdown - 1.0)).sum()
    }
}

/// The slowdowns that a choice may cause.
struct Bounds<'t> {
    tuning: &'t TrafficTuning,
    most: f64,
    fair: &'t Prediction,
}

impl Bounds<'_> {
    fn allow(&self, tried: &Prediction, stakes: &[Stake]) -> bool {
        let loses = |(at, stake): (usize, &Stake)| stake.is_first && self.is_slower(tried, at);
        self.furthest_beyond(tried).is_none() && !stakes.iter().enumerate().any(loses)
    }

    /// The most slowed of the jobs beyond the bound that fair sharing would slow down less.
    fn furthest_beyond(&self, tried: &Prediction) -> Option<usize> {
        let is_beyond = |at: &usize| tried.slowdowns[*at] > self.most && self.is_slower(tried, *at);
        let beyond = (0..tried.traffic.len()).filter(is_beyond);
        beyond.max_by(|one, other| tried.slowdowns[*one].total_cmp(&tried.slowdowns[*other]))
    }

    fn is_slower(&self, tried: &Prediction, at: usize) -> bool {
        tried.slowdowns[at] > self.fair.slowdowns[at] + self.tuning.prediction_tolerance
    }
}

#[cfg(test)]
mod tests {
    use super::super::Follows;
    use super::*;

    const LOW: Stake = Stake { counts: 1.0, tier: 1, is_first: false };
    const HIGH: Stake = Stake { counts: 4.0, tier: 0, is_first: true };

    #[test]
    fn jobs_that_hardly_slow_each_other_down_share_fairly() {
        let mut asked = 0;
        let traffic = choose(&TrafficTuning::DEFAULT, &[LOW, LOW], |traffic| {
            asked += 1;
            vec![1.004; traffic.len()]
        });
        assert_eq!((traffic, asked), (vec![TrafficPolicy::default(); 2], 1));
    }

    #[test]
    fn the_candidate_with_the_least_loss_is_chosen() {
        let slowdown = |traffic: &TrafficPolicy| match traffic.follows {
            Follows::Nothing => 1.2,
            Follows::BytesSent => 1.1,
            Follows::BytesLeft | Follows::PartLeft | Follows::FirstCome | Follows::LeastLeft => 1.05,
        };
        let traffic =
            choose(&TrafficTuning::DEFAULT, &[LOW, LOW], |traffic| traffic.iter().map(slowdown).collect());
        assert!(traffic.iter().all(|traffic| traffic.follows == Follows::BytesLeft), "{traffic:?}");
    }

    #[test]
    fn a_gain_within_the_tolerance_of_predictions_is_ignored() {
        let traffic = choose(&TrafficTuning::DEFAULT, &[LOW, LOW], |traffic| {
            vec![if traffic[0].is_default() { 1.2 } else { 1.195 }; 2]
        });
        assert_eq!(traffic, vec![TrafficPolicy::default(); 2]);
    }

    #[test]
    fn jobs_of_the_highest_priority_do_not_lose_for_others() {
        let helps_the_low = |traffic: &[TrafficPolicy]| match traffic[0].is_default() {
            true => vec![1.02, 1.9],
            false => vec![1.04, 1.0],
        };
        assert_eq!(
            choose(&TrafficTuning::DEFAULT, &[HIGH, LOW], helps_the_low),
            vec![TrafficPolicy::default(); 2]
        );
    }

    #[test]
    fn a_job_beyond_its_bound_is_promoted() {
        // The second job is beyond its bound in all classes that are not higher than the first job's.
        let predict = |traffic: &[TrafficPolicy]| match traffic[1].class < traffic[0].class {
            true => vec![1.05, 1.1],
            false if traffic[0].follows == Follows::BytesLeft => vec![1.0, 1.5],
            false => vec![1.2, 1.2],
        };
        let traffic = choose(&TrafficTuning::DEFAULT, &[LOW, LOW], predict);
        assert!(traffic[1].class < traffic[0].class, "{traffic:?}");
    }
}
