//! Who runs now. A gang is admitted whole, placed as it is admitted, or waits with a reason; nobody ever holds half
//! of what they need.

use std::cmp::Reverse;
use std::sync::Arc;

use super::admission_loop;
use super::deadlines::{self, Schedule};
use super::draft::{Draft, Reach};
use super::infeasible::hopeless;
use super::order::{Line, Rank, Ranker};
use super::place::{Placer, too_little_room};
use super::size::Sizes;
use super::{burst_compatibility, peak_bandwidth, placement_cost};
use crate::decide::snapshot::Snapshot;
use crate::model::cluster::Name;
use crate::model::id::{IdVec, JobId, QueueId};
use crate::model::job::{Job, JobSpec};
use crate::model::plan::Assignment;
use crate::model::policy::{Deadlines, Moving, Policy, Preemption, Queueing, Sharing, Sizing, Slowdowns};
use crate::model::queue::{Holdings, Queue, lineage};
use crate::model::report::Reason;
use crate::model::units::Resources;

pub(super) fn admit<'a>(rules: &Rules<'a>, ranker: &'a Ranker<'a>, schedule: Schedule<'a>) -> Draft<'a> {
    match rules.preemption {
        Preemption::Never | Preemption::ByPriority | Preemption::ByGain => {
            admission_loop::fill_what_is_free(rules, ranker, schedule)
        }
        Preemption::ByRank => rules.share_out_by_rank(ranker),
    }
}

pub(super) struct Rules<'a> {
    pub(super) snapshot: &'a Snapshot<'a>,
    pub(super) queueing: Queueing,
    pub(super) sizing: Sizing,
    pub(super) preemption: Preemption,
    pub(super) sizes: Sizes,
    pub(super) placer: Placer,
    pub(super) slowdowns: Slowdowns,
    pub(super) deadlines: Deadlines,
    pub(super) moving: Moving,
    /// Queues that keep something for themselves, where that counts.
    keeping: Vec<QueueId>,
}

impl<'a> Rules<'a> {
    pub(super) fn of(snapshot: &'a Snapshot<'a>, policy: &Policy, sizes: Sizes, placer: Placer) -> Self {
        let Policy { queueing, sharing, sizing, preemption, slowdowns, deadlines, moving, .. } = *policy;
        let keeping = snapshot.queues.iter().filter(|(_, queue)| queue.keeps().is_some());
        let keeping = keeping.map(|(id, _)| id).filter(|_| sharing == Sharing::Fair).collect();
        Self { snapshot, queueing, sizing, preemption, sizes, placer, slowdowns, deadlines, moving, keeping }
    }

