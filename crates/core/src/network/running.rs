//! One training loop as it runs: computing, sending, ending its last iteration.
//!
//! All times are whole nanoseconds, and every span is worked out from a difference of times, so a loop does the same
//! thing whenever it is started. While a flow sends, only the moment from which its rate has held (`base`) and what
//! it then had to send are kept. Bytes that become ready before it runs dry are added without anyone noticing:
//! nothing about the rates changes.

use std::sync::Arc;

use crate::model::cluster::Keeping;
use crate::model::id::LinkId;
use crate::model::units::{Duration, Instant};
use crate::traffic::burst_order::{Burst, Newcomer};
use crate::traffic::{TrafficPolicy, Turn};

use super::class_and_weight::{Ladder, Standing};
use super::jitter::Jitter;
use super::pattern::{NEVER, Pattern, after, scaled};
use super::route::Route;
use super::{Done, Training};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    /// Until the next bytes are ready.
    Computing,
    Sending,
    /// Until the iteration is over; only of iterations after which nothing of interest to others follows.
    Ending,
    Over,
}

/// What a step of a loop does to the links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Nothing,
    Opens,
    Closes,
    Completes,
}

#[derive(Clone, Debug)]
pub(super) struct Running {
    pub(super) key: usize,
    pub(super) traffic: TrafficPolicy,
    ladder: Ladder,
    keeping: Keeping,
    /// Until when it is to be held before its next iteration, and when it was held last.
    turn: Option<Turn>,
    held: u64,
    /// Where its present iteration was to begin, if it keeps a pace.
    pub(super) slot: Option<u64>,
    pattern: Arc<Pattern>,
    route: Route,
    jitter: Option<Box<dyn Jitter>>,
    total: u64,
    started: u64,
    /// Iterations before the present one.
    pub(super) done: u64,
    /// When the present iteration began, or will, once all of the one before is sent; and when that one began.
    pub(super) start: u64,
    pub(super) previous: u64,
    factor: f64,
    pub(super) doing: Doing,
    /// When it does something by itself.
    pub(super) next: u64,
    /// How many bursts of this iteration are counted in `backlog`, or sent.
    pub(super) cursor: usize,
    pub(super) base: u64,
    pub(super) backlog: f64,
    pub(super) rate: f64,
    /// What it sends, and how many bursts that is, until it runs dry at `next`.
    run: f64,
    run_cursor: usize,
    /// Bytes of gradient sent up to `base`, and how much of that the links' books know.
    pub(super) sent: f64,
    pub(super) booked: f64,
    /// What of it is of this iteration.
    pub(super) sent_now: f64,
    /// The class of this iteration's burst, once it has begun, where that depends on the bursts under way then.
    pub(super) class: Option<u8>,
    /// Bytes of gradient a nanosecond, with its links to itself.
    best: f64,
    /// No iteration takes less.
    least: u64,
}

/// A span in which a flow had one rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) bytes: f64,
}

impl Running {
    pub(super) fn new(now: u64, key: usize, training: Training, keeping: Keeping) -> Self {
        let Training { pattern, route, iterations, jitter, traffic } = training;
        let mut running = Self {
            key,
            traffic,
            ladder: Ladder::of(traffic, pattern.bytes(), None, keeping),
            keeping,
            turn: traffic.turn,
            held: now,
            slot: None,
            pattern,
            route,
            jitter,
            total: iterations,
            started: now,
            done: 0,
            start: now,
            previous: now,
            factor: 1.0,
            doing: Doing::Computing,
            next: now,
            cursor: 0,
            base: now,
            backlog: 0.0,
            rate: 0.0,
            run: 0.0,
            run_cursor: 0,
            sent: 0.0,
            booked: 0.0,
            sent_now: 0.0,
            class: None,
            best: 0.0,
            least: 0,
        };
        running.begin(now);
        running.previous = now;
        running
    }

    /// Whether it ever puts anything on a link.
    pub(super) fn sends(&self) -> bool {
        !self.pattern.bursts.is_empty() && !self.route.links().is_empty()
    }

    /// The links it may put something on.
    pub(super) fn links(&self) -> &[(LinkId, f64)] {
        if self.sends() { self.route.links() } else { &[] }
    }

    pub(super) fn peak(&self) -> f64 {
        self.route.peak()
    }

    pub(super) fn is_noisy(&self) -> bool {
        self.jitter.is_some()
    }

    fn ready(&self, burst: usize) -> u64 {
        self.start.saturating_add(scaled(self.pattern.bursts[burst].ready, self.factor))
    }

    /// When the iteration is over whose last byte is sent at `sent`.
    fn end(&self, sent: u64) -> u64 {
        let computed = self.start.saturating_add(scaled(self.pattern.compute, self.factor));
        let end = computed.max(sent).saturating_add(scaled(self.pattern.finish, self.factor));
        end.max(self.start.saturating_add(1))
    }

