//! The timetable put into the draft: what everybody has now.
//!
//! Who is to have less gives it back first, and who is to wait leaves. Then those who have too little, in the order of
//! deadlines, get what is free; where that does not suffice, extras of jobs without a booking, and then their places:
//! those of the least priority first, and of those who have most left to do. Where nodes do not have what the pools do,
//! because room lies in pieces, the next smaller size is tried.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::Schedule;
use super::capacity_pools::makes_room;
use super::need::Timed;
use crate::decide::admit::Rules;
use crate::decide::draft::{Draft, Reach};
use crate::decide::size::{Extras, Sizes};
use crate::decide::snapshot::Snapshot;
use crate::model::cluster::{Cluster, NodeState};
use crate::model::id::{CounterId, JobId, NodeId};
use crate::model::job::{Exit, Job, Life, Role, Shape};
use crate::model::plan::{Assignment, Part};
use crate::model::units::Resources;

/// So many at most are asked to leave for one who is booked.
const MOST_LEAVING: usize = 1000;

pub(in crate::decide) fn settle<'a>(
    rules: &Rules<'a>,
    draft: &mut Draft<'a>,
    schedule: Schedule<'a>,
) -> Bounded<'a> {
    let Schedule { timetable, jobs, stands, pools, refused } = schedule;
    draft.pools = pools;
    draft.refused = refused;
    draft.wake = draft.wake.into_iter().chain(timetable.next_change(rules.snapshot.now)).min();
    // A booking takes the place of a reservation.
    draft.reservations.retain(|kept| !timetable.governs(kept.job));
    draft.timetable = timetable;
    // Who has lost its booking gives back what it can do without, like everybody else.
    let plan = rules.snapshot.plan;
    let before = plan.timetable();
    let is_freed = |id: JobId| before.governs(id) && !draft.timetable.governs(id) && plan.get(id).is_some();
    if before.iter().any(|(id, _)| is_freed(id)) {
        draft.others_may_give_way();
    }
    if draft.timetable.entries.is_empty() {
        return Bounded::default();
    }
    let mut settling = Settling { rules, stands, others: None, bounded: Vec::new() };
    let wanted: Vec<Wanted<'a>> = jobs.into_iter().filter_map(|timed| wanted(draft, timed)).collect();
    let waits = |wanted: &Wanted<'_>| rules.snapshot.plan.get(wanted.timed.id).is_none();
    for wanted in wanted.iter().filter(|_| !stands) {
        settling.give_back(draft, &wanted.timed, wanted.members);
    }
    // Who did not get what was booked, because others could not be stopped then, gets it as soon as they can.
    for wanted in wanted.iter().filter(|wanted| !stands || waits(wanted)) {
        settling.have_more(draft, wanted);
    }
    Bounded(settling.bounded)
}

/// Those who are booked and wait for what their queues may hold.
#[derive(Default)]
pub(in crate::decide) struct Bounded<'a>(Vec<Wanted<'a>>);

impl<'a> Bounded<'a> {
    /// Others of their queues may have been told to leave since.
    pub(in crate::decide) fn look_again(self, rules: &Rules<'a>, draft: &mut Draft<'a>) {
        if draft.report.displaced.is_empty() {
            return;
        }
        let mut settling = Settling { rules, stands: true, others: None, bounded: Vec::new() };
        for wanted in self.0 {
            settling.have_more(draft, &wanted);
        }
    }
}

/// So many members for a job, on a node where it is bound to one.
#[derive(Clone)]
struct Wanted<'a> {
    timed: Timed<'a>,
    members: u32,
    node: Option<NodeId>,
}

