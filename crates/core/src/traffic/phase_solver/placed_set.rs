//! A placed set: loops with fixed turns relative to each other, which turn as one.

use std::collections::BTreeMap;

use super::problem::{Loop, Problem};
use super::step_function::{LINK, Steps};
use crate::model::id::LinkId;
use crate::model::units::{Bandwidth, Duration, Share};

/// Demand beyond that of a million links is counted as that, so that sums stay exact: a numeric limit, and no tuning entry.
const MOST: u128 = LINK as u128 * 1_000_000;

#[derive(Clone, Debug)]
pub(super) struct PlacedSet {
    pub(super) period: i64,
    /// The loops, and the turn of each when that of the set is 0.
    pub(super) members: Vec<(usize, i64)>,
    pub(super) demands: BTreeMap<LinkId, Steps>,
}

impl PlacedSet {
    pub(super) fn of_loop(problem: &Problem, index: usize) -> Self {
        let one = &problem.loops()[index];
        let demand = |(link, factor): &(LinkId, Share)| {
            (*link, demand(one, *factor, problem.links()[link], problem.circle()))
        };
        Self {
            period: nanos(one.period),
            members: vec![(index, 0)],
            demands: one.links.iter().map(demand).collect(),
        }
    }

    /// Joins sets at their turns.
    pub(super) fn joined(placed_sets: &[(Self, i64)]) -> Self {
        let mut joined = Self { period: 1, members: Vec::new(), demands: BTreeMap::new() };
        for (placed_set, turn) in placed_sets {
            joined.period = common_multiple(joined.period, placed_set.period);
            joined.members.extend(placed_set.members.iter().map(|(index, offset)| (*index, offset + turn)));
            for (link, demand) in &placed_set.demands {
                let turned = demand.turned(*turn);
                joined
                    .demands
                    .entry(*link)
                    .and_modify(|sum| *sum = sum.plus(&turned))
                    .or_insert_with(|| turned.clone());
            }
        }
        joined
    }
}

/// The demand of all appearances of a loop on the circle.
fn demand(one: &Loop, factor: Share, capacity: Bandwidth, circle: Duration) -> Steps {
    let bursts = (0..circle.0 / one.period.0).flat_map(|appearance| {
        one.phases.iter().map(move |phase| {
            let begin = appearance * one.period.0 + phase.offset.0;
            let level = level(phase.rate, factor, capacity);
            (nanos(Duration(begin)), nanos(phase.length), level)
        })
    });
    Steps::of_bursts(nanos(circle), bursts)
}

/// Rounded down, so that three thirds of a link fit on it.
fn level(rate: Bandwidth, factor: Share, capacity: Bandwidth) -> i64 {
    let parts = LINK as u128 / u128::from(Share::WHOLE.0);
    let level = u128::from(rate.0) * u128::from(factor.0) * parts / u128::from(capacity.0);
    i64::try_from(level.min(MOST)).expect("bounded")
}

fn nanos(span: Duration) -> i64 {
    i64::try_from(span.0).expect("a circle is at most an hour")
}

fn common_multiple(a: i64, b: i64) -> i64 {
    let (mut larger, mut smaller) = (a, b);
    while smaller > 0 {
        (larger, smaller) = (smaller, larger % smaller);
    }
    a / larger * b
}
