//! One running training loop: its phase within the iteration and the state of its flow.
//!
//! All times are whole nanoseconds, and every span is the difference of two times, so a loop behaves the same
//! whenever it starts. While a flow sends, only the time since which its rate is constant (`base`) and the bytes it
//! had to send at that time (`backlog`) are stored. Bytes that become ready before the flow closes are added without
//! an event, because they change no rate.

use std::sync::Arc;

use crate::model::cluster::Keeping;
use crate::model::id::LinkId;
use crate::model::units::{Duration, Instant};
use crate::traffic::burst_order::{Burst, Newcomer};
use crate::traffic::{TrafficPolicy, Turn};

use super::class_and_weight::{ClassAndWeight, Thresholds};
use super::jitter::Jitter;
use super::pattern::{NEVER, Pattern, after, scaled};
use super::route::Route;
use super::{LoopProgress, Training};

/// Phase of a loop within its iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LoopPhase {
    /// Until the next bytes are ready.
    Computing,
    Sending,
    /// Until the iteration ends; only in iterations that send nothing and in the last one.
    Finishing,
    Completed,
}

/// Effect of an event of a loop on the links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FlowChange {
    None,
    Opened,
    Closed,
    LoopCompleted,
}

/// State of a running loop.
///
/// One struct of 30 fields: an event of the loop reads its fixed description, its position in the iteration and its
/// flow together, and the component's inner loop keeps all of it in adjacent memory. The groups in order: description
/// and traffic policy, phase offsets, progress, flow, bounds.
#[derive(Clone, Debug)]
pub(super) struct RunningLoop {
    pub(super) key: usize,
    pub(super) traffic: TrafficPolicy,
    thresholds: Thresholds,
    keeping: Keeping,
    /// Phase offset to apply before the next iteration, and the time at which the last one was applied.
    turn: Option<Turn>,
    held_at: u64,
    /// Planned start of the present iteration if the policy paces the job.
    pub(super) slot: Option<u64>,
    pattern: Arc<Pattern>,
    route: Route,
    jitter: Option<Box<dyn Jitter>>,
    total: u64,
    started: u64,
    /// Iterations before the present one.
    pub(super) done: u64,
    /// Start of the present iteration, possibly in the future, and start of the one before.
    pub(super) start: u64,
    pub(super) previous: u64,
    factor: f64,
    pub(super) phase: LoopPhase,
    /// Time of the loop's next event.
    pub(super) next: u64,
    /// Number of this iteration's bursts that are in `backlog` or sent.
    pub(super) cursor: usize,
    pub(super) base: u64,
    pub(super) backlog: f64,
    pub(super) rate: f64,
    /// Bytes, and index behind the last burst, that the flow sends until it closes at `next`.
    run_bytes: f64,
    run_cursor: usize,
    /// Bytes of gradient sent up to `base`, and the part of them that the link totals include.
    pub(super) sent: f64,
    pub(super) in_totals: f64,
    /// Bytes sent up to `base` in this iteration.
    pub(super) sent_now: f64,
    /// Class of this iteration's burst after it has begun, if the policy orders bursts.
    pub(super) class: Option<u8>,
    /// Bytes of gradient per nanosecond without contention.
    best: f64,
    /// Lower bound of an iteration's duration.
    shortest_iteration: u64,
}

/// An interval in which a flow had one rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct RateInterval {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) bytes: f64,
}

impl RunningLoop {
    pub(super) fn new(now: u64, key: usize, training: Training, keeping: Keeping) -> Self {
        let Training { pattern, route, iterations, jitter, traffic } = training;
        let mut running = Self {
            key,
            traffic,
            thresholds: Thresholds::of(traffic, pattern.bytes(), None, keeping),
            keeping,
            turn: traffic.turn,
            held_at: now,
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
            phase: LoopPhase::Computing,
            next: now,
            cursor: 0,
            base: now,
            backlog: 0.0,
            rate: 0.0,
            run_bytes: 0.0,
            run_cursor: 0,
            sent: 0.0,
            in_totals: 0.0,
            sent_now: 0.0,
            class: None,
            best: 0.0,
            shortest_iteration: 0,
        };
        running.begin_iteration(now);
        running.previous = now;
        running
    }

