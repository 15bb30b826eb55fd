//! A running job that may be evicted, and what is known of jobs for which evictions do not suffice.

use std::sync::Arc;

use crate::decide::draft::Draft;
use crate::decide::member_fits::Fits;
use crate::decide::preemption_rules::service;
use crate::decide::queue_shares::Rights;
use crate::decide::snapshot::Snapshot;
use crate::model::id::{BudgetId, IdVec, JobId, QueueId, ShapeId};
use crate::model::job::{Job, Life, Priority};
use crate::model::plan::Assignment;
use crate::model::queue::{Queue, lineage};
use crate::model::units::{Instant, Resources, Share};

/// A job that does not fit whichever jobs make room for it. Neither does a job that asks for at least as many members of
/// that shape, and for which no other jobs make room.
pub(super) struct Failure {
    queue: QueueId,
    priority: Priority,
    user: Share,
    service: u128,
    shape: ShapeId,
    members: u64,
}

#[derive(Clone)]
pub(super) struct Victim<'a> {
    pub(super) priority: Priority,
    /// Whether it makes room though its priority is no lower, because it has far more left to do.
    pub(super) for_gain: bool,
    pub(super) id: JobId,
    pub(super) job: &'a Job,
    pub(super) assignment: Arc<Assignment>,
    /// What the assignment takes.
    pub(super) held: Resources,
}

impl Failure {
    /// `None` for jobs of which more decides than how many members fit.
    pub(super) fn of(job: &Job, now: Instant) -> Option<Self> {
        let members = Fits::of(job)?.wanted;
        let service = job.remaining(now).map_or(u128::MAX, |left| service(job, left));
        let (queue, priority, user) = (job.spec.queue, job.spec.priority, job.spec.user);
        Some(Self { queue, priority, user, service, shape: *job.shapes.first()?, members })
    }

    pub(super) fn covers(&self, other: &Self) -> bool {
        self.queue == other.queue
            && self.shape == other.shape
            && self.priority >= other.priority
            && self.user >= other.user
            && self.service <= other.service
            && self.members <= other.members
    }
}

impl<'a> Victim<'a> {
    pub(super) fn of(id: JobId, job: &'a Job, assignment: &Arc<Assignment>) -> Self {
        let (assignment, held) = (Arc::clone(assignment), assignment.total());
        Self { priority: job.spec.priority, for_gain: false, id, job, assignment, held }
    }
}

/// What other queues hold beyond their own, while victims are chosen from them.
pub(super) struct Surplus<'s, 'a> {
    rights: &'s Rights<'a>,
    queues: &'a IdVec<QueueId, Queue>,
    held: IdVec<QueueId, Resources>,
    claim: (QueueId, Resources),
}

impl<'s, 'a> Surplus<'s, 'a> {
    pub(super) fn of(rights: &'s Rights<'a>, draft: &Draft<'a>, job: &Job) -> Self {
        let held = draft.held().by_queue().clone();
        Self { rights, queues: draft.queues(), held, claim: (job.spec.queue, job.spec.least()) }
    }

    /// Whether a job of another queue is beyond what that queue may call its own, without the victims claimed before.
    pub(super) fn claim(&mut self, victim: &Victim<'_>) -> bool {
        let holder = victim.job.spec.queue;
        let yields = self.rights.yields(&self.held, self.claim, holder);
        for queue in lineage(self.queues, holder).filter(|_| yields) {
            self.held[queue] = self.held[queue] - victim.held;
        }
        yields
    }
}

/// Whether a job runs where it is planned, has done so long enough, and may be stopped.
pub(super) fn may_be_stopped(snapshot: &Snapshot<'_>, job: &Job, assignment: &Arc<Assignment>) -> bool {
    let runs = matches!(&job.life, Life::Running(held) if held == assignment);
    let ripe = job.ripe(snapshot.min_run).is_none_or(|ripe| ripe <= snapshot.now);
    runs && ripe && job.spec.capabilities.makes_room() && job.not_before <= snapshot.now
}

pub(super) fn spend(left: &mut IdVec<BudgetId, u32>, job: &Job, members: u32) {
    for budget in &job.spec.budgets {
        if let Some(left) = left.get_mut(*budget) {
            *left = left.saturating_sub(members);
        }
    }
}
