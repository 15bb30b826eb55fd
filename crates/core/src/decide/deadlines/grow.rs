//! Bookings grow from free capacity, one size at a time, the booking first to which that costs least in the end.
//!
//! A job that has more members now needs fewer later, though in all it takes more units for a time, because more
//! members are less efficient: the job that adds least to that for each unit goes first. The rest of its booking is
//! made anew and as small as possible, so that what it has beyond that is given back as soon as other jobs need it.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;

use super::best_effort::BestEffortDemand;
use super::books::Books;
use super::capacity_pools::Booked;
use super::need::DeadlineJob;
use crate::deadlines::{
    Booking, BookingSegment, BookingSize, Outlook, PoolDemand, Stops, Units, WorkSimulation,
    fill_as_early_as_possible,
};
use crate::decide::draft::{Draft, Reach};
use crate::decide::elastic_gang::ElasticGang;
use crate::decide::gang_size::GangSize;
use crate::decide::growth_cost::{is_weighed, pays};
use crate::decide::placement;
use crate::decide::view::View;
use crate::model::plan::Assignment;
use crate::model::units::{Duration, Instant};
use crate::observe::progress::WorkPace;

/// How far bookings may grow.
#[derive(Clone, Copy)]
pub(super) enum Growth<'t, 'a> {
    /// As published: every job as far as there is capacity, also a job that cannot be in time.
    Filled,
    /// Only a job that stays in time, where the gain is worth the pause and what it costs other jobs on links, no
    /// further than it uses well, and not from capacity of jobs without deadlines that go ahead.
    Promised(&'t Terms<'t, 'a>),
}

pub(super) struct Terms<'r, 'a> {
    others: BestEffortDemand,
    view: &'r View<'a>,
    /// A draft beside the plan, to find out where a job would be.
    plan: OnceCell<RefCell<Draft<'a>>>,
}

impl Growth<'_, '_> {
    fn is_filled(self) -> bool {
        matches!(self, Self::Filled)
    }
}

pub(super) fn grow<'a>(books: &mut Books<'a>, growth: Growth<'_, 'a>) {
    let tuning = &books.snapshot.tuning.decide;
    let booked: Vec<usize> = books.booked.keys().copied().take(tuning.max_growing_bookings).collect();
    for some in booked.chunks(tuning.max_compared_bookings) {
        grow_some(books, growth, some);
    }
}

fn grow_some<'a>(books: &mut Books<'a>, growth: Growth<'_, 'a>, some: &[usize]) {
    let mut offers: BTreeMap<usize, Option<Offer>> =
        some.iter().map(|at| (*at, offer(books, growth, *at))).collect();
    loop {
        let made = offers.iter().filter_map(|(at, offer)| Some((offer.as_ref()?.dear, *at)));
        let Some((_, at)) = made.min() else { return };
        // Other bookings have grown since the offer was made.
        match offer(books, growth, at) {
            Some(fresh) => {
                books.cancel(at);
                books.book(at, fresh.booked);
                offers.insert(at, offer(books, growth, at));
            }
            None => drop(offers.insert(at, None)),
        }
    }
}

/// The next size of a job.
struct Offer {
    /// Units times time that it takes more in all, for each unit it has more now; negative if it takes less.
    dear: i128,
    booked: Booked,
}

fn offer<'a>(books: &Books<'a>, growth: Growth<'_, 'a>, at: usize) -> Option<Offer> {
    let timed = &books.jobs[at];
    let booked = books.booked.get(&at)?;
    let Booked { booking, node } = booked;
    let now = booking.members_at(timed.need.now);
    let (before, size) = next_size(timed, now)?;
    let units = before.map_or(0, |before| before.units);
    if !may_grow(books, timed, growth, now, size) {
        return None;
    }
    let outlook = books.pools.outlook(books.snapshot, timed, *node)?;
    let left = match growth {
        Growth::Promised(terms) => terms.others.ahead_of(books.snapshot, &books.pools, timed, *node),
        Growth::Filled => 0,
    };
    if size.units - units > outlook.free_now() - left {
        return None;
    }
    let mut outlook = books.pools.outlook_without(books.snapshot, timed, booked)?;
    let alone = timed.need.now + timed.need.pauses.more + WorkPace::at(size.speed).time(timed.need.work);
    let until = outlook.first_change().unwrap_or(books.grid.up(timed.need.target().max(alone)));
    if let Growth::Promised(terms) = growth
        && !(is_worth_it(timed, before, size, until) && terms.pays_on_links(timed, before, size))
    {
        return None;
    }
    let larger = with_size_now(books, timed, &mut outlook, growth, size, until)?;
    let more = taken(&timed.need, &larger) - taken(&timed.need, booking);
    let dear = match growth {
        Growth::Filled if now == 0 => i128::MIN,
        _ => more / i128::from((size.units - units).max(1)),
    };
    Some(Offer { dear, booked: Booked { booking: larger, node: *node } })
}

/// The size that a job has, if any, and the next larger one.
fn next_size(timed: &DeadlineJob<'_>, now: u32) -> Option<(Option<BookingSize>, BookingSize)> {
    let next = timed.need.sizes.iter().find(|size| size.members > now)?;
    Some((timed.need.size(now), *next))
}

