//! Coordinate descent for a good start: movers are placed greedily, then each is moved as long as that lowers the excess.

use super::component::{Component, Placed};

/// The search nodes that are left and those that were spent.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodeBudget {
    pub(super) left: u64,
    pub(super) spent: u64,
}

impl NodeBudget {
    /// Spends nodes; the last step may cost more than is left.
    pub(super) fn pay(&mut self, nodes: u64) {
        self.left = self.left.saturating_sub(nodes);
        self.spent += nodes;
    }
}

/// The best of several starts, each with another mover first. The first start does not depend on the budget.
pub(super) fn start(component: &Component, enough: i128, budget: &mut NodeBudget) -> Placed {
    let order = largest_first(component);
    let mut best = settled(component, &order, budget);
    for first in 1..order.len() {
        if best.cost <= enough || budget.left < order.len() as u64 {
            break;
        }
        let mut order = order.clone();
        order[..=first].rotate_right(1);
        let other = settled(component, &order, budget);
        if other.cost < best.cost {
            best = other;
        }
    }
    best
}

pub(super) fn largest_first(component: &Component) -> Vec<usize> {
    let area = |mover: usize| -> i128 {
        let patterns = &component.movers[mover].patterns;
        patterns.iter().map(|pattern| pattern.area * component.weights[pattern.link]).sum()
    };
    let mut order: Vec<usize> = (0..component.movers.len()).collect();
    order.sort_by_cached_key(|mover| (-area(*mover), *mover));
    order
}

fn settled(component: &Component, order: &[usize], budget: &mut NodeBudget) -> Placed {
    let mut placed = Placed::empty(component);
    for &mover in order {
        let offers = component.offers(mover, &placed.demand);
        placed.put(component, mover, offers.best());
        budget.pay(offers.nodes);
    }
    descend(component, order, &mut placed, budget);
    placed
}

/// Moves movers until a round lowers the excess no further or the budget is spent.
fn descend(component: &Component, order: &[usize], placed: &mut Placed, budget: &mut NodeBudget) {
    loop {
        let before = placed.cost;
        for &mover in order {
            if budget.left == 0 {
                return;
            }
            budget.pay(improve(component, placed, mover));
        }
        if placed.cost == before {
            return;
        }
    }
}

/// Moves a mover if that lowers the excess; returns the search nodes that it took.
fn improve(component: &Component, placed: &mut Placed, mover: usize) -> u64 {
    let Some(old) = placed.lift(component, mover) else { return 0 };
    let offers = component.offers(mover, &placed.demand);
    let new = offers.best();
    placed.put(component, mover, if new.1 < old.1 { new } else { old });
    offers.nodes
}
