//! How much others could leave at most, told without a look at each of them.
//!
//! After every event everybody who lacks room asks whose place it may take, and nearly always the answer is nobody's. So
//! those who run are added up once a pass: by priority, and by what they have left to do. What a job might get is then
//! found by two searches, and only if that is enough for it the victims themselves are looked at.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::{Margin, TIMES_THE_COST, Victim, margin, service};
use crate::id::QueueId;
use crate::job::{Job, Priority};
use crate::units::{Instant, Resources, Share};

/// Where queues have shares, jobs make room for others of their own queue by priority or gain; else for all.
#[derive(Default)]
pub(super) struct Bounds {
    apart: bool,
    by_queue: BTreeMap<Option<QueueId>, Bound>,
    total: Resources,
}

#[derive(Default)]
struct Bound {
    /// From the lowest priority up: the least user so far, and what all so far hold.
    lower: Vec<(Priority, Share, Resources)>,
    /// Of each priority, from the most left to do down: what all so far hold.
    gain: BTreeMap<Priority, Vec<(Margin, Resources)>>,
}

impl Bounds {
    /// Of these, in order of priority.
    pub(super) fn of(running: &[Victim<'_>], apart: bool, now: Instant) -> Self {
        let mut bounds = Self { apart, ..Self::default() };
        for victim in running {
            let held = victim.assignment.total();
            bounds.total = bounds.total + held;
            let bound = bounds.by_queue.entry(apart.then_some(victim.job.spec.queue)).or_default();
            bound.add(victim, held);
            let gain = bound.gain.entry(victim.priority).or_default();
            gain.extend(margin(victim.job, now).map(|margin| (margin, held)));
        }
        let gains = bounds.by_queue.values_mut().flat_map(|bound| bound.gain.values_mut());
        gains.for_each(|gain| add_up(gain));
        bounds
    }

    /// What all hold.
    pub(super) fn total(&self) -> Resources {
        self.total
    }

    /// What those hold at most who make room for a job by priority or, where that counts, for gain.
    pub(super) fn most(&self, job: &Job, for_gain: bool, now: Instant) -> Resources {
        let bound = self.by_queue.get(&self.apart.then_some(job.spec.queue));
        bound.map_or(Resources::NONE, |bound| {
            let gained = if for_gain { bound.gained(job, now) } else { Resources::NONE };
            bound.lower(job) + gained
        })
    }
}

impl Bound {
    fn add(&mut self, victim: &Victim<'_>, held: Resources) {
        let user = victim.job.spec.user;
        match self.lower.last().copied() {
            Some((priority, least, total)) if priority == victim.priority => {
                self.lower.pop();
                self.lower.push((priority, least.min(user), total + held));
            }
            Some((_, least, total)) => self.lower.push((victim.priority, least.min(user), total + held)),
            None => self.lower.push((victim.priority, user, held)),
        }
    }

    fn lower(&self, job: &Job) -> Resources {
        let (priority, user) = (job.spec.priority, job.spec.user);
        let up_to = |end: usize| end.checked_sub(1).map(|last| self.lower[last]);
        let below = up_to(self.lower.partition_point(|(other, _, _)| *other < priority));
        let no_higher = up_to(self.lower.partition_point(|(other, _, _)| *other <= priority));
        match (below, no_higher) {
            (_, Some((_, least, total))) if least < user => total,
            (Some((_, least, total)), _) if least <= user => total,
            _ => Resources::NONE,
        }
    }

    fn gained(&self, job: &Job, now: Instant) -> Resources {
        let Some(left) = job.remaining(now) else { return Resources::NONE };
        let cost = service(job, left) as Margin * TIMES_THE_COST as Margin;
        let no_higher = self.gain.range(..=job.spec.priority).map(|(_, gain)| gain);
        let held = no_higher.filter_map(|gain| {
            let end = gain.partition_point(|(margin, _)| *margin > cost);
            end.checked_sub(1).map(|last| gain[last].1)
        });
        held.sum()
    }
}

fn add_up(gain: &mut [(Margin, Resources)]) {
    gain.sort_unstable_by_key(|(margin, _)| Reverse(*margin));
    let mut total = Resources::NONE;
    for (_, held) in gain {
        total = total + *held;
        *held = total;
    }
}
