//! Gangs with a declared scaling share what they have and what is free by the marginal gain of more members, as
//! measured where it was.
//!
//! Each gang is thought to have its minimum. Then, one size after the other, more members go to the gang that comes
//! nearest to its end by it: the part of its time that is saved for each GPU, and more for a gang that has little
//! left, because it soon gives its members back. A gang that starts gets its size at once. A running gang saves its
//! work and starts again at another size, so it must have rested, and all gangs together must save more than that
//! costs. No gang gives members back that no other gang gets.
//!
//! While a gang is on its way to another size no other is resized: so deciding again changes nothing.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;

use crate::decide::draft::{Draft, Reach};
use crate::decide::elastic_gang::ElasticGang;
use crate::decide::growth_cost::{is_weighed, pays};
use crate::decide::ledger::Ledger;
use crate::decide::snapshot::Snapshot;
use crate::decide::view::View;
use crate::model::id::JobId;
use crate::model::job::Life;
use crate::model::plan::Assignment;
use crate::model::units::{Duration, Instant};
use crate::observe::progress::WorkPace;
use crate::observe::scaling::{Scaling, Speed};

/// Gives each gang with a declared scaling the size at which all end soonest.
pub(super) fn share_out<'a>(view: &View<'a>, ledger: &mut Ledger<'a>) {
    let sharers: Vec<Sharer<'a>> = starting(ledger).into_iter().chain(rested(ledger)).collect();
    let draft = &mut ledger.draft;
    let (free, min_gain) = (draft.total().gpus.0, view.snapshot.tuning.decide.min_resize_gain);
    let mut wanted = wanted(&sharers, free);
    let mut changes = worth_it(&sharers, &wanted, free, min_gain);
    while let Some(at) = too_dear_on_links(view, draft, &sharers, &changes) {
        wanted[at] = sharers[at].next_smaller(wanted[at]);
        changes = worth_it(&sharers, &wanted, free, min_gain);
    }
    for (sharer, members) in changes.iter().filter(|(sharer, members)| *members < sharer.members) {
        sharer.resize(view, draft, *members);
    }
    for (sharer, members) in changes.iter().filter(|(sharer, members)| *members > sharer.members) {
        sharer.resize(view, draft, *members);
    }
}

/// A gang that would grow so that all jobs lose more by it on links than it saves, once the others have given members
/// back.
fn too_dear_on_links<'a>(
    view: &View<'a>,
    draft: &Draft<'a>,
    sharers: &[Sharer<'a>],
    changes: &[(&Sharer<'a>, u32)],
) -> Option<usize> {
    if !changes.iter().any(|(sharer, _)| is_weighed(view, draft, &sharer.gang)) {
        return None;
    }
    let mut trial = draft.trial();
    trial.contention = draft.contention.clone();
    let (fewer, more): (Vec<_>, Vec<_>) = changes.iter().partition(|(one, members)| *members < one.members);
    fewer.iter().for_each(|(sharer, members)| sharer.resize(view, &mut trial, *members));
    let dear = more.into_iter().find(|(sharer, members)| {
        sharer.resize(view, &mut trial, *members);
        let after = trial.assigned(sharer.gang.id);
        after.is_some_and(|after| !pays(view, &trial, &sharer.gang, &sharer.held, after, sharer.cost))
    });
    let dear = dear.map(|(sharer, _)| sharer.gang.id)?;
    sharers.iter().position(|sharer| sharer.gang.id == dear)
}

/// A gang with a declared scaling, and where it is.
struct Sharer<'a> {
    gang: ElasticGang<'a>,
    scaling: Cow<'a, Scaling>,
    held: Arc<Assignment>,
    members: u32,
    /// At the least size.
    left: Duration,
    /// What another size costs it.
    cost: Duration,
}

/// Whether the marginal gain decides the size of a gang.
pub(super) fn says_how_it_scales(gang: &ElasticGang<'_>, now: Instant) -> bool {
    let spec = &gang.job.spec;
    let left = gang.job.foreseen(now).is_some_and(|left| !left.is_zero());
    spec.scaling.is_some()
        && left
        && spec.capabilities.rescale
        && !gang.each().gpus.is_zero()
        && gang.unit() == 1
}

fn starting<'a>(ledger: &Ledger<'a>) -> Vec<Sharer<'a>> {
    let draft = &ledger.draft;
    let jobs = draft.snapshot.jobs;
    let waited = draft.starting().filter(|(id, _)| jobs[*id].life.is_waiting());
    let cost = Duration::ZERO;
    waited.filter_map(|(id, held)| sharer(ledger, id, held)).map(|one| Sharer { cost, ..one }).collect()
}

