//! A body: loops that keep their places relative to one another, and turn as one.

use std::collections::BTreeMap;

use super::problem::{Loop, Problem};
use super::step_function::{LINK, Steps};
use crate::model::id::LinkId;
use crate::model::units::{Bandwidth, Duration, Share};

/// More than a million links' worth of demand is counted as that: it is absurd already, and sums stay exact.
const MOST: u128 = LINK as u128 * 1_000_000;

#[derive(Clone, Debug)]
pub(super) struct Body {
    pub(super) period: i64,
    /// Which loops, and the turn of each when the body's own is 0.
    pub(super) members: Vec<(usize, i64)>,
    pub(super) demands: BTreeMap<LinkId, Steps>,
}

impl Body {
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

    /// The bodies as they now stand, as one.
    pub(super) fn joined(bodies: &[(Self, i64)]) -> Self {
        let mut joined = Self { period: 1, members: Vec::new(), demands: BTreeMap::new() };
        for (body, turn) in bodies {
            joined.period = common_multiple(joined.period, body.period);
            joined.members.extend(body.members.iter().map(|(index, offset)| (*index, offset + turn)));
            for (link, demand) in &body.demands {
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

/// Every appearance of the loop on the circle.
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
