//! Jobs with deadlines get what the timetable books for them now.
//!
//! A job that is to have less gives it back first, and a job that is to wait leaves. Then the jobs that have too little, in
//! the order of deadlines, get free capacity; where that does not suffice, jobs without a booking leave: those of the
//! lowest priority first, and of those the jobs with most left to do. Where nodes do not have what the pools have, because
//! capacity lies in pieces, the next smaller size is tried.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::decide::deadlines::{BookedSize, DeadlineJob, makes_room};
use crate::decide::draft::{Draft, Reach};
use crate::decide::elastic_gang::ElasticGang;
use crate::decide::gang_size::GangSize;
use crate::decide::ledger::{Entry, Ledger, Proposal, Room};
use crate::decide::placement;
use crate::decide::proposer::Proposer;
use crate::decide::snapshot::Snapshot;
use crate::decide::view::View;
use crate::model::cluster::{Cluster, NodeState};
use crate::model::id::{CounterId, JobId, NodeId};
use crate::model::job::{ExitReason, Job, Life, Role, Shape};
use crate::model::plan::{Assignment, Part};
use crate::model::units::Resources;

/// Puts the timetable into the plan, job by job.
#[derive(Default)]
pub(in crate::decide) struct Bookings<'a> {
    giving_back: Option<VecDeque<BookedSize<'a>>>,
    growing: Growing<'a>,
}

impl<'a> Proposer<'a> for Bookings<'a> {
    fn propose(&mut self, view: &View<'a>, ledger: &mut Ledger<'a>) -> Option<Proposal> {
        if self.giving_back.is_none() {
            self.open(view, ledger);
        }
        while let Some(BookedSize { timed, members, .. }) = self.giving_back.as_mut()?.pop_front() {
            if let Some(entry) = give_back(view, &timed, members) {
                return Some(Proposal::of(vec![entry]));
            }
        }
        self.growing.next(view, ledger)
    }
}

/// Serves bookings again that quotas held up, once jobs were evicted: they may have been of the same queues.
#[derive(Default)]
pub(in crate::decide) struct BookingsOverQuota<'a> {
    growing: Growing<'a>,
}

impl<'a> Proposer<'a> for BookingsOverQuota<'a> {
    fn propose(&mut self, view: &View<'a>, ledger: &mut Ledger<'a>) -> Option<Proposal> {
        if ledger.report.displaced.is_empty() {
            return None;
        }
        let again = std::mem::take(&mut ledger.bookings.over_quota);
        if !again.is_empty() && self.growing.is_done() {
            self.growing = Growing { stands: true, queue: again.into(), ..Growing::default() };
        }
        let proposal = self.growing.next(view, ledger);
        ledger.bookings.over_quota.clear();
        proposal
    }
}

impl<'a> Bookings<'a> {
    fn open(&mut self, view: &View<'a>, ledger: &mut Ledger<'a>) {
        let Snapshot { plan, now, .. } = *view.snapshot;
        let before = plan.timetable();
        // A booking takes the place of a reservation.
        let timetable = &ledger.bookings.timetable;
        ledger.draft.reservations.retain(|kept| !timetable.governs(kept.job));
        ledger.bookings.timetable.next_change(now).into_iter().for_each(|at| ledger.wake_at(at));
        // A job that has lost its booking gives back what it can do without, like every other job.
        let is_freed =
            |id: JobId| before.governs(id) && !ledger.bookings.govern(id) && plan.get(id).is_some();
        if before.iter().any(|(id, _)| is_freed(id)) {
            ledger.draft.reopen_classes();
        }
        let stands = ledger.bookings.stands;
        let jobs = std::mem::take(&mut ledger.bookings.jobs);
        if ledger.bookings.timetable.entries.is_empty() {
            self.giving_back = Some(VecDeque::new());
            return;
        }
        let booked: VecDeque<BookedSize<'a>> =
            jobs.into_iter().filter_map(|timed| booked_now(view, ledger, timed)).collect();
        // A job that did not get what was booked, because no job could be stopped then, gets it as soon as one can.
        let waits = |booked: &BookedSize<'_>| plan.get(booked.timed.id).is_none();
        let growing = booked.iter().filter(|booked| !stands || waits(booked)).cloned().collect();
        self.growing = Growing { stands, queue: growing, ..Growing::default() };
        self.giving_back = Some(if stands { VecDeque::new() } else { booked });
    }
}