/// Running gangs that may change their size; the next of the others is waited for.
fn rested<'a>(ledger: &mut Ledger<'a>) -> Vec<Sharer<'a>> {
    let draft = &ledger.draft;
    let Snapshot { elastic, plan, now, .. } = *draft.snapshot;
    let unchanged = elastic.iter().filter(|id| !draft.is_changed(**id));
    let planned: Vec<Sharer<'a>> = unchanged.filter_map(|id| sharer(ledger, *id, plan.get(*id)?)).collect();
    if planned.iter().any(Sharer::is_on_its_way) {
        return Vec::new();
    }
    let interval = draft.snapshot.tuning.decide.resize_interval;
    let rests = |one: &Sharer<'a>| one.gang.job.ripe(interval).filter(|rested| *rested > now);
    planned.iter().filter_map(rests).for_each(|at| ledger.wake_at(at));
    let snapshot = ledger.draft.snapshot;
    let may_change = |one: &Sharer<'a>| one.gang.may_change(snapshot, &one.held);
    planned.into_iter().filter(|one| rests(one).is_none() && may_change(one)).collect()
}

fn sharer<'a>(ledger: &Ledger<'a>, id: JobId, held: &Arc<Assignment>) -> Option<Sharer<'a>> {
    let snapshot = ledger.draft.snapshot;
    let (job, now) = (&snapshot.jobs[id], snapshot.now);
    let gang = ElasticGang::of(id, job).filter(|gang| says_how_it_scales(gang, now))?;
    if ledger.bookings.govern(id) || !ledger.bookings.allow_extra_members(job) {
        return None;
    }
    let (scaling, left) = (job.scaling()?, job.foreseen(now)?);
    let (members, cost) = (gang.members(held), gang.cost());
    Some(Sharer { gang, scaling, held: held.clone(), members, left, cost })
}

impl<'a> Sharer<'a> {
    /// Whether it is on its way to another size or place.
    fn is_on_its_way(&self) -> bool {
        !matches!(&self.gang.job.life, Life::Running(there) if *there == self.held)
    }

    fn sizes(&self) -> &[(u32, Speed)] {
        self.scaling.useful()
    }

    /// The next size below one that it might grow to; the one it has, at last.
    fn next_smaller(&self, members: u32) -> u32 {
        let smaller = self.sizes().iter().map(|(size, _)| *size).filter(|size| *size < members);
        smaller.max().unwrap_or(0).max(self.members)
    }

    fn time(&self, members: u32) -> Duration {
        WorkPace::at(self.scaling.speed(members)).time(self.left)
    }

    /// What it loses by another size for some time.
    fn loses(&self, members: u32, time: Duration) -> Duration {
        let pace = |members: u32| WorkPace::at(self.scaling.speed(members));
        let time = time.min(self.time(self.members));
        let done = pace(members).work(time).min(pace(self.members).work(time));
        (time - pace(self.members).time(done)) + self.cost
    }

    fn gpus(&self, members: u32) -> u64 {
        self.gang.each().gpus.0 * u64::from(members)
    }

    fn resize(&self, view: &View<'a>, draft: &mut Draft<'a>, members: u32) {
        let (spec, cluster) = (&self.gang.job.spec, draft.snapshot.cluster);
        let other = match members.checked_sub(self.members) {
            None => self.gang.with_fewer(cluster, &self.held, self.members - members),
            Some(more) => {
                let need = self.gang.of_one().times(u64::from(more));
                let may = view.quota_leaves(draft.queues(), draft.held(), spec, need).is_ok()
                    && view.leaves_unlent_quota(draft, spec.queue, need, draft.total());
                may.then(|| self.gang.with_more(draft, &self.held, more, Reach::Unclaimed)).flatten()
            }
        };
        if let Some(other) = other {
            draft.resize(self.gang.id, spec, &self.held, Arc::new(other));
        }
    }
}

