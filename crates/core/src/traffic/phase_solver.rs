//! Turns: where on a common circle each job's iteration begins, so that bursts on shared links miss each other.
//!
//! The problem, the proof that contention of edges suffice, and the bounds are told in `turns/README.md`. The answer is
//! exact where nodes suffice, and says how far from proven it is where they do not.

mod bound;
mod component;
mod descent;
pub mod harmonise;
mod placed_set;
mod prices;
mod problem;
mod room;
mod search;
mod spread;
mod stage;
mod step_function;
#[cfg(test)]
mod tests;
pub mod validity;
pub mod wheel;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

pub use problem::{Loop, Problem, ProblemError};

use crate::model::units::Duration;
use crate::tuning::TrafficTuning;
use descent::Purse;
use stage::Stage;
use step_function::LINK;

/// How many search nodes may be spent. A node at which very many turns are compared counts as several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Budget(pub u64);

/// Demand beyond capacity: billionths of a link times nanoseconds, times the link's weight, summed over links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Excess(pub u128);

impl Excess {
    pub const NONE: Self = Self(0);

    fn of(area: i128) -> Self {
        Self(u128::try_from(area).expect("more demand is never less excess"))
    }

    /// How long one link of weight 1 takes to carry it, rounded up.
    pub fn link_time(self) -> Duration {
        Duration(u64::try_from(self.0.div_ceil(LINK as u128)).unwrap_or(u64::MAX))
    }
}

/// What the loops of one tier add to the excess of those above them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TierExcess {
    pub tier: u8,
    pub excess: Excess,
    /// No turns add less, given how higher tiers lie among themselves.
    pub bound: Excess,
}

impl TierExcess {
    pub fn is_proven(&self) -> bool {
        self.bound == self.excess
    }
}

/// An answer, and how good it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[must_use]
pub struct Turns {
    /// For each loop, how much later than on its own clock it begins; less than its period.
    pub turns: Vec<Duration>,
    /// The highest tier first.
    pub tiers: Vec<TierExcess>,
    pub nodes: u64,
}

impl Turns {
    pub fn excess(&self) -> Excess {
        Excess(self.tiers.iter().map(|tier| tier.excess.0).sum())
    }

    pub fn bound(&self) -> Excess {
        Excess(self.tiers.iter().map(|tier| tier.bound.0).sum())
    }

    pub fn is_proven(&self) -> bool {
        self.tiers.iter().all(TierExcess::is_proven)
    }
}

/// Turns with the least excess, higher tiers first.
pub fn solve(tuning: &TrafficTuning, problem: &Problem, budget: Budget) -> Turns {
    let tiers: BTreeSet<u8> = problem.loops().iter().map(|one| one.tier).collect();
    let mut purse = Purse { left: budget.0, spent: 0 };
    let mut stage = Stage::new(tuning);
    for tier in tiers {
        stage.enter(problem, tier, &mut purse);
    }
    Turns { turns: turns(problem, &stage), tiers: stage.tiers, nodes: purse.spent }
}

fn turns(problem: &Problem, stage: &Stage) -> Vec<Duration> {
    let mut turns = vec![Duration::ZERO; problem.loops().len()];
    for (index, turn) in stage.bodies.iter().flat_map(|body| &body.members) {
        let turn = turn.unsigned_abs() % problem.loops()[*index].period.0;
        turns[*index] = Duration(turn);
    }
    turns
}
