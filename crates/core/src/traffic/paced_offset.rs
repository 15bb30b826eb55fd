//! Paced offsets: phase offsets that jobs keep in every iteration, where their periods allow it.
//!
//! Periods are stretched a little to fit on one circle, with a cushion for noise. The exact solver finds the offset of each job
//! on the circle, higher priorities first and undisturbed by lower ones. Every job is then held to its offset. Paced offsets
//! are a candidate only where the stretch is less than the predicted loss under fair sharing.

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

/// A training loop without contention, and its priority.
#[derive(Clone, Debug, PartialEq)]
pub struct PacedLoop {
    pub period: Duration,
    /// The bursts of an iteration, from and to, in order.
    pub sends: Vec<(Duration, Duration)>,
    /// The share of each link that a burst takes.
    pub links: Vec<(LinkId, f64)>,
    pub tier: u8,
    /// The slowdown that is predicted under fair sharing.
    pub slowdown: f64,
}

/// The rate of a whole link: a unit in which the problem is stated, and no tuning entry.
const WHOLE_LINK: Bandwidth = Bandwidth(1_000_000_000);

/// Loops on a common circle, and their offsets there.
#[derive(Clone, Debug)]
pub struct Round {
    harmony: Harmony,
    problem: Problem,
    pub turns: Turns,
}

impl Round {
    /// None where periods have no common circle, or where the stretch costs more than it saves.
    pub fn of(tuning: &TrafficTuning, beating: &[PacedLoop], keeping: Keeping) -> Option<Self> {
        let rhythms: Vec<Rhythm> = beating.iter().map(|one| rhythm(tuning, one)).collect();
        let harmony = harmonise(&rhythms, &terms(tuning, keeping))
            .ok()
            .filter(|_| beating.len() <= tuning.max_paced_jobs)?;
        let problem = problem(tuning, beating, &harmony)?;
        let turns = solve(tuning, &problem, Budget(tuning.paced_offset_search_nodes));
        Some(Self { harmony, problem, turns })
    }
}

/// Traffic policies in which every job keeps its offset; none where the jobs have no common circle.
pub fn paced(tuning: &TrafficTuning, beating: &[PacedLoop], keeping: Keeping) -> Option<Vec<TrafficPolicy>> {
    let Round { harmony, problem, turns } = Round::of(tuning, beating, keeping)?;
    let turns = turns.turns;
    let tempos: Vec<Tempo> = beating.iter().map(|one| tempo(tuning, one)).collect();
    let holds_by_itself = valid_for(tuning, &problem, &turns, &tempos);
    let traffic = |((turn, beat), one): ((&Duration, &Beat), &PacedLoop)| {
        let turn = Turn { period: beat.period, offset: *turn, watch: None };
        TrafficPolicy {
            pace: Some(Pace { turn, holds_by_itself }),
            ..in_class(tuning, one.tier.min(1), Follows::BytesSent)
        }
    };
    Some(turns.iter().zip(&harmony.beats).zip(beating).map(traffic).collect())
}

/// The terms for stretching periods. Host-shaped links miss their rates, and periods leave room for that: a job that is a
/// little late in every iteration would wait for half a period in the end.
fn terms(tuning: &TrafficTuning, keeping: Keeping) -> Terms {
    match keeping {
        Keeping::Exactly => Terms::of(tuning),
        Keeping::Roughly => Terms::on_hosts(tuning),
    }
}

fn noise(tuning: &TrafficTuning, one: &PacedLoop) -> Duration {
    part(one.period, tuning.assumed_iteration_noise)
}

fn rhythm(tuning: &TrafficTuning, one: &PacedLoop) -> Rhythm {
    let loss = Share(((one.slowdown - 1.0).clamp(0.0, 1.0) * f64::from(Share::WHOLE.0)) as u32);
    Rhythm { period: one.period, noise: noise(tuning, one), weight: 1, loss }
}

fn tempo(tuning: &TrafficTuning, one: &PacedLoop) -> Tempo {
    Tempo { period: one.period, noise: noise(tuning, one) }
}

fn problem(tuning: &TrafficTuning, beating: &[PacedLoop], harmony: &Harmony) -> Option<Problem> {
    let links: BTreeSet<LinkId> =
        beating.iter().flat_map(|one| one.links.iter().map(|(link, _)| *link)).collect();
    let of_whole = |part: f64| Share((part * f64::from(Share::WHOLE.0)).round() as u32);
    let on_circle = |(one, beat): (&PacedLoop, &Beat)| Loop {
        period: beat.period,
        phases: phases(&one.sends, tuning.max_paced_phases),
        links: one.links.iter().map(|(link, part)| (*link, of_whole(*part))).collect(),
        tier: one.tier,
        weight: 1,
    };
    let loops = beating.iter().zip(&harmony.beats).map(on_circle).collect();
    Problem::new(harmony.circle, links.into_iter().map(|link| (link, WHOLE_LINK)).collect(), loops).ok()
}

/// The bursts as at most `most` phases: the shortest pauses are closed.
fn phases(sends: &[(Duration, Duration)], most: usize) -> Vec<Phase> {
    let mut spans = sends.to_vec();
    while spans.len() > most {
        let pause = |at: &usize| spans[*at].0 - spans[at - 1].1;
        let Some(shortest) = (1..spans.len()).min_by_key(pause) else { break };
        spans[shortest - 1].1 = spans[shortest].1;
        spans.remove(shortest);
    }
    spans.into_iter().map(|(from, to)| Phase { offset: from, length: to - from, rate: WHOLE_LINK }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beating(period: u64, sends: u64, slowdown: f64) -> PacedLoop {
        let ms = Duration::from_millis;
        let sends = vec![(ms(period - sends), ms(period))];
        PacedLoop { period: ms(period), sends, links: vec![(LinkId(0), 1.0)], tier: 0, slowdown }
    }

    #[test]
    fn loops_of_one_period_get_turns_that_do_not_collide() {
        let traffic =
            paced(&TrafficTuning::DEFAULT, &[beating(100, 40, 1.3), beating(100, 40, 1.3)], Keeping::Exactly)
                .expect("equal periods have a circle");
        let offset = |traffic: &TrafficPolicy| traffic.pace.expect("every job keeps a turn").turn.offset;
        let apart =
            offset(&traffic[0]).max(offset(&traffic[1])) - offset(&traffic[0]).min(offset(&traffic[1]));
        assert!((Duration::from_millis(40)..=Duration::from_millis(61)).contains(&apart), "{apart:?}");
        assert!(traffic[0].pace.is_some_and(|pace| pace.holds_by_itself.is_some()));
    }

    #[test]
    fn no_job_is_held_where_that_costs_more_than_it_saves() {
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
    fn jobs_without_a_common_circle_have_no_paced_offsets() {
        assert_eq!(
            paced(&TrafficTuning::DEFAULT, &[beating(100, 40, 1.3), beating(141, 40, 1.3)], Keeping::Exactly),
            None
        );
    }
}
