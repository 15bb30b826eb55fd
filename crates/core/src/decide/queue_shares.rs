//! Weighted fair shares: what queues hold for their weight, and what each may call its own.

use std::collections::BTreeSet;

use crate::decide::snapshot::Snapshot;
use crate::model::id::{Id, IdVec, QueueId};
use crate::model::queue::{Queue, UsageHistories, lineage, named};
use crate::model::units::Resources;

/// Shares are counted in billionths of the cluster.
const WHOLE: u64 = 1_000_000_000;

#[derive(Debug)]
pub(crate) struct Shares<'a> {
    queues: &'a IdVec<QueueId, Queue>,
    pasts: &'a UsageHistories,
    capacity: Resources,
    outermost: Vec<QueueId>,
    inside: IdVec<QueueId, Vec<QueueId>>,
}

/// Whether a queue holds its quota, and what it holds for its weight.
pub(super) type Burden = (bool, u64);

/// What a queue may call its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Own {
    Quota(Resources),
    /// A part of the cluster, in billionths.
    Part(u64),
}

impl<'a> Shares<'a> {
    pub(crate) fn of(snapshot: &Snapshot<'a>) -> Self {
        let queues = snapshot.queues;
        let mut inside: IdVec<QueueId, Vec<QueueId>> = IdVec::filled(Vec::new(), queues.len());
        let mut outermost = Vec::new();
        for (id, queue) in queues.iter() {
            queue.parent.map_or(&mut outermost, |parent| &mut inside[parent]).push(id);
        }
        Self { queues, pasts: snapshot.pasts, capacity: snapshot.cluster.capacity(), outermost, inside }
    }

    /// The queue to serve next among those with waiting jobs: down the tree, at each level the queue that holds least
    /// for its weight, and there its own jobs before those of queues inside it. A queue that holds its quota comes
    /// after all that do not.
    pub(super) fn next(
        &self,
        mut burden: impl FnMut(QueueId) -> Burden,
        waits: impl Fn(QueueId) -> bool,
        waits_inside: impl Fn(QueueId) -> bool,
    ) -> Option<QueueId> {
        let mut level = &self.outermost;
        loop {
            let busy = level.iter().copied().filter(|queue| waits_inside(*queue));
            let next = busy.min_by_key(|queue| (burden(*queue), *queue))?;
            if waits(next) {
                return Some(next);
            }
            level = &self.inside[next];
        }
    }

    /// The burden of a queue: greater for a queue that holds more for its weight.
    pub(super) fn burden(&self, queue: QueueId, held: Resources) -> Burden {
        let Queue { quota, weight, .. } = &self.queues[queue];
        let used = |held: u64, quota: u64| held >= quota && quota > 0;
        let borrows = quota.is_some_and(|quota| {
            used(held.gpus.0, quota.gpus.0)
                || used(held.cpu.0, quota.cpu.0)
                || used(held.memory.0, quota.memory.0)
        });
        (borrows, self.dominant(self.pasts.counted(queue, held)) / u64::from((*weight).max(1)))
    }

    /// The greatest part of any resource of the cluster.
    fn dominant(&self, held: Resources) -> u64 {
        let part = |held: u64, whole: u64| {
            let billionths = u128::from(held.min(whole)) * u128::from(WHOLE) / u128::from(whole.max(1));
            u64::try_from(billionths).unwrap_or(WHOLE)
        };
        part(held.gpus.0, self.capacity.gpus.0)
            .max(part(held.cpu.0, self.capacity.cpu.0))
            .max(part(held.memory.0, self.capacity.memory.0))
    }

    /// What each queue may call its own while the active queues want something: its quota, or its part by weight of
    /// what the quotas beside it leave.
    fn owned(&self, active: impl Fn(QueueId) -> bool) -> IdVec<QueueId, Own> {
        let mut owned = IdVec::filled(Own::Part(0), self.queues.len());
        let mut levels = vec![(&self.outermost, WHOLE)];
        while let Some((level, whole)) = levels.pop() {
            let quotas = level.iter().filter_map(|queue| self.queues[*queue].quota);
            let rest = whole.saturating_sub(quotas.map(|quota| self.dominant(named(quota))).sum());
            let sharing = || {
                level.iter().copied().filter(|queue| self.queues[*queue].quota.is_none() && active(*queue))
            };
            let weights: u64 = sharing().map(|queue| u64::from(self.queues[queue].weight)).sum();
            for queue in sharing() {
                let part =
                    u128::from(rest) * u128::from(self.queues[queue].weight) / u128::from(weights.max(1));
                owned[queue] = Own::Part(u64::try_from(part).unwrap_or(WHOLE));
            }
            for queue in level {
                if let Some(quota) = self.queues[*queue].quota {
                    owned[*queue] = Own::Quota(quota);
                }
                let whole = match owned[*queue] {
                    Own::Quota(quota) => self.dominant(named(quota)),
                    Own::Part(part) => part,
                };
                levels.push((&self.inside[*queue], whole));
            }
        }
        owned
    }

    /// Whether a queue holds no more than its own. Past usage takes nothing off a quota.
    fn covers(&self, own: Own, queue: QueueId, held: Resources) -> bool {
        match own {
            Own::Quota(quota) => held.fits_in(quota),
            Own::Part(part) => self.is_within(self.pasts.counted(queue, held), part),
        }
    }

