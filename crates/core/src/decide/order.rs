//! The order of jobs: ranks, and the queue of waiting jobs.
//!
//! A rank is a number; the least goes first. Inside a class of equal requests the order never changes while jobs wait
//! (`place_in_class`), so only the first of each class is ranked against the others, and that is done anew in every
//! decision: waiting time and remaining work move on.
//!
//! Ties are broken as a stable sort of the list of the last decision would break them: see `ClassPosition`.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Bound;

use super::queue_shares::{Burden, Shares, WaitingCounts};
use crate::decide::snapshot::{Class, ClassKey, Place, Snapshot};
use crate::model::id::{ClassId, Id, IdVec, JobId, QueueId};
use crate::model::job::{ClassPosition, Job, Priority};
use crate::model::policy::{Claim, Order, Policy, Preemption, Sharing, Wait, Weights};
use crate::model::units::{Duration, GpuTime, Instant, Resources, Share};
use crate::tuning::DecideTuning;

/// The rank of a job; the least goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    key: u128,
    /// The part of a stably sorted list from which jobs of equal key come.
    section: u64,
    standing: ClassPosition,
    job: JobId,
}

#[derive(Debug)]
pub struct Ranker<'a> {
    snapshot: &'a Snapshot<'a>,
    order: &'a Order,
    /// The waiting jobs of each queue (weighted order only).
    others: BTreeMap<QueueId, QueueStatistics>,
    /// How queues take turns, where the policy shares capacity among them.
    shares: Option<Shares<'a>>,
}

/// What a waiting job is compared with: the jobs that wait in its queue.
#[derive(Clone, Copy, Debug, Default)]
struct QueueStatistics {
    /// The most members of a job.
    widest: u32,
    /// The number of jobs of known length, and the sum of their rough lengths.
    measured: u64,
    lengths: u64,
}

impl QueueStatistics {
    fn add(&mut self, class: &Class) {
        self.widest = self.widest.max(class.members);
        if class.key.length > 0 {
            self.measured += class.line.len() as u64;
            self.lengths += class.line.len() as u64 * u64::from(class.key.length);
        }
    }

    fn width(&self, class: &Class) -> Share {
        Share::ratio(u64::from(class.members), u64::from(self.widest.max(class.members)))
    }

    /// How short a job is, as a share: a job that ends soon delays the others by little if it goes first. A job as
    /// long as the others, or of unknown length, is in the middle. A job that has waited long enough for a reservation
    /// counts as the shortest: no job passes it for being shorter, so that its reservation holds.
    fn brevity(&self, tuning: &DecideTuning, class: &Class, waited: Duration, window: Duration) -> Share {
        let usual = self.lengths.checked_div(self.measured).map_or(0, |rough| rough as u8);
        let (usual, own) = (ClassKey::length(usual).0, class.key.long().0);
        match own {
            _ if waited >= window.max(class.key.long().times(tuning.wait_lengths_in_full)) => Share::WHOLE,
            0 => Share(Share::WHOLE.0 / 2),
            own => Share::ratio(usual, usual.saturating_add(own)),
        }
    }
}

pub(crate) fn order<'a>(snapshot: &'a Snapshot<'a>, policy: &'a Policy) -> Ranker<'a> {
    let order = &policy.order;
    let mut others: BTreeMap<QueueId, QueueStatistics> = BTreeMap::new();
    if matches!(order, Order::Weighted(_)) {
        for (_, class) in snapshot.waiting.classes() {
            others.entry(class.key.queue).or_default().add(class);
        }
    }
    // Where all jobs are ranked together, queues do not take turns; nor does a single queue.
    let take_turns = policy.sharing == Sharing::Fair && policy.preemption != Preemption::ByRank;
    let shares = (take_turns && snapshot.queues.len() > 1).then(|| Shares::of(snapshot));
    Ranker { snapshot, order, others, shares }
}

/// The place of a waiting job in its class. `now` does not matter: the work of a waiting job does not change.
pub(crate) fn place_in_class(order: &Order, id: JobId, job: &Job, now: Instant) -> Place {
    let (key, standing) = match order {
        Order::Fifo | Order::Priority | Order::Weighted(_) => (0, ClassPosition::default()),
        Order::Srtf | Order::Srsf => (remaining_key(order, job, now), job.standing),
        Order::LeastAttained { limits } => (u128::from(level(limits, job, now)), job.standing),
    };
    Place { key, standing, job: id }
}