/// What a job is to have now, if that is a matter of the timetable and something can be done about it.
fn wanted<'a>(draft: &Draft<'a>, timed: Timed<'a>) -> Option<Wanted<'a>> {
    let entry = draft.timetable.get(timed.id).filter(|_| draft.timetable.governs(timed.id))?;
    let members = entry.booking.as_ref().map_or(0, |booking| booking.members_at(draft.snapshot.now));
    let node = entry.node;
    let can_be_told = match timed.job.life {
        Life::Queued | Life::Preempted | Life::Leaving { exit: Exit::Preempt, .. } => {
            timed.job.not_before <= draft.snapshot.now
        }
        Life::Running(_) => timed.job.not_before <= draft.snapshot.now,
        Life::Starting(_) | Life::Resizing { .. } | Life::Moving { .. } => {
            timed.job.spec.capabilities.suspend
        }
        _ => false,
    };
    can_be_told.then_some(Wanted { timed, members, node })
}

struct Settling<'s, 'a> {
    rules: &'s Rules<'a>,
    stands: bool,
    /// Those without a booking who may be stopped, whoever goes first first.
    others: Option<Vec<JobId>>,
    /// Who waits, and is kept from its place by what its queue may hold.
    bounded: Vec<Wanted<'a>>,
}

impl<'a> Settling<'_, 'a> {
    /// Who has more than it is to have gives that back; who is to have nothing leaves.
    fn give_back(&mut self, draft: &mut Draft<'a>, timed: &Timed<'a>, members: u32) {
        let Some(held) = draft.snapshot.plan.get(timed.id).cloned() else { return };
        let has = timed.members(&held);
        let spec = &timed.job.spec;
        if members == 0 && spec.capabilities.suspend {
            draft.evict(timed.id, spec, &held);
        } else if (1..has).contains(&members)
            && let Some(gang) = Extras::of(timed.id, timed.job).filter(|gang| gang.may_be_resized())
            && let Some(smaller) = gang.with_fewer(draft.snapshot.cluster, &held, has - members)
            && takes_members(draft.snapshot.cluster, &smaller)
        {
            draft.resize(timed.id, spec, &held, Arc::new(smaller));
        }
    }

    /// As many members as it is to have, or as many as can be had.
    fn have_more(&mut self, draft: &mut Draft<'a>, wanted: &Wanted<'a>) {
        let Wanted { timed, members, node } = wanted;
        let has = draft.snapshot.plan.get(timed.id).map_or(0, |held| timed.members(held));
        let sizes = timed.need.sizes.iter().rev().map(|size| size.members);
        let mut bounded = false;
        for size in sizes.filter(|size| size <= members && *size > has) {
            let allowed = self.queue_allows(draft, timed, size);
            bounded |= !allowed;
            if allowed && self.give(draft, &Wish { timed, members: size, node: *node }) {
                return;
            }
        }
        if bounded && has == 0 {
            self.bounded.push(wanted.clone());
        }
    }

    /// What is wished, of what is free or what others leave.
    fn give(&mut self, draft: &mut Draft<'a>, wish: &Wish<'_, 'a>) -> bool {
        let found = wish.place(self.rules, draft, Reach::Unclaimed);
        let found = found.or_else(|| self.make_room(draft, wish));
        found.is_some_and(|found| wish.take(draft, found))
    }

    fn queue_allows(&self, draft: &Draft<'a>, timed: &Timed<'a>, members: u32) -> bool {
        let spec = &timed.job.spec;
        let held = draft.snapshot.plan.get(timed.id).map_or(Resources::NONE, |held| held.total());
        let more = total(timed, members) - held;
        self.rules.quota_leaves(draft.queues(), draft.held(), spec, more).is_ok()
    }

    /// Has as few as will do leave of those without a booking, and says where there is room then.
    fn make_room(&mut self, draft: &mut Draft<'a>, wish: &Wish<'_, 'a>) -> Option<Assignment> {
        let rules = self.rules;
        let others = self.others.take().unwrap_or_else(|| self.others(draft));
        let others = self.others.insert(others);
        let jobs = rules.snapshot.jobs;
        let held = |id: &JobId| draft.snapshot.plan.get(*id).cloned();
        let of_use = |held: &Assignment| wish.node.is_none_or(|node| held.touches(node));
        let left = others.iter().filter(|id| !draft.is_changed(**id));
        let left = left.filter_map(|id| Some((*id, held(id)?))).filter(|(_, held)| of_use(held));
        let left: Vec<(JobId, Arc<Assignment>)> = left.take(MOST_LEAVING).collect();
        let mut trial = draft.trial();
        let mut gone = 0;
        let found = left.iter().find_map(|(id, held)| {
            trial.release(&jobs[*id], held);
            trial.forget_fits();
            gone += 1;
            wish.place(rules, &mut trial, Reach::Claimed)
        })?;
        for (id, held) in left[..gone].iter().filter(|(_, held)| held.nodes().any(|node| found.touches(node)))
        {
            draft.evict(*id, &jobs[*id].spec, held);
            draft.report.displaced.push((*id, wish.timed.id));
        }
        Some(found)
    }
}