    /// Whether the loop ever sends on a link.
    pub(super) fn sends(&self) -> bool {
        !self.pattern.bursts.is_empty() && !self.route.links().is_empty()
    }

    /// Links on which the loop sends.
    pub(super) fn links(&self) -> &[(LinkId, f64)] {
        if self.sends() { self.route.links() } else { &[] }
    }

    pub(super) fn peak(&self) -> f64 {
        self.route.peak()
    }

    pub(super) fn has_jitter(&self) -> bool {
        self.jitter.is_some()
    }

    fn ready(&self, burst: usize) -> u64 {
        self.start.saturating_add(scaled(self.pattern.bursts[burst].ready, self.factor))
    }

    /// End of the iteration whose last byte is sent at `sent`.
    fn end_after(&self, sent: u64) -> u64 {
        let computed = self.start.saturating_add(scaled(self.pattern.compute, self.factor));
        let end = computed.max(sent).saturating_add(scaled(self.pattern.finish, self.factor));
        end.max(self.start.saturating_add(1))
    }

    /// Start of a paced iteration: at its slot, or at once if the slot is over. A job that misses its slot by more
    /// than half a period gets the next slot of its phase offset.
    fn apply_pace(&mut self, turn: Turn, ended: u64) -> u64 {
        let due = self.slot.map(|slot| slot.saturating_add(turn.period.0));
        let due = due.filter(|due| ended <= due.saturating_add(turn.period.0 / 2));
        let slot = due.unwrap_or_else(|| turn.next(Instant(ended)).0);
        self.slot = Some(slot);
        slot.max(ended)
    }

    /// Starts the next iteration at or after `ended`.
    fn begin_iteration(&mut self, ended: u64) {
        let at = self.apply_phase_offset(ended);
        let at = self.traffic.pace.map_or(at, |pace| self.apply_pace(pace.turn, at));
        self.previous = self.start;
        self.start = at;
        self.sent_now = 0.0;
        self.class = None;
        self.factor = self.jitter.as_mut().map_or(1.0, |jitter| jitter.draw());
        self.cursor = 0;
        if self.sends() {
            (self.phase, self.next) = (LoopPhase::Computing, self.ready(0));
        } else {
            (self.phase, self.next) = (LoopPhase::Finishing, self.end_after(at));
        }
    }

    /// Start of an iteration that could begin at `now`: at once, or delayed to the phase offset.
    fn apply_phase_offset(&mut self, now: u64) -> u64 {
        let Some(turn) = self.turn.take().or_else(|| self.drifted_from(now)) else { return now };
        self.held_at = turn.next(Instant(now)).0;
        self.held_at
    }

    /// Phase offset from which the loop has drifted, if the policy has a drift watch and the pause since the last
    /// delay is over.
    fn drifted_from(&self, now: u64) -> Option<Turn> {
        let turn = self.traffic.turn?;
        let watch = turn.watch?;
        let rested = now.saturating_sub(self.held_at) >= watch.pause.0;
        (rested && turn.distance(Instant(now)) > watch.tolerance).then_some(turn)
    }

    /// Whether the next event depends on more than the position within the iteration: on the absolute time.
    pub(super) fn depends_on_time(&self) -> bool {
        self.traffic.turn.is_some_and(|turn| turn.watch.is_some()) || self.traffic.rotation.is_some()
    }

    /// Processes the event at `next`. A flow that opens has no rate yet: see [`Self::set_rate`].
    pub(super) fn process_event(&mut self) -> FlowChange {
        match self.phase {
            LoopPhase::Computing => self.open_flow(),
            LoopPhase::Sending => self.close_flow(),
            LoopPhase::Finishing => self.end_iteration(),
            LoopPhase::Completed => FlowChange::None,
        }
    }

