//! Room on both sides: an optimum found where edges meet leaves bursts back to back, and the first late iteration
//! would collide. Where that costs nothing, every mover goes to the middle of the turns it could as well have.

use super::component::{Knot, Meeting, Placed, positions};

pub(super) fn spread(knot: &Knot, placed: &mut Placed) {
    if knot.movers.len() > knot.tuning.spread_max_jobs {
        return;
    }
    for _ in 0..knot.tuning.spread_rounds {
        for mover in 0..knot.movers.len() {
            centre(knot, placed, mover);
        }
    }
}

fn centre(knot: &Knot, placed: &mut Placed, mover: usize) {
    let Some((turn, excess)) = placed.lift(knot, mover) else { return };
    let middle = middle(knot, placed, mover, (turn, excess));
    placed.put(knot, mover, (middle, excess));
}

fn middle(knot: &Knot, placed: &Placed, mover: usize, at: (i64, i128)) -> i64 {
    let turn = at.0;
    let period = knot.movers[mover].period;
    room(knot, placed, mover, at)
        .map_or(turn, |(before, after)| (turn + (after - before) / 2).rem_euclid(period))
}

/// How far a mover that is lifted could be put earlier and later without a change of excess; `None` if anywhere.
/// Between two contention of edges excess is linear in the turn: equal at both, equal between.
pub(super) fn room(
    knot: &Knot,
    placed: &Placed,
    mover: usize,
    (turn, excess): (i64, i128),
) -> Option<(i64, i64)> {
    let max_lookups = knot.tuning.solver_max_lookups;
    let mover = &knot.movers[mover];
    let against = knot.against(mover, &placed.demand);
    let (kinks, _) = positions(mover, &placed.demand, Meeting::Any, max_lookups);
    let distance = |from: i64, to: i64| (to - from).rem_euclid(mover.period);
    let mut later: Vec<i64> =
        kinks.iter().map(|kink| distance(turn, *kink)).filter(|room| *room > 0).collect();
    later.sort_unstable();
    let same = |turn: i64| against.excess_at(turn.rem_euclid(mover.period)) == excess;
    let after = later.iter().take_while(|room| same(turn + **room)).last();
    let earlier = later.iter().rev().map(|room| mover.period - room);
    let before = earlier.take_while(|room| same(turn - room)).last();
    let (before, after) = (before.unwrap_or(0), after.copied().unwrap_or(0));
    (!later.is_empty() && before + after < mover.period).then_some((before, after))
}