/// What a job is to have now, where the timetable decides that and the job can be told.
fn booked_now<'a>(view: &View<'a>, ledger: &Ledger<'a>, timed: DeadlineJob<'a>) -> Option<BookedSize<'a>> {
    let now = view.snapshot.now;
    let entry = ledger.bookings.timetable.get(timed.id).filter(|_| ledger.bookings.govern(timed.id))?;
    let members = entry.booking.as_ref().map_or(0, |booking| booking.members_at(now));
    let node = entry.node;
    let can_be_told = match timed.job.life {
        Life::Queued | Life::Preempted | Life::Leaving { exit: ExitReason::Preempt, .. } => {
            timed.job.not_before <= now
        }
        Life::Running(_) => timed.job.not_before <= now,
        Life::Starting(_) | Life::Resizing { .. } | Life::Moving { .. } => {
            timed.job.spec.capabilities.suspend
        }
        _ => false,
    };
    can_be_told.then_some(BookedSize { timed, members, node })
}

/// The smaller size of a job that has more than it is to have; its eviction where it is to have nothing.
fn give_back(view: &View<'_>, timed: &DeadlineJob<'_>, members: u32) -> Option<Entry> {
    let held = view.snapshot.plan.get(timed.id)?.clone();
    let (job, has) = (timed.id, timed.members(&held));
    if members == 0 && timed.job.spec.capabilities.suspend {
        return Some(Entry::Evict { job, place: held, beneficiary: None });
    }
    let shrinks = (1..has).contains(&members);
    let gang = ElasticGang::of(job, timed.job).filter(|gang| shrinks && gang.may_be_resized())?;
    let smaller = gang.with_fewer(view.snapshot.cluster, &held, has - members)?;
    let takes = takes_members(view.snapshot.cluster, &smaller);
    takes.then(|| Entry::Resize { job, from: held, to: Arc::new(smaller) })
}

/// Jobs that are to have more members, one after the other.
#[derive(Default)]
struct Growing<'a> {
    /// Whether the timetable is that of an earlier decision.
    stands: bool,
    queue: VecDeque<BookedSize<'a>>,
    current: Option<Wanted<'a>>,
    /// Jobs without a booking that may be stopped, in the order in which they leave.
    others: Option<Vec<JobId>>,
}

/// A job that is to have more members, and the sizes that were not tried yet.
struct Wanted<'a> {
    booked: BookedSize<'a>,
    sizes: VecDeque<u32>,
    over_quota: bool,
}

impl<'a> Growing<'a> {
    fn is_done(&self) -> bool {
        self.queue.is_empty() && self.current.is_none()
    }

    /// The next job that gets more, at the largest size of those booked that can be had.
    fn next(&mut self, view: &View<'a>, ledger: &mut Ledger<'a>) -> Option<Proposal> {
        loop {
            if let Some(mut wanted) = self.current.take() {
                let id = wanted.booked.timed.id;
                if ledger.draft.assigned(id).is_some() {
                    continue;
                }
                if let Some(entries) = self.largest(view, ledger, &mut wanted) {
                    self.current = Some(wanted);
                    return Some(Proposal::of(entries));
                }
                if wanted.over_quota && view.snapshot.plan.get(id).is_none() {
                    ledger.bookings.over_quota.push(wanted.booked);
                }
            }
            let booked = self.queue.pop_front()?;
            let has = view.snapshot.plan.get(booked.timed.id).map_or(0, |held| booked.timed.members(held));
            let sizes = booked.timed.need.sizes.iter().rev().map(|size| size.members);
            let sizes = sizes.filter(|size| *size <= booked.members && *size > has).collect();
            self.current = Some(Wanted { booked, sizes, over_quota: false });
        }
    }

