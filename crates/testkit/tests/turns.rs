//! Turns against brute force: with edges on whole nanoseconds some optimum has whole turns, so that on small circles
//! all of them can be tried.

use metronome_core::model::id::LinkId;
use metronome_core::model::profile::Phase;
use metronome_core::model::units::{Bandwidth, Duration, Share};
use metronome_core::traffic::phase_solver::harmonise::{APPEARANCES, Discord, Rhythm, Terms, harmonise};
use metronome_core::traffic::phase_solver::{Budget, Excess, Loop, Problem, solve};
use metronome_core::tuning::TrafficTuning;
use proptest::prelude::*;
use rand::RngExt;
use rand_pcg::Pcg64;

/// Divides a billion, as the capacities below do: the solver's unit is then exact.
const CAPACITIES: [u64; 3] = [4, 5, 10];
const PLENTY: Budget = Budget(1_000_000);

/// What may be drawn.
#[derive(Clone, Copy, Debug)]
struct Size {
    circle: u64,
    loops: usize,
    links: u32,
    phases: usize,
    tiers: u8,
}

fn drawn(seed: u64, size: Size) -> Problem {
    let mut chance = Pcg64::new(u128::from(seed), 11);
    let links = (0..size.links).map(|link| (LinkId(link), Bandwidth(CAPACITIES[chance.random_range(0..3)])));
    let links: Vec<_> = links.collect();
    let loops = (0..size.loops).map(|_| drawn_loop(&mut chance, size)).collect();
    Problem::new(Duration(size.circle), links, loops).unwrap()
}

fn drawn_loop(chance: &mut Pcg64, size: Size) -> Loop {
    let divisors: Vec<u64> = [1, 1, 1, 2, 3].into_iter().filter(|k| size.circle.is_multiple_of(*k)).collect();
    let period = size.circle / divisors[chance.random_range(0..divisors.len())];
    let phases = (0..chance.random_range(1..=size.phases)).map(|_| Phase {
        offset: Duration(chance.random_range(0..period)),
        length: Duration(chance.random_range(0..=period / 2)),
        rate: Bandwidth(chance.random_range(1..=6)),
    });
    let phases = phases.collect();
    let mut links: Vec<(LinkId, Share)> = (0..size.links)
        .map(|link| (LinkId(link), Share([0, 1_000_000, 2_000_000][chance.random_range(0..3)])))
        .filter(|(_, factor)| factor.0 > 0)
        .collect();
    if links.is_empty() {
        links.push((LinkId(0), Share::WHOLE));
    }
    let (tier, weight) = (chance.random_range(0..size.tiers), chance.random_range(1..=2));
    Loop { period: Duration(period), phases, links, tier, weight }
}

/// What loop sends at `at`, in whole units of rate.
fn sent(one: &Loop, turn: u64, at: u64) -> u64 {
    let period = one.period.0;
    let own = (at + period - turn % period) % period;
    let on = |phase: &&Phase| (own + period - phase.offset.0) % period < phase.length.0;
    one.phases.iter().filter(on).map(|phase| phase.rate.0).sum()
}

/// The excess that the loops of `tier` cause, nanosecond by nanosecond.
fn recounted(problem: &Problem, turns: &[u64], tier: u8) -> Excess {
    let mut sum = 0;
    for (link, capacity) in problem.links() {
        let factor = |one: &Loop| {
            one.links
                .iter()
                .find(|(id, _)| id == link)
                .map_or(0, |(_, factor)| u64::from(factor.0 / 1_000_000))
        };
        let weight = problem.loops().iter().filter(|one| one.tier == tier && factor(one) > 0);
        let weight = weight.map(|one| one.weight).max().unwrap_or(0);
        let beyond = |at: u64, lowest: Option<u8>| {
            let counted = problem.loops().iter().zip(turns).filter(|(one, _)| lowest >= Some(one.tier));
            let demand: u64 = counted.map(|(one, turn)| factor(one) * sent(one, *turn, at)).sum();
            demand.saturating_sub(capacity.0)
        };
        let caused: u64 =
            (0..problem.circle().0).map(|at| beyond(at, Some(tier)) - beyond(at, tier.checked_sub(1))).sum();
        sum += u128::from(caused) * u128::from(weight) * 1_000_000_000 / u128::from(capacity.0);
    }
    Excess(sum)
}

