//! Jobs that share links, directly or by way of others: what one does concerns them all, and nobody else.
//!
//! A component keeps its own clock and is moved on only when somebody needs to know. Inside, only four things
//! happen: a flow opens, runs dry, passes a mark of its traffic policy, or a job is over. With each change of the flows that are sending come new
//! rates, but a flow whose rate stays as it was is not touched: its end is worked out once, from its beginning, and
//! does not depend on how often somebody looked. A job that is alone is its own little loop.

use crate::model::id::LinkId;
use crate::model::units::Share;

use crate::traffic::burst_order::class_of_first;

use super::pattern::NEVER;
use super::rate_cache::{Marks, Meeting, Memo};
use super::running::{Change, Doing, Running};
use super::sharing::Sharer;
use super::steady_state::Repeat;
use super::totals::Ledger;

#[derive(Debug)]
pub(super) struct Component {
    /// In the order of their keys.
    pub(super) jobs: Vec<Running>,
    /// When each does something next.
    next: Vec<u64>,
    /// When each passes a mark of its traffic policy; empty where nobody has any.
    passes: Vec<u64>,
    /// The flows that are sending, one bit each.
    sending: Vec<u64>,
    sharer: Sharer,
    memo: Option<Memo>,
    senders: Vec<u32>,
    /// Unless there is noise, or somebody keeps to the clock: then nothing ever repeats.
    repeat: Option<Repeat>,
}

impl Component {
    /// These jobs as they stand at `now`, in the order of their keys.
    pub(super) fn new(
        mut jobs: Vec<Running>,
        now: u64,
        floor: Share,
        capacity: impl Fn(LinkId) -> f64,
        ledger: &mut Ledger,
    ) -> Self {
        let mut sharer = Sharer::new(&jobs, floor, capacity);
        for (index, job) in jobs.iter_mut().enumerate() {
            job.expect(sharer.alone(index));
            sharer.stand(index, job.standing(0));
        }
        let count = jobs.len();
        let marks = if jobs.iter().any(Running::has_marks) { Marks::Some } else { Marks::None };
        let mut component = Self {
            next: jobs.iter().map(|job| job.next).collect(),
            passes: if marks == Marks::Some { vec![NEVER; count] } else { Vec::new() },
            sending: vec![0; count.div_ceil(64)],
            sharer,
            memo: Memo::new(count, marks),
            senders: Vec::with_capacity(count),
            repeat: (!jobs.iter().any(|job| job.is_noisy() || job.is_watched())).then(Repeat::default),
            jobs,
        };
        for index in 0..count {
            if component.jobs[index].doing == Doing::Sending {
                component.mark(index);
            }
        }
        component.share(now, ledger);
        component
    }

    pub(super) fn links(&self) -> &[LinkId] {
        self.sharer.links()
    }

    /// When it must be moved on: never later than the first job's end, and never without something to do.
    pub(super) fn wake(&self) -> u64 {
        let next = self.next_event();
        if next == NEVER {
            return NEVER;
        }
        let end = self.jobs.iter().map(Running::earliest_end).min().unwrap_or(NEVER);
        next.max(end)
    }

    fn next_event(&self) -> u64 {
        self.next.iter().chain(&self.passes).copied().min().unwrap_or(NEVER)
    }

    /// Does all that is due up to `goal`, or up to the first moment at which a job is over; returns that moment.
    pub(super) fn advance(&mut self, goal: u64, ledger: &mut Ledger) -> Option<u64> {
        if self.jobs.len() == 1 {
            return self.advance_alone(goal, ledger);
        }
        loop {
            let now = self.next_event();
            if now > goal || now == NEVER {
                return None;
            }
            let iteration = self.jobs[0].done;
            let completes = self.step_all(now, ledger);
            if completes {
                return Some(now);
            }
            if self.jobs[0].done > iteration {
                self.skip_repetitions(now, goal, ledger);
            }
        }
    }

    /// Does what is due now, and shares the links anew if flows have opened, run dry or passed a mark.
    fn step_all(&mut self, now: u64, ledger: &mut Ledger) -> bool {
        let (mut changed, mut completes) = (self.passes.contains(&now), false);
        for index in 0..self.jobs.len() {
            while self.next[index] == now {
                let change = step(&mut self.jobs[index], ledger);
                self.next[index] = self.jobs[index].next;
                changed |= matches!(change, Change::Opens | Change::Closes);
                completes |= change == Change::Completes;
                if matches!(change, Change::Opens | Change::Closes) {
                    self.mark(index);
                }
            }
        }
        if changed {
            self.share(now, ledger);
        }
        completes
    }

