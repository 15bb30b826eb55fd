//! Steady states: without jitter, a component often returns to an earlier state, and from then on its behaviour
//! repeats.
//!
//! At each iteration of the first job, the joint state of all jobs is compared with one stored earlier: each job's
//! phase, when its iteration began and since when its rate is constant, both relative to now, and its backlog, to the
//! last bit. The future of a component follows from this state alone, because times are whole numbers of which only
//! differences matter. When the states are equal, as many whole repetitions are skipped as fit before the goal and
//! before any job's last iteration, with the same result as event by event.
//!
//! A state that is merely close does not count as equal: on overloaded links, small differences between jobs may
//! double with every iteration, and an apparent steady state is none.
//!
//! The stored state is replaced after 1, 2, 4, 8 … iterations (Brent's cycle detection), so that a repetition of any
//! length is found, in time proportional to the iterations until the component settles plus the length of the
//! repetition.

use super::pattern::NEVER;
use super::running::{LoopPhase, RunningLoop};

/// Cycle detection over the joint state of a component's jobs.
#[derive(Debug, Default)]
pub(super) struct CycleDetector {
    stored_jobs: Vec<StoredJob>,
    stored_at: u64,
    /// Iterations of the first job since the state was stored, and the number after which to store a new one.
    iterations_since: u64,
    iterations_until_store: u64,
}

/// Stored state of one job.
#[derive(Clone, Copy, Debug)]
struct StoredJob {
    state: LoopState,
    done: u64,
}

/// State of a loop with all times relative to now, and numbers as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LoopState {
    phase: LoopPhase,
    cursor: usize,
    /// Start of the iteration and of the present rate, relative to now.
    start: u64,
    base: u64,
    backlog: u64,
    rate: u64,
    /// Bytes sent in this iteration up to the base.
    sent: u64,
    /// Planned start of the paced iteration, relative to now.
    slot: Option<u64>,
    /// Class of the burst if the policy orders bursts.
    class: Option<u8>,
}

impl LoopState {
    fn of(job: &RunningLoop, now: u64) -> Self {
        let sending = job.phase == LoopPhase::Sending;
        let when_sending = |value: u64| if sending { value } else { 0 };
        Self {
            phase: job.phase,
            cursor: job.cursor,
            start: job.start.wrapping_sub(now),
            base: when_sending(job.base.wrapping_sub(now)),
            backlog: when_sending(job.backlog.to_bits()),
            rate: when_sending(job.rate.to_bits()),
            sent: job.sent_now.to_bits(),
            slot: job.slot.map(|slot| slot.wrapping_sub(now)),
            class: job.class,
        }
    }
}

impl CycleDetector {
    /// Called at each iteration of the first job. Skips whole repetitions up to `goal`; returns the skipped time.
    pub(super) fn skip_repetitions_until(&mut self, jobs: &mut [RunningLoop], now: u64, goal: u64) -> u64 {
        self.iterations_since += 1;
        if self.is_stored_state(jobs, now) {
            let skipped = self.skip_repetitions(jobs, now, goal);
            self.store_state(jobs, now + skipped);
            return skipped;
        }
        if self.iterations_since >= self.iterations_until_store {
            self.iterations_until_store = (2 * self.iterations_until_store).max(1);
            self.store_state(jobs, now);
        }
        0
    }

    fn is_stored_state(&self, jobs: &[RunningLoop], now: u64) -> bool {
        let same = |(stored, job): (&StoredJob, &RunningLoop)| stored.state == LoopState::of(job, now);
        !self.stored_jobs.is_empty() && now > self.stored_at && self.stored_jobs.iter().zip(jobs).all(same)
    }

    fn store_state(&mut self, jobs: &[RunningLoop], now: u64) {
        let stored = |job: &RunningLoop| StoredJob { state: LoopState::of(job, now), done: job.done };
        self.stored_jobs.clear();
        self.stored_jobs.extend(jobs.iter().map(stored));
        (self.stored_at, self.iterations_since) = (now, 0);
    }

    /// Skips as many repetitions as fit; returns the skipped time.
    fn skip_repetitions(&self, jobs: &mut [RunningLoop], now: u64, goal: u64) -> u64 {
        let period = now - self.stored_at;
        let in_time = goal.min(NEVER - 1).saturating_sub(now) / period;
        let each =
            |(stored, job): (&StoredJob, &RunningLoop)| job.skippable_repetitions(job.done - stored.done);
        let times = self.stored_jobs.iter().zip(&*jobs).map(each).fold(in_time, u64::min);
        if times == 0 {
            return 0;
        }
        for (stored, job) in self.stored_jobs.iter().zip(jobs) {
            job.skip_iterations(times * period, times * (job.done - stored.done));
        }
        times * period
    }
}