fn may_grow(
    books: &Books<'_>,
    timed: &DeadlineJob<'_>,
    growth: Growth<'_, '_>,
    now: u32,
    size: BookingSize,
) -> bool {
    let tuning = &books.snapshot.tuning.decide;
    if growth.is_filled() {
        return true;
    }
    let least = timed.need.sizes[0];
    let used = u128::from(size.speed.0) * u128::from(least.units.unsigned_abs());
    let whole = u128::from(tuning.well_used_part) * u128::from(size.units.unsigned_abs());
    let is_used_well = !timed.is_in_place() || now == 0 || used >= whole;
    let rested = timed.job.ripe(tuning.booked_resize_interval).is_none_or(|rested| rested <= timed.need.now);
    let resting = !timed.is_in_place() && timed.need.has.members == now && now > 0 && !rested;
    is_used_well && !resting
}

/// Whether more work is done until then at the larger size, with its pause counted once too often. A job that is about
/// to get that size already pauses only if it does not get it.
fn is_worth_it(
    timed: &DeadlineJob<'_>,
    before: Option<BookingSize>,
    size: BookingSize,
    until: Instant,
) -> bool {
    let time = until.since(timed.need.now);
    let work = |size: BookingSize, time: Duration| WorkPace::at(size.speed).work(time);
    let Some(before) = before.filter(|before| before.members == timed.need.has.members) else { return true };
    let pause = timed.need.pauses.more;
    work(size, time - pause) > work(before, time + pause)
}

impl<'r, 'a> Terms<'r, 'a> {
    pub(super) fn of(view: &'r View<'a>) -> Self {
        Self { others: BestEffortDemand::of(view.snapshot), view, plan: OnceCell::new() }
    }

    /// Whether a larger size saves more than it costs all jobs on links. The place of a job that waits for others to
    /// leave is not known, so the answer is yes.
    fn pays_on_links(&self, timed: &DeadlineJob<'a>, before: Option<BookingSize>, size: BookingSize) -> bool {
        let snapshot = self.view.snapshot;
        if snapshot.contention.has_no_links() {
            return true;
        }
        let plan = self.plan.get_or_init(|| RefCell::new(Draft::beside_the_plan(snapshot)));
        let mut plan = plan.borrow_mut();
        let gang = ElasticGang::of(timed.id, timed.job).filter(|gang| is_weighed(self.view, &plan, gang));
        let Some((gang, before)) = gang.zip(before) else { return true };
        let mut place = |size: BookingSize| self.place(&mut plan, &gang, timed, size);
        let places = place(before).zip(place(size));
        let cost = if timed.need.has.members > 0 { timed.need.pauses.more } else { Duration::ZERO };
        places.is_none_or(|(before, after)| pays(self.view, &plan, &gang, &before, &after, cost))
    }

    /// Where a job would be at a size, in capacity that is free now.
    fn place(
        &self,
        plan: &mut Draft<'a>,
        gang: &ElasticGang<'a>,
        timed: &DeadlineJob<'a>,
        size: BookingSize,
    ) -> Option<Assignment> {
        if let Some(held) = self.view.snapshot.plan.get(timed.id) {
            return match size.members.checked_sub(gang.members(held)) {
                None | Some(0) => Some((**held).clone()),
                Some(more) => gang.with_more(plan, held, more, Reach::Unclaimed),
            };
        }
        let size = GangSize::Exactly(size.members);
        placement::fit(self.view, plan, timed.job, size, Reach::Unclaimed).ok()
    }
}

/// A booking at a size until the next time at which the free amount changes, and the smallest that suffices from then
/// on.
fn with_size_now(
    books: &Books<'_>,
    timed: &DeadlineJob<'_>,
    outlook: &mut Outlook,
    growth: Growth<'_, '_>,
    size: BookingSize,
    until: Instant,
) -> Option<Booking> {
    let need = &timed.need;
    if timed.stops == Stops::Never && need.sizes.len() == 1 {
        let alone = PoolDemand { sizes: [size].into(), ..need.clone() };
        return books
            .fill_need(outlook, &alone, timed.stops)
            .filter(|booking| booking.members_at(need.now) > 0);
    }
    let mut walk = WorkSimulation::of(need);
    let all = BookingSegment { from: need.now, to: until, members: size.members };
    if let Some(end) = walk.run(size, need.now, until) {
        let segment = BookingSegment { to: books.grid.up(end).min(until), ..all };
        let in_time = growth.is_filled() || end <= need.target();
        return in_time.then(|| Booking { segments: vec![segment], ends: end });
    }
    outlook.take(need.now, until, size.units);
    let rest = PoolDemand { work: walk.left(), now: until, has: walk.has(), ..need.clone() };
    let mut later = books.fill_need(outlook, &rest, timed.stops);
    if growth.is_filled() {
        later = later.or_else(|| fill_as_early_as_possible(outlook, &rest, &books.grid));
    }
    Some(later?.after(all))
}

/// Units times time that a booking takes.
fn taken(need: &PoolDemand, booking: &Booking) -> i128 {
    let cost = |segment: &BookingSegment| {
        let units: Units = need.size(segment.members).map_or(0, |size| size.units);
        i128::from(units) * i128::from(segment.to.min(Instant(u64::MAX / 2)).since(segment.from).0)
    };
    booking.segments.iter().map(cost).sum()
}
