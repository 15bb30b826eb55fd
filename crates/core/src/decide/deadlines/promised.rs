//! The rule of the policy `metronome`: an admitted job is in time, as far as predictions hold.
//!
//! 1. Jobs that were admitted before are booked anew, in the order of deadlines. Where that would leave a job out, all
//!    keep the plans they had, which fit together. Only a plan that no longer holds, because less was done than
//!    predicted or nodes are gone, is made anew, or its job loses its booking.
//! 2. New jobs, and a few jobs without a booking, the cheapest first, are each booked beside the others; or with all
//!    jobs booked anew; or in the place of one that takes more and was promised nothing (the rule of Moore and
//!    Hodgson: of jobs that cannot all be in time, the one that takes most is left out). Strict jobs, and those that
//!    take no more than most new jobs, have a promise from then on, and no job takes their place.
//! 3. Bookings grow from free capacity, where that pays.
//!
//! A stored plan is never given up for a worse one, so no promised job is late while predictions are exact.

use std::collections::BTreeSet;

use super::best_effort;
use super::books::Books;
use super::capacity_pools::{Booked, Floor};
use super::grow::{Growth, Terms, grow};
use super::{Pools, Schedule};
use crate::deadlines::{Booking, CapacityCost, DEADLINE_MARGIN, DeadlineVerdict, Timetable};
use crate::decide::view::View;
use crate::model::job::Binding;
use crate::model::units::Duration;

pub(super) fn schedule<'a>(view: &View<'a>, books: Books<'a>) -> Schedule<'a> {
    let mut admissions = Admissions::of(books);
    admissions.keep_admitted_jobs();
    admissions.keep_best_effort_part();
    for candidate in admissions.candidates() {
        admissions.admit(candidate);
    }
    admissions.floor(Floor::Open);
    grow(&mut admissions.books, Growth::Promised(&Terms::of(view)));
    admissions.close()
}

struct Admissions<'a> {
    books: Books<'a>,
    /// The least that each job would take alone; `None` for a job that cannot be in time.
    costs: Vec<Option<CapacityCost>>,
    promised: BTreeSet<usize>,
    /// Jobs that were admitted before.
    kept: BTreeSet<usize>,
    table: Timetable,
    /// The pools without bookings, in which new plans are made.
    bare: Pools,
    /// The number of bookings made in this decision.
    made: usize,
    /// Whether a part is kept for jobs without deadlines.
    has_floor: bool,
}

impl<'a> Admissions<'a> {
    fn of(mut books: Books<'a>) -> Self {
        books.reserve_for_unbooked_jobs();
        let costs = books.jobs.iter().map(|timed| timed.need.cost()).collect();
        let verdicts = |at: usize| books.before(at).map(|entry| entry.verdict);
        let all = 0..books.jobs.len();
        let kept =
            all.clone().filter(|at| verdicts(*at).is_some_and(|verdict| verdict != DeadlineVerdict::Pending));
        let promised = all.filter(|at| verdicts(*at) == Some(DeadlineVerdict::Promised));
        let (kept, promised): (BTreeSet<usize>, BTreeSet<usize>) = (kept.collect(), promised.collect());
        let table = books.snapshot.plan.timetable().lessons();
        let bare = books.pools.clone();
        Self { made: kept.len(), has_floor: false, costs, promised, kept, table, bare, books }
    }

    fn keep_admitted_jobs(&mut self) {
        match self.books.plan(self.bare.clone(), self.kept.iter().copied()) {
            Ok(plan) => self.books.adopt(plan),
            Err(_) => self.keep_stored_plans(),
        }
    }

