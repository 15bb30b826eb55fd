//! Comparison with simulations of every second: booked capacity is free, booked jobs complete, and no smaller size
//! suffices.

use super::*;
use crate::model::units::Instant;
use crate::observe::scaling::Speed;
use crate::tuning::DeadlinesTuning;

/// Deterministic pseudo-random numbers.
struct PseudoRandom(u64);

impl PseudoRandom {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

const WHOLE: Units = 16;
const LONG: u64 = 400;

fn at(seconds: u64) -> Instant {
    Instant::from_secs(seconds)
}

fn grid() -> Grid {
    Grid::of(Instant::START, DecisionTimes::default(), 1, &DeadlinesTuning::DEFAULT)
}

fn outlook(drawn: &mut PseudoRandom) -> Outlook {
    let mut outlook = Outlook::new(Instant::START, WHOLE);
    for _ in 0..drawn.below(8) {
        let from = drawn.below(LONG);
        let to = from + 1 + drawn.below(120);
        let units = (1 + drawn.below(6) as Units).min(outlook.least(at(from), at(to)));
        outlook.take(at(from), at(to), units);
    }
    outlook
}

/// Speeds rise with sizes, less than proportionally.
fn need(drawn: &mut PseudoRandom, pauses: ResizePauses) -> PoolDemand {
    let count = 1 + drawn.below(4) as usize;
    let mut speed = 1_000_000;
    let mut sizes = Vec::new();
    for at in 0..count {
        sizes.push(BookingSize { members: 1 << at, units: 1 << at, speed: Speed(speed) });
        speed += speed * (200_000 + drawn.below(800_000)) / 1_000_000;
    }
    let until = 20 + drawn.below(LONG - 20);
    PoolDemand {
        work: Duration::from_secs(1 + drawn.below(3 * until)),
        sizes: sizes.into(),
        now: Instant::START,
        until: at(until),
        has: PresentSize::default(),
        pauses,
    }
}

/// Work done by the deadline with sizes up to this index and without pauses.
fn most_done(outlook: &Outlook, need: &PoolDemand, most: usize) -> Duration {
    let pieces = outlook.between(need.now, need.target());
    let done = pieces.iter().map(|piece| {
        let fits = need.sizes[..=most].iter().rfind(|size| size.units <= piece.free);
        fits.map_or(Duration::ZERO, |size| {
            crate::observe::progress::WorkPace::at(size.speed).work(piece.to.since(piece.from))
        })
    });
    done.sum()
}

#[test]
fn fill_finds_a_booking_exactly_if_one_exists_and_takes_the_smallest_size() {
    for seed in 0..3000 {
        let drawn = &mut PseudoRandom(seed);
        let (outlook, need) = (outlook(drawn), need(drawn, ResizePauses::default()));
        let enough = (0..need.sizes.len()).find(|most| most_done(&outlook, &need, *most) >= need.work);
        let booking = fill(&outlook, &need, &grid());
        assert_eq!(booking.is_some(), enough.is_some(), "seed {seed}");
        let (Some(booking), Some(enough)) = (booking, enough) else { continue };
        let largest = booking.segments.iter().map(|segment| segment.members).max();
        assert!(largest.unwrap() <= need.sizes[enough].members, "seed {seed}: {booking:?}");
    }
}

/// Second by second: checks that the booked capacity is free, and returns when the work is done.
fn done_by_the_clock(outlook: &Outlook, need: &PoolDemand, booking: &Booking) -> Option<u64> {
    let (mut left, mut has, mut pause, mut touched) = (need.work.0 as i128, 0, 0, false);
    for second in 0..2 * LONG {
        let members = booking.members_at(at(second));
        if let Some(size) = need.size(members) {
            assert!(outlook.least(at(second), at(second + 1)) >= size.units, "second {second} is overbooked");
            let ResizePauses { first, again, more, fewer } = need.pauses;
            if members != has {
                let waits = match (touched, has) {
                    (false, _) => first,
                    (true, 0) => again,
                    (true, _) if has > members => fewer,
                    (true, _) => more,
                };
                pause = waits.as_secs();
            }
            touched |= pause == 0;
            match pause {
                0 => left -= i128::from(size.speed.0) * 1_000,
                _ => pause -= 1,
            }
            if left <= 0 {
                return Some(second + 1);
            }
        }
        has = members;
    }
    None
}

#[test]
fn booked_capacity_is_free_and_the_work_is_done_in_time_including_pauses() {
    let seconds = |drawn: &mut PseudoRandom| Duration::from_secs(drawn.below(8));
    let mut found = 0;
    for seed in 0..3000 {
        let drawn = &mut PseudoRandom(seed);
        let outlook = outlook(drawn);
        let more = seconds(drawn);
        let need = need(drawn, ResizePauses { first: more, again: more, more, fewer: more });
        let Some(booking) = fill(&outlook, &need, &grid()) else { continue };
        let done = done_by_the_clock(&outlook, &need, &booking);
        assert!(done.is_some_and(|done| at(done) <= need.until), "seed {seed}: {need:?} {booking:?}");
        assert!(booking.ends <= need.until && booking.end_of(&need).is_some());
        found += 1;
    }
    assert!(found > 500, "{found}");
}

#[test]
fn the_rest_of_a_booking_still_completes_the_job() {
    for seed in 0..1000 {
        let drawn = &mut PseudoRandom(seed);
        let outlook = outlook(drawn);
        let mut need = need(drawn, ResizePauses::default());
        let Some(booking) = fill(&outlook, &need, &grid()) else { continue };
        let now = at(drawn.below(booking.ends.since(Instant::START).as_secs().max(1)));
        let ran = booking.segments.iter().filter(|segment| segment.from < now);
        let done = ran.map(|segment| {
            let speed = need.size(segment.members).unwrap().speed;
            crate::observe::progress::WorkPace::at(speed).work(segment.to.min(now).since(segment.from))
        });
        need.work -= done.sum();
        need.now = now;
        assert!(booking.rest_from(now).end_of(&need).is_some_and(|end| end <= need.until), "seed {seed}");
    }
}

#[test]
fn a_job_that_cannot_be_preempted_has_a_booking_without_a_gap() {
    let mut found = 0;
    for seed in 0..2000 {
        let drawn = &mut PseudoRandom(seed);
        let (outlook, need) = (outlook(drawn), need(drawn, ResizePauses::default()));
        let Some(booking) = book_without_gap(&outlook, &need, &grid(), &DeadlinesTuning::DEFAULT) else {
            continue;
        };
        for segment in &booking.segments {
            let size = need.size(segment.members).unwrap();
            assert!(outlook.least(segment.from, segment.to) >= size.units, "seed {seed}");
        }
        let is_whole = booking.segments.windows(2).all(|pair| pair[0].to == pair[1].from);
        assert!(is_whole && booking.ends <= need.until, "seed {seed}: {booking:?}");
        assert!(done_by_the_clock(&outlook, &need, &booking).is_some());
        found += 1;
    }
    assert!(found > 200, "{found}");
}

#[test]
fn released_capacity_leaves_no_trace() {
    for seed in 0..500 {
        let drawn = &mut PseudoRandom(seed);
        let before = outlook(drawn);
        let mut after = before.clone();
        let taken: Vec<_> = (0..6).map(|_| (drawn.below(LONG), 1 + drawn.below(90))).collect();
        taken.iter().for_each(|(from, long)| after.take(at(*from), at(from + long), 3));
        taken.iter().for_each(|(from, long)| after.take(at(*from), at(from + long), -3));
        assert_eq!(before, after, "seed {seed}");
    }
}

#[test]
fn a_job_on_two_pools_has_the_smaller_free_capacity_of_both() {
    for seed in 0..300 {
        let drawn = &mut PseudoRandom(seed);
        let (one, other) = (outlook(drawn), outlook(drawn));
        let common = one.common(&other);
        for second in 0..LONG {
            let least = |outlook: &Outlook| outlook.least(at(second), at(second + 1));
            assert_eq!(least(&common), least(&one).min(least(&other)));
        }
    }
}

#[test]
fn the_minimum_cost_uses_the_smallest_sufficient_sizes() {
    let sizes = [(1, 1_000_000), (2, 1_500_000), (4, 2_000_000)];
    let sizes: Vec<BookingSize> = sizes
        .iter()
        .map(|(members, speed)| BookingSize {
            members: *members,
            units: i64::from(*members),
            speed: Speed(*speed),
        })
        .collect();
    let need = |work: u64| PoolDemand {
        work: Duration::from_secs(work),
        sizes: sizes.clone().into(),
        now: Instant::START,
        until: at(100) + DEADLINE_MARGIN,
        has: PresentSize::default(),
        pauses: ResizePauses::default(),
    };
    let seconds = |cost: CapacityCost| cost / u128::from(Duration::from_secs(1).0);
    assert_eq!(need(80).cost().map(seconds), Some(80));
    // Fifty seconds with two members, fifty with one.
    assert_eq!(need(125).cost().map(seconds), Some(150));
    assert_eq!(need(201).cost(), None);
}

#[test]
fn distant_times_are_rounded_up_more_coarsely() {
    let many = Grid::of(
        Instant::START,
        DecisionTimes { multiples_of: Duration::from_secs(240), ..DecisionTimes::default() },
        5000,
        &DeadlinesTuning::DEFAULT,
    );
    for distance in [1, 240, 4000, 10_000, 100_000, 1_000_000] {
        let told = many.up(at(distance));
        assert!(told >= at(distance) && told.since(at(distance)).as_secs() <= 240.max(distance / 8));
        assert_eq!(many.up(told).0 % Duration::from_secs(240).0, 0);
    }
}
