//! Lower bounds of the excess by the free capacity of each link, given that bursts are indivisible.
//!
//! If a link has 1.0 free and all bursts to come have 0.7, one of them leaves 0.3 that no other can use, and two exceed the
//! link by 0.4. At each moment some set of the bursts to come is active, and each burst for as long as it lasts. Every mover
//! has a *price* per time: a moment then costs at least the minimum, over all sets A, of the excess of A less the prices of
//! A, and all prices are earned in the end. This bound holds for all prices; good ones are found once, by subgradient ascent.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::component::{Component, Placed};
use super::descent::NodeBudget;
use super::prices::{Priced, prices};
use super::step_function::{LINK, Steps, beyond};

/// The sums of sets of movers, in the order of their levels.
#[derive(Clone, Debug)]
struct Sets {
    levels: Vec<i64>,
    /// The highest price of the sets up to this one.
    dearest: Vec<i64>,
    /// The least level less price of the sets from this one on.
    leanest: Vec<i64>,
    /// The sum of all prices times lengths.
    worth: i128,
}

/// Prices per link, and the sets of movers still to come that were asked for.
#[derive(Clone, Debug)]
pub(super) struct Rooms {
    priced: Vec<Vec<Priced>>,
    sets: BTreeMap<(usize, u64), Rc<Sets>>,
}

impl Rooms {
    /// The bound without prices: the sum of demand beyond the free capacity.
    pub(super) fn by_area(component: &Component) -> Self {
        Self { priced: vec![Vec::new(); component.weights.len()], sets: BTreeMap::new() }
    }

    pub(super) fn of(component: &Component, budget: &mut NodeBudget) -> Self {
        let priced = (0..component.weights.len()).map(|link| prices(component, link, budget)).collect();
        Self { priced, sets: BTreeMap::new() }
    }

    /// A lower bound of all completions, link by link.
    pub(super) fn bound(&mut self, component: &Component, placed: &Placed) -> i128 {
        let mut coming = vec![0; component.weights.len()];
        for mover in placed.waiting() {
            for pattern in &component.movers[mover].patterns {
                coming[pattern.link] += pattern.area;
            }
        }
        let mut link = |(link, area): (usize, i128)| {
            let demand = &placed.demand[link];
            let room = demand.area(|level| (LINK - level).max(0));
            let more = (area - room).max(self.sets(link, placed).excess(demand));
            component.weights[link] * (demand.area(beyond) + more.max(0))
        };
        coming.into_iter().enumerate().map(&mut link).sum()
    }

    fn sets(&mut self, link: usize, placed: &Placed) -> Rc<Sets> {
        let priced = &self.priced[link];
        let waits = |index: &usize| placed.turns[priced[*index].mover].is_none();
        let waiting = (0..priced.len()).filter(waits).fold(0, |waiting, index| waiting | 1 << index);
        let sets = self.sets.entry((link, waiting));
        Rc::clone(sets.or_insert_with(|| Rc::new(Sets::of(priced, waiting))))
    }
}

impl Sets {
    fn of(priced: &[Priced], waiting: u64) -> Self {
        let mut sets = vec![(0, 0)];
        let mut worth = 0;
        for (_, one) in priced.iter().enumerate().filter(|(index, _)| waiting >> index & 1 == 1) {
            let with: Vec<(i64, i64)> =
                sets.iter().map(|(level, price)| (level + one.level, price + one.price)).collect();
            sets.extend(with);
            worth += i128::from(one.price) * i128::from(one.length);
        }
        sets.sort_unstable();
        Self::in_order(&sets, worth)
    }

    fn in_order(sets: &[(i64, i64)], worth: i128) -> Self {
        let mut dearest: Vec<i64> = sets.iter().map(|(_, price)| *price).collect();
        let mut leanest: Vec<i64> = sets.iter().map(|(level, price)| level - price).collect();
        for index in 1..sets.len() {
            dearest[index] = dearest[index].max(dearest[index - 1]);
        }
        for index in (1..sets.len()).rev() {
            leanest[index - 1] = leanest[index - 1].min(leanest[index]);
        }
        Self { levels: sets.iter().map(|(level, _)| *level).collect(), dearest, leanest, worth }
    }

    /// The least that is added to the excess of the demand.
    fn excess(&self, demand: &Steps) -> i128 {
        self.worth + demand.area(|level| self.least((LINK - level).max(0)))
    }

    /// The minimum, over all sets, of the excess beyond the free capacity less the price.
    fn least(&self, room: i64) -> i64 {
        let above = self.levels.partition_point(|level| *level <= room);
        let fits = -self.dearest[above - 1];
        self.leanest.get(above).map_or(fits, |lean| fits.min(lean - room))
    }
}
