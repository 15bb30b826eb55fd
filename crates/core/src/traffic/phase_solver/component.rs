//! A component: placed sets that share contended links, directly or through others, so that their turns must be found
//! together.

use std::rc::Rc;

use super::step_function::{ExcessIntegral, Steps};
use crate::tuning::TrafficTuning;

/// The demand of a placed set on one link of the component.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    pub(super) link: usize,
    pub(super) steps: Steps,
    pub(super) levels: Vec<i64>,
    /// From, to, and the index of the level.
    bursts: Vec<(i64, i64, usize)>,
    /// The edges of one period: the time and the change of demand.
    edges: Vec<(i64, i64)>,
    pub(super) area: i128,
}

impl Pattern {
    pub(super) fn new(link: usize, steps: Steps, period: i64) -> Self {
        let mut levels: Vec<i64> =
            steps.points().iter().map(|point| point.1).filter(|level| *level > 0).collect();
        levels.sort_unstable();
        levels.dedup();
        let index = |level: i64| levels.binary_search(&level).ok();
        let bursts =
            steps.stretches().filter_map(|(from, to, level)| Some((from, to, index(level)?))).collect();
        let edges = steps.edges().filter(|edge| edge.0 < period).collect();
        let area = steps.area(|level| level);
        Self { link, steps, levels, bursts, edges, area }
    }
}

/// A placed set, restricted to the links of the component.
#[derive(Clone, Debug)]
pub(super) struct Mover {
    pub(super) period: i64,
    pub(super) patterns: Vec<Pattern>,
    /// The first mover with the same pattern; such movers are interchangeable.
    pub(super) like: usize,
}

impl Mover {
    /// The number of lookups that give the excess at one turn.
    fn lookups(&self) -> usize {
        self.patterns.iter().map(|pattern| pattern.bursts.len()).sum()
    }

    pub(super) fn sends_like(&self, other: &Self) -> bool {
        let sent = |mover: &Self| {
            mover
                .patterns
                .iter()
                .map(|pattern| (pattern.link, &pattern.steps))
                .eq(other.patterns.iter().map(|pattern| (pattern.link, &pattern.steps)))
        };
        self.period == other.period && sent(self)
    }
}

/// The meetings of edges that are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meeting {
    /// One edge rises where the other falls: only there can an optimum be.
    Opposite,
    Any,
}

/// The turns that a mover may take, each with the excess that it adds.
#[derive(Clone, Debug)]
pub(super) struct Offers {
    pub(super) each: Vec<(i64, i128)>,
    pub(super) reach: Reach,
    /// The search nodes that it took to list them.
    pub(super) nodes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// All meetings of edges are listed.
    All,
    /// Only some are listed, as there are too many.
    Some,
    /// No edges meet: every turn is as good.
    Free,
}

impl Offers {
    /// The turn with the least excess; of equals, the earliest.
    pub(super) fn best(&self) -> (i64, i128) {
        let best = self.each.iter().min_by_key(|(turn, excess)| (*excess, *turn));
        *best.expect("there is always an offer")
    }

    /// A lower bound of the excess of all turns.
    pub(super) fn least(&self) -> i128 {
        if self.reach == Reach::Some { 0 } else { self.best().1 }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Component {
    pub(super) tuning: TrafficTuning,
    pub(super) weights: Vec<i128>,
    /// The demand of flat placed sets on each link, whatever their turn.
    pub(super) base: Vec<Rc<Steps>>,
    pub(super) movers: Vec<Mover>,
}

impl Component {
    /// A turn of `mover` for each meeting of its edges with those of the demand.
    pub(super) fn offers(&self, mover: usize, demand: &[Rc<Steps>]) -> Offers {
        let mover = &self.movers[mover];
        let (mut turns, mut reach) =
            positions(mover, demand, Meeting::Opposite, self.tuning.solver_max_lookups);
        if turns.is_empty() {
            turns.push(0);
            reach = Reach::Free;
        }
        let nodes = 1 + turns.len() * mover.lookups() / self.tuning.solver_lookups_per_node;
        let against = self.against(mover, demand);
        let each = turns.into_iter().map(|turn| (turn, against.excess_at(turn))).collect();
        Offers { each, reach, nodes: nodes as u64 }
    }

    pub(super) fn against<'a>(&self, mover: &'a Mover, demand: &[Rc<Steps>]) -> Against<'a> {
        let integrals = |pattern: &'a Pattern| {
            let demand = &demand[pattern.link];
            let integrals = pattern.levels.iter().map(|level| ExcessIntegral::of(demand, *level)).collect();
            (pattern, self.weights[pattern.link], integrals)
        };
        Against { patterns: mover.patterns.iter().map(integrals).collect() }
    }

    pub(super) fn cost(&self, demand: &[Rc<Steps>]) -> i128 {
        demand.iter().zip(&self.weights).map(|(demand, weight)| demand.excess() * weight).sum()
    }
}

