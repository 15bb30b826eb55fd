//! Slack on both sides of each burst. An optimum where edges meet leaves bursts back to back, and the first late iteration
//! would collide. Every mover goes to the middle of the turns with the same excess.

use super::component::{Component, Meeting, Placed, positions};

pub(super) fn spread(component: &Component, placed: &mut Placed) {
    if component.movers.len() > component.tuning.spread_max_jobs {
        return;
    }
    for _ in 0..component.tuning.spread_rounds {
        for mover in 0..component.movers.len() {
            centre(component, placed, mover);
        }
    }
}

fn centre(component: &Component, placed: &mut Placed, mover: usize) {
    let Some((turn, excess)) = placed.lift(component, mover) else { return };
    let middle = middle(component, placed, mover, (turn, excess));
    placed.put(component, mover, (middle, excess));
}

fn middle(component: &Component, placed: &Placed, mover: usize, at: (i64, i128)) -> i64 {
    let turn = at.0;
    let period = component.movers[mover].period;
    room(component, placed, mover, at)
        .map_or(turn, |(before, after)| (turn + (after - before) / 2).rem_euclid(period))
}

/// The distances by which a removed mover could be earlier and later without a change of excess; `None` if it may go anywhere.
/// Between two meetings of edges the excess is linear in the turn: if equal at both, it is equal between.
pub(super) fn room(
    component: &Component,
    placed: &Placed,
    mover: usize,
    (turn, excess): (i64, i128),
) -> Option<(i64, i64)> {
    let max_lookups = component.tuning.solver_max_lookups;
    let mover = &component.movers[mover];
    let against = component.against(mover, &placed.demand);
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