/// Remaining time or service; jobs of unknown length come last.
fn remaining_key(order: &Order, job: &Job, now: Instant) -> u128 {
    match (job.remaining(now), order) {
        (None, _) => u128::MAX,
        (Some(time), Order::Srsf) => GpuTime::of(job.spec.gpus(), time).0,
        (Some(time), _) => u128::from(time.0),
    }
}

/// The level of attained service: how many limits it has reached.
pub(super) fn level(limits: &[GpuTime], job: &Job, now: Instant) -> u8 {
    let attained = job.progress.attained(now);
    limits.iter().take_while(|limit| attained >= **limit).count() as u8
}

impl<'a> Ranker<'a> {
    pub(super) fn tuning(&self) -> &'a DecideTuning {
        &self.snapshot.tuning.decide
    }

    pub(super) fn shares(&self) -> Option<&Shares<'a>> {
        self.shares.as_ref()
    }

    /// The rank of a waiting job.
    pub(super) fn rank_of(&self, id: JobId, class: &Class) -> Rank {
        let snapshot = self.snapshot;
        let job = &snapshot.jobs[id];
        let place = place_in_class(self.order, id, job, snapshot.now);
        let newcomer = job.standing.newcomer && job.standing.pass == snapshot.pass;
        let (key, section) = match self.order {
            Order::Fifo => (0, 0),
            Order::Priority => (greater_first(job.spec.priority), 0),
            Order::Weighted(_) if job.goes_first() => (0, 0),
            Order::Weighted(weights) => (u128::from(u64::MAX - self.score(weights, job, class)), 0),
            Order::Srtf | Order::Srsf if newcomer => (place.key, u64::MAX),
            Order::Srtf | Order::Srsf => (place.key, 1),
            Order::LeastAttained { .. } => (place.key, 1),
        };
        Rank { key, section, standing: place.standing, job: id }
    }

    /// The rank of a job in the plan.
    pub(super) fn running(&self, id: JobId, job: &Job) -> Rank {
        let now = self.snapshot.now;
        let (key, section, standing) = match self.order {
            Order::Fifo | Order::Weighted(_) => (0, 0, ClassPosition::default()),
            Order::Priority => (greater_first(job.spec.priority), 0, ClassPosition::default()),
            Order::Srtf => (remaining_key(self.order, job, now), self.section(job, 1), job.standing),
            Order::Srsf => {
                (remaining_key(self.order, job, now), self.section(job, job.progress.gpus().0), job.standing)
            }
            Order::LeastAttained { limits } => {
                let level = level(limits, job, now);
                match level > job.standing.level {
                    true => (u128::from(level), 2, ClassPosition::default()),
                    false => (u128::from(level), 0, job.standing),
                }
            }
        };
        Rank { key, section, standing, job: id }
    }

    /// The remaining work of a running job has shrunk since the last decision, so among equal jobs it comes from
    /// further back than waiting ones, the further the faster it shrinks. Where nothing has moved since, a job that
    /// was served then stays ahead: without GPUs, nothing ever moves where GPU-time counts.
    fn section(&self, job: &Job, pace: u64) -> u64 {
        let Snapshot { now, last_pass, .. } = *self.snapshot;
        let left = |at: Instant| remaining_key(self.order, job, at);
        let has_moved = last_pass.is_some_and(|then| left(then) != left(now));
        if has_moved { 1 + pace.max(1) } else { 0 }
    }

    fn score(&self, weights: &Weights, job: &Job, class: &Class) -> u64 {
        let weights = self.weights_in(class.key.queue).unwrap_or(weights);
        let others = self.others.get(&class.key.queue).copied().unwrap_or_default();
        let wait =
            wait(self.tuning(), self.snapshot.now.since(job.submitted), class.key.long(), weights.window());
        weights.score(&Claim {
            user: job.spec.user,
            task: priority_share(self.snapshot.priorities, job.spec.priority),
            wait,
            width: others.width(class),
            brevity: others.brevity(self.tuning(), class, wait.waited, weights.window()),
        })
    }

    fn weights_in(&self, queue: QueueId) -> Option<&Weights> {
        self.snapshot.queues[queue].order.as_ref()
    }

    /// The waiting time of a job of a queue that counts in full.
    pub(super) fn window(&self, queue: QueueId) -> Duration {
        let weights = match (self.weights_in(queue), self.order) {
            (Some(weights), _) | (None, Order::Weighted(weights)) => weights,
            (None, _) => &Weights::DEFAULT,
        };
        weights.window()
    }

    /// The places among equal jobs after a decision in which these jobs had their turns in this order, each with
    /// whether it is in the plan from now on.
    pub(super) fn standings(&self, served: &[(JobId, bool)]) -> Vec<(JobId, ClassPosition)> {
        let (now, pass) = (self.snapshot.now, self.snapshot.pass);
        let stand = |(place, (id, stays)): (usize, &(JobId, bool))| {
            let job = &self.snapshot.jobs[*id];
            let mut standing = ClassPosition { pass, newcomer: false, place: place as u32, level: 0 };
            if let Order::LeastAttained { limits } = self.order {
                standing.level = level(limits, job, now);
                let demoted = standing.level > job.standing.level;
                // Running jobs stand ahead of waiting ones in their level, so a job that is preempted now stands ahead
                // of all that waited before.
                if !stays && !demoted {
                    standing.pass = -pass;
                }
            }
            (*id, standing)
        };
        match self.order {
            Order::Srtf | Order::Srsf | Order::LeastAttained { .. } => {
                served.iter().enumerate().map(stand).collect()
            }
            Order::Fifo | Order::Priority | Order::Weighted(_) => Vec::new(),
        }
    }

    /// When the order changes by itself: the first instant at which a running job reaches a limit of its level.
    pub(super) fn wake(&self) -> Option<Instant> {
        let Snapshot { now, tick, .. } = *self.snapshot;
        let running = self.snapshot.plan.iter().filter_map(|(id, _)| self.snapshot.jobs.get(id));
        running.filter_map(|job| next_level_at(self.order, job, now, tick)).min()
    }
}

