//! The phase solver: the phase offset (turn) of each job on a common circle at which bursts on shared links collide least.
//!
//! `phase_solver/README.md` states the problem, proves that meetings of edges suffice and derives the bounds. The answer is
//! exact if the search nodes suffice, and tells its gap to the proven bound otherwise.

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
use descent::NodeBudget;
use stage::Stage;
use step_function::LINK;

/// The number of search nodes of a search. A node that compares very many turns counts as several.
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

    /// The time that one link of weight 1 takes to carry the excess, rounded up.
    pub fn link_time(self) -> Duration {
        Duration(u64::try_from(self.0.div_ceil(LINK as u128)).unwrap_or(u64::MAX))
    }
}

/// The excess that the loops of one tier add to that of the tiers above.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TierExcess {
    pub tier: u8,
    pub excess: Excess,
    /// A lower bound of the excess, given the turns of higher tiers.
    pub bound: Excess,
}

impl TierExcess {
    pub fn is_proven(&self) -> bool {
        self.bound == self.excess
    }
}

/// Turns, with their excess and its lower bound.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[must_use]
pub struct Turns {
    /// The turn of each loop: the delay against its own clock, less than its period.
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
    let mut budget = NodeBudget { left: budget.0, spent: 0 };
    let mut stage = Stage::new(tuning);
    for tier in tiers {
        stage.enter(problem, tier, &mut budget);
    }
    Turns { turns: turns(problem, &stage), tiers: stage.tiers, nodes: budget.spent }
}

fn turns(problem: &Problem, stage: &Stage) -> Vec<Duration> {
    let mut turns = vec![Duration::ZERO; problem.loops().len()];
    for (index, turn) in stage.placed_sets.iter().flat_map(|placed_set| &placed_set.members) {
        let turn = turn.unsigned_abs() % problem.loops()[*index].period.0;
        turns[*index] = Duration(turn);
    }
    turns
}