/// The sizes that gangs would have if all members were handed out anew.
fn wanted(sharers: &[Sharer<'_>], free: u64) -> Vec<u32> {
    let least = |sharer: &Sharer<'_>| sharer.gang.least();
    let mut sizes: Vec<u32> = sharers.iter().map(least).collect();
    let held: u64 = sharers.iter().map(|sharer| sharer.gpus(sharer.members)).sum();
    let kept: u64 = sharers.iter().map(|sharer| sharer.gpus(least(sharer))).sum();
    let mut room = (held + free).saturating_sub(kept);
    let mut offers: BinaryHeap<Offer> =
        (0..sharers.len()).filter_map(|at| best(&sharers[at], at, sizes[at], room)).collect();
    while let Some(offer) = offers.pop() {
        let sharer = &sharers[offer.at];
        let more = sharer.gpus(offer.members) - sharer.gpus(sizes[offer.at]);
        if more <= room {
            room -= more;
            sizes[offer.at] = offer.members;
        }
        offers.extend(best(sharer, offer.at, sizes[offer.at], room));
    }
    sizes
}

/// A larger size for one of them, and what it is worth.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Offer {
    worth: f64,
    at: usize,
    members: u32,
}

impl Eq for Offer {}

impl Ord for Offer {
    /// The most valuable change is the greatest; of equal ones the first.
    fn cmp(&self, other: &Self) -> Ordering {
        self.worth.total_cmp(&other.worth).then(other.at.cmp(&self.at)).then(other.members.cmp(&self.members))
    }
}

impl PartialOrd for Offer {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The best of all larger sizes that fit: the next may be worth little, and the one after it much.
fn best(sharer: &Sharer<'_>, at: usize, members: u32, room: u64) -> Option<Offer> {
    let now = sharer.time(members).as_secs_f64();
    let larger = sharer.sizes().iter().map(|(size, _)| *size).filter(|size| *size > members);
    let fitting = larger.filter(|size| sharer.gpus(*size) - sharer.gpus(members) <= room);
    let offer = |size: u32| {
        let saved = (now / sharer.time(size).as_secs_f64()).ln();
        let gpus = (sharer.gpus(size) - sharer.gpus(members)) as f64;
        Offer { worth: saved / gpus / now.sqrt(), at, members: size }
    };
    fitting.map(offer).filter(|offer| offer.worth > 0.0).max()
}

/// The sizes that change. Growth that saves little is left out, members are given back only as far as other gangs get
/// them, and all changes together must save more than they cost.
fn worth_it<'s, 'a>(
    sharers: &'s [Sharer<'a>],
    wanted: &[u32],
    free: u64,
    min_gain: u64,
) -> Vec<(&'s Sharer<'a>, u32)> {
    let pairs = || sharers.iter().zip(wanted.iter().copied());
    let saves = |(sharer, members): &(&Sharer<'_>, u32)| sharer.time(sharer.members) - sharer.time(*members);
    let grows =
        |pair: &(&Sharer<'_>, u32)| pair.1 > pair.0.members && saves(pair) > pair.0.cost.times(min_gain);
    let mut changes: Vec<(&Sharer<'a>, u32)> = pairs().filter(grows).collect();
    let more: u64 = changes.iter().map(|(one, members)| one.gpus(*members) - one.gpus(one.members)).sum();
    let mut lacking = more.saturating_sub(free);
    for (sharer, members) in pairs().filter(|(sharer, members)| *members < sharer.members) {
        if lacking > 0 {
            lacking = lacking.saturating_sub(sharer.gpus(sharer.members) - sharer.gpus(members));
            changes.push((sharer, members));
        }
    }
    // Members that are given back are missed until the gangs that get them have ended.
    let grown = changes.iter().filter(|(one, members)| *members > one.members);
    let until = grown.map(|(one, members)| one.time(*members)).max().unwrap_or_default();
    let won: u128 = changes.iter().map(|pair| u128::from(saves(pair).0)).sum();
    let lost: u128 = changes.iter().map(|(one, members)| u128::from(one.loses(*members, until).0)).sum();
    if won > lost && lacking == 0 { changes } else { Vec::new() }
}
