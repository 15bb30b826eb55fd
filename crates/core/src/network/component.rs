//! Jobs that share links, directly or through other jobs. A component is independent of all other components.
//!
//! A component keeps its own clock and advances only when a caller needs its state. Four kinds of events occur in it:
//! a flow opens, a flow closes, a flow passes a threshold of its traffic policy, a job completes. Each change of the
//! set of sending flows leads to new rates, but a flow whose rate is unchanged is not touched: its end is computed
//! once, from its beginning, and does not depend on how often a caller reads the state. A component with a single job
//! has a simpler loop without rate sharing.

use crate::model::id::LinkId;
use crate::model::units::Share;

use crate::traffic::burst_order::class_of_first;

use super::pattern::NEVER;
use super::rate_cache::{CacheKey, KeyContents, RateCache};
use super::running::{FlowChange, LoopPhase, RunningLoop};
use super::sharing::RateSolver;
use super::steady_state::CycleDetector;
use super::totals::LinkTotals;

/// Jobs of one component, their next events and the solver for their rates.
#[derive(Debug)]
pub(super) struct Component {
    /// In the order of their keys.
    pub(super) jobs: Vec<RunningLoop>,
    /// Time of the next event of each job.
    next: Vec<u64>,
    /// Time at which each job passes a threshold of its traffic policy; empty if no job has thresholds.
    threshold_at: Vec<u64>,
    /// Bit set of the flows that are sending.
    sending: Vec<u64>,
    solver: RateSolver,
    cache: Option<RateCache>,
    senders: Vec<u32>,
    /// `None` with jitter, drift watches or rotations: such a component never returns to an earlier state.
    cycle_detector: Option<CycleDetector>,
}

impl Component {
    /// Creates a component of jobs in their state at `now`, in the order of their keys.
    pub(super) fn new(
        mut jobs: Vec<RunningLoop>,
        now: u64,
        floor: Share,
        capacity: impl Fn(LinkId) -> f64,
        totals: &mut LinkTotals,
    ) -> Self {
        let mut solver = RateSolver::new(&jobs, floor, capacity);
        for (index, job) in jobs.iter_mut().enumerate() {
            job.set_best_rate(solver.rate_without_contention(index));
            solver.set_class(index, job.class_and_weight(0));
        }
        let count = jobs.len();
        let contents = if jobs.iter().any(RunningLoop::has_thresholds) {
            KeyContents::SendersAndThresholds
        } else {
            KeyContents::Senders
        };
        let mut component = Self {
            next: jobs.iter().map(|job| job.next).collect(),
            threshold_at: if contents == KeyContents::SendersAndThresholds {
                vec![NEVER; count]
            } else {
                Vec::new()
            },
            sending: vec![0; count.div_ceil(64)],
            solver,
            cache: RateCache::new(count, contents),
            senders: Vec::with_capacity(count),
            cycle_detector: (!jobs.iter().any(|job| job.has_jitter() || job.depends_on_time()))
                .then(CycleDetector::default),
            jobs,
        };
        for index in 0..count {
            if component.jobs[index].phase == LoopPhase::Sending {
                component.toggle_sending(index);
            }
        }
        component.update_rates(now, totals);
        component
    }

    pub(super) fn links(&self) -> &[LinkId] {
        self.solver.links()
    }

    /// Time at which the component must advance: at the latest when the first job completes, and never without an
    /// event.
    pub(super) fn wake(&self) -> u64 {
        let next = self.next_event();
        if next == NEVER {
            return NEVER;
        }
        let end = self.jobs.iter().map(RunningLoop::earliest_end).min().unwrap_or(NEVER);
        next.max(end)
    }

    fn next_event(&self) -> u64 {
        self.next.iter().chain(&self.threshold_at).copied().min().unwrap_or(NEVER)
    }

    /// Processes all events up to `goal`, or up to the first completion of a job; returns the time of that
    /// completion.
    pub(super) fn advance(&mut self, goal: u64, totals: &mut LinkTotals) -> Option<u64> {
        if self.jobs.len() == 1 {
            return self.advance_alone(goal, totals);
        }
        loop {
            let now = self.next_event();
            if now > goal || now == NEVER {
                return None;
            }
            let iteration = self.jobs[0].done;
            let completes = self.process_events(now, totals);
            if completes {
                return Some(now);
            }
            if self.jobs[0].done > iteration {
                self.skip_repetitions(now, goal, totals);
            }
        }
    }

    /// Processes the events at `now`, and computes new rates if a flow opened, closed or passed a threshold. Returns
    /// whether a job completed.
    fn process_events(&mut self, now: u64, totals: &mut LinkTotals) -> bool {
        let (mut changed, mut completes) = (self.threshold_at.contains(&now), false);
        for index in 0..self.jobs.len() {
            while self.next[index] == now {
                let change = process_event(&mut self.jobs[index], totals);
                self.next[index] = self.jobs[index].next;
                changed |= matches!(change, FlowChange::Opened | FlowChange::Closed);
                completes |= change == FlowChange::LoopCompleted;
                if matches!(change, FlowChange::Opened | FlowChange::Closed) {
                    self.toggle_sending(index);
                }
            }
        }
        if changed {
            self.update_rates(now, totals);
        }
        completes
    }