/// When a running job reaches the limit of its level, on the next tick.
pub(crate) fn next_level_at(order: &Order, job: &Job, now: Instant, tick: Duration) -> Option<Instant> {
    let Order::LeastAttained { limits } = order else { return None };
    let limit = limits.get(usize::from(level(limits, job, now)))?;
    let left = *limit - job.progress.attained(now);
    Some((now + left.time_on(job.progress.gpus())?).rounded_up(tick))
}

fn greater_first(priority: Priority) -> u128 {
    (i64::from(i32::MAX) - i64::from(priority.0)) as u128
}

/// A waiting time, measured against the length of the job, if that is known.
fn wait(tuning: &DecideTuning, waited: Duration, length: Duration, window: Duration) -> Wait {
    let shortest =
        if length.is_zero() { window } else { Duration(window.0 / tuning.shortest_wait_window_part) };
    Wait {
        waited,
        full: shortest.max(length.times(tuning.wait_lengths_in_full)),
        window: shortest.max(length.times(tuning.wait_lengths_per_window)),
    }
}

/// A priority as a share: its rank among those present. One priority alone is in the middle.
pub(crate) fn priority_share(present: &BTreeMap<Priority, usize>, priority: Priority) -> Share {
    match present.len() {
        0 | 1 => Share(Share::WHOLE.0 / 2),
        count => Share::ratio(present.range(..priority).count() as u64, count as u64 - 1),
    }
}

/// Waiting jobs in the order in which they are served: the first of each class, in one queue for all or in one for
/// each queue, where queues take turns.
#[derive(Debug)]
pub struct QueueCursor<'a> {
    ranker: &'a Ranker<'a>,
    firsts: Vec<BinaryHeap<Reverse<(Rank, ClassId)>>>,
    waiting_counts: WaitingCounts<'a>,
    /// What queues held when they were last compared, and their burden then.
    burdens: IdVec<QueueId, Option<(Resources, Burden)>>,
    /// The queue whose turn it was last, and what queues held then: the turn stays until that changes or a job joins.
    turn: Option<(usize, IdVec<QueueId, Resources>)>,
    len: usize,
}

