use super::harmonise::{Beat, Discord, Rhythm, Terms, harmonise};
use super::validity::{Tempo, slacks, valid_for};
use super::*;
use crate::model::id::LinkId;
use crate::model::profile::Phase;
use crate::model::units::{Bandwidth, Share};

const MS: u64 = 1_000_000;

/// One burst at the beginning, over the first links; time in ms, rates in percent of a link.
fn burst(period: u64, length: u64, percent: u64, links: &[u32]) -> Loop {
    Loop {
        period: Duration::from_millis(period),
        phases: vec![Phase {
            offset: Duration::ZERO,
            length: Duration::from_millis(length),
            rate: Bandwidth(percent),
        }],
        links: links.iter().map(|link| (LinkId(*link), Share::WHOLE)).collect(),
        tier: 0,
        weight: 1,
    }
}

fn below(one: Loop) -> Loop {
    Loop { tier: one.tier + 1, ..one }
}

fn made(circle: u64, loops: Vec<Loop>) -> Result<Problem, ProblemError> {
    let links = (0..4).map(|link| (LinkId(link), Bandwidth(100))).collect();
    Problem::new(Duration::from_millis(circle), links, loops)
}

fn solved(circle: u64, loops: Vec<Loop>) -> Turns {
    solve(&TrafficTuning::DEFAULT, &made(circle, loops).unwrap(), Budget(100_000))
}

fn link_ms(millis: u64) -> Excess {
    Excess(u128::from(millis * MS) * LINK as u128)
}

#[test]
fn bursts_that_fit_beside_each_other_miss_each_other() {
    let found = solved(600, vec![burst(600, 200, 100, &[0]); 3]);
    assert_eq!((found.excess(), found.is_proven()), (Excess::NONE, true));
}

#[test]
fn what_cannot_fit_is_the_excess_and_that_is_proven() {
    let found = solved(600, vec![burst(600, 250, 100, &[0]); 3]);
    assert_eq!((found.excess(), found.bound()), (link_ms(150), link_ms(150)));
    assert_eq!(found.excess().link_time(), Duration::from_millis(150));
}

#[test]
fn a_loop_that_comes_twice_leaves_no_room_for_a_long_burst() {
    let found = solved(600, vec![burst(300, 100, 100, &[0]), burst(600, 250, 100, &[0])]);
    assert_eq!((found.excess(), found.is_proven()), (link_ms(50), true));
}

#[test]
fn demand_beyond_the_link_is_excess_wherever_it_is() {
    let found = solved(600, vec![burst(600, 100, 150, &[0]), burst(600, 600, 20, &[0])]);
    assert_eq!((found.excess(), found.is_proven()), (link_ms(70), true));
}

#[test]
fn on_a_ring_of_links_every_pair_must_agree() {
    let ring = [&[0, 1], &[1, 2], &[2, 0]].map(|links: &[u32; 2]| burst(600, 250, 100, links));
    let found = solved(600, ring.to_vec());
    assert_eq!((found.excess(), found.is_proven()), (link_ms(150), true), "three do not fit pairwise");
}

#[test]
fn a_lower_tier_gives_way_and_pays_for_what_it_causes() {
    let found = solved(600, vec![below(burst(600, 400, 100, &[0])), burst(600, 300, 100, &[0])]);
    let excess: Vec<Excess> = found.tiers.iter().map(|tier| tier.excess).collect();
    assert_eq!(excess, [Excess::NONE, link_ms(100)]);
}

/// Two that never meet are fixed to nothing; one that meets both may turn them as it needs.
#[test]
fn higher_tiers_that_do_not_meet_turn_for_a_lower_one_at_no_cost() {
    let mut late = burst(600, 300, 100, &[1]);
    late.phases[0].offset = Duration::from_millis(300);
    let found = solved(600, vec![burst(600, 300, 100, &[0]), late, below(burst(600, 300, 100, &[0, 1]))]);
    assert_eq!((found.excess(), found.is_proven()), (Excess::NONE, true));
}

#[test]
fn a_weightier_loop_keeps_its_link_free() {
    let light = [burst(600, 350, 100, &[0]), burst(600, 350, 100, &[0, 1])];
    let heavy = Loop { weight: 3, ..burst(600, 250, 100, &[1]) };
    let found = solved(600, light.into_iter().chain([heavy]).collect());
    assert_eq!((found.excess(), found.is_proven()), (link_ms(100), true), "all of it on the light link");
}

#[test]
fn free_room_is_shared_on_both_sides_of_a_burst() {
    let problem = made(600, vec![burst(600, 100, 100, &[0]); 2]).unwrap();
    let found = solve(&TrafficTuning::DEFAULT, &problem, Budget(100));
    let slack = slacks(&TrafficTuning::DEFAULT, &problem, &found.turns);
    assert_eq!(slack, [Some(Duration::from_millis(200)); 2]);
}

