//! Lower bounds of the excess of movers that are still to be placed.
//!
//! Excess is convex in demand, so a group of movers adds at least the sum of what disjoint parts of it would add alone. Every
//! bound here uses that.

use super::component::{Component, Placed};
use super::descent::NodeBudget;

/// The least excess of each pair of movers without any other.
#[derive(Clone, Debug)]
pub(super) struct Pairs {
    together: Vec<Vec<i128>>,
}

impl Pairs {
    /// The pairs that the budget pays for; other pairs count as 0.
    pub(super) fn of(component: &Component, budget: &mut NodeBudget) -> Self {
        let count = component.movers.len();
        let mut pairs = Self {
            together: vec![
                vec![0; count];
                if count > component.tuning.solver_max_paired_jobs { 0 } else { count }
            ],
        };
        pairs.measure(component, budget);
        pairs
    }

    fn measure(&mut self, component: &Component, budget: &mut NodeBudget) {
        let empty = Placed::empty(component);
        for (first, row) in self.together.iter_mut().enumerate() {
            let mut one = empty.clone();
            one.put(component, first, component.offers(first, &empty.demand).best());
            for (second, together) in row.iter_mut().enumerate().skip(first + 1) {
                if budget.left == 0 {
                    return;
                }
                let offers = component.offers(second, &one.demand);
                *together = one.cost - empty.cost + offers.least();
                budget.pay(offers.nodes);
            }
        }
    }

    /// The excess beyond the sum of `least` in disjoint pairs, the most expensive pairs first.
    pub(super) fn beyond_single(&self, least: &[(usize, i128)]) -> i128 {
        if self.together.is_empty() {
            return 0;
        }
        let mut gains = Vec::new();
        for (index, (first, alone)) in least.iter().enumerate() {
            for (second, other) in &least[index + 1..] {
                let gain = self.together[*first][*second] - alone - other;
                if gain > 0 {
                    gains.push((gain, *first, *second));
                }
            }
        }
        gains.sort_unstable_by(|a, b| b.cmp(a));
        let mut taken = vec![false; self.together.len()];
        let mut sum = 0;
        for (gain, first, second) in gains {
            if !taken[first] && !taken[second] {
                (taken[first], taken[second]) = (true, true);
                sum += gain;
            }
        }
        sum
    }
}
