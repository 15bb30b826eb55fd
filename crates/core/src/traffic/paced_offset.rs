//! Turns that are kept, where the periods of all allow it.
//!
//! Periods are stretched a little to fit on one circle, with room for what iterations vary; the exact solver finds where
//! on it each is to begin, higher priorities first and undisturbed; and everybody is held to that. It is offered only
//! where the stretch is less than what all are predicted to lose otherwise, and then tried like any other way.

use std::collections::BTreeSet;

use super::candidates::in_class;
use super::{Follows, Pace, TrafficPolicy, Turn};
use crate::model::cluster::Keeping;
use crate::model::id::LinkId;
use crate::model::profile::Phase;
use crate::model::units::{Bandwidth, Duration, Share};
use crate::traffic::phase_solver::harmonise::{Beat, Harmony, Rhythm, Terms, harmonise, part};
use crate::traffic::phase_solver::validity::{Tempo, valid_for};
use crate::traffic::phase_solver::{Budget, Loop, Problem, Turns, solve};
use crate::tuning::TrafficTuning;

/// What a loop does that is by itself, and how much it counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Beating {
    pub period: Duration,
    /// When it sends, from and to, in order.
    pub sends: Vec<(Duration, Duration)>,
    /// The part of each link that it takes while it sends.
    pub links: Vec<(LinkId, f64)>,
    pub tier: u8,
    /// How much slower than alone it is predicted to be if nothing is done.
    pub slowdown: f64,
}

/// On links all rates are parts of this.
const WHOLE: Bandwidth = Bandwidth(1_000_000_000);

/// Loops on the circle that they have in common, and the turns they take there.
#[derive(Clone, Debug)]
pub struct Round {
    harmony: Harmony,
    problem: Problem,
    pub turns: Turns,
}

impl Round {
    /// Nothing where periods have no circle in common, or to keep to it costs too much.
    pub fn of(tuning: &TrafficTuning, beating: &[Beating], keeping: Keeping) -> Option<Self> {
        let rhythms: Vec<Rhythm> = beating.iter().map(|one| rhythm(tuning, one)).collect();
        let harmony = harmonise(&rhythms, &terms(tuning, keeping))
            .ok()
            .filter(|_| beating.len() <= tuning.max_paced_jobs)?;
        let problem = problem(tuning, beating, &harmony)?;
        let turns = solve(tuning, &problem, Budget(tuning.paced_offset_search_nodes));
        Some(Self { harmony, problem, turns })
    }
}

/// Traffic policies in which everybody keeps its turn; nothing where there is no round for all.
pub fn paced(tuning: &TrafficTuning, beating: &[Beating], keeping: Keeping) -> Option<Vec<TrafficPolicy>> {
    let Round { harmony, problem, turns } = Round::of(tuning, beating, keeping)?;
    let turns = turns.turns;
    let tempos: Vec<Tempo> = beating.iter().map(|one| tempo(tuning, one)).collect();
    let holds_by_itself = valid_for(tuning, &problem, &turns, &tempos);
    let traffic = |((turn, beat), one): ((&Duration, &Beat), &Beating)| {
        let turn = Turn { period: beat.period, offset: *turn, watch: None };
        TrafficPolicy {
            pace: Some(Pace { turn, holds_by_itself }),
            ..in_class(tuning, one.tier.min(1), Follows::BytesSent)
        }
    };
    Some(turns.iter().zip(&harmony.beats).zip(beating).map(traffic).collect())
}

/// Where links are not kept exactly, a period has to leave room for that, too: whoever is a little late every time waits for
/// half a period in the end.
fn terms(tuning: &TrafficTuning, keeping: Keeping) -> Terms {
    match keeping {
        Keeping::Exactly => Terms::of(tuning),
        Keeping::Roughly => Terms::on_hosts(tuning),
    }
}

fn noise(tuning: &TrafficTuning, one: &Beating) -> Duration {
    part(one.period, tuning.assumed_iteration_noise)
}

fn rhythm(tuning: &TrafficTuning, one: &Beating) -> Rhythm {
    let loss = Share(((one.slowdown - 1.0).clamp(0.0, 1.0) * f64::from(Share::WHOLE.0)) as u32);
    Rhythm { period: one.period, noise: noise(tuning, one), weight: 1, loss }
}

fn tempo(tuning: &TrafficTuning, one: &Beating) -> Tempo {
    Tempo { period: one.period, noise: noise(tuning, one) }
}

fn problem(tuning: &TrafficTuning, beating: &[Beating], harmony: &Harmony) -> Option<Problem> {
    let links: BTreeSet<LinkId> =
        beating.iter().flat_map(|one| one.links.iter().map(|(link, _)| *link)).collect();
    let of_whole = |part: f64| Share((part * f64::from(Share::WHOLE.0)).round() as u32);
    let on_circle = |(one, beat): (&Beating, &Beat)| Loop {
        period: beat.period,
        phases: phases(&one.sends, tuning.max_paced_phases),
        links: one.links.iter().map(|(link, part)| (*link, of_whole(*part))).collect(),
        tier: one.tier,
        weight: 1,
    };
    let loops = beating.iter().zip(&harmony.beats).map(on_circle).collect();
    Problem::new(harmony.circle, links.into_iter().map(|link| (link, WHOLE)).collect(), loops).ok()
}

/// What is sent, as a few phases: the shortest pauses are closed.
fn phases(sends: &[(Duration, Duration)], most: usize) -> Vec<Phase> {
    let mut spans = sends.to_vec();
    while spans.len() > most {
        let pause = |at: &usize| spans[*at].0 - spans[at - 1].1;
        let Some(shortest) = (1..spans.len()).min_by_key(pause) else { break };
        spans[shortest - 1].1 = spans[shortest].1;
        spans.remove(shortest);
    }
    spans.into_iter().map(|(from, to)| Phase { offset: from, length: to - from, rate: WHOLE }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beating(period: u64, sends: u64, slowdown: f64) -> Beating {
        let ms = Duration::from_millis;
        let sends = vec![(ms(period - sends), ms(period))];
        Beating { period: ms(period), sends, links: vec![(LinkId(0), 1.0)], tier: 0, slowdown }
    }

    #[test]
    fn loops_of_one_period_get_turns_that_do_not_collide() {
        let traffic =
            paced(&TrafficTuning::DEFAULT, &[beating(100, 40, 1.3), beating(100, 40, 1.3)], Keeping::Exactly)
                .expect("equal periods have a circle");
        let offset = |traffic: &TrafficPolicy| traffic.pace.expect("everybody keeps a turn").turn.offset;
        let apart =
            offset(&traffic[0]).max(offset(&traffic[1])) - offset(&traffic[0]).min(offset(&traffic[1]));
        assert!((Duration::from_millis(40)..=Duration::from_millis(61)).contains(&apart), "{apart:?}");
        assert!(traffic[0].pace.is_some_and(|pace| pace.holds_by_itself.is_some()));
    }

    #[test]
    fn nobody_is_held_where_that_costs_more_than_it_saves() {
        assert_eq!(
            paced(
                &TrafficTuning::DEFAULT,
                &[beating(100, 40, 1.001), beating(100, 40, 1.001)],
                Keeping::Exactly
            ),
            None
        );
    }

    #[test]
    fn periods_without_a_circle_are_left_alone() {
        assert_eq!(
            paced(&TrafficTuning::DEFAULT, &[beating(100, 40, 1.3), beating(141, 40, 1.3)], Keeping::Exactly),
            None
        );
    }
}
