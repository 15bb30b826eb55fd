//! Tier by tier: loops of a tier are placed around the placed sets of higher tiers, which keep their shape.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::component::{Component, Mover, Pattern, Placed};
use super::descent::NodeBudget;
use super::placed_set::PlacedSet;
use super::problem::Problem;
use super::search::{Found, best_turns};
use super::spread::spread;
use super::step_function::{LINK, Steps};
use super::{Excess, TierExcess};
use crate::model::id::LinkId;
use crate::tuning::TrafficTuning;

/// The placed sets of the tiers so far, and the excess of each tier.
#[derive(Debug)]
pub(super) struct Stage<'t> {
    tuning: &'t TrafficTuning,
    pub(super) placed_sets: Vec<PlacedSet>,
    pub(super) tiers: Vec<TierExcess>,
}

impl<'t> Stage<'t> {
    pub(super) fn new(tuning: &'t TrafficTuning) -> Self {
        Self { tuning, placed_sets: Vec::new(), tiers: Vec::new() }
    }

    pub(super) fn enter(&mut self, problem: &Problem, tier: u8, budget: &mut NodeBudget) {
        let newcomers: Vec<usize> =
            (0..problem.loops().len()).filter(|index| problem.loops()[*index].tier == tier).collect();
        let weights = weights(problem, &newcomers);
        let before = excess(&self.placed_sets, &weights);
        self.placed_sets.extend(newcomers.iter().map(|index| PlacedSet::of_loop(problem, *index)));
        let gap = self.untie(&weights, budget);
        let caused = excess(&self.placed_sets, &weights) - before;
        // Zero is a bound, too, where less than that was proven.
        let bound = Excess::of((caused - gap).max(0));
        self.tiers.push(TierExcess { tier, excess: Excess::of(caused), bound });
    }

    /// Solves every component and joins it to one placed set; returns the sum of their gaps to the bounds.
    fn untie(&mut self, weights: &BTreeMap<LinkId, u32>, budget: &mut NodeBudget) -> i128 {
        let links = contended(&self.placed_sets, weights);
        let mut components = components(&self.placed_sets, &links);
        let mut gap = 0;
        for left in (1..=components.len()).rev() {
            let tied = components.remove(0);
            let component = component(self.tuning, &self.placed_sets, &tied, &links, weights);
            let mut share = NodeBudget { left: budget.left / left as u64, spent: 0 };
            let Found { mut placed, bound } = best_turns(&component, &mut share);
            spread(&component, &mut placed);
            budget.left -= share.spent.min(budget.left);
            budget.spent += share.spent;
            gap += placed.cost - bound;
            self.join(&tied, &placed);
        }
        self.placed_sets.retain(|placed_set| !placed_set.members.is_empty());
        gap
    }

    /// Joins the members of a component into the first; the others stay empty until all components are solved.
    fn join(&mut self, tied: &[usize], placed: &Placed) {
        let nothing = || PlacedSet { period: 1, members: Vec::new(), demands: BTreeMap::new() };
        let parts: Vec<(PlacedSet, i64)> = tied
            .iter()
            .zip(&placed.turns)
            .map(|(placed_set, turn)| {
                (std::mem::replace(&mut self.placed_sets[*placed_set], nothing()), turn.unwrap_or(0))
            })
            .collect();
        self.placed_sets[tied[0]] = PlacedSet::joined(&parts);
    }
}

/// The weight of a link is the largest weight of the newcomers on it.
fn weights(problem: &Problem, newcomers: &[usize]) -> BTreeMap<LinkId, u32> {
    let mut weights = BTreeMap::new();
    for one in newcomers.iter().map(|index| &problem.loops()[*index]) {
        for (link, _) in &one.links {
            let weight = weights.entry(*link).or_insert(0);
            *weight = one.weight.max(*weight);
        }
    }
    weights
}

fn excess(placed_sets: &[PlacedSet], weights: &BTreeMap<LinkId, u32>) -> i128 {
    let on = |(link, weight): (&LinkId, &u32)| {
        let sum = placed_sets
            .iter()
            .filter_map(|placed_set| placed_set.demands.get(link))
            .fold(None, |sum, demand| {
                Some(sum.map_or_else(|| demand.clone(), |sum: Steps| sum.plus(demand)))
            });
        sum.map_or(0, |sum| sum.excess() * i128::from(*weight))
    };
    weights.iter().map(on).sum()
}

