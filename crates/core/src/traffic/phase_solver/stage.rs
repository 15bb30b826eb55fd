//! One tier after another: newcomers are placed around the bodies of higher tiers, which keep their shape.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::component::{Knot, Mover, Pattern, Placed};
use super::descent::Purse;
use super::placed_set::Body;
use super::problem::Problem;
use super::search::{Found, best_turns};
use super::spread::spread;
use super::step_function::{LINK, Steps};
use super::{Excess, TierExcess};
use crate::model::id::LinkId;
use crate::tuning::TrafficTuning;

/// Bodies among which nothing is left to decide, and what the tiers so far cost.
#[derive(Debug)]
pub(super) struct Stage<'t> {
    tuning: &'t TrafficTuning,
    pub(super) bodies: Vec<Body>,
    pub(super) tiers: Vec<TierExcess>,
}

impl<'t> Stage<'t> {
    pub(super) fn new(tuning: &'t TrafficTuning) -> Self {
        Self { tuning, bodies: Vec::new(), tiers: Vec::new() }
    }

    pub(super) fn enter(&mut self, problem: &Problem, tier: u8, purse: &mut Purse) {
        let newcomers: Vec<usize> =
            (0..problem.loops().len()).filter(|index| problem.loops()[*index].tier == tier).collect();
        let weights = weights(problem, &newcomers);
        let before = excess(&self.bodies, &weights);
        self.bodies.extend(newcomers.iter().map(|index| Body::of_loop(problem, *index)));
        let gap = self.untie(&weights, purse);
        let caused = excess(&self.bodies, &weights) - before;
        // Nothing is a bound too, where less than that was proven.
        let bound = Excess::of((caused - gap).max(0));
        self.tiers.push(TierExcess { tier, excess: Excess::of(caused), bound });
    }

    /// Solves every knot and makes one body of it; returns how far from proven they are, all together.
    fn untie(&mut self, weights: &BTreeMap<LinkId, u32>, purse: &mut Purse) -> i128 {
        let links = contended(&self.bodies, weights);
        let mut knots = knots(&self.bodies, &links);
        let mut gap = 0;
        for left in (1..=knots.len()).rev() {
            let tied = knots.remove(0);
            let knot = knot(self.tuning, &self.bodies, &tied, &links, weights);
            let mut share = Purse { left: purse.left / left as u64, spent: 0 };
            let Found { mut placed, bound } = best_turns(&knot, &mut share);
            spread(&knot, &mut placed);
            purse.left -= share.spent.min(purse.left);
            purse.spent += share.spent;
            gap += placed.cost - bound;
            self.join(&tied, &placed);
        }
        self.bodies.retain(|body| !body.members.is_empty());
        gap
    }

    /// The first takes all in; what is left of the others is empty until the knots are done.
    fn join(&mut self, tied: &[usize], placed: &Placed) {
        let nothing = || Body { period: 1, members: Vec::new(), demands: BTreeMap::new() };
        let parts: Vec<(Body, i64)> = tied
            .iter()
            .zip(&placed.turns)
            .map(|(body, turn)| (std::mem::replace(&mut self.bodies[*body], nothing()), turn.unwrap_or(0)))
            .collect();
        self.bodies[tied[0]] = Body::joined(&parts);
    }
}

/// A link counts as much as the weightiest newcomer on it.
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

fn excess(bodies: &[Body], weights: &BTreeMap<LinkId, u32>) -> i128 {
    let on = |(link, weight): (&LinkId, &u32)| {
        let sum = bodies.iter().filter_map(|body| body.demands.get(link)).fold(None, |sum, demand| {
            Some(sum.map_or_else(|| demand.clone(), |sum: Steps| sum.plus(demand)))
        });
        sum.map_or(0, |sum| sum.excess() * i128::from(*weight))
    };
    weights.iter().map(on).sum()
}

/// Links that would not carry all bursts at once; on others, turns make no difference.
fn contended(bodies: &[Body], weights: &BTreeMap<LinkId, u32>) -> Vec<LinkId> {
    let peak = |link: &LinkId| -> i64 {
        bodies.iter().filter_map(|body| body.demands.get(link)).map(Steps::peak).sum()
    };
    weights.keys().copied().filter(|link| peak(link) > LINK).collect()
}

fn bursts_on(body: &Body, link: LinkId) -> bool {
    body.demands.get(&link).is_some_and(|demand| !demand.is_flat())
}

/// Bodies that burst on a common link are in one knot, in the order of their first member.
fn knots(bodies: &[Body], links: &[LinkId]) -> Vec<Vec<usize>> {
    let mut knot_of: Vec<usize> = (0..bodies.len()).collect();
    for &link in links {
        let on: Vec<usize> = (0..bodies.len()).filter(|body| bursts_on(&bodies[*body], link)).collect();
        let meeting: BTreeSet<usize> = on.iter().map(|body| knot_of[*body]).collect();
        let Some(&first) = meeting.first() else { continue };
        for knot in knot_of.iter_mut().filter(|knot| meeting.contains(knot)) {
            *knot = first;
        }
    }
    let members =
        |knot: usize| -> Vec<usize> { (0..bodies.len()).filter(|body| knot_of[*body] == knot).collect() };
    (0..bodies.len()).map(members).filter(|members| members.len() > 1).collect()
}

fn knot(
    tuning: &TrafficTuning,
    bodies: &[Body],
    tied: &[usize],
    links: &[LinkId],
    weights: &BTreeMap<LinkId, u32>,
) -> Knot {
    let on: Vec<LinkId> = links
        .iter()
        .copied()
        .filter(|link| tied.iter().any(|body| bursts_on(&bodies[*body], *link)))
        .collect();
    let mut movers: Vec<Mover> = Vec::new();
    for (index, body) in tied.iter().map(|body| &bodies[*body]).enumerate() {
        let pattern = |(link, id): (usize, &LinkId)| {
            let demand = body.demands.get(id).filter(|demand| !demand.is_flat())?;
            Some(Pattern::new(link, demand.clone(), body.period))
        };
        let patterns = on.iter().enumerate().filter_map(pattern).collect();
        let mut mover = Mover { period: body.period, patterns, like: index };
        mover.like = movers.iter().position(|other| other.sends_like(&mover)).unwrap_or(index);
        movers.push(mover);
    }
    Knot {
        tuning: tuning.clone(),
        weights: on.iter().map(|link| i128::from(weights[link])).collect(),
        base: on.iter().map(|link| Rc::new(flat_demand(bodies, *link))).collect(),
        movers,
    }
}

/// All loops of all tiers, as if they were tied together.
pub(super) fn whole_knot(tuning: &TrafficTuning, problem: &Problem) -> Knot {
    let all: Vec<usize> = (0..problem.loops().len()).collect();
    let bodies: Vec<Body> = all.iter().map(|index| Body::of_loop(problem, *index)).collect();
    let weights = weights(problem, &all);
    knot(tuning, &bodies, &all, &contended(&bodies, &weights), &weights)
}

/// What is sent at an even rate, whatever the turns.
fn flat_demand(bodies: &[Body], link: LinkId) -> Steps {
    let demands = || bodies.iter().filter_map(|body| body.demands.get(&link));
    let level = demands().filter(|demand| demand.is_flat()).map(Steps::peak).sum();
    let circle = demands().map(Steps::circle).next().expect("a link of the knot is used");
    Steps::flat(circle, level)
}