    /// Whether no resource is held beyond a part of the cluster: `dominant(held) <= part`, without the divisions.
    fn is_within(&self, held: Resources, part: u64) -> bool {
        let next = u128::from(part) + 1;
        let within = |held: u64, whole: u64| {
            u128::from(held.min(whole)) * u128::from(WHOLE) < next * u128::from(whole.max(1))
        };
        within(held.gpus.0, self.capacity.gpus.0)
            && within(held.cpu.0, self.capacity.cpu.0)
            && within(held.memory.0, self.capacity.memory.0)
    }

    /// The two branches below the innermost queue that contains both queues, each from the inside out.
    fn apart(&self, one: QueueId, other: QueueId) -> (Vec<QueueId>, Vec<QueueId>) {
        let mut ones: Vec<QueueId> = lineage(self.queues, one).collect();
        let mut others: Vec<QueueId> = lineage(self.queues, other).collect();
        while ones.last().is_some() && ones.last() == others.last() {
            ones.pop();
            others.pop();
        }
        (ones, others)
    }
}

/// What queues may reclaim: what each may call its own while these jobs wait and hold what they do.
#[derive(Debug)]
pub(super) struct Rights<'a> {
    shares: &'a Shares<'a>,
    owned: IdVec<QueueId, Own>,
    /// Two of the queues that hold more than their own, or as many as there are.
    beyond: Vec<QueueId>,
}

impl<'a> Rights<'a> {
    pub(super) fn of(snapshot: &Snapshot<'_>, shares: &'a Shares<'a>) -> Self {
        let mut active: BTreeSet<QueueId> = BTreeSet::new();
        for (_, class) in snapshot.waiting.classes() {
            active.extend(lineage(snapshot.queues, class.key.queue));
        }
        let held = snapshot.held.by_queue().iter().filter(|(_, held)| **held != Resources::NONE);
        active.extend(held.map(|(queue, _)| queue));
        let owned = shares.owned(|queue| active.contains(&queue));
        let mut rights = Self { shares, owned, beyond: Vec::new() };
        rights.note(snapshot.held.by_queue());
        rights
    }

    /// Notes what queues hold from now on.
    pub(super) fn note(&mut self, held: &IdVec<QueueId, Resources>) {
        let beyond = held.iter().filter(|(queue, held)| !self.covers(*queue, **held));
        self.beyond = beyond.map(|(queue, _)| queue).take(2).collect();
    }

    fn covers(&self, queue: QueueId, held: Resources) -> bool {
        self.shares.covers(self.owned[queue], queue, held)
    }

    /// Whether a queue would still hold no more than its own with `need`, while another holds more than its own:
    /// without that, nothing can be reclaimed.
    pub(super) fn may_reclaim(
        &self,
        held: &IdVec<QueueId, Resources>,
        queue: QueueId,
        need: Resources,
    ) -> bool {
        self.beyond.iter().any(|other| *other != queue) && self.covers(queue, held[queue] + need)
    }

    /// Whether a queue holds more than its own.
    pub(super) fn is_beyond(&self, held: &IdVec<QueueId, Resources>, queue: QueueId) -> bool {
        !self.covers(queue, held[queue])
    }

    /// Whether what one queue holds beyond its own, as of `held`, may be reclaimed by another.
    pub(super) fn yields(
        &self,
        held: &IdVec<QueueId, Resources>,
        (claimant, need): (QueueId, Resources),
        holder: QueueId,
    ) -> bool {
        let (ours, theirs) = self.shares.apart(claimant, holder);
        self.shares.queues[holder].gives_back
            && ours.iter().all(|queue| self.covers(*queue, held[*queue] + need))
            && theirs.last().is_some_and(|queue| !self.covers(*queue, held[*queue]))
    }
}

/// The number of jobs that wait in each queue or inside it.
#[derive(Debug)]
pub(super) struct WaitingCounts<'a> {
    queues: &'a IdVec<QueueId, Queue>,
    waiting: Vec<usize>,
}

impl<'a> WaitingCounts<'a> {
    pub(super) fn none(queues: &'a IdVec<QueueId, Queue>) -> Self {
        Self { queues, waiting: vec![0; queues.len()] }
    }

    pub(super) fn enter(&mut self, queue: QueueId) {
        lineage(self.queues, queue).for_each(|queue| self.waiting[queue.index()] += 1);
    }

    pub(super) fn leave(&mut self, queue: QueueId) {
        lineage(self.queues, queue).for_each(|queue| self.waiting[queue.index()] -= 1);
    }

    pub(super) fn waits_inside(&self, queue: QueueId) -> bool {
        self.waiting[queue.index()] > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::units::Gpus;

    #[test]
    fn holdings_are_within_a_part_if_their_dominant_part_is_no_greater() {
        let (queues, pasts) = (IdVec::default(), UsageHistories::default());
        for whole in [0, 1, 3, 7, 1_000, 80_000_000, u64::MAX] {
            let gpus = |gpus: u64| Resources { gpus: Gpus(gpus), ..Resources::NONE };
            let (outermost, inside) = (Vec::new(), IdVec::default());
            let shares = Shares { queues: &queues, pasts: &pasts, capacity: gpus(whole), outermost, inside };
            for held in [0, 1, 2, whole / 3, whole / 2, whole.saturating_sub(1), whole, u64::MAX] {
                let exact = shares.dominant(gpus(held));
                for part in [0, exact.saturating_sub(1), exact, exact + 1, WHOLE] {
                    assert_eq!(
                        shares.is_within(gpus(held), part),
                        exact <= part,
                        "{held} of {whole}, {part}"
                    );
                }
            }
        }
    }
}