    /// The beginning of an iteration at its place, or at once if that is over. Whoever is too late for one place waits
    /// for the next.
    fn keep(&mut self, turn: Turn, ended: u64) -> u64 {
        let due = self.slot.map(|slot| slot.saturating_add(turn.period.0));
        let due = due.filter(|due| ended <= due.saturating_add(turn.period.0 / 2));
        let slot = due.unwrap_or_else(|| turn.next(Instant(ended)).0);
        self.slot = Some(slot);
        slot.max(ended)
    }

    fn begin(&mut self, ended: u64) {
        let at = self.hold(ended);
        let at = self.traffic.pace.map_or(at, |pace| self.keep(pace.turn, at));
        self.previous = self.start;
        self.start = at;
        self.sent_now = 0.0;
        self.class = None;
        self.factor = self.jitter.as_mut().map_or(1.0, |jitter| jitter.draw());
        self.cursor = 0;
        if self.sends() {
            (self.doing, self.next) = (Doing::Computing, self.ready(0));
        } else {
            (self.doing, self.next) = (Doing::Ending, self.end(at));
        }
    }

    /// When the iteration begins that could begin now: at once, or at its turn.
    fn hold(&mut self, now: u64) -> u64 {
        let Some(turn) = self.turn.take().or_else(|| self.missed(now)) else { return now };
        self.held = turn.next(Instant(now)).0;
        self.held
    }

    /// The turn that it has drifted away from, if that is watched and it was not held a moment ago.
    fn missed(&self, now: u64) -> Option<Turn> {
        let turn = self.traffic.turn?;
        let watch = turn.watch?;
        let rested = now.saturating_sub(self.held) >= watch.pause.0;
        (rested && turn.distance(Instant(now)) > watch.tolerance).then_some(turn)
    }

    /// Whether what it does next depends on more than where it is in its iteration.
    pub(super) fn is_watched(&self) -> bool {
        self.traffic.turn.is_some_and(|turn| turn.watch.is_some()) || self.traffic.rotation.is_some()
    }

    /// Does what is due at `next`. A flow that opens has no rate yet: see [`Self::flow`].
    pub(super) fn step(&mut self) -> Change {
        match self.doing {
            Doing::Computing => self.open(),
            Doing::Sending => self.close(),
            Doing::Ending => self.pass_on(),
            Doing::Over => Change::Nothing,
        }
    }

    fn open(&mut self) -> Change {
        self.doing = Doing::Sending;
        (self.base, self.rate) = (self.next, 0.0);
        self.backlog = self.pattern.bursts[self.cursor].bytes;
        self.cursor += 1;
        (self.run_cursor, self.next) = (self.cursor, NEVER);
        Change::Opens
    }

    fn close(&mut self) -> Change {
        self.sent += self.run;
        self.sent_now += self.run;
        (self.cursor, self.rate) = (self.run_cursor, 0.0);
        if self.cursor < self.pattern.bursts.len() {
            (self.doing, self.next) = (Doing::Computing, self.ready(self.cursor));
            return Change::Closes;
        }
        let end = self.end(self.next);
        if self.done + 1 < self.total {
            self.done += 1;
            self.begin(end);
        } else {
            (self.doing, self.next) = (Doing::Ending, end);
        }
        Change::Closes
    }

    fn pass_on(&mut self) -> Change {
        let end = self.next;
        self.done += 1;
        if self.done < self.total {
            self.begin(end);
            return Change::Nothing;
        }
        (self.previous, self.start) = (self.start, end);
        (self.doing, self.next) = (Doing::Over, NEVER);
        Change::Completes
    }

    /// From `now` on the flow has this rate. Returns the stretch that has ended.
    pub(super) fn flow(&mut self, now: u64, rate: f64) -> Stretch {
        let moved = self.moved(now);
        while self.cursor < self.run_cursor && self.ready(self.cursor) <= now {
            self.backlog += self.pattern.bursts[self.cursor].bytes;
            self.cursor += 1;
        }
        self.backlog = (self.backlog - moved).max(0.0);
        self.sent += moved;
        self.sent_now += moved;
        let ended = Stretch { from: self.base, to: now, bytes: moved };
        (self.base, self.rate) = (now, rate);
        self.look_ahead();
        ended
    }

    /// What it has sent since `base`.
    pub(super) fn moved(&self, now: u64) -> f64 {
        self.rate * now.saturating_sub(self.base) as f64
    }

    /// The stretch that ends as it runs dry, now.
    pub(super) fn last_stretch(&self) -> Stretch {
        Stretch { from: self.base, to: self.next, bytes: self.run }
    }

    /// Finds when the flow runs dry at its rate: bytes that become ready before then keep it going.
    fn look_ahead(&mut self) {
        (self.run, self.run_cursor) = (self.backlog, self.cursor);
        self.next = after(self.base, self.run, self.rate);
        while self.run_cursor < self.pattern.bursts.len() && self.ready(self.run_cursor) <= self.next {
            self.run += self.pattern.bursts[self.run_cursor].bytes;
            self.run_cursor += 1;
            self.next = after(self.base, self.run, self.rate);
        }
    }