/// One mover against the demand of others.
#[derive(Debug)]
pub(super) struct Against<'a> {
    patterns: Vec<(&'a Pattern, i128, Vec<ExcessIntegral>)>,
}

impl Against<'_> {
    /// The excess that the mover adds at a turn.
    pub(super) fn excess_at(&self, turn: i64) -> i128 {
        let on = |(pattern, weight, integrals): &(&Pattern, i128, Vec<ExcessIntegral>)| {
            let burst = |(from, to, level): &(i64, i64, usize)| {
                integrals[*level].up_to(to + turn) - integrals[*level].up_to(from + turn)
            };
            weight * pattern.bursts.iter().map(burst).sum::<i128>()
        };
        self.patterns.iter().map(on).sum()
    }
}

/// The turns at which edges of the mover meet edges of the demand, in order, and whether these are all of them.
pub(super) fn positions(
    mover: &Mover,
    demand: &[Rc<Steps>],
    meeting: Meeting,
    max_lookups: usize,
) -> (Vec<i64>, Reach) {
    let pairs: usize =
        mover.patterns.iter().map(|pattern| pattern.edges.len() * demand[pattern.link].points().len()).sum();
    let stride = (pairs * mover.lookups()).div_ceil(max_lookups).max(1);
    let mut turns = Vec::with_capacity(pairs / stride + 1);
    for pattern in &mover.patterns {
        for (at, change) in demand[pattern.link].edges().step_by(stride) {
            let meets = |edge: &&(i64, i64)| meeting == Meeting::Any || (edge.1 < 0) != (change < 0);
            let turn = |edge: &(i64, i64)| (at - edge.0).rem_euclid(mover.period);
            turns.extend(pattern.edges.iter().filter(meets).map(turn));
        }
    }
    turns.sort_unstable();
    turns.dedup();
    (turns, if stride == 1 { Reach::All } else { Reach::Some })
}

/// A partial solution: the turns of some movers, with the demand and excess that result.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    pub(super) turns: Vec<Option<i64>>,
    pub(super) demand: Vec<Rc<Steps>>,
    pub(super) cost: i128,
}

impl Placed {
    pub(super) fn empty(component: &Component) -> Self {
        let demand = component.base.clone();
        Self { turns: vec![None; component.movers.len()], cost: component.cost(&demand), demand }
    }

    pub(super) fn put(&mut self, component: &Component, mover: usize, (turn, excess): (i64, i128)) {
        for pattern in &component.movers[mover].patterns {
            let demand = &mut self.demand[pattern.link];
            *demand = Rc::new(demand.plus(&pattern.steps.turned(turn)));
        }
        self.turns[mover] = Some(turn);
        self.cost += excess;
    }

    /// Removes a mover; returns its turn and the excess that it added.
    pub(super) fn lift(&mut self, component: &Component, mover: usize) -> Option<(i64, i128)> {
        let turn = self.turns[mover].take()?;
        for pattern in &component.movers[mover].patterns {
            let demand = &mut self.demand[pattern.link];
            *demand = Rc::new(demand.minus(&pattern.steps.turned(turn)));
        }
        let added = component.against(&component.movers[mover], &self.demand).excess_at(turn);
        self.cost -= added;
        Some((turn, added))
    }

    pub(super) fn waiting(&self) -> impl Iterator<Item = usize> {
        self.turns.iter().enumerate().filter(|(_, turn)| turn.is_none()).map(|(mover, _)| mover)
    }
}