    fn open_flow(&mut self) -> FlowChange {
        self.phase = LoopPhase::Sending;
        (self.base, self.rate) = (self.next, 0.0);
        self.backlog = self.pattern.bursts[self.cursor].bytes;
        self.cursor += 1;
        (self.run_cursor, self.next) = (self.cursor, NEVER);
        FlowChange::Opened
    }

    fn close_flow(&mut self) -> FlowChange {
        self.sent += self.run_bytes;
        self.sent_now += self.run_bytes;
        (self.cursor, self.rate) = (self.run_cursor, 0.0);
        if self.cursor < self.pattern.bursts.len() {
            (self.phase, self.next) = (LoopPhase::Computing, self.ready(self.cursor));
            return FlowChange::Closed;
        }
        let end = self.end_after(self.next);
        if self.done + 1 < self.total {
            self.done += 1;
            self.begin_iteration(end);
        } else {
            (self.phase, self.next) = (LoopPhase::Finishing, end);
        }
        FlowChange::Closed
    }

    fn end_iteration(&mut self) -> FlowChange {
        let end = self.next;
        self.done += 1;
        if self.done < self.total {
            self.begin_iteration(end);
            return FlowChange::None;
        }
        (self.previous, self.start) = (self.start, end);
        (self.phase, self.next) = (LoopPhase::Completed, NEVER);
        FlowChange::LoopCompleted
    }

    /// Sets the rate of the flow from `now` on. Returns the interval that ended.
    pub(super) fn set_rate(&mut self, now: u64, rate: f64) -> RateInterval {
        let moved = self.sent_since_base(now);
        while self.cursor < self.run_cursor && self.ready(self.cursor) <= now {
            self.backlog += self.pattern.bursts[self.cursor].bytes;
            self.cursor += 1;
        }
        self.backlog = (self.backlog - moved).max(0.0);
        self.sent += moved;
        self.sent_now += moved;
        let ended = RateInterval { from: self.base, to: now, bytes: moved };
        (self.base, self.rate) = (now, rate);
        self.find_close();
        ended
    }

    /// Bytes sent since `base`.
    pub(super) fn sent_since_base(&self, now: u64) -> f64 {
        self.rate * now.saturating_sub(self.base) as f64
    }

    /// The interval that ends when the flow closes, now.
    pub(super) fn last_interval(&self) -> RateInterval {
        RateInterval { from: self.base, to: self.next, bytes: self.run_bytes }
    }

    /// Computes when the flow closes at its rate: bytes that become ready before then keep it open.
    fn find_close(&mut self) {
        (self.run_bytes, self.run_cursor) = (self.backlog, self.cursor);
        self.next = after(self.base, self.run_bytes, self.rate);
        while self.run_cursor < self.pattern.bursts.len() && self.ready(self.run_cursor) <= self.next {
            self.run_bytes += self.pattern.bursts[self.run_cursor].bytes;
            self.run_cursor += 1;
            self.next = after(self.base, self.run_bytes, self.rate);
        }
    }

    /// Replaces the traffic policy. A phase offset that the loop already follows delays it no second time.
    pub(super) fn set_traffic_policy(&mut self, traffic: TrafficPolicy) {
        let is_new = |turn: &Turn| !self.traffic.turn.is_some_and(|before| before.is_with(*turn));
        self.turn = traffic.turn.filter(is_new).or(self.turn);
        self.slot = self.slot.filter(|_| traffic.pace == self.traffic.pace);
        self.traffic = traffic;
    }

    /// Number of thresholds that the flow has passed, or the class of its burst if the policy orders bursts.
    pub(super) fn passed(&self, now: u64) -> u8 {
        self.class.unwrap_or_else(|| self.thresholds.passed(self.sent_now + self.sent_since_base(now)))
    }