    fn largest(
        &mut self,
        view: &View<'a>,
        ledger: &mut Ledger<'a>,
        wanted: &mut Wanted<'a>,
    ) -> Option<Vec<Entry>> {
        while let Some(members) = wanted.sizes.pop_front() {
            let BookedSize { timed, node, .. } = &wanted.booked;
            if !quota_allows(view, &ledger.draft, timed, members) {
                wanted.over_quota = true;
                continue;
            }
            let wish = Wish { timed, members, node: *node };
            let found =
                wish.place(view, &mut ledger.draft, Reach::Unclaimed).map(|place| (Vec::new(), place));
            let found = found.or_else(|| self.make_room(view, ledger, &wish));
            if let Some((mut entries, place)) = found {
                entries.push(wish.taken(view, place));
                return Some(entries);
            }
        }
        None
    }

    /// The evictions of as few jobs without a booking as suffice, and the place then.
    fn make_room(
        &mut self,
        view: &View<'a>,
        ledger: &Ledger<'a>,
        wish: &Wish<'_, 'a>,
    ) -> Option<(Vec<Entry>, Assignment)> {
        let (draft, jobs) = (&ledger.draft, view.snapshot.jobs);
        let others = self.others.take().unwrap_or_else(|| self.others(view, ledger));
        let others = self.others.insert(others);
        let held = |id: &JobId| view.snapshot.plan.get(*id).cloned();
        let of_use = |held: &Assignment| wish.node.is_none_or(|node| held.touches(node));
        let left = others.iter().filter(|id| !draft.is_changed(**id));
        let left = left.filter_map(|id| Some((*id, held(id)?))).filter(|(_, held)| of_use(held));
        let left: Vec<(JobId, Arc<Assignment>)> =
            left.take(view.snapshot.tuning.decide.max_evictions_per_booking).collect();
        let mut trial = draft.trial();
        let mut gone = 0;
        let found = left.iter().find_map(|(id, held)| {
            trial.release(&jobs[*id], held);
            trial.forget_fits();
            gone += 1;
            wish.place(view, &mut trial, Reach::Claimed)
        })?;
        let leaving =
            left.into_iter().take(gone).filter(|(_, held)| held.nodes().any(|node| found.touches(node)));
        let beneficiary = Some(wish.timed.id);
        let entries = leaving.map(|(job, place)| Entry::Evict { job, place, beneficiary }).collect();
        Some((entries, found))
    }

    /// Jobs in the plan without a booking that may be stopped now, in the order in which they leave.
    fn others(&self, view: &View<'a>, ledger: &Ledger<'a>) -> Vec<JobId> {
        let Snapshot { jobs, plan, now, .. } = *view.snapshot;
        let unbooked =
            plan.iter().filter(|(id, _)| !ledger.bookings.govern(*id) && !ledger.draft.is_changed(*id));
        let may = unbooked.filter(|(id, held)| self.may_be_stopped(view, &jobs[*id], held));
        let mut ids: Vec<JobId> = may.map(|(id, _)| id).collect();
        let left = |job: &Job| job.remaining(now);
        ids.sort_by_key(|id| (jobs[*id].spec.priority, Reverse(left(&jobs[*id])), Reverse(*id)));
        ids
    }

    /// A job that is starting, moving or being resized is stopped only where the timetable is new: it may have been sent
    /// there because this timetable could not be carried out.
    fn may_be_stopped(&self, view: &View<'a>, job: &Job, held: &Arc<Assignment>) -> bool {
        let Snapshot { now, min_run, .. } = *view.snapshot;
        let runs = match &job.life {
            Life::Running(there) => there == held,
            Life::Starting(_) | Life::Resizing { .. } | Life::Moving { .. } => !self.stands,
            _ => false,
        };
        let ripe = job.ripe(min_run).is_none_or(|ripe| ripe <= now);
        runs && ripe && job.not_before <= now && makes_room(job)
    }
}