impl<'a> QueueCursor<'a> {
    /// A queue without jobs.
    pub(super) fn empty(ranker: &'a Ranker<'a>) -> Self {
        let queues = ranker.snapshot.queues;
        let lines = if ranker.shares.is_some() { queues.len() } else { 1 };
        Self {
            ranker,
            firsts: vec![BinaryHeap::new(); lines],
            waiting_counts: WaitingCounts::none(queues),
            burdens: IdVec::filled(None, queues.len()),
            turn: None,
            len: 0,
        }
    }

    /// The queue of the first jobs of all classes that `wanted` selects.
    pub fn new(ranker: &'a Ranker<'a>, wanted: impl Fn(&Class) -> bool) -> Self {
        let mut line = Self::empty(ranker);
        for (id, class) in ranker.snapshot.waiting.classes().filter(|(_, class)| wanted(class)) {
            class.line.first().into_iter().for_each(|place| line.join(place.job, id, class));
        }
        line
    }

    /// Puts a job into the queue, for its class.
    pub(super) fn stand(&mut self, job: JobId, id: ClassId) {
        if let Some(class) = self.ranker.snapshot.waiting.class(id) {
            self.join(job, id, class);
        }
    }

    fn join(&mut self, job: JobId, id: ClassId, class: &Class) {
        let rank = self.ranker.rank_of(job, class);
        let line = self.ranker.shares.as_ref().map_or(0, |_| class.key.queue.index());
        self.firsts[line].push(Reverse((rank, id)));
        self.waiting_counts.enter(class.key.queue);
        self.turn = None;
        self.len += 1;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn clear(&mut self) {
        *self = Self::empty(self.ranker);
    }

    /// The rank of the first job, where all wait in one queue.
    pub fn peek(&self) -> Option<&Rank> {
        self.firsts.first()?.peek().map(|Reverse((rank, _))| rank)
    }

    /// Takes the first job off the queue, given what queues hold. The next of its class comes forward only by
    /// `step_up`.
    pub fn pop(&mut self, held: &IdVec<QueueId, Resources>) -> Option<(JobId, ClassId)> {
        let line = self.next_line(held)?;
        let Reverse((rank, class)) = self.firsts[line].pop()?;
        self.len -= 1;
        let key = &self.ranker.snapshot.waiting.class(class).expect("the class of a waiting job").key;
        self.waiting_counts.leave(key.queue);
        Some((rank.job, class))
    }

    fn next_line(&mut self, held: &IdVec<QueueId, Resources>) -> Option<usize> {
        if self.ranker.shares.is_none() {
            return Some(0);
        }
        let same = self.turn.as_ref().filter(|(line, then)| !self.firsts[*line].is_empty() && then == held);
        if same.is_none() {
            self.turn = self.next_turn(held).map(|line| (line, held.clone()));
        }
        self.turn.as_ref().map(|(line, _)| *line)
    }

    fn next_turn(&mut self, held: &IdVec<QueueId, Resources>) -> Option<usize> {
        let Self { ranker, firsts, waiting_counts, burdens, .. } = self;
        let shares = ranker.shares.as_ref()?;
        let burden = |queue: QueueId| {
            let now = held[queue];
            let known = burdens[queue].filter(|(then, _)| *then == now);
            burdens[queue].insert(known.unwrap_or_else(|| (now, shares.burden(queue, now)))).1
        };
        let stands = |queue: QueueId| !firsts[queue.index()].is_empty();
        shares.next(burden, stands, |queue| waiting_counts.waits_inside(queue)).map(Id::index)
    }

    /// Puts the next job of a class into the queue, because this one was served.
    pub fn step_up(&mut self, served: JobId, id: ClassId) {
        let Ranker { snapshot, order, .. } = self.ranker;
        let class = snapshot.waiting.class(id).expect("the class of a waiting job");
        let place = place_in_class(order, served, &snapshot.jobs[served], snapshot.now);
        if let Some(next) = class.line.range((Bound::Excluded(place), Bound::Unbounded)).next() {
            self.join(next.job, id, class);
        }
    }
}
