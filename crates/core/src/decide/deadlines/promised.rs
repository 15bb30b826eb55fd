//! Our own rule: who is taken on is in time, as far as predictions hold.
//!
//! 1. Those taken on before are booked anew, in the order of deadlines. Where somebody would be left out by that, all keep
//!    the plans they had, which fit together. Only a plan that no longer holds, because less was done than predicted or
//!    nodes are gone, is made anew, or its job goes back to those without.
//! 2. Who has come, and a few of those without a booking, the cheapest first, are each booked beside the others; or with
//!    everybody booked anew; or in the place of one who takes more and was promised nothing (Moore and Hodgson's rule: of
//!    those who cannot all be in time, the one is left out that takes most). Strict ones, and those that take no more than
//!    most who come, have a promise from then on, and nobody takes their place.
//! 3. What is free now goes to those who are booked, where that pays.
//!
//! A stored plan is never given up for a worse one, so nobody who was promised is late while predictions are exact.

use std::collections::BTreeSet;

use super::books::{Booked, Books};
use super::grow::{Growth, grow};
use super::need::Kind;
use super::{Pools, Schedule};
use crate::job::Binding;
use crate::timetable::{Booking, Cost, GUARD, Timetable, Verdict};

/// So many of those without a booking are looked at again in one decision, beside those who have come.
const LOOKED_AT_AGAIN: usize = 10;

/// So many bookings are made in one decision before nobody is booked anew any more for the sake of others.
const MOST_BOOKINGS: usize = 12_000;

pub(super) fn schedule(books: Books<'_>) -> Schedule {
    let mut making = Making::of(books);
    making.keep_those_taken_on();
    making.keep_the_floor();
    for candidate in making.candidates() {
        making.take_on(candidate);
    }
    let beside = making.others();
    grow(&mut making.books, Growth::Promised { beside });
    making.close()
}

struct Making<'a> {
    books: Books<'a>,
    /// What each would take at least alone; nothing is known of who cannot be in time.
    costs: Vec<Option<Cost>>,
    promised: BTreeSet<usize>,
    /// Those taken on before.
    kept: BTreeSet<usize>,
    table: Timetable,
    /// Without bookings, as far as others may take: the pools that new plans are made in.
    bare: Pools,
    /// How many bookings were made.
    made: usize,
    /// Whether a part is kept for work without deadlines.
    has_floor: bool,
}

impl<'a> Making<'a> {
    fn of(mut books: Books<'a>) -> Self {
        books.leave_room_for_the_unbooked();
        let costs = books.jobs.iter().map(|timed| timed.need.cost()).collect();
        let verdicts = |at: usize| books.before(at).map(|entry| entry.verdict);
        let all = 0..books.jobs.len();
        let kept = all.clone().filter(|at| verdicts(*at).is_some_and(|verdict| verdict != Verdict::Pending));
        let promised = all.filter(|at| verdicts(*at) == Some(Verdict::Promised));
        let (kept, promised): (BTreeSet<usize>, BTreeSet<usize>) = (kept.collect(), promised.collect());
        let table = books.snapshot.timetable.lessons();
        let bare = books.pools.clone();
        Self { made: kept.len(), has_floor: false, costs, promised, kept, table, bare, books }
    }

    fn keep_those_taken_on(&mut self) {
        match self.books.plan(self.bare.clone(), self.kept.iter().copied()) {
            Ok(plan) => self.books.adopt(plan),
            Err(_) => self.keep_their_plans(),
        }
    }

    /// What everybody had still fits together, unless there is less than there was.
    fn keep_their_plans(&mut self) {
        let mut broken = Vec::new();
        for at in self.kept.clone() {
            match self.plan_before(at) {
                Some(booked) => self.books.book(at, booked),
                None => broken.push(at),
            }
        }
        while self.books.pools.is_overbooked()
            && let Some(at) = self.dearest(self.books.booked.keys().copied())
        {
            self.books.cancel(at);
            broken.push(at);
        }
        for at in broken {
            match self.books.fill(&self.books.pools, at) {
                Some(booked) => self.books.book(at, booked),
                None => self.leave_out(at),
            }
        }
    }

    /// The plan a job had, as far as it still gets it done in time.
    fn plan_before(&self, at: usize) -> Option<Booked> {
        let (timed, entry) = (&self.books.jobs[at], self.books.before(at)?);
        let booking = entry.booking.as_ref()?.rest_from(timed.need.now);
        let ends = booking.end_of(&timed.need).filter(|ends| *ends <= timed.need.until + GUARD)?;
        Some(Booked { booking: Booking { ends, ..booking }, node: entry.node })
    }

    fn leave_out(&mut self, at: usize) {
        self.kept.remove(&at);
        self.promised.remove(&at);
    }

