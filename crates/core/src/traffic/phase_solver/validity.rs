//! The time for which turns hold that are set once and not enforced.
//!
//! Two jobs drift apart for two reasons: their periods differ from the planned ones, which grows with time, and each iteration
//! is a little early or late, which grows with the root of time. Turns hold until the drift exceeds the slack of the bursts.

use serde::{Deserialize, Serialize};

use super::component::{Component, Placed};
use super::problem::Problem;
use super::spread::room;
use super::stage::whole_component;
use crate::model::units::Duration;
use crate::tuning::TrafficTuning;

/// The real iterations of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tempo {
    pub period: Duration,
    /// Standard deviation of one iteration.
    pub noise: Duration,
}

/// The time after which one standard deviation of drift between two loops that share a contended link first exceeds the slack
/// of one of them; `None` if no loop drifts. `turns` and `tempos` are in the order of the problem's loops.
pub fn valid_for(
    tuning: &TrafficTuning,
    problem: &Problem,
    turns: &[Duration],
    tempos: &[Tempo],
) -> Option<Duration> {
    let component = whole_component(tuning, problem);
    let slacks = slacks_in(&component, turns);
    let mut first = None;
    for (index, slack) in slacks.iter().enumerate() {
        let Some(slack) = *slack else { continue };
        for other in (0..slacks.len()).filter(|other| *other != index && meet(&component, index, *other)) {
            let holds = until(slack, &drift(problem, tempos, index), &drift(problem, tempos, other));
            first = match (first, holds) {
                (Some(first), Some(holds)) => Some(Duration::min(first, holds)),
                (one, another) => one.or(another),
            };
        }
    }
    first
}

/// The slack of each loop, earlier or later, within which the excess stays the same; `None` for a loop without an edge to meet.
pub fn slacks(tuning: &TrafficTuning, problem: &Problem, turns: &[Duration]) -> Vec<Option<Duration>> {
    slacks_in(&whole_component(tuning, problem), turns)
}

fn slacks_in(component: &Component, turns: &[Duration]) -> Vec<Option<Duration>> {
    let mut placed = Placed::empty(component);
    for (mover, turn) in turns.iter().enumerate() {
        let turn = i64::try_from(turn.0).unwrap_or(0) % component.movers[mover].period;
        let excess = component.against(&component.movers[mover], &placed.demand).excess_at(turn);
        placed.put(component, mover, (turn, excess));
    }
    (0..turns.len()).map(|mover| slack(component, &placed, mover)).collect()
}

fn slack(component: &Component, placed: &Placed, mover: usize) -> Option<Duration> {
    let mut others = placed.clone();
    let at = others.lift(component, mover)?;
    let (before, after) = room(component, &others, mover, at)?;
    Some(Duration(before.min(after).unsigned_abs()))
}

fn meet(component: &Component, one: usize, other: usize) -> bool {
    let links = |mover: usize| component.movers[mover].patterns.iter().map(|pattern| pattern.link);
    links(one).any(|link| links(other).any(|theirs| theirs == link))
}

/// The drift of a loop: steady, per time, and random, per root of time.
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

/// The root of `steady · t + random · √t = slack`, in a form without cancellation where one of them is small.
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
