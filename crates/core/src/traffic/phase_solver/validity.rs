//! How long turns hold that are set once and then left alone.
//!
//! Two jobs drift apart for two reasons: their periods are not quite what was planned, which adds up with time, and
//! each iteration is a little early or late, which adds up with the root of time. A plan holds until that exceeds the
//! room that the bursts have.

use serde::{Deserialize, Serialize};

use super::component::{Knot, Placed};
use super::problem::Problem;
use super::spread::room;
use super::stage::whole_knot;
use crate::model::units::Duration;
use crate::tuning::TrafficTuning;

/// A loop's iterations as they really are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tempo {
    pub period: Duration,
    /// Standard deviation of one iteration.
    pub noise: Duration,
}

/// When one standard deviation of drift between two loops that share a contended link first exceeds the slack of
/// either; `None` if nothing can go wrong. `turns` and `tempos` are in the order of the problem's loops.
pub fn valid_for(
    tuning: &TrafficTuning,
    problem: &Problem,
    turns: &[Duration],
    tempos: &[Tempo],
) -> Option<Duration> {
    let knot = whole_knot(tuning, problem);
    let slacks = slacks_in(&knot, turns);
    let mut first = None;
    for (index, slack) in slacks.iter().enumerate() {
        let Some(slack) = *slack else { continue };
        for other in (0..slacks.len()).filter(|other| *other != index && meet(&knot, index, *other)) {
            let holds = until(slack, &drift(problem, tempos, index), &drift(problem, tempos, other));
            first = match (first, holds) {
                (Some(first), Some(holds)) => Some(Duration::min(first, holds)),
                (one, another) => one.or(another),
            };
        }
    }
    first
}

/// How far each loop may move, earlier or later, before excess changes; `None` for those that may lie anywhere.
pub fn slacks(tuning: &TrafficTuning, problem: &Problem, turns: &[Duration]) -> Vec<Option<Duration>> {
    slacks_in(&whole_knot(tuning, problem), turns)
}

fn slacks_in(knot: &Knot, turns: &[Duration]) -> Vec<Option<Duration>> {
    let mut placed = Placed::nobody(knot);
    for (mover, turn) in turns.iter().enumerate() {
        let turn = i64::try_from(turn.0).unwrap_or(0) % knot.movers[mover].period;
        let excess = knot.against(&knot.movers[mover], &placed.demand).excess_at(turn);
        placed.put(knot, mover, (turn, excess));
    }
    (0..turns.len()).map(|mover| slack(knot, &placed, mover)).collect()
}

fn slack(knot: &Knot, placed: &Placed, mover: usize) -> Option<Duration> {
    let mut others = placed.clone();
    let at = others.lift(knot, mover)?;
    let (before, after) = room(knot, &others, mover, at)?;
    Some(Duration(before.min(after).unsigned_abs()))
}

fn meet(knot: &Knot, one: usize, other: usize) -> bool {
    let links = |mover: usize| knot.movers[mover].patterns.iter().map(|pattern| pattern.link);
    links(one).any(|link| links(other).any(|theirs| theirs == link))
}

/// How a loop leaves its place: steadily, per time, and at random, per root of time.
struct Drift {
    steady: f64,
    variance: f64,
}

fn drift(problem: &Problem, tempos: &[Tempo], index: usize) -> Drift {
    let planned = problem.loops()[index].period.0 as f64;
    let tempo = &tempos[index];
    let noise = tempo.noise.0 as f64;
    Drift { steady: (tempo.period.0 as f64 - planned) / planned, variance: noise * noise / planned }
}

/// The root of `steady · t + random · √t = slack`, written so that nothing cancels where one of them is small.
fn until(slack: Duration, one: &Drift, other: &Drift) -> Option<Duration> {
    let steady = (one.steady - other.steady).abs();
    let variance = one.variance + other.variance;
    if steady == 0.0 && variance == 0.0 {
        return None;
    }
    let slack = slack.0 as f64;
    let root = 2.0 * slack / (variance.sqrt() + (variance + 4.0 * steady * slack).sqrt());
    Some(Duration((root * root).round() as u64))
}
