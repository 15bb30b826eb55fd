//! The traffic policies in which jobs that meet are predicted to lose least.
//!
//! Ways to share links are tried on a predictor ([`super::candidates`]). The one is taken in which all lose least together,
//! each counted by its priority, if
//!
//! - that is noticeably less than if nothing is done;
//! - nobody is slowed down beyond a bound who would not be so anyhow: whoever is, is promoted first; and
//! - nobody of the highest priority loses by it.
//!
//! The bound is what the worst off would bear if nothing were done, and a little more: on a full link somebody has to
//! wait for what all gain. Only a higher priority may cost others more.

mod reconsider;
mod windows;

use super::TrafficPolicy;
use super::candidates::ways;
use crate::tuning::TrafficTuning;

pub use reconsider::{Call, Reconsidered, reconsider};
pub use windows::{choose_windows, predict_windows};

/// What is at stake for one of the jobs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stake {
    /// How much its loss counts.
    pub counts: f64,
    /// How many priorities are higher than its own.
    pub tier: u8,
    /// Whether it is not to lose by anything that is done.
    pub is_first: bool,
}

/// The best traffic policies by a predictor that says how much slower than alone each job is in its traffic policy.
pub fn choose(
    tuning: &TrafficTuning,
    stakes: &[Stake],
    predict: impl FnMut(&[TrafficPolicy]) -> Vec<f64>,
) -> Vec<TrafficPolicy> {
    choose_with(tuning, stakes, |_| None, predict)
}

/// The same, with one more way that may follow from how much slower each is if nothing is done.
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
    let mut best: Option<Tried> = None;
    let mut least = choice.loss(&fair) - tuning.prediction_tolerance * total_weight(tuning, stakes);
    for traffic in ways(tuning, stakes).into_iter().chain(more(&fair.slowdowns)) {
        let tried = choice.promote(traffic, &bounds);
        if choice.loss(&tried) < least && bounds.allow(&tried, stakes) {
            least = choice.loss(&tried);
            best = Some(tried);
        }
    }
    best.unwrap_or(fair).traffic
}

fn most_slowdown(tuning: &TrafficTuning, stakes: &[Stake], fair: &Tried) -> f64 {
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

/// How much the loss of a job counts.
fn weight(tuning: &TrafficTuning, stake: &Stake) -> f64 {
    if stake.is_first { tuning.highest_priority_loss_weight * stake.counts } else { stake.counts }
}

fn total_weight(tuning: &TrafficTuning, stakes: &[Stake]) -> f64 {
    stakes.iter().map(|stake| weight(tuning, stake)).sum()
}

/// Traffic policies, and how much slower than alone each is in them.
struct Tried {
    traffic: Vec<TrafficPolicy>,
    slowdowns: Vec<f64>,
}

struct Choice<'s, P> {
    tuning: &'s TrafficTuning,
    stakes: &'s [Stake],
    predict: P,
}

impl<P: FnMut(&[TrafficPolicy]) -> Vec<f64>> Choice<'_, P> {
    fn attempt(&mut self, traffic: Vec<TrafficPolicy>) -> Tried {
        Tried { slowdowns: (self.predict)(&traffic), traffic }
    }

    /// Tries traffic policies, with whoever suffers most one class higher, until nobody suffers too much.
    fn promote(&mut self, traffic: Vec<TrafficPolicy>, bounds: &Bounds<'_>) -> Tried {
        let mut tried = self.attempt(traffic);
        for _ in 0..self.tuning.max_promotions {
            let most = bounds.suffers_most(&tried);
            let Some(job) = most.filter(|job| tried.traffic[*job].class > 0) else { break };
            tried.traffic[job].class -= 1;
            tried = self.attempt(tried.traffic);
        }
        tried
    }

    /// What all lose, each as much as it counts.
    fn loss(&self, tried: &Tried) -> f64 {
        let each = self.stakes.iter().zip(&tried.slowdowns);
        each.map(|(stake, slowdown)| weight(self.tuning, stake) * (slowdown - 1.0)).sum()
    }
}

/// What may be done to whom.
struct Bounds<'t> {
    tuning: &'t TrafficTuning,
    most: f64,
    fair: &'t Tried,
}

impl Bounds<'_> {
    fn allow(&self, tried: &Tried, stakes: &[Stake]) -> bool {
        let loses = |(at, stake): (usize, &Stake)| stake.is_first && self.is_slower(tried, at);
        self.suffers_most(tried).is_none() && !stakes.iter().enumerate().any(loses)
    }

    /// Who is slowed down most of those who are beyond the bound, and would not be so far without traffic policies.
    fn suffers_most(&self, tried: &Tried) -> Option<usize> {
        let suffers = |at: &usize| tried.slowdowns[*at] > self.most && self.is_slower(tried, *at);
        let suffering = (0..tried.traffic.len()).filter(suffers);
        suffering.max_by(|one, other| tried.slowdowns[*one].total_cmp(&tried.slowdowns[*other]))
    }

    fn is_slower(&self, tried: &Tried, at: usize) -> bool {
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
    fn whoever_does_not_meet_anybody_at_a_bad_time_is_left_alone() {
        let mut asked = 0;
        let traffic = choose(&TrafficTuning::DEFAULT, &[LOW, LOW], |traffic| {
            asked += 1;
            vec![1.004; traffic.len()]
        });
        assert_eq!((traffic, asked), (vec![TrafficPolicy::default(); 2], 1));
    }

    #[test]
    fn what_costs_least_is_taken() {
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
    fn a_gain_that_is_not_noticed_is_not_worth_it() {
        let traffic = choose(&TrafficTuning::DEFAULT, &[LOW, LOW], |traffic| {
            vec![if traffic[0].is_default() { 1.2 } else { 1.195 }; 2]
        });
        assert_eq!(traffic, vec![TrafficPolicy::default(); 2]);
    }

    #[test]
    fn the_first_do_not_lose_for_others() {
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
    fn whoever_suffers_is_promoted() {
        // The second job suffers wherever there are classes, unless it is in a higher one than the first.
        let predict = |traffic: &[TrafficPolicy]| match traffic[1].class < traffic[0].class {
            true => vec![1.05, 1.1],
            false if traffic[0].follows == Follows::BytesLeft => vec![1.0, 1.5],
            false => vec![1.2, 1.2],
        };
        let traffic = choose(&TrafficTuning::DEFAULT, &[LOW, LOW], predict);
        assert!(traffic[1].class < traffic[0].class, "{traffic:?}");
    }
}
