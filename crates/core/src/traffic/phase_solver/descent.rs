//! A good start: movers are put one by one where they add least, then each is moved as long as that helps.

use super::component::{Knot, Placed};

/// Search nodes that may still be spent, and those that were.
#[derive(Clone, Copy, Debug)]
pub(super) struct Purse {
    pub(super) left: u64,
    pub(super) spent: u64,
}

impl Purse {
    /// The last purchase may cost more than is left.
    pub(super) fn pay(&mut self, nodes: u64) {
        self.left = self.left.saturating_sub(nodes);
        self.spent += nodes;
    }
}

/// The best of several starts, each with another mover first. The first start is made in any case, paid for or not.
pub(super) fn start(knot: &Knot, enough: i128, purse: &mut Purse) -> Placed {
    let order = largest_first(knot);
    let mut best = settled(knot, &order, purse);
    for first in 1..order.len() {
        if best.cost <= enough || purse.left < order.len() as u64 {
            break;
        }
        let mut order = order.clone();
        order[..=first].rotate_right(1);
        let other = settled(knot, &order, purse);
        if other.cost < best.cost {
            best = other;
        }
    }
    best
}

pub(super) fn largest_first(knot: &Knot) -> Vec<usize> {
    let area = |mover: usize| -> i128 {
        let patterns = &knot.movers[mover].patterns;
        patterns.iter().map(|pattern| pattern.area * knot.weights[pattern.link]).sum()
    };
    let mut order: Vec<usize> = (0..knot.movers.len()).collect();
    order.sort_by_cached_key(|mover| (-area(*mover), *mover));
    order
}

fn settled(knot: &Knot, order: &[usize], purse: &mut Purse) -> Placed {
    let mut placed = Placed::nobody(knot);
    for &mover in order {
        let offers = knot.offers(mover, &placed.demand);
        placed.put(knot, mover, offers.best());
        purse.pay(offers.nodes);
    }
    descend(knot, order, &mut placed, purse);
    placed
}

/// Every round that goes on has lowered the excess, and each step is paid for.
fn descend(knot: &Knot, order: &[usize], placed: &mut Placed, purse: &mut Purse) {
    loop {
        let before = placed.cost;
        for &mover in order {
            if purse.left == 0 {
                return;
            }
            purse.pay(improve(knot, placed, mover));
        }
        if placed.cost == before {
            return;
        }
    }
}

/// Moves it if that helps, and says what it took to know.
fn improve(knot: &Knot, placed: &mut Placed, mover: usize) -> u64 {
    let Some(old) = placed.lift(knot, mover) else { return 0 };
    let offers = knot.offers(mover, &placed.demand);
    let new = offers.best();
    placed.put(knot, mover, if new.1 < old.1 { new } else { old });
    offers.nodes
}
