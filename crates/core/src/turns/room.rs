//! How much a link can still carry, given that bursts come whole.
//!
//! Where a link has room for 1.0 and all that is to come are bursts of 0.7, only 0.7 of it is of use: the levels that
//! demand can take are sums of levels of movers. For each stretch of the demand so far, the next sum below the room is
//! free, and going on to the next sum above it costs by the slope between the two; what is to come fills the free parts
//! first, then the gentlest slopes.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::knot::{Knot, Placed};
use super::steps::{LINK, Steps, beyond};

/// Beyond so many sums any level is taken to be one.
const MOST_SUMS: usize = 2048;

/// For a link and the movers still to come, the levels that they can add up to; `None` for too many.
#[derive(Clone, Debug, Default)]
pub(super) struct Rooms {
    sums: BTreeMap<(usize, u64), Option<Rc<[i64]>>>,
}

impl Rooms {
    /// Per link, whatever is to come and has no room left must be excess.
    pub(super) fn bound(&mut self, knot: &Knot, placed: &Placed) -> i128 {
        let mut coming = vec![(0, Some(0)); knot.weights.len()];
        for mover in placed.waiting() {
            for pattern in &knot.movers[mover].patterns {
                let (area, movers): &mut (i128, Option<u64>) = &mut coming[pattern.link];
                *area += pattern.area;
                *movers = movers.filter(|_| mover < 64).map(|movers| movers | 1 << mover);
            }
        }
        let link = |(link, (area, movers)): (usize, (i128, Option<u64>))| {
            let sums = movers.and_then(|movers| self.sums(knot, link, movers));
            let demand = &placed.demand[link];
            knot.weights[link] * (demand.area(beyond) + unavoidable(demand, area, sums.as_deref()))
        };
        coming.into_iter().enumerate().map(link).sum()
    }

    fn sums(&mut self, knot: &Knot, link: usize, movers: u64) -> Option<Rc<[i64]>> {
        let levels = |mover: usize| {
            let pattern = knot.movers[mover].patterns.iter().find(|pattern| pattern.link == link);
            pattern.map_or(&[][..], |pattern| &pattern.levels)
        };
        let of = |movers: u64| {
            let mut sums = vec![0];
            for mover in (0..64).filter(|mover| movers >> mover & 1 == 1) {
                sums = added(&sums, levels(mover))?;
            }
            Some(Rc::from(sums))
        };
        self.sums.entry((link, movers)).or_insert_with(|| of(movers)).clone()
    }
}

fn added(sums: &[i64], levels: &[i64]) -> Option<Vec<i64>> {
    let mut all = sums.to_vec();
    all.extend(levels.iter().flat_map(|level| sums.iter().map(move |sum| sum + level)));
    all.sort_unstable();
    all.dedup();
    (all.len() <= MOST_SUMS).then_some(all)
}

/// A stretch that can take `area` more if each `run` of it costs `rise`.
struct Slope {
    rise: i64,
    run: i64,
    area: i128,
}

/// The least excess that `area` more demand adds, at levels that are sums.
fn unavoidable(demand: &Steps, area: i128, sums: Option<&[i64]>) -> i128 {
    let mut left = area;
    let mut slopes = Vec::new();
    for (from, to, level) in demand.stretches() {
        let room = (LINK - level).max(0);
        let (free, next) = around(room, sums);
        left -= i128::from(free) * i128::from(to - from);
        if let Some(next) = next.filter(|_| free < room) {
            let run = next - free;
            slopes.push(Slope { rise: next - room, run, area: i128::from(run) * i128::from(to - from) });
        }
    }
    uphill(left, slopes)
}

/// The largest sum that fits into the room, and the smallest that does not.
fn around(room: i64, sums: Option<&[i64]>) -> (i64, Option<i64>) {
    let Some(sums) = sums else { return (room, None) };
    let above = sums.partition_point(|sum| *sum <= room);
    (sums[above - 1], sums.get(above).copied())
}

/// Gentle slopes first; beyond them, all that is sent is excess.
fn uphill(mut left: i128, mut slopes: Vec<Slope>) -> i128 {
    let steepness = |slope: &Slope, other: &Slope| i128::from(slope.rise) * i128::from(other.run);
    slopes.sort_by(|a, b| steepness(a, b).cmp(&steepness(b, a)));
    let mut excess = 0;
    for slope in slopes {
        if left <= 0 {
            return excess;
        }
        let here = left.min(slope.area);
        let (rise, run) = (i128::from(slope.rise), i128::from(slope.run));
        excess += here / run * rise + here % run * rise / run;
        left -= here;
    }
    excess + left.max(0)
}