    /// Of these the one who takes most for what it is worth, promised or not only if nobody else is there.
    fn dearest(&self, who: impl Iterator<Item = usize>) -> Option<usize> {
        who.max_by_key(|at| (!self.promised.contains(at), self.weighed(*at), *at))
    }

    /// What a job takes, for what it is worth.
    fn weighed(&self, at: usize) -> Cost {
        let value = self.books.jobs[at].job.spec.deadline.map_or(1, |deadline| deadline.value.max(1));
        self.costs[at].unwrap_or(Cost::MAX) / Cost::from(value)
    }

    fn keep_the_floor(&mut self) {
        let Books { snapshot, jobs, .. } = &self.books;
        let in_plan = jobs.iter().filter(|timed| snapshot.plan.get(timed.id).is_some()).count();
        let waiting = jobs.iter().filter(|timed| timed.job.class.is_some()).count();
        self.has_floor = snapshot.plan.len() > in_plan || snapshot.waiting.len() > waiting;
        if self.has_floor {
            self.books.pools.keep_the_floor();
            self.bare.keep_the_floor();
        }
    }

    /// All who have come, and the cheapest of those who were left out before; the cheapest first.
    fn candidates(&mut self) -> Vec<usize> {
        let mut found: Vec<(Cost, usize)> = Vec::new();
        let mut again: Vec<(Cost, usize)> = Vec::new();
        for at in (0..self.books.jobs.len()).filter(|at| !self.books.booked.contains_key(at)) {
            let Some(cost) = self.costs[at] else { continue };
            match self.books.before(at) {
                None => {
                    self.table.note_newcomer(cost);
                    found.push((cost, at));
                }
                Some(_) => again.push((cost, at)),
            }
        }
        again.sort_unstable();
        found.extend(again.into_iter().take(LOOKED_AT_AGAIN));
        found.sort_unstable();
        found.into_iter().map(|(_, at)| at).collect()
    }

    fn take_on(&mut self, at: usize) {
        if let Some(booked) = self.books.fill(&self.books.pools, at) {
            self.books.book(at, booked);
            return self.promise(at);
        }
        let mut with_it: BTreeSet<usize> = self.books.booked.keys().copied().collect();
        with_it.insert(at);
        self.made += with_it.len();
        if self.made > MOST_BOOKINGS {
            return;
        }
        match self.books.plan(self.bare.clone(), with_it.iter().copied()) {
            Ok(plan) => {
                self.books.adopt(plan);
                self.promise(at);
            }
            Err(first) => self.take_the_place_of_another(at, with_it, first),
        }
    }

    /// Of those up to the first who does not fit, the one who takes most is left out, if that is not the newcomer.
    fn take_the_place_of_another(&mut self, at: usize, mut who: BTreeSet<usize>, first: usize) {
        let unpromised = who.range(..=first).copied().filter(|other| !self.promised.contains(other));
        let Some(other) = unpromised.max_by_key(|other| (self.weighed(*other), *other != at)) else { return };
        if other == at {
            return;
        }
        who.remove(&other);
        self.made += who.len();
        if let Ok(plan) = self.books.plan(self.bare.clone(), who.iter().copied()) {
            self.books.adopt(plan);
            self.kept.remove(&other);
            self.promise(at);
        }
    }

    /// Who is strict, or takes no more than most who come, keeps its booking whoever comes.
    fn promise(&mut self, at: usize) {
        let strict =
            self.books.jobs[at].job.spec.deadline.map(|deadline| deadline.binding) == Some(Binding::Strict);
        let cheap = self.costs[at].is_some_and(|cost| cost <= self.table.dear());
        if strict || cheap {
            self.promised.insert(at);
        }
    }

    /// What those without deadlines who wait have left to do, the least of it, as units times time.
    fn others(&self) -> Option<u128> {
        let Books { snapshot, .. } = &self.books;
        let firsts = snapshot.waiting.classes().filter_map(|(_, class)| class.line.first());
        let jobs = firsts.map(|place| place.job).filter(|id| !snapshot.timed.contains(id));
        let left = jobs.map(|id| {
            let job = &snapshot.jobs[id];
            let units = Kind::of(job).units(job.spec.least()).unsigned_abs();
            job.remaining(snapshot.now).map_or(u128::MAX, |left| u128::from(units) * u128::from(left.0))
        });
        left.min()
    }

    fn close(self) -> Schedule {
        let Self { mut books, promised, table, has_floor, .. } = self;
        if has_floor {
            books.pools.open_the_floor();
        }
        let booked: BTreeSet<usize> = books.booked.keys().copied().collect();
        books.close(table, |at| match (booked.contains(&at), promised.contains(&at)) {
            (true, true) => Verdict::Promised,
            (true, false) => Verdict::Planned,
            (false, _) => Verdict::Pending,
        })
    }
}
