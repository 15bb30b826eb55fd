//! What no arrangement of the movers still to be placed can go below.
//!
//! Excess is convex in demand, so what a group of movers adds together is at least the sum of what disjoint parts of
//! it would add alone. Every bound here is one way of using that.

use super::component::{Knot, Placed};
use super::descent::Purse;

/// What each pair of movers adds at least, were there nobody else.
#[derive(Clone, Debug)]
pub(super) struct Pairs {
    together: Vec<Vec<i128>>,
}

impl Pairs {
    /// Of as many as can be paid for: a pair that is not known counts as nothing.
    pub(super) fn of(knot: &Knot, purse: &mut Purse) -> Self {
        let count = knot.movers.len();
        let mut pairs = Self {
            together: vec![
                vec![0; count];
                if count > knot.tuning.solver_max_paired_jobs { 0 } else { count }
            ],
        };
        pairs.measure(knot, purse);
        pairs
    }

    fn measure(&mut self, knot: &Knot, purse: &mut Purse) {
        let nobody = Placed::nobody(knot);
        for (first, row) in self.together.iter_mut().enumerate() {
            let mut one = nobody.clone();
            one.put(knot, first, knot.offers(first, &nobody.demand).best());
            for (second, together) in row.iter_mut().enumerate().skip(first + 1) {
                if purse.left == 0 {
                    return;
                }
                let offers = knot.offers(second, &one.demand);
                *together = one.cost - nobody.cost + offers.least();
                purse.pay(offers.nodes);
            }
        }
    }

    /// More than the sum of `least`, by pairing those up who cost most together; each is in one pair.
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