/// The least excess over all whole turns of the loops in `free`.
fn tried_out(problem: &Problem, turns: &mut Vec<u64>, free: &[usize], tier: u8) -> Excess {
    let Some((first, rest)) = free.split_first() else {
        return recounted(problem, turns, tier);
    };
    let all = 0..problem.loops()[*first].period.0;
    let with = |turn: u64| {
        turns[*first] = turn;
        tried_out(problem, turns, rest, tier)
    };
    all.map(with).min().unwrap()
}

fn nanos(turns: &[Duration]) -> Vec<u64> {
    turns.iter().map(|turn| turn.0).collect()
}

fn agrees_with_brute_force(seed: u64, size: Size) {
    let problem = drawn(seed, size);
    let found = solve(&TrafficTuning::DEFAULT, &problem, PLENTY);
    let free: Vec<usize> = (1..problem.loops().len()).collect();
    let least = tried_out(&problem, &mut vec![0; size.loops], &free, 0);
    assert!(found.is_proven(), "seed {seed}: {found:?}");
    assert_eq!(found.excess(), least, "seed {seed}: {found:?} {problem:?}");
    assert_eq!(recounted(&problem, &nanos(&found.turns), 0), found.excess(), "seed {seed}");
}

#[test]
fn on_one_link_no_whole_turns_are_better() {
    for seed in 0..400 {
        agrees_with_brute_force(seed, Size { circle: 12, loops: 4, links: 1, phases: 1, tiers: 1 });
    }
}

#[test]
fn five_loops_meet_each_other_and_not_only_the_first() {
    for seed in 0..60 {
        agrees_with_brute_force(seed, Size { circle: 10, loops: 5, links: 1, phases: 1, tiers: 1 });
    }
}

#[test]
fn over_several_links_in_rings_no_whole_turns_are_better() {
    for seed in 0..200 {
        agrees_with_brute_force(seed, Size { circle: 12, loops: 4, links: 3, phases: 1, tiers: 1 });
    }
}

#[test]
fn with_several_phases_no_whole_turns_are_better() {
    for seed in 0..200 {
        agrees_with_brute_force(seed, Size { circle: 12, loops: 4, links: 2, phases: 3, tiers: 1 });
    }
}

#[test]
fn three_loops_on_a_finer_circle_agree_too() {
    for seed in 0..200 {
        agrees_with_brute_force(seed, Size { circle: 36, loops: 3, links: 2, phases: 2, tiers: 1 });
    }
}

#[test]
fn lower_tiers_are_placed_as_well_as_can_be_around_higher_ones() {
    let size = Size { circle: 12, loops: 4, links: 2, phases: 2, tiers: 2 };
    for seed in 0..200 {
        let problem = drawn(seed, size);
        let found = solve(&TrafficTuning::DEFAULT, &problem, PLENTY);
        assert!(found.is_proven(), "seed {seed}");
        for tier in &found.tiers {
            let mut turns = nanos(&found.turns);
            assert_eq!(recounted(&problem, &turns, tier.tier), tier.excess, "seed {seed}");
            let free: Vec<usize> =
                (0..size.loops).filter(|one| problem.loops()[*one].tier == tier.tier).collect();
            let least = tried_out(&problem, &mut turns, &free, tier.tier);
            assert_eq!(least, tier.excess, "seed {seed}, tier {}: {found:?}", tier.tier);
        }
    }
}

fn sizes() -> impl Strategy<Value = Size> {
    (prop::sample::select(vec![12, 24, 60]), 1..7usize, 1..4u32, 1..4usize, 1..4u8)
        .prop_map(|(circle, loops, links, phases, tiers)| Size { circle, loops, links, phases, tiers })
}