    pub(super) fn change_lane(&mut self, traffic: TrafficPolicy) {
        let is_new = |turn: &Turn| !self.traffic.turn.is_some_and(|before| before.is_with(*turn));
        self.turn = traffic.turn.filter(is_new).or(self.turn);
        self.slot = self.slot.filter(|_| traffic.pace == self.traffic.pace);
        self.traffic = traffic;
    }

    /// How many marks of its traffic policy it has passed, or its class, where that is given to each burst.
    pub(super) fn rung(&self, now: u64) -> u8 {
        self.class.unwrap_or_else(|| self.ladder.rung(self.sent_now + self.moved(now)))
    }

    pub(super) fn standing(&self, rung: u8) -> Standing {
        match self.class {
            Some(class) => Standing { class, weight: self.traffic.weight.max(1) },
            None => self.ladder.standing(rung),
        }
    }

    /// Whether its standing is not the same in every burst.
    pub(super) fn has_marks(&self) -> bool {
        self.ladder.changes() || self.is_ordered()
    }

    /// Whether its class depends on the bursts under way when its own begins.
    fn is_ordered(&self) -> bool {
        self.traffic.rotation.is_some() || self.traffic.follows.orders_bursts()
    }

    /// Whether its burst has begun and has no class yet.
    pub(super) fn is_unordered(&self) -> bool {
        self.class.is_none() && self.is_ordered()
    }

    pub(super) fn newcomer(&self, now: u64) -> Newcomer {
        Newcomer { slot: self.traffic.slot_at(Instant(now)), length: self.takes(self.pattern.bytes()) }
    }

    /// Its burst, if that is under way and has a class.
    pub(super) fn burst(&self, now: u64) -> Option<Burst> {
        let left = self.takes(self.pattern.bytes() - self.sent_now - self.moved(now));
        self.class.map(|class| Burst {
            class,
            at_most: class,
            slot: self.traffic.slot_at(Instant(now)),
            left,
        })
    }

    /// Nanoseconds for so many bytes with its links to itself.
    fn takes(&self, bytes: f64) -> f64 {
        if self.best > 0.0 { bytes.max(0.0) / self.best } else { 0.0 }
    }

    /// When it passes the next mark, if it is still sending then. Never before `now`, and not a moment too early.
    pub(super) fn passes(&self, rung: u8, now: u64) -> u64 {
        let Some(mark) = self.ladder.next_mark(rung).filter(|_| self.rate > 0.0) else { return NEVER };
        let takes = ((mark - self.sent_now) / self.rate).max(0.0).ceil();
        self.base.saturating_add(takes as u64).max(now + 1)
    }

    /// Tells it the best rate it can ever get, from which follow the marks of its traffic policy and how soon it can be over.
    pub(super) fn expect(&mut self, best: Option<f64>) {
        self.ladder = Ladder::of(self.traffic, self.pattern.bytes(), best, self.keeping);
        // Each stretch of a burst is rounded to a nanosecond by itself, so a real iteration may be a little shorter.
        let rounding = self.pattern.bursts.len() as u64 + 2;
        let best = best.filter(|rate| *rate > 0.0);
        self.best = best.unwrap_or(0.0);
        self.least = self
            .pattern
            .time(best, self.jitter.as_ref().map_or(1.0, |jitter| jitter.least()))
            .saturating_sub(rounding);
    }

    /// It is not over before this.
    pub(super) fn earliest_end(&self) -> u64 {
        self.start.saturating_add((self.total - self.done).saturating_sub(1).saturating_mul(self.least))
    }

    /// How many more times a repetition in which it does `each` iterations can be skipped without its last one.
    pub(super) fn skippable(&self, each: u64) -> u64 {
        (self.total - 1 - self.done).checked_div(each).unwrap_or(u64::MAX)
    }

    /// Puts it later by `time` and so many whole iterations further.
    pub(super) fn skip(&mut self, time: u64, iterations: u64) {
        self.done += iterations;
        if self.sends() {
            self.sent += iterations as f64 * self.pattern.bytes();
        }
        for moment in [&mut self.start, &mut self.previous, &mut self.base] {
            *moment = moment.saturating_add(time);
        }
        self.next = self.next.saturating_add(time);
        self.slot = self.slot.map(|slot| slot.saturating_add(time));
    }

    /// Whole iterations by `now`, and how long each took on average.
    pub(super) fn result(&self, now: u64) -> Done {
        let (iterations, end) = if self.start > now {
            (self.done.saturating_sub(1), self.previous)
        } else {
            (self.done, self.start)
        };
        let mean = end.saturating_sub(self.started).checked_div(iterations).map(Duration);
        Done { iterations, mean }
    }
}