    /// [`Self::advance`] for a single job: its rate is constant while it sends.
    fn advance_alone(&mut self, goal: u64, totals: &mut LinkTotals) -> Option<u64> {
        let rate = if self.jobs[0].sends() { self.solver.rates(&[0])[0] } else { 0.0 };
        while self.jobs[0].next <= goal && self.jobs[0].next != NEVER {
            let job = &mut self.jobs[0];
            let (now, iteration) = (job.next, job.done);
            match process_event(job, totals) {
                FlowChange::Opened => _ = job.set_rate(now, rate),
                FlowChange::LoopCompleted => {
                    self.next[0] = NEVER;
                    return Some(now);
                }
                FlowChange::None | FlowChange::Closed => {}
            }
            if self.jobs[0].done > iteration {
                self.skip_repetitions(now, goal, totals);
            }
        }
        self.next[0] = self.jobs[0].next;
        None
    }

    fn skip_repetitions(&mut self, now: u64, goal: u64, totals: &LinkTotals) {
        let Some(cycle_detector) = self.cycle_detector.as_mut().filter(|_| !totals.is_recording()) else {
            return;
        };
        let skipped = cycle_detector.skip_repetitions_until(&mut self.jobs, now, goal);
        if skipped > 0 {
            for (next, job) in self.next.iter_mut().zip(&self.jobs) {
                *next = job.next;
            }
            for threshold_at in self.threshold_at.iter_mut() {
                *threshold_at = threshold_at.saturating_add(skipped);
            }
        }
    }

    /// Toggles the bit of a flow that opens or closes.
    fn toggle_sending(&mut self, index: usize) {
        self.sending[index / 64] ^= 1 << (index % 64);
    }

    /// Computes the rate of every flow that is sending.
    fn update_rates(&mut self, now: u64, totals: &mut LinkTotals) {
        self.senders.clear();
        for (word, bits) in self.sending.iter().enumerate() {
            let mut bits = *bits;
            while bits != 0 {
                self.senders.push(word as u32 * 64 + bits.trailing_zeros());
                bits &= bits - 1;
            }
        }
        self.threshold_at.fill(NEVER);
        if self.senders.is_empty() {
            return;
        }
        let key = self.set_classes(now);
        let (senders, solver) = (&self.senders, &mut self.solver);
        let rates = match &mut self.cache {
            Some(cache) => cache.rates(key, |known| known.copy_from_slice(solver.rates(senders))),
            None => solver.rates(senders),
        };
        for index in senders.iter().map(|index| *index as usize) {
            let job = &mut self.jobs[index];
            if job.rate != rates[index] || job.next == NEVER {
                let ended = job.set_rate(now, rates[index]);
                totals.record(job, ended);
                self.next[index] = job.next;
            }
        }
        self.schedule_thresholds(now);
    }

    /// Passes the class and weight of every sending flow to the solver, and returns the cache key. A flow that sends
    /// alone gets the full rate whatever its class is.
    fn set_classes(&mut self, now: u64) -> CacheKey {
        let mut key = CacheKey { set: self.sending[0], passed: 0 };
        self.class_new_bursts(now);
        if self.threshold_at.is_empty() || self.senders.len() == 1 {
            return key;
        }
        for index in &self.senders {
            let job = &self.jobs[*index as usize];
            let passed = job.passed(now);
            self.solver.set_class(*index as usize, job.class_and_weight(passed));
            if self.cache.is_some() {
                key.add_passed(*index, passed);
            }
        }
        key
    }

    /// Assigns a class to each sender whose burst has just begun and whose class depends on the bursts in progress.
    fn class_new_bursts(&mut self, now: u64) {
        self.promote_first_bursts(now);
        for index in 0..self.senders.len() {
            let sender = self.senders[index] as usize;
            if self.jobs[sender].needs_class() {
                let class = self.class_among(sender, now);
                self.jobs[sender].class = Some(class);
            }
        }
    }

    /// Raises the class of the bursts that are served first on their links.
    fn promote_first_bursts(&mut self, now: u64) {
        for index in 0..self.jobs.len() {
            let Some(own) = self.jobs[index].burst(now) else { continue };
            let others = self.jobs.iter().enumerate().filter(|(other, _)| *other != index);
            let met = others.filter(|(other, _)| self.solver.share_link(*other, index));
            let class = class_of_first(&own, met.filter_map(|(_, job)| job.burst(now)));
            self.jobs[index].class = Some(class);
        }
    }

    /// Class of a job's burst given the bursts in progress on its links.
    fn class_among(&self, index: usize, now: u64) -> u8 {
        let others = self.jobs.iter().enumerate().filter(|(other, _)| *other != index);
        let under_way = others.filter_map(|(other, job)| {
            let burst = job.burst(now)?;
            self.solver.share_link(other, index).then_some(burst)
        });
        self.jobs[index].new_burst(now).class(under_way)
    }

    /// Computes when each sending flow passes its next threshold at its present rate.
    fn schedule_thresholds(&mut self, now: u64) {
        if self.threshold_at.is_empty() || self.senders.len() == 1 {
            return;
        }
        for index in self.senders.iter().map(|index| *index as usize) {
            let job = &self.jobs[index];
            self.threshold_at[index] = job.threshold_at(job.passed(now), now);
        }
    }
}

/// Processes one event of one job and records its traffic.
fn process_event(job: &mut RunningLoop, totals: &mut LinkTotals) -> FlowChange {
    totals.events += 1;
    if job.phase == LoopPhase::Sending {
        totals.record(job, job.last_interval());
    }
    job.process_event()
}