fn with_loops(problem: &Problem, loops: Vec<Loop>) -> Problem {
    let links = problem.links().iter().map(|(link, capacity)| (*link, *capacity)).collect();
    Problem::new(problem.circle(), links, loops).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn any_budget_gives_whole_turns_with_a_bound_below_them(seed: u64, size in sizes(), budget in 0..200u64) {
        let problem = drawn(seed, size);
        let found = solve(&TrafficTuning::DEFAULT, &problem, Budget(budget));
        for (one, turn) in problem.loops().iter().zip(&found.turns) {
            prop_assert!(*turn < one.period);
        }
        for tier in &found.tiers {
            prop_assert!(tier.bound <= tier.excess);
            prop_assert_eq!(recounted(&problem, &nanos(&found.turns), tier.tier), tier.excess);
        }
        prop_assert_eq!(&found, &solve(&TrafficTuning::DEFAULT, &problem, Budget(budget)));
    }

    #[test]
    fn a_bound_that_little_search_gives_is_kept_by_much(seed: u64, size in sizes(), budget in 0..200u64) {
        let problem = drawn(seed, Size { tiers: 1, loops: size.loops.min(5), ..size });
        let (little, much) = (solve(&TrafficTuning::DEFAULT, &problem, Budget(budget)), solve(&TrafficTuning::DEFAULT, &problem, PLENTY));
        prop_assert!(little.bound() <= much.excess());
        prop_assert!(much.excess() <= little.excess());
    }

    #[test]
    fn turning_everything_changes_nothing(seed: u64, size in sizes(), by in 0..60u64) {
        let problem = drawn(seed, Size { tiers: 1, loops: size.loops.min(5), ..size });
        let turned = |one: &Loop| {
            let later = |phase: &Phase| {
                Phase { offset: Duration((phase.offset.0 + by) % one.period.0), ..*phase }
            };
            Loop { phases: one.phases.iter().map(later).collect(), ..one.clone() }
        };
        let other = with_loops(&problem, problem.loops().iter().map(turned).collect());
        let (here, there) = (solve(&TrafficTuning::DEFAULT, &problem, PLENTY), solve(&TrafficTuning::DEFAULT, &other, PLENTY));
        if here.is_proven() && there.is_proven() {
            prop_assert_eq!(here.excess(), there.excess());
        }
    }

    #[test]
    fn one_loop_less_is_no_more_excess(seed: u64, size in sizes()) {
        let problem = drawn(seed, Size { tiers: 1, loops: size.loops.min(5), ..size });
        let fewer = with_loops(&problem, problem.loops()[1..].to_vec());
        prop_assert!(solve(&TrafficTuning::DEFAULT, &fewer, PLENTY).bound() <= solve(&TrafficTuning::DEFAULT, &problem, PLENTY).excess());
    }

    #[test]
    fn higher_tiers_do_not_notice_lower_ones(seed: u64, size in sizes()) {
        let problem = drawn(seed, Size { loops: size.loops.min(5), ..size });
        let highest = problem.loops().iter().map(|one| one.tier).min().unwrap();
        let high = problem.loops().iter().filter(|one| one.tier == highest).cloned().collect();
        let (all, alone) = (solve(&TrafficTuning::DEFAULT, &problem, PLENTY), solve(&TrafficTuning::DEFAULT, &with_loops(&problem, high), PLENTY));
        if alone.is_proven() {
            prop_assert_eq!(all.tiers[0], alone.tiers[0]);
        }
    }

    #[test]
    fn harmonised_periods_obey_the_bound(
        periods in prop::collection::vec((50_000_000..900_000_000u64, 0..3_000_000u64), 1..6),
        most in 0..50_000u32,
        cushion in 0..2_000_000u32,
    ) {
        let rhythm = |&(period, noise): &(u64, u64)| Rhythm {
            period: Duration(period),
            noise: Duration(noise),
            weight: 1,
            loss: Share::WHOLE,
        };
        let rhythms: Vec<Rhythm> = periods.iter().map(rhythm).collect();
        match harmonise(&rhythms, &Terms { most: Share(most), cushion: Share(cushion) }) {
            Err(reason) => prop_assert_eq!(reason, Discord::TooFar),
            Ok(harmony) => for (beat, rhythm) in harmony.beats.iter().zip(&rhythms) {
                prop_assert!(APPEARANCES.contains(&beat.appearances));
                prop_assert_eq!(beat.period.times(beat.appearances), harmony.circle);
                prop_assert_eq!(beat.period, rhythm.period + beat.stretch);
                prop_assert!(beat.stretch.0 * 1_000_000 <= rhythm.period.0 * u64::from(most));
                prop_assert!(beat.stretch.0 >= rhythm.noise.0 * u64::from(cushion) / 1_000_000);
            },
        }
    }
}
