//! Prices of movers on a link, for the bound by room.

use super::component::{Knot, Pattern};
use super::descent::Purse;
use super::step_function::LINK;
use crate::tuning::TrafficTuning;

/// A mover that sends at one level or not at all.
#[derive(Clone, Copy, Debug)]
pub(super) struct Priced {
    pub(super) mover: usize,
    pub(super) level: i64,
    /// For how long it sends, on the whole circle.
    pub(super) length: i64,
    /// Per time: billionths of the link, as levels are.
    pub(super) price: i64,
}

/// Prices that make a good bound where nobody is placed yet. Movers of several levels have none: leaving somebody out
/// lowers a bound and never breaks it. Where nodes do not suffice, the price is what is sent: the bound by area.
pub(super) fn prices(knot: &Knot, link: usize, purse: &mut Purse) -> Vec<Priced> {
    let mut priced: Vec<Priced> =
        (0..knot.movers.len()).filter_map(|mover| unpriced(knot, link, mover)).collect();
    priced.sort_by_key(|one| (-i128::from(one.level) * i128::from(one.length), one.mover));
    priced.truncate(knot.tuning.pricing_max_jobs);
    let nodes =
        (u64::from(knot.tuning.pricing_steps) << priced.len()) / knot.tuning.pricing_sets_per_node + 1;
    if nodes > purse.left {
        return priced;
    }
    purse.pay(nodes);
    let base = &knot.base[link];
    let room = (LINK - base.peak()).max(0) as f64 / LINK as f64;
    let best = Slope::new(&priced, base.circle(), room).climb(&knot.tuning);
    for (one, price) in priced.iter_mut().zip(best) {
        one.price = (price * LINK as f64) as i64;
    }
    priced
}

fn unpriced(knot: &Knot, link: usize, mover: usize) -> Option<Priced> {
    let pattern: &Pattern = knot.movers[mover].patterns.iter().find(|pattern| pattern.link == link)?;
    let &[level] = pattern.levels.as_slice() else { return None };
    let length = i64::try_from(pattern.area / i128::from(level)).ok()?;
    Some(Priced { mover, level, length, price: level })
}

/// The bound as a function of prices: concave, with a kink wherever another set becomes the cheapest. Prices need not
/// be exact, only the bound made of them, so these are fractions.
struct Slope {
    levels: Vec<f64>,
    duties: Vec<f64>,
    /// What each set exceeds the room by; bits are movers.
    beyond: Vec<f64>,
}

impl Slope {
    fn new(priced: &[Priced], circle: i64, room: f64) -> Self {
        let levels: Vec<f64> = priced.iter().map(|one| one.level as f64 / LINK as f64).collect();
        let duties = priced.iter().map(|one| one.length as f64 / circle as f64).collect();
        let beyond = sums(&levels).into_iter().map(|level| (level - room).max(0.0)).collect();
        Self { levels, duties, beyond }
    }

    /// Begins with what is sent as its price, which is the bound by area, and keeps the best it comes by.
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
