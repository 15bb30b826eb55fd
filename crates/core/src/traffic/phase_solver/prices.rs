//! Prices of movers on a link, for the bound by free capacity.

use super::component::{Component, Pattern};
use super::descent::NodeBudget;
use super::step_function::LINK;
use crate::tuning::TrafficTuning;

/// A mover that sends at one level or not at all.
#[derive(Clone, Copy, Debug)]
pub(super) struct Priced {
    pub(super) mover: usize,
    pub(super) level: i64,
    /// The time that it sends on the whole circle.
    pub(super) length: i64,
    /// Per time: billionths of the link, as levels are.
    pub(super) price: i64,
}

/// Prices that give a good bound where no mover is placed yet. Movers of several levels have none: a bound without them is
/// lower and still holds. If the budget does not suffice, the price is the level: the bound by area.
pub(super) fn prices(component: &Component, link: usize, budget: &mut NodeBudget) -> Vec<Priced> {
    let mut priced: Vec<Priced> =
        (0..component.movers.len()).filter_map(|mover| unpriced(component, link, mover)).collect();
    priced.sort_by_key(|one| (-i128::from(one.level) * i128::from(one.length), one.mover));
    priced.truncate(component.tuning.pricing_max_jobs);
    let nodes = (u64::from(component.tuning.pricing_steps) << priced.len())
        / component.tuning.pricing_sets_per_node
        + 1;
    if nodes > budget.left {
        return priced;
    }
    budget.pay(nodes);
    let base = &component.base[link];
    let room = (LINK - base.peak()).max(0) as f64 / LINK as f64;
    let best = Slope::new(&priced, base.circle(), room).climb(&component.tuning);
    for (one, price) in priced.iter_mut().zip(best) {
        one.price = (price * LINK as f64) as i64;
    }
    priced
}

fn unpriced(component: &Component, link: usize, mover: usize) -> Option<Priced> {
    let pattern: &Pattern = component.movers[mover].patterns.iter().find(|pattern| pattern.link == link)?;
    let &[level] = pattern.levels.as_slice() else { return None };
    let length = i64::try_from(pattern.area / i128::from(level)).ok()?;
    Some(Priced { mover, level, length, price: level })
}

/// The bound as a function of prices: concave, with a kink wherever another set becomes the cheapest. Prices need not
/// be exact, only the bound made of them, so these are fractions.
struct Slope {
    levels: Vec<f64>,
    duties: Vec<f64>,
    /// The demand of each set beyond the free capacity; bits are movers.
    beyond: Vec<f64>,
}

impl Slope {
    fn new(priced: &[Priced], circle: i64, room: f64) -> Self {
        let levels: Vec<f64> = priced.iter().map(|one| one.level as f64 / LINK as f64).collect();
        let duties = priced.iter().map(|one| one.length as f64 / circle as f64).collect();
        let beyond = sums(&levels).into_iter().map(|level| (level - room).max(0.0)).collect();
        Self { levels, duties, beyond }
    }

    /// Subgradient ascent from the levels as prices, which give the bound by area; returns the best prices found.
    fn climb(&self, tuning: &TrafficTuning) -> Vec<f64> {
        let mut prices = self.levels.clone();
        let mut best = (f64::NEG_INFINITY, prices.clone());
        for step in 0..tuning.pricing_steps {
            let (cheapest, cost) = self.cheapest(&prices);
            let earned: f64 = prices.iter().zip(&self.duties).map(|(price, duty)| price * duty).sum();
            if earned + cost > best.0 {
                best = (earned + cost, prices.clone());
            }
            let stride = tuning.pricing_stride / (1.0 + f64::from(step) / 10.0);
            for (index, price) in prices.iter_mut().enumerate() {
                let active = f64::from(u8::from(cheapest >> index & 1 == 1));
                *price = (*price + stride * (self.duties[index] - active)).max(0.0);
            }
        }
        best.1
    }

    fn cheapest(&self, prices: &[f64]) -> (usize, f64) {
        let costs = sums(prices).into_iter().zip(&self.beyond).map(|(price, beyond)| beyond - price);
        costs.enumerate().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, 0.0))
    }
}

/// The sum over each set; bits are members.
fn sums(values: &[f64]) -> Vec<f64> {
    let mut sums = vec![0.0];
    for value in values {
        for index in 0..sums.len() {
            sums.push(sums[index] + value);
        }
    }
    sums
}