    fn advance_alone(&mut self, goal: u64, ledger: &mut Ledger) -> Option<u64> {
        let rate = if self.jobs[0].sends() { self.sharer.rates(&[0])[0] } else { 0.0 };
        while self.jobs[0].next <= goal && self.jobs[0].next != NEVER {
            let job = &mut self.jobs[0];
            let (now, iteration) = (job.next, job.done);
            match step(job, ledger) {
                Change::Opens => _ = job.flow(now, rate),
                Change::Completes => {
                    self.next[0] = NEVER;
                    return Some(now);
                }
                Change::Nothing | Change::Closes => {}
            }
            if self.jobs[0].done > iteration {
                self.skip_repetitions(now, goal, ledger);
            }
        }
        self.next[0] = self.jobs[0].next;
        None
    }

    fn skip_repetitions(&mut self, now: u64, goal: u64, ledger: &Ledger) {
        let Some(repeat) = self.repeat.as_mut().filter(|_| !ledger.keeps_times()) else { return };
        let skipped = repeat.look(&mut self.jobs, now, goal);
        if skipped > 0 {
            for (next, job) in self.next.iter_mut().zip(&self.jobs) {
                *next = job.next;
            }
            for passes in self.passes.iter_mut() {
                *passes = passes.saturating_add(skipped);
            }
        }
    }

    /// A flow opens, or runs dry.
    fn mark(&mut self, index: usize) {
        self.sending[index / 64] ^= 1 << (index % 64);
    }

    /// Gives every flow that is sending its rate.
    fn share(&mut self, now: u64, ledger: &mut Ledger) {
        self.senders.clear();
        for (word, bits) in self.sending.iter().enumerate() {
            let mut bits = *bits;
            while bits != 0 {
                self.senders.push(word as u32 * 64 + bits.trailing_zeros());
                bits &= bits - 1;
            }
        }
        self.passes.fill(NEVER);
        if self.senders.is_empty() {
            return;
        }
        let meeting = self.take_stand(now);
        let (senders, sharer) = (&self.senders, &mut self.sharer);
        let rates = match &mut self.memo {
            Some(memo) => memo.rates(meeting, |known| known.copy_from_slice(sharer.rates(senders))),
            None => sharer.rates(senders),
        };
        for index in senders.iter().map(|index| *index as usize) {
            let job = &mut self.jobs[index];
            if job.rate != rates[index] || job.next == NEVER {
                let ended = job.flow(now, rates[index]);
                ledger.note(job, ended);
                self.next[index] = job.next;
            }
        }
        self.look_for_marks(now);
    }

    /// Tells the sharer how everybody stands who is sending. Whoever sends alone has it all, however it stands.
    fn take_stand(&mut self, now: u64) -> Meeting {
        let mut meeting = Meeting { set: self.sending[0], rungs: 0 };
        self.order_newcomers(now);
        if self.passes.is_empty() || self.senders.len() == 1 {
            return meeting;
        }
        for index in &self.senders {
            let job = &self.jobs[*index as usize];
            let rung = job.rung(now);
            self.sharer.stand(*index as usize, job.standing(rung));
            if self.memo.is_some() {
                meeting.note(*index, rung);
            }
        }
        meeting
    }

    /// Gives a class to each sender whose burst has just begun and whose class depends on the bursts under way.
    fn order_newcomers(&mut self, now: u64) {
        self.promote_first(now);
        for index in 0..self.senders.len() {
            let sender = self.senders[index] as usize;
            if self.jobs[sender].is_unordered() {
                let class = self.class_beside(sender, now);
                self.jobs[sender].class = Some(class);
            }
        }
    }

    /// Moves up the bursts that are served first on their links.
    fn promote_first(&mut self, now: u64) {
        for index in 0..self.jobs.len() {
            let Some(own) = self.jobs[index].burst(now) else { continue };
            let others = self.jobs.iter().enumerate().filter(|(other, _)| *other != index);
            let met = others.filter(|(other, _)| self.sharer.share_a_link(*other, index));
            let class = class_of_first(&own, met.filter_map(|(_, job)| job.burst(now)));
            self.jobs[index].class = Some(class);
        }
    }

    /// The class of a job's burst beside those that are under way on its links.
    fn class_beside(&self, index: usize, now: u64) -> u8 {
        let others = self.jobs.iter().enumerate().filter(|(other, _)| *other != index);
        let under_way = others.filter_map(|(other, job)| {
            let burst = job.burst(now)?;
            self.sharer.share_a_link(other, index).then_some(burst)
        });
        self.jobs[index].newcomer(now).class(under_way)
    }

    fn look_for_marks(&mut self, now: u64) {
        if self.passes.is_empty() || self.senders.len() == 1 {
            return;
        }
        for index in self.senders.iter().map(|index| *index as usize) {
            let job = &self.jobs[index];
            self.passes[index] = job.passes(job.rung(now), now);
        }
    }
}

/// Moves one job by one step, with its traffic in the books.
fn step(job: &mut Running, ledger: &mut Ledger) -> Change {
    ledger.events += 1;
    if job.doing == Doing::Sending {
        ledger.note(job, job.last_stretch());
    }
    job.step()
}