#[test]
fn without_a_budget_there_is_an_answer_and_a_gap() {
    let loops = [(600, 210, 70), (600, 310, 60), (300, 90, 55), (200, 70, 80), (600, 120, 100)];
    let loops: Vec<Loop> =
        loops.map(|(period, length, percent)| burst(period, length, percent, &[0])).to_vec();
    let hasty = solve(&TrafficTuning::DEFAULT, &made(600, loops.clone()).unwrap(), Budget(0));
    let thorough = solved(600, loops);
    assert!(thorough.is_proven());
    assert!(hasty.bound() <= thorough.excess() && thorough.excess() <= hasty.excess());
}

#[test]
fn hundreds_of_loops_are_bounded_work() {
    let loops = (0..300).map(|index| burst(600, index % 7, 100 + index, &[0])).collect();
    let found = solve(&TrafficTuning::DEFAULT, &made(600, loops).unwrap(), Budget(1000));
    assert!(found.nodes < 2000, "{}", found.nodes);
    assert!(found.bound() <= found.excess());
}

#[test]
fn nonsense_is_refused_with_its_place() {
    let with = |change: fn(&mut Loop)| {
        let mut one = burst(600, 100, 50, &[0]);
        change(&mut one);
        made(600, vec![burst(600, 1, 1, &[0]), one]).unwrap_err()
    };
    assert_eq!(with(|one| one.period = Duration::ZERO), ProblemError::NoPeriod(1));
    assert_eq!(with(|one| one.period = Duration::from_millis(250)), ProblemError::Period(1));
    assert_eq!(with(|one| one.period = Duration::from_millis(10)), ProblemError::Period(1));
    assert_eq!(with(|one| one.phases[0].length = Duration::SECOND), ProblemError::PhaseLength(1, 0));
    assert_eq!(with(|one| one.phases[0].offset = one.period), ProblemError::PhaseOffset(1, 0));
    assert_eq!(with(|one| one.phases = vec![one.phases[0]; 17]), ProblemError::TooManyPhases(1));
    assert_eq!(with(|one| one.links[0].0 = LinkId(9)), ProblemError::NoSuchLink(1, LinkId(9)));
    assert_eq!(with(|one| one.links.push(one.links[0])), ProblemError::RouteTwice(1, LinkId(0)));
    assert_eq!(with(|one| one.weight = 0), ProblemError::NoWeight(1));
    assert_eq!(made(0, vec![]).unwrap_err(), ProblemError::Circle);
    let dead = vec![(LinkId(3), Bandwidth::ZERO)];
    assert_eq!(Problem::new(Duration::SECOND, dead, vec![]), Err(ProblemError::NoCapacity(LinkId(3))));
}

fn rhythm(millis: u64) -> Rhythm {
    Rhythm { period: Duration::from_millis(millis), noise: Duration::ZERO, weight: 1, loss: Share(100_000) }
}

#[test]
fn nearly_harmonic_periods_are_stretched_to_a_circle() {
    let harmony = harmonise(&[rhythm(300), rhythm(597)], &Terms::of(&TrafficTuning::DEFAULT)).unwrap();
    assert_eq!(harmony.circle, Duration::from_millis(600));
    let stretched = Duration::from_millis(3);
    let beat =
        |period, appearances, stretch| Beat { period: Duration::from_millis(period), appearances, stretch };
    assert_eq!(harmony.beats, [beat(300, 2, Duration::ZERO), beat(600, 1, stretched)]);
}

#[test]
fn periods_without_a_near_circle_stay_as_they_are() {
    let strict = Terms { most: Share(5_000), ..Terms::of(&TrafficTuning::DEFAULT) };
    assert_eq!(harmonise(&[rhythm(237), rhythm(311), rhythm(418)], &strict), Err(Discord::TooFar));
    let careless = Rhythm { loss: Share(1_000), ..rhythm(597) };
    let other = Rhythm { loss: Share(1_000), ..rhythm(300) };
    assert_eq!(harmonise(&[other, careless], &Terms::of(&TrafficTuning::DEFAULT)), Err(Discord::NotWorthIt));
}

#[test]
fn noise_is_given_room() {
    let noisy = Rhythm { noise: Duration::from_millis(6), ..rhythm(600) };
    let harmony = harmonise(&[noisy, rhythm(600)], &Terms::of(&TrafficTuning::DEFAULT)).unwrap();
    assert_eq!(harmony.circle, Duration(606 * MS));
}

#[test]
fn turns_hold_until_drift_has_used_up_the_slack() {
    let problem = made(600, vec![burst(600, 100, 100, &[0]); 2]).unwrap();
    let turns = [Duration::ZERO, Duration::from_millis(300)];
    let holds = |period, noise| {
        let tempo = |period| Tempo { period: Duration(period), noise: Duration(noise) };
        valid_for(&TrafficTuning::DEFAULT, &problem, &turns, &[tempo(600 * MS), tempo(period)])
    };
    assert_eq!(holds(600 * MS, 0), None, "without noise, for ever");
    assert_eq!(holds(606 * MS, 0), Some(Duration::from_secs(20)), "1 % off: 200 ms after 20 s");
    let noisy = holds(600 * MS, 6 * MS).unwrap();
    assert!(noisy.0.abs_diff(200 * 200 / (2 * 36) * 600 * MS) < 600 * MS, "σ √(2n) = slack: {noisy}");
    assert!(holds(606 * MS, 6 * MS).unwrap() < Duration::from_secs(20));
}