    pub(super) fn class_and_weight(&self, passed: u8) -> ClassAndWeight {
        match self.class {
            Some(class) => ClassAndWeight { class, weight: self.traffic.weight.max(1) },
            None => self.thresholds.class_and_weight(passed),
        }
    }

    /// Whether class or weight may differ between or within bursts.
    pub(super) fn has_thresholds(&self) -> bool {
        self.thresholds.vary() || self.orders_bursts_by_class()
    }

    /// Whether the class depends on the bursts in progress when the burst begins.
    fn orders_bursts_by_class(&self) -> bool {
        self.traffic.rotation.is_some() || self.traffic.follows.orders_bursts()
    }

    /// Whether a class must be assigned to the burst.
    pub(super) fn needs_class(&self) -> bool {
        self.class.is_none() && self.orders_bursts_by_class()
    }

    /// Description of the burst that begins at `now`, for the service order.
    pub(super) fn new_burst(&self, now: u64) -> Newcomer {
        Newcomer { slot: self.traffic.slot_at(Instant(now)), length: self.send_time(self.pattern.bytes()) }
    }

    /// The burst if it is in progress and has a class.
    pub(super) fn burst(&self, now: u64) -> Option<Burst> {
        let left = self.send_time(self.pattern.bytes() - self.sent_now - self.sent_since_base(now));
        self.class.map(|class| Burst {
            class,
            at_most: class,
            slot: self.traffic.slot_at(Instant(now)),
            left,
        })
    }

    /// Nanoseconds to send `bytes` bytes without contention.
    fn send_time(&self, bytes: f64) -> f64 {
        if self.best > 0.0 { bytes.max(0.0) / self.best } else { 0.0 }
    }

    /// Time at which the flow passes its next threshold if it still sends then. Always after `now`, and rounded up to
    /// the threshold.
    pub(super) fn threshold_at(&self, passed: u8, now: u64) -> u64 {
        let Some(threshold) = self.thresholds.next_threshold(passed).filter(|_| self.rate > 0.0) else {
            return NEVER;
        };
        let send_time = ((threshold - self.sent_now) / self.rate).max(0.0).ceil();
        self.base.saturating_add(send_time as u64).max(now + 1)
    }

    /// Sets the rate without contention, from which follow the thresholds of the traffic policy and the shortest
    /// iteration.
    pub(super) fn set_best_rate(&mut self, best: Option<f64>) {
        self.thresholds = Thresholds::of(self.traffic, self.pattern.bytes(), best, self.keeping);
        // Each interval of a burst is rounded to a nanosecond separately, so a real iteration may be a little
        // shorter.
        let rounding = self.pattern.bursts.len() as u64 + 2;
        let best = best.filter(|rate| *rate > 0.0);
        self.best = best.unwrap_or(0.0);
        self.shortest_iteration = self
            .pattern
            .time(best, self.jitter.as_ref().map_or(1.0, |jitter| jitter.least()))
            .saturating_sub(rounding);
    }

    /// Lower bound of the completion time.
    pub(super) fn earliest_end(&self) -> u64 {
        self.start.saturating_add(
            (self.total - self.done).saturating_sub(1).saturating_mul(self.shortest_iteration),
        )
    }

    /// Number of repetitions of `each` iterations that can be skipped before the last iteration.
    pub(super) fn skippable_repetitions(&self, each: u64) -> u64 {
        (self.total - 1 - self.done).checked_div(each).unwrap_or(u64::MAX)
    }

    /// Shifts the state by `time` and adds whole iterations.
    pub(super) fn skip_iterations(&mut self, time: u64, iterations: u64) {
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

    /// Progress at `now`.
    pub(super) fn progress(&self, now: u64) -> LoopProgress {
        let (iterations, end) = if self.start > now {
            (self.done.saturating_sub(1), self.previous)
        } else {
            (self.done, self.start)
        };
        let mean = end.saturating_sub(self.started).checked_div(iterations).map(Duration);
        LoopProgress { iterations, mean }
    }
}