    /// Ranks everybody together, those in the plan and those that wait, and hands the room out down the list. Who is
    /// in the plan keeps its place if nobody ahead has taken it.
    fn share_out_by_rank(&self, ranker: &'a Ranker<'a>) -> Draft<'a> {
        let mut draft = Draft::afresh(self.snapshot);
        let mut ranked = self.settle_the_immovable(&mut draft, ranker);
        ranked.sort_unstable_by_key(|(rank, _, _)| Reverse(*rank));
        let mut line = Line::new(ranker, |_| true);
        let mut served: Vec<(JobId, bool)> = Vec::with_capacity(ranked.len());
        loop {
            let waiting_first = match (line.peek(), ranked.last()) {
                (Some(waiting), Some((running, _, _))) => waiting < running,
                (waiting, _) => waiting.is_some(),
            };
            if waiting_first {
                let held = draft.held().by_queue();
                let (id, class) = line.pop(held).expect("somebody was seen in the line");
                match self.admit_one(&mut draft, id, Reach::Claimed) {
                    Ok(()) => {
                        served.push((id, true));
                        line.step_up(id, class);
                    }
                    Err(reason) => draft.report.waiting.push((class, reason)),
                }
            } else {
                let Some((_, id, assignment)) = ranked.pop() else { break };
                draft.lift_claims(assignment);
                let job = &self.snapshot.jobs[id];
                let stays = (self.quota_allows(&draft, job).is_ok() && draft.keep(&job.spec, assignment))
                    || self.admit_one(&mut draft, id, Reach::Claimed).is_ok();
                if !stays {
                    draft.unassign(id);
                }
                served.push((id, stays));
            }
        }
        draft.standings = ranker.standings(&served);
        draft
    }

    /// Lets those that cannot be suspended keep what they have; returns the rest with their ranks.
    fn settle_the_immovable(
        &self,
        draft: &mut Draft<'a>,
        ranker: &'a Ranker<'a>,
    ) -> Vec<(Rank, JobId, &'a Arc<Assignment>)> {
        let mut ranked = Vec::with_capacity(self.snapshot.plan.len());
        for (id, assignment) in self.snapshot.plan.iter() {
            let job = &self.snapshot.jobs[id];
            if self.may_be_displaced(job) {
                ranked.push((ranker.running(id, job), id, assignment));
            } else {
                draft.lift_claims(assignment);
                draft.keep_anyway(&job.spec, assignment);
            }
        }
        ranked
    }

    fn may_be_displaced(&self, job: &Job) -> bool {
        job.spec.capabilities.suspend && job.not_before <= self.snapshot.now
    }

    /// Why a job gets no place, where amounts alone tell.
    pub(super) fn refuse_at_sight(&self, draft: &Draft<'a>, job: &Job) -> Option<Reason> {
        let bounded = self.quota_allows(draft, job).and_then(|()| self.room_is_lent(draft, job)).err();
        bounded.or_else(|| {
            let reason = too_little_room(draft, job, self.sizes)?;
            Some(self.or_hopeless(job, reason))
        })
    }

    /// Places a job where it disturbs nobody, or, if it may, where it disturbs those behind it least.
    pub(super) fn admit_one(&self, draft: &mut Draft<'a>, id: JobId, reach: Reach) -> Result<(), Reason> {
        let job = &self.snapshot.jobs[id];
        self.quota_allows(draft, job)?;
        self.room_is_lent(draft, job)?;
        deadlines::leaves_what_is_booked(self, draft, id)?;
        if reach == Reach::Unclaimed && self.weighs_links(draft, job) {
            let chosen = self.choose_by_links(draft, id).map_err(|reason| self.or_hopeless(job, reason))?;
            draft.settle(id, job, chosen);
            return Ok(());
        }
        let mut placed = self.placer.place(draft, job, self.sizes, Reach::Unclaimed);
        if placed.is_err() && reach == Reach::Claimed {
            placed = self.placer.place(draft, job, self.sizes, Reach::Claimed);
        }
        draft.assign(id, &job.spec, placed.map_err(|reason| self.or_hopeless(job, reason))?);
        Ok(())
    }

    fn choose_by_links(&self, draft: &mut Draft<'a>, id: JobId) -> Result<Assignment, Reason> {
        match self.slowdowns {
            Slowdowns::Unseen | Slowdowns::Weighed | Slowdowns::WaitedOut => {
                placement_cost::choose(self, draft, id)
            }
            Slowdowns::Reserved => peak_bandwidth::choose(self, draft, id),
            Slowdowns::Compatible => burst_compatibility::most(self, draft, id),
            Slowdowns::KeptApart => burst_compatibility::kept_apart(self, draft, id),
        }
    }

    /// Whether it matters what a job would meet on links, and something is known of that.
    pub(super) fn weighs_links(&self, draft: &Draft<'_>, job: &Job) -> bool {
        let sends = || job.spec.profile.as_ref().is_some_and(|profile| profile.exchange().is_some());
        let looks = self.slowdowns != Slowdowns::Unseen && !draft.contention.knows_no_links();
        looks && placement_cost::may_look(draft) && sends()
    }

    /// Whether a job would be placed where it disturbs nobody; nothing changes.
    pub(super) fn would_admit(&self, draft: &mut Draft<'a>, job: &'a Job) -> bool {
        if self.quota_allows(draft, job).is_err() || self.room_is_lent(draft, job).is_err() {
            return false;
        }
        let mark = draft.mark();
        let placed = self.placer.place(draft, job, self.sizes, Reach::Unclaimed).is_ok();
        draft.rollback(mark);
        placed
    }

    /// Who waits though it could never run as things are hears so.
    fn or_hopeless(&self, job: &Job, reason: Reason) -> Reason {
        let Snapshot { cluster, room, keeps_hopeless, .. } = *self.snapshot;
        let hopeless = keeps_hopeless.then(|| hopeless(cluster, room, job)).flatten();
        hopeless.unwrap_or(reason)
    }

    /// Whether its queue, all that the queue lies in, and its user there may hold what a job needs.
    pub(super) fn quota_allows(&self, draft: &Draft<'_>, job: &Job) -> Result<(), Reason> {
        self.quota_leaves(draft.queues(), draft.held(), &job.spec, job.spec.least())
    }

    /// The same of any amount, where so much is held.
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

    /// Whether there is enough beside what queues that do not lend keep for themselves.
    fn room_is_lent(&self, draft: &Draft<'_>, job: &Job) -> Result<(), Reason> {
        if self.leaves_what_is_kept(draft, job.spec.queue, job.spec.least(), draft.total()) {
            return Ok(());
        }
        let left = draft.total() - self.kept_for_others(draft, job.spec.queue);
        let widest = job.spec.roles.iter().max_by_key(|role| role.gang.min());
        let (each, members) = widest.map_or((Resources::NONE, 0), |role| (role.shape.each, role.gang.min()));
        let fit = each.count_in(left).min(members.saturating_sub(1));
        Err(Reason::InsufficientResources { each, members, fit })
    }

    /// Whether a queue that is given some of `free` leaves what queues that do not lend have not used of their quotas.
    pub(super) fn leaves_what_is_kept(
        &self,
        draft: &Draft<'_>,
        queue: QueueId,
        need: Resources,
        free: Resources,
    ) -> bool {
        match self.kept_for_others(draft, queue) {
            Resources::NONE => true,
            kept => need.fits_in(free - kept),
        }
    }

    fn kept_for_others(&self, draft: &Draft<'_>, queue: QueueId) -> Resources {
        let queues = draft.queues();
        let within = |inner: QueueId, outer: QueueId| lineage(queues, inner).any(|above| above == outer);
        let unrelated = |other: QueueId| !within(queue, other) && !within(other, queue);
        let keeps = |other: QueueId| queues[other].keeps().filter(|_| unrelated(other));
        // What is kept inside a queue that keeps something is part of that.
        let is_outermost =
            |other: QueueId| lineage(queues, other).skip(1).all(|above| keeps(above).is_none());
        let kept = self.keeping.iter().filter_map(|other| Some((*other, keeps(*other)?)));
        let outermost = kept.filter(|(other, _)| is_outermost(*other));
        outermost.map(|(other, kept)| kept - draft.held().by_queue()[other]).sum()
    }
}
