//! What proposers read: the snapshot, the policy and the order of jobs. None of it changes during a decision.

use super::draft::Draft;
use super::infeasible::hopeless;
use super::order::Ranker;
use crate::decide::snapshot::Snapshot;
use crate::model::cluster::Name;
use crate::model::id::{IdVec, QueueId};
use crate::model::job::{Job, JobSpec};
use crate::model::policy::{Policy, Sharing};
use crate::model::queue::{Holdings, Queue, lineage};
use crate::model::report::Reason;
use crate::model::units::Resources;

pub(super) struct View<'a> {
    pub(super) snapshot: &'a Snapshot<'a>,
    pub(super) policy: &'a Policy,
    pub(super) ranker: &'a Ranker<'a>,
    /// The queues that lend nothing of their quota, where the policy divides capacity among queues.
    non_lending: Vec<QueueId>,
}

impl<'a> View<'a> {
    pub(super) fn of(snapshot: &'a Snapshot<'a>, policy: &'a Policy, ranker: &'a Ranker<'a>) -> Self {
        let keeping = snapshot.queues.iter().filter(|(_, queue)| queue.keeps().is_some());
        let non_lending = keeping.map(|(id, _)| id).filter(|_| policy.sharing == Sharing::Fair).collect();
        Self { snapshot, policy, ranker, non_lending }
    }

    /// The reason for a refusal, replaced where the job could not run on the empty cluster either.
    pub(super) fn or_hopeless(&self, job: &Job, reason: Reason) -> Reason {
        let Snapshot { cluster, room, keeps_hopeless, .. } = *self.snapshot;
        let hopeless = keeps_hopeless.then(|| hopeless(cluster, room, job)).flatten();
        hopeless.unwrap_or(reason)
    }

    /// Whether the job's queue, every queue above it and its user may hold what the job needs.
    pub(super) fn quota_allows(&self, draft: &Draft<'_>, job: &Job) -> Result<(), Reason> {
        self.quota_leaves(draft.queues(), draft.held(), &job.spec, job.spec.least())
    }

    /// The same of any amount, given what queues and users hold.
    pub(super) fn quota_leaves(
        &self,
        queues: &IdVec<QueueId, Queue>,
        held: &Holdings,
        spec: &JobSpec,
        need: Resources,
    ) -> Result<(), Reason> {
        let allow = |queue: QueueId, user: Option<&Name>, left: Resources| {
            let user = user.cloned();
            if need.fits_in(left) { Ok(()) } else { Err(Reason::WaitingForQuota { queue, user, need, left }) }
        };
        for queue in lineage(queues, spec.queue) {
            if let Some(bound) = queues[queue].bound() {
                allow(queue, None, bound - held.by_queue()[queue])?;
            }
        }
        if let Some(user) = &spec.owner
            && let Some(bound) = queues[spec.queue].bound_of(user)
        {
            allow(spec.queue, Some(user), bound - held.of_user(spec.queue, user))?;
        }
        Ok(())
    }

    /// Whether the job fits beside the unused quotas of queues that do not lend.
    pub(super) fn borrowing_allows(&self, draft: &Draft<'_>, job: &Job) -> Result<(), Reason> {
        if self.leaves_unlent_quota(draft, job.spec.queue, job.spec.least(), draft.total()) {
            return Ok(());
        }
        let left = draft.total() - self.unlent_quota(draft, job.spec.queue);
        let widest = job.spec.roles.iter().max_by_key(|role| role.gang.min());
        let (each, members) = widest.map_or((Resources::NONE, 0), |role| (role.shape.each, role.gang.min()));
        let fit = each.count_in(left).min(members.saturating_sub(1));
        Err(Reason::InsufficientResources { each, members, fit })
    }

    /// Whether a queue that takes `need` of `free` leaves the unused quotas of queues that do not lend.
    pub(super) fn leaves_unlent_quota(
        &self,
        draft: &Draft<'_>,
        queue: QueueId,
        need: Resources,
        free: Resources,
    ) -> bool {
        match self.unlent_quota(draft, queue) {
            Resources::NONE => true,
            unlent => need.fits_in(free - unlent),
        }
    }

    /// The unused quotas of queues that do not lend, for a job of another queue.
    fn unlent_quota(&self, draft: &Draft<'_>, queue: QueueId) -> Resources {
        let queues = draft.queues();
        let within = |inner: QueueId, outer: QueueId| lineage(queues, inner).any(|above| above == outer);
        let unrelated = |other: QueueId| !within(queue, other) && !within(other, queue);
        let keeps = |other: QueueId| queues[other].keeps().filter(|_| unrelated(other));
        // The quota of a queue inside a queue that does not lend is part of that queue's quota.
        let is_outermost =
            |other: QueueId| lineage(queues, other).skip(1).all(|above| keeps(above).is_none());
        let kept = self.non_lending.iter().filter_map(|other| Some((*other, keeps(*other)?)));
        let outermost = kept.filter(|(other, _)| is_outermost(*other));
        outermost.map(|(other, kept)| kept - draft.held().by_queue()[other]).sum()
    }
}
