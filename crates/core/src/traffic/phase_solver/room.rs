//! How much a link can still carry, given that bursts come whole.
//!
//! Where a link has room for 1.0 and all that is to come are bursts of 0.7, one of them leaves 0.3 that nobody can use,
//! and two cost 0.4. At any moment some set of the bursts to come is active, and each of them for as long as it lasts.
//! Give every mover a *price* per time: then a moment with the set A active costs at least the least, over all sets, of
//! what A exceeds the room by less the prices of A; and all prices are earned in the end. Whatever the prices are, that
//! is a bound; good ones are found once, by following the slope.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::component::{Knot, Placed};
use super::descent::Purse;
use super::prices::{Priced, prices};
use super::step_function::{LINK, Steps, beyond};

/// What sets of movers can add up to, in the order of their levels.
#[derive(Clone, Debug)]
struct Sets {
    levels: Vec<i64>,
    /// The highest price of a set up to this one.
    dearest: Vec<i64>,
    /// The least that a set from this one on has of level over price.
    leanest: Vec<i64>,
    /// What all movers earn in the end.
    worth: i128,
}

/// Prices per link, and the sets of movers still to come that were asked for.
#[derive(Clone, Debug)]
pub(super) struct Rooms {
    priced: Vec<Vec<Priced>>,
    sets: BTreeMap<(usize, u64), Rc<Sets>>,
}

impl Rooms {
    /// Without prices: what is sent must find room, whole or not.
    pub(super) fn by_area(knot: &Knot) -> Self {
        Self { priced: vec![Vec::new(); knot.weights.len()], sets: BTreeMap::new() }
    }

    pub(super) fn of(knot: &Knot, purse: &mut Purse) -> Self {
        let priced = (0..knot.weights.len()).map(|link| prices(knot, link, purse)).collect();
        Self { priced, sets: BTreeMap::new() }
    }

    /// What no completion goes below, each link by itself.
    pub(super) fn bound(&mut self, knot: &Knot, placed: &Placed) -> i128 {
        let mut coming = vec![0; knot.weights.len()];
        for mover in placed.waiting() {
            for pattern in &knot.movers[mover].patterns {
                coming[pattern.link] += pattern.area;
            }
        }
        let mut link = |(link, area): (usize, i128)| {
            let demand = &placed.demand[link];
            let room = demand.area(|level| (LINK - level).max(0));
            let more = (area - room).max(self.sets(link, placed).excess(demand));
            knot.weights[link] * (demand.area(beyond) + more.max(0))
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

    /// What is added to the demand's own excess, at least.
    fn excess(&self, demand: &Steps) -> i128 {
        self.worth + demand.area(|level| self.least((LINK - level).max(0)))
    }

    /// The least, over all sets, of what it exceeds the room by less its price.
    fn least(&self, room: i64) -> i64 {
        let above = self.levels.partition_point(|level| *level <= room);
        let fits = -self.dearest[above - 1];
        self.leanest.get(above).map_or(fits, |lean| fits.min(lean - room))
    }
}