    /// Books for every job the plan it had: these fit together, unless there is less capacity. A new job that takes
    /// longer to make room is no reason to break a promise.
    fn keep_stored_plans(&mut self) {
        let mut broken = Vec::new();
        for at in self.kept.clone() {
            self.expect_handover_as_before(at);
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

    fn expect_handover_as_before(&mut self, at: usize) {
        let (timed, before) = (&self.books.jobs[at], self.books.before(at).map(|entry| entry.handover));
        if let Some(before) = before.filter(|before| *before < timed.handover) {
            self.books.jobs[at] = timed.with_handover(self.books.snapshot, before);
        }
    }

    /// The plan a job had, if it still gets the job done in time.
    fn plan_before(&self, at: usize) -> Option<Booked> {
        let (timed, entry) = (&self.books.jobs[at], self.books.before(at)?);
        let booking = entry.booking.as_ref()?.rest_from(timed.need.now);
        let ends = booking.end_of(&timed.need).filter(|ends| *ends <= timed.need.until + DEADLINE_MARGIN)?;
        Some(Booked { booking: Booking { ends, ..booking }, node: entry.node })
    }

    /// Leaves a job without a booking; if it cannot be stopped, it keeps what it has.
    fn leave_out(&mut self, at: usize) {
        self.kept.remove(&at);
        self.promised.remove(&at);
        if self.books.stays(at) {
            self.books.leave_to(&mut self.bare, at);
            let mut pools = self.books.pools.clone();
            self.books.leave_to(&mut pools, at);
            self.books.pools = pools;
        }
    }

    /// The job that takes most for its value; a promised job only if there is no other.
    fn dearest(&self, who: impl Iterator<Item = usize>) -> Option<usize> {
        who.max_by_key(|at| (!self.books.stays(*at), !self.promised.contains(at), self.weighed(*at), *at))
    }

    /// The cost of a job, divided by its value.
    fn weighed(&self, at: usize) -> CapacityCost {
        let value = self.books.jobs[at].job.spec.deadline.map_or(1, |deadline| deadline.value.max(1));
        self.costs[at].unwrap_or(CapacityCost::MAX) / CapacityCost::from(value)
    }

    /// Records for how long jobs without deadlines have had less than their part, and keeps that part.
    fn keep_best_effort_part(&mut self) {
        let snapshot = self.books.snapshot;
        let past = snapshot.plan.timetable().made.map_or(Duration::ZERO, |made| snapshot.now.since(made));
        match best_effort::lack_capacity(snapshot) {
            true => self.table.record_shortage(past, &snapshot.tuning.deadlines),
            false => self.table.record_sufficient_share(past),
        }
        self.has_floor = best_effort::any_jobs(snapshot);
        self.floor(Floor::Kept);
    }

    /// Opens the part of jobs without deadlines to bookings, or closes it.
    fn floor(&mut self, floor: Floor) {
        if self.has_floor {
            self.books.pools.floor(floor);
            self.bare.floor(floor);
        }
    }

    /// The new jobs, and the cheapest of those that were left out before; all in the order of cost by value.
    fn candidates(&mut self) -> Vec<usize> {
        let unbooked = (0..self.books.jobs.len()).filter(|at| !self.books.booked.contains_key(at));
        // A running job that cannot be stopped keeps what it has anyway.
        let unbooked = unbooked.filter(|at| !self.books.stays(*at) && self.costs[*at].is_some());
        let (mut found, mut again): (Vec<usize>, Vec<usize>) =
            unbooked.partition(|at| self.books.before(*at).is_none());
        for at in &found {
            let tuning = &self.books.snapshot.tuning.deadlines;
            self.table.record_minimum_cost(self.costs[*at].unwrap_or(CapacityCost::MAX), tuning);
        }
        again.sort_by_key(|at| (self.weighed(*at), *at));
        found.extend(again.into_iter().take(self.books.snapshot.tuning.decide.max_bookings_retried));
        found.sort_by_key(|at| (self.weighed(*at), *at));
        found
    }

    /// Books a job. A strict job may use the part of jobs without deadlines unless these have waited for long.
    fn admit(&mut self, at: usize) {
        let goes_below =
            self.is_strict(at) && !self.table.owes_best_effort(&self.books.snapshot.tuning.deadlines);
        if goes_below {
            self.floor(Floor::Open);
        }
        self.find_booking(at);
        if goes_below {
            self.floor(Floor::Kept);
        }
    }

    fn find_booking(&mut self, at: usize) {
        if let Some(booked) = self.books.fill(&self.books.pools, at) {
            self.books.book(at, booked);
            return self.promise(at);
        }
        let mut with_it: BTreeSet<usize> = self.books.booked.keys().copied().collect();
        with_it.insert(at);
        self.made += with_it.len();
        if self.made > self.books.snapshot.tuning.decide.max_bookings_per_decision {
            return;
        }
        match self.books.plan(self.bare.clone(), with_it.iter().copied()) {
            Ok(plan) => {
                self.books.adopt(plan);
                self.promise(at);
            }
            Err(first) => self.replace_booking(at, with_it, first),
        }
    }

    /// Of the jobs up to the first that does not fit, the one that takes most is left out, if that is not the new one.
    fn replace_booking(&mut self, at: usize, mut who: BTreeSet<usize>, first: usize) {
        let may_go = |other: &usize| !self.promised.contains(other) && !self.books.stays(*other);
        let unpromised = who.range(..=first).copied().filter(may_go);
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

    /// Promises a booking to a strict job, and to one that takes no more than most new jobs.
    fn promise(&mut self, at: usize) {
        let cheap =
            self.costs[at].is_some_and(|cost| cost <= self.table.dear(&self.books.snapshot.tuning.deadlines));
        if self.is_strict(at) || cheap {
            self.promised.insert(at);
        }
    }

    fn is_strict(&self, at: usize) -> bool {
        let deadline = self.books.jobs[at].job.spec.deadline;
        deadline.is_some_and(|deadline| deadline.binding == Binding::Strict)
    }

    fn close(self) -> Schedule<'a> {
        let Self { books, promised, table, .. } = self;
        let booked: BTreeSet<usize> = books.booked.keys().copied().collect();
        books.close(table, |at| match (booked.contains(&at), promised.contains(&at)) {
            (true, true) => DeadlineVerdict::Promised,
            (true, false) => DeadlineVerdict::Planned,
            (false, _) => DeadlineVerdict::Pending,
        })
    }
}