fn quota_allows(view: &View<'_>, draft: &Draft<'_>, timed: &DeadlineJob<'_>, members: u32) -> bool {
    let held = view.snapshot.plan.get(timed.id).map_or(Resources::NONE, |held| held.total());
    let more = total(timed, members) - held;
    view.quota_leaves(draft.queues(), draft.held(), &timed.job.spec, more).is_ok()
}

/// A size for a job, on a node where it is bound to one.
struct Wish<'w, 'a> {
    timed: &'w DeadlineJob<'a>,
    members: u32,
    node: Option<NodeId>,
}

impl<'a> Wish<'_, 'a> {
    /// Where that many members would be; nothing is taken.
    fn place(&self, view: &View<'a>, draft: &mut Draft<'a>, reach: Reach) -> Option<Assignment> {
        let (id, job) = (self.timed.id, self.timed.job);
        match (draft.snapshot.plan.get(id), self.node) {
            (Some(held), _) => {
                let gang = ElasticGang::of(id, job)?;
                let larger = gang.with_more(draft, held, self.members - gang.members(held), reach);
                larger.filter(|larger| takes_members(draft.snapshot.cluster, larger))
            }
            (None, Some(node)) => self.place_on(draft, node, reach),
            (None, None) => {
                let elastic = ElasticGang::of(id, job);
                let size = elastic.map_or(GangSize::Minimum, |_| GangSize::Exactly(self.members));
                placement::fit(view, draft, job, size, reach).ok()
            }
        }
    }

    fn place_on(&self, draft: &Draft<'a>, node: NodeId, reach: Reach) -> Option<Assignment> {
        let spec = &self.timed.job.spec;
        let members = |role: &Role| if role.gang.is_elastic() { self.members } else { role.gang.min() };
        let parts = (0u8..).zip(&spec.roles).map(|(index, role)| Part::of(index, node, members(role)));
        let forbidden = spec.roles.iter().any(|role| draft.forbid(&role.shape, node).is_some());
        let together = together(spec.roles.iter().map(|role| (&role.shape, members(role))));
        let fits = !forbidden && draft.fit_on(node, &together, reach) > 0;
        fits.then(|| Assignment::whole(spec, parts.collect()).ok()).flatten()
    }

    /// The entry by which the job gets a place.
    fn taken(&self, view: &View<'a>, place: Assignment) -> Entry {
        let job = self.timed.id;
        match view.snapshot.plan.get(job) {
            Some(held) => Entry::Resize { job, from: held.clone(), to: Arc::new(place) },
            None => Entry::Start { job, place, room: Room::Free },
        }
    }
}

/// Whether every node of a place takes members: a gang with members on another node keeps its size.
fn takes_members(cluster: &Cluster, place: &Assignment) -> bool {
    place.nodes().all(|node| cluster.node(node).state == NodeState::Ready)
}

/// Members of several shapes as one shape, to ask whether one node takes them together.
fn together<'s>(shapes: impl Iterator<Item = (&'s Shape, u32)>) -> Shape {
    let mut all = Shape::default();
    let mut counters: BTreeMap<CounterId, u64> = BTreeMap::new();
    for (shape, members) in shapes {
        let members = u64::from(members);
        all.each = all.each + shape.each.times(members);
        all.on = shape.on;
        for (counter, count) in &*shape.counters {
            *counters.entry(*counter).or_default() += count * members;
        }
    }
    Shape { counters: counters.into_iter().collect(), ..all }
}

fn total(timed: &DeadlineJob<'_>, members: u32) -> Resources {
    match ElasticGang::of(timed.id, timed.job) {
        Some(gang) => gang.total_with(members),
        None => timed.job.spec.least(),
    }
}
