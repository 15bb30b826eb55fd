//! Steady states: without noise, a component often comes back to where it was, and then everything repeats.
//!
//! Each time the first job begins an iteration, the joint state of all jobs is compared with one remembered from
//! before: what each is doing, when its iteration began and since when its rate has held, both relative to now, and
//! its backlog, to the last bit. What a component does next follows from that state alone, since times are whole
//! numbers of which only differences are used. So where it is the same, as many whole repetitions are skipped as fit
//! before the goal and before any job's last iteration, and what comes after is what would have come.
//!
//! A state that only comes near is not taken for the same: where links are overloaded, small differences between jobs
//! may double with every iteration, and what looks like a steady state is none.
//!
//! The state to compare with is replaced after 1, 2, 4, 8 … iterations, so that a repetition of any length is found,
//! however long it takes to settle, in a time in proportion.

use super::pattern::NEVER;
use super::running::{Doing, Running};

#[derive(Debug, Default)]
pub(super) struct Repeat {
    remembered: Vec<Mark>,
    at: u64,
    /// Iterations of the first job since then, and at how many of them to remember anew.
    since: u64,
    patience: u64,
}

/// Where one job stands.
#[derive(Clone, Copy, Debug)]
struct Mark {
    state: State,
    done: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    doing: Doing,
    cursor: usize,
    /// The beginning of the iteration and the base of the rate, relative to now.
    start: u64,
    base: u64,
    backlog: u64,
    rate: u64,
    /// In this iteration, up to the base.
    sent: u64,
    /// Where its iteration was to begin, if it keeps a pace, relative to now.
    slot: Option<u64>,
    /// The class of its burst, if that depends on the bursts under way when it began.
    class: Option<u8>,
}

impl State {
    fn of(job: &Running, now: u64) -> Self {
        let sending = job.doing == Doing::Sending;
        let when_sending = |value: u64| if sending { value } else { 0 };
        Self {
            doing: job.doing,
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

impl Repeat {
    /// To be told at each iteration of the first job. Skips what repeats, up to `goal`; returns by how much time.
    pub(super) fn look(&mut self, jobs: &mut [Running], now: u64, goal: u64) -> u64 {
        self.since += 1;
        if self.is_same(jobs, now) {
            let skipped = self.skip(jobs, now, goal);
            self.remember(jobs, now + skipped);
            return skipped;
        }
        if self.since >= self.patience {
            self.patience = (2 * self.patience).max(1);
            self.remember(jobs, now);
        }
        0
    }

    fn is_same(&self, jobs: &[Running], now: u64) -> bool {
        let same = |(mark, job): (&Mark, &Running)| mark.state == State::of(job, now);
        !self.remembered.is_empty() && now > self.at && self.remembered.iter().zip(jobs).all(same)
    }

    fn remember(&mut self, jobs: &[Running], now: u64) {
        let mark = |job: &Running| Mark { state: State::of(job, now), done: job.done };
        self.remembered.clear();
        self.remembered.extend(jobs.iter().map(mark));
        (self.at, self.since) = (now, 0);
    }

    fn skip(&self, jobs: &mut [Running], now: u64, goal: u64) -> u64 {
        let period = now - self.at;
        let in_time = goal.min(NEVER - 1).saturating_sub(now) / period;
        let each = |(mark, job): (&Mark, &Running)| job.skippable(job.done - mark.done);
        let times = self.remembered.iter().zip(&*jobs).map(each).fold(in_time, u64::min);
        if times == 0 {
            return 0;
        }
        for (mark, job) in self.remembered.iter().zip(jobs) {
            job.skip(times * period, times * (job.done - mark.done));
        }
        times * period
    }
}