/// A size for a job, on a node where it is bound to one.
struct Wish<'w, 'a> {
    timed: &'w Timed<'a>,
    members: u32,
    node: Option<NodeId>,
}

impl<'a> Wish<'_, 'a> {
    /// Where that many would be; nothing is taken.
    fn place(&self, rules: &Rules<'a>, draft: &mut Draft<'a>, reach: Reach) -> Option<Assignment> {
        let (id, job) = (self.timed.id, self.timed.job);
        match (draft.snapshot.plan.get(id), self.node) {
            (Some(held), _) => {
                let gang = Extras::of(id, job)?;
                let larger = gang.with_more(draft, held, self.members - gang.members(held), reach);
                larger.filter(|larger| takes_members(draft.snapshot.cluster, larger))
            }
            (None, Some(node)) => self.place_on(draft, node, reach),
            (None, None) => {
                let mark = draft.mark();
                let sizes = Extras::of(id, job).map_or(Sizes::Least, |_| Sizes::Exactly(self.members));
                let placed = rules.placer.place(draft, job, sizes, reach).ok();
                draft.rollback(mark);
                placed
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

    fn take(&self, draft: &mut Draft<'a>, found: Assignment) -> bool {
        let (id, job) = (self.timed.id, self.timed.job);
        match draft.snapshot.plan.get(id) {
            Some(held) => draft.resize(id, &job.spec, held, Arc::new(found)),
            None => {
                draft.settle(id, job, found);
                true
            }
        }
    }
}

/// Whether a gang of another size could be there: whoever has members on a node that takes none goes on as it is.
fn takes_members(cluster: &Cluster, place: &Assignment) -> bool {
    place.nodes().all(|node| cluster.node(node).state == NodeState::Ready)
}

/// What so many of each shape take of one node, as one.
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

fn total(timed: &Timed<'_>, members: u32) -> Resources {
    match Extras::of(timed.id, timed.job) {
        Some(gang) => gang.total_with(members),
        None => timed.job.spec.least(),
    }
}

impl Settling<'_, '_> {
    /// Those in the plan without a booking who may be stopped now, whoever goes first first.
    fn others(&self, draft: &Draft<'_>) -> Vec<JobId> {
        let Snapshot { jobs, plan, now, .. } = *self.rules.snapshot;
        let unbooked = plan.iter().filter(|(id, _)| !draft.timetable.governs(*id) && !draft.is_changed(*id));
        let may = unbooked.filter(|(id, held)| self.may_be_stopped(&jobs[*id], held));
        let mut ids: Vec<JobId> = may.map(|(id, _)| id).collect();
        let left = |job: &Job| job.remaining(now);
        ids.sort_by_key(|id| (jobs[*id].spec.priority, Reverse(left(&jobs[*id])), Reverse(*id)));
        ids
    }

    /// Who is on its way somewhere is stopped only where the timetable is new: it may have been sent there because this one
    /// could not be carried out.
    fn may_be_stopped(&self, job: &Job, held: &Arc<Assignment>) -> bool {
        let Snapshot { now, min_run, .. } = *self.rules.snapshot;
        let runs = match &job.life {
            Life::Running(there) => there == held,
            Life::Starting(_) | Life::Resizing { .. } | Life::Moving { .. } => !self.stands,
            _ => false,
        };
        let ripe = job.ripe(min_run).is_none_or(|ripe| ripe <= now);
        runs && ripe && job.not_before <= now && makes_room(job)
    }
}
