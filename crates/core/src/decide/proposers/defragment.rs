//! A waiting gang that does not fit, though there is enough capacity in all, fits once a few running jobs have moved closer
//! together.
//!
//! The gain is the time for which the gang would wait otherwise: until its reservation begins, or until enough jobs
//! are expected to have left that it fits (`reservations`; a job of unknown length is expected to run as long again as it
//! has). What is paid is what the moved jobs lose by saving and starting again, and by what they meet on links at their
//! new places. Each second counts by the job's priority, and a move must gain half as much again as it costs. Moved
//! jobs go into capacity that is free now and reserved for no job, so that they never wait for each other; the gang is in the
//! plan at once and starts when the last of them has left. If one of them cannot be moved, it keeps its place, and the gang
//! waits on.
//!
//! Other waiting jobs wait for the same capacity. So no job is moved for a gang while another job that lacks capacity has less
//! to do and no lower priority: a long gang would start earlier, and many short jobs later.

mod movers;
mod search;

use std::collections::{BTreeMap, BTreeSet};

use crate::decide::ledger::{Entry, Ledger, Proposal, Request, Room, Serves, head_blocks, lacks_capacity};
use crate::decide::movable::is_time_to_look;
use crate::decide::order::QueueCursor;
use crate::decide::proposer::Proposer;
use crate::decide::view::View;
use crate::model::id::JobId;
use crate::model::job::{Job, Priority};
use crate::model::policy::Moving;
use crate::model::units::{Duration, GpuTime, Instant};
use crate::traffic::decision_inputs::{Reconfiguration, What, Why};
use movers::{MovePlan, Movers};
use search::Search;

/// Moves running jobs for the first waiting gang that fits then.
#[derive(Default)]
pub(in crate::decide) struct Defragment<'a> {
    movers: Option<Movers<'a>>,
}

impl<'a> Proposer<'a> for Defragment<'a> {
    fn propose(&mut self, view: &View<'a>, ledger: &mut Ledger<'a>) -> Option<Proposal> {
        if view.policy.moving != Moving::ForGain || head_blocks(view) || ledger.report.cut_short {
            return None;
        }
        let mut queue = lacking_a_place(view, ledger);
        while !queue.is_empty() && may_search(view, ledger) {
            let (job, class) = queue.pop(ledger.draft.held().by_queue())?;
            if let Some(proposal) = self.propose_for(view, ledger, Request { job, class }) {
                return Some(proposal);
            }
        }
        None
    }
}

impl<'a> Defragment<'a> {
    fn propose_for(
        &mut self,
        view: &View<'a>,
        ledger: &mut Ledger<'a>,
        request: Request,
    ) -> Option<Proposal> {
        ledger.work.defragmented_for.insert(request.job);
        let movers = self.movers.get_or_insert_with(|| Movers::of(view, ledger));
        let Some(gathered) = Search::of(view, &ledger.draft, request.job, &movers.ripe).best() else {
            let interval = view.snapshot.tuning.decide.defragmentation_interval;
            movers.next.into_iter().for_each(|next| ledger.wake_at(next.rounded_up(interval)));
            return None;
        };
        Some(proposal(request, gathered))
    }
}

fn proposal(request: Request, MovePlan { place, moves, saves }: MovePlan) -> Proposal {
    let job = request.job;
    let jobs: BTreeSet<JobId> = moves.iter().map(|(mover, _)| *mover).collect();
    let (why, what, jobs) = (Why::Fragmentation { job }, What::Place, jobs.into_iter().collect());
    let mut entries = vec![Entry::Report(Reconfiguration { why, what, jobs, saves })];
    entries.extend(moves.into_iter().map(|(job, to)| Entry::Move { job, to }));
    entries.extend([
        Entry::Start { job, place, room: Room::Free },
        Entry::ReleaseReservation(job),
        Entry::UseSpareCapacity { job, end: None },
        Entry::BookStart(job),
    ]);
    Proposal { serves: Some((request, Serves::ByRearranging)), entries }
}

/// Requests that lack nothing but a place: there is enough capacity in all, and no job is leaving for them.
fn lacking_a_place<'a>(view: &View<'a>, ledger: &Ledger<'a>) -> QueueCursor<'a> {
    let refused = ledger.requests.refused.iter().filter(|refused| lacks_capacity(&refused.reason));
    let refused = refused.map(|refused| refused.request);
    let lacking: Vec<Request> = refused.chain(ledger.closed_for_lack_of_capacity(view)).collect();
    let least = LeastWork::of(view, &lacking);
    let mut queue = QueueCursor::empty(view.ranker);
    for Request { job, class } in
        lacking.into_iter().filter(|request| lacks_a_place(view, ledger, &least, request.job))
    {
        queue.stand(job, class);
    }
    queue
}

fn lacks_a_place(view: &View<'_>, ledger: &Ledger<'_>, least: &LeastWork, id: JobId) -> bool {
    let (job, draft) = (&view.snapshot.jobs[id], &ledger.draft);
    let (queue, need) = (job.spec.queue, job.spec.least());
    need.fits_in(draft.total())
        && !ledger.work.defragmented_for.contains(&id)
        && least.is_of(job, view.snapshot.now)
        && view.quota_allows(draft, job).is_ok()
        && view.leaves_unlent_quota(draft, queue, need, draft.total())
        && ledger.bookings_allow(view, id).is_ok()
        && view.snapshot.displaced.values().all(|beneficiary| *beneficiary != id)
}

/// Whether moves are searched for now; where it is too early, at the next time for it.
fn may_search(view: &View<'_>, ledger: &mut Ledger<'_>) -> bool {
    let interval = view.snapshot.tuning.decide.defragmentation_interval;
    let is_time = is_time_to_look(view, interval);
    if !is_time {
        ledger.wake_at((view.snapshot.now + Duration(1)).rounded_up(interval));
    }
    is_time && ledger.work.defragmented_for.len() < view.snapshot.tuning.decide.max_gangs_defragmented
}

/// The least work left, in GPU-time, of the jobs of each priority that lack capacity.
struct LeastWork(BTreeMap<Priority, u128>);

impl LeastWork {
    fn of(view: &View<'_>, lacking: &[Request]) -> Self {
        let mut least: BTreeMap<Priority, u128> = BTreeMap::new();
        for job in lacking.iter().map(|request| &view.snapshot.jobs[request.job]) {
            let has = least.entry(job.spec.priority).or_insert(u128::MAX);
            *has = to_do(job, view.snapshot.now).min(*has);
        }
        Self(least)
    }

    /// Whether no job of the same or a higher priority has less left to do.
    fn is_of(&self, job: &Job, now: Instant) -> bool {
        self.0.range(job.spec.priority..).all(|(_, least)| to_do(job, now) <= *least)
    }
}

/// The work left in GPU-time; a job of unknown length has the most.
fn to_do(job: &Job, now: Instant) -> u128 {
    job.remaining(now).map_or(u128::MAX, |left| GpuTime::of(job.spec.gpus(), left).0)
}