/// Links that cannot carry all bursts at once; on other links turns make no difference.
fn contended(placed_sets: &[PlacedSet], weights: &BTreeMap<LinkId, u32>) -> Vec<LinkId> {
    let peak = |link: &LinkId| -> i64 {
        placed_sets.iter().filter_map(|placed_set| placed_set.demands.get(link)).map(Steps::peak).sum()
    };
    weights.keys().copied().filter(|link| peak(link) > LINK).collect()
}

fn bursts_on(placed_set: &PlacedSet, link: LinkId) -> bool {
    placed_set.demands.get(&link).is_some_and(|demand| !demand.is_flat())
}

/// Placed sets that burst on a common link are in one component, in the order of their first member.
fn components(placed_sets: &[PlacedSet], links: &[LinkId]) -> Vec<Vec<usize>> {
    let mut component_of: Vec<usize> = (0..placed_sets.len()).collect();
    for &link in links {
        let on: Vec<usize> =
            (0..placed_sets.len()).filter(|placed_set| bursts_on(&placed_sets[*placed_set], link)).collect();
        let meeting: BTreeSet<usize> = on.iter().map(|placed_set| component_of[*placed_set]).collect();
        let Some(&first) = meeting.first() else { continue };
        for component in component_of.iter_mut().filter(|component| meeting.contains(component)) {
            *component = first;
        }
    }
    let members = |component: usize| -> Vec<usize> {
        (0..placed_sets.len()).filter(|placed_set| component_of[*placed_set] == component).collect()
    };
    (0..placed_sets.len()).map(members).filter(|members| members.len() > 1).collect()
}

fn component(
    tuning: &TrafficTuning,
    placed_sets: &[PlacedSet],
    tied: &[usize],
    links: &[LinkId],
    weights: &BTreeMap<LinkId, u32>,
) -> Component {
    let on: Vec<LinkId> = links
        .iter()
        .copied()
        .filter(|link| tied.iter().any(|placed_set| bursts_on(&placed_sets[*placed_set], *link)))
        .collect();
    let mut movers: Vec<Mover> = Vec::new();
    for (index, placed_set) in tied.iter().map(|placed_set| &placed_sets[*placed_set]).enumerate() {
        let pattern = |(link, id): (usize, &LinkId)| {
            let demand = placed_set.demands.get(id).filter(|demand| !demand.is_flat())?;
            Some(Pattern::new(link, demand.clone(), placed_set.period))
        };
        let patterns = on.iter().enumerate().filter_map(pattern).collect();
        let mut mover = Mover { period: placed_set.period, patterns, like: index };
        mover.like = movers.iter().position(|other| other.sends_like(&mover)).unwrap_or(index);
        movers.push(mover);
    }
    Component {
        tuning: tuning.clone(),
        weights: on.iter().map(|link| i128::from(weights[link])).collect(),
        base: on.iter().map(|link| Rc::new(flat_demand(placed_sets, *link))).collect(),
        movers,
    }
}

/// The component of all loops of all tiers.
pub(super) fn whole_component(tuning: &TrafficTuning, problem: &Problem) -> Component {
    let all: Vec<usize> = (0..problem.loops().len()).collect();
    let placed_sets: Vec<PlacedSet> = all.iter().map(|index| PlacedSet::of_loop(problem, *index)).collect();
    let weights = weights(problem, &all);
    component(tuning, &placed_sets, &all, &contended(&placed_sets, &weights), &weights)
}

/// The demand at an even rate, whatever the turns.
fn flat_demand(placed_sets: &[PlacedSet], link: LinkId) -> Steps {
    let demands = || placed_sets.iter().filter_map(|placed_set| placed_set.demands.get(&link));
    let level = demands().filter(|demand| demand.is_flat()).map(Steps::peak).sum();
    let circle = demands().map(Steps::circle).next().expect("a link of the component is used");
    Steps::flat(circle, level)
}
