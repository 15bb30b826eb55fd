//! Elastic gangs get more members from capacity that no waiting job could use.
//!
//! Gangs that start in this decision come first, because more members cost them nothing: one member at a time, or one team
//! (`Teams`), goes to the gang that gains most by it, time saved for each GPU. Sizes that are not worth it to all jobs on the
//! same links are left out (`growth_cost`). A running gang has to save its work and start again, however many members it
//! gets; so one gang after the other grows as far as it can, if the time it saves is worth more than twice that, and
//! no gang that was started or resized just before.
//!
//! Capacity is spare only while no waiting job might use it: every one that waits is kept from running by its quota even if
//! all gangs gave back their extra members. A gang that cannot give members back has extra ones only while no job waits.

mod marginal_gain;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::decide::draft::Draft;
use crate::decide::elastic_gang::ElasticGang;
use crate::decide::growth_cost::{is_weighed, pays};
use crate::decide::infeasible::hopeless;
use crate::decide::ledger::{Entry, Ledger, Proposal, head_blocks};
use crate::decide::proposer::Proposer;
use crate::decide::snapshot::{Class, Snapshot};
use crate::decide::view::View;
use crate::model::id::JobId;
use crate::model::plan::Assignment;
use crate::model::policy::Sizing;
use crate::model::queue::Holdings;
use crate::model::units::{Duration, Instant};
use crate::observe::progress::WorkPace;
use marginal_gain::{says_how_it_scales, share_out};

/// Proposes the sizes of all gangs that change. They are tried one after the other in the draft, each beside those before.
#[derive(Default)]
pub(in crate::decide) struct Grow;

impl<'a> Proposer<'a> for Grow {
    fn propose(&mut self, view: &View<'a>, ledger: &mut Ledger<'a>) -> Option<Proposal> {
        let reserved = !ledger.draft.reservations.is_empty();
        let unsettled = ledger.report.cut_short || reserved || is_a_job_leaving(ledger);
        if view.policy.sizing == Sizing::Least || head_blocks(view) || unsettled {
            return None;
        }
        let (starting, running) = (starting(ledger), running(ledger));
        if view.snapshot.elastic.is_empty() && starting.is_empty() || !is_capacity_spare(view, ledger) {
            return None;
        }
        let before = sizes_of(ledger);
        share_out(view, ledger);
        let says = |gang: &ElasticGang<'_>| says_how_it_scales(gang, view.snapshot.now);
        grow_starting_gangs(view, ledger, starting.into_iter().filter(|gang| !says(gang)).collect());
        grow_running_gangs(view, ledger, running.into_iter().filter(|gang| !says(gang)).collect());
        put_back(view, ledger, &before)
    }
}

/// The assignments that this decision has made so far.
fn sizes_of(ledger: &Ledger<'_>) -> BTreeMap<JobId, Arc<Assignment>> {
    ledger.draft.starting().map(|(job, held)| (job, held.clone())).collect()
}

/// Undoes every change of a size since then, and returns these changes as a proposal: shrinking gangs first, so that each
/// fits when its turn comes.
fn put_back(
    view: &View<'_>,
    ledger: &mut Ledger<'_>,
    before: &BTreeMap<JobId, Arc<Assignment>>,
) -> Option<Proposal> {
    let Snapshot { jobs, plan, .. } = *view.snapshot;
    let mut changed = Vec::new();
    for (job, to) in sizes_of(ledger) {
        let from = before.get(&job).or_else(|| plan.get(job)).filter(|from| **from != to);
        changed.extend(from.map(|from| (job, from.clone(), to)));
    }
    for (job, from, to) in &changed {
        ledger.draft.undo_resize(*job, &jobs[*job].spec, to, from);
    }
    changed.sort_by_key(|(job, from, to)| (to.members() > from.members(), *job));
    let entries: Vec<Entry> =
        changed.into_iter().map(|(job, from, to)| Entry::Resize { job, from, to }).collect();
    (!entries.is_empty()).then(|| Proposal::of(entries))
}

/// A job that makes room for another will wait for capacity again.
fn is_a_job_leaving(ledger: &Ledger<'_>) -> bool {
    !ledger.draft.snapshot.displaced.is_empty() || !ledger.report.displaced.is_empty()
}

fn starting<'a>(ledger: &Ledger<'a>) -> Vec<ElasticGang<'a>> {
    let draft = &ledger.draft;
    let jobs = draft.snapshot.jobs;
    let unbooked = draft.starting().filter(|(id, _)| !ledger.bookings.govern(*id));
    let waited = unbooked.map(|(id, _)| (id, &jobs[id])).filter(|(_, job)| job.life.is_waiting());
    let may_grow = waited.filter(|(_, job)| ledger.bookings.allow_extra_members(job));
    let elastic: Vec<ElasticGang<'a>> = may_grow.filter_map(|(id, job)| ElasticGang::of(id, job)).collect();
    let nobody_waits = elastic.is_empty()
        || draft.snapshot.waiting.classes().all(|(_, class)| first_waiting(ledger, class).is_none());
    elastic.into_iter().filter(|gang| nobody_waits || gang.job.spec.capabilities.rescale).collect()
}

fn running<'a>(ledger: &Ledger<'a>) -> Vec<ElasticGang<'a>> {
    let draft = &ledger.draft;
    let Snapshot { jobs, plan, elastic, .. } = *draft.snapshot;
    let unchanged = elastic.iter().filter(|id| !draft.is_changed(**id) && !ledger.bookings.govern(**id));
    let gangs = unchanged.filter_map(|id| Some((ElasticGang::of(*id, &jobs[*id])?, plan.get(*id)?)));
    let small =
        gangs.filter(|(gang, held)| gang.may_have_more(held) && gang.may_change(draft.snapshot, held));
    small.map(|(gang, _)| gang).filter(|gang| ledger.bookings.allow_extra_members(gang.job)).collect()
}

/// The first job of a class without a place in this draft.
fn first_waiting(ledger: &Ledger<'_>, class: &Class) -> Option<JobId> {
    let waiting = class.line.iter().map(|place| place.job).filter(|job| !ledger.bookings.govern(*job));
    waiting.into_iter().find(|job| ledger.draft.assigned(*job).is_none())
}

/// Whether no job waits that more capacity would help, now or when extra members are given back.
fn is_capacity_spare(view: &View<'_>, ledger: &Ledger<'_>) -> bool {
    let Snapshot { jobs, cluster, room, keeps_hopeless, .. } = *view.snapshot;
    let held = held_at_least(ledger);
    let may_run = |id: &JobId| {
        let job = &jobs[*id];
        let never = keeps_hopeless && hopeless(cluster, room, job).is_some();
        !never && view.quota_leaves(view.snapshot.queues, &held, &job.spec, job.spec.least()).is_ok()
    };
    let mut waiting = view.snapshot.waiting.classes().filter_map(|(_, class)| first_waiting(ledger, class));
    !waiting.any(|id| may_run(&id))
}

/// What queues and users hold without the members that can be given back.
fn held_at_least(ledger: &Ledger<'_>) -> Holdings {
    let draft = &ledger.draft;
    let Snapshot { jobs, plan, elastic, queues, .. } = *draft.snapshot;
    let mut held = draft.held().clone();
    let planned = elastic.iter().filter(|id| !draft.is_leaving(**id) && !ledger.bookings.govern(**id));
    for gang in planned.filter_map(|id| ElasticGang::of(*id, &jobs[*id])) {
        let now = draft.assigned(gang.id).or_else(|| plan.get(gang.id));
        if let Some(now) = now.filter(|_| gang.job.spec.capabilities.rescale) {
            held.remove(queues, &gang.job.spec, gang.total(now));
        }
    }
    held
}

fn grow_starting_gangs<'a>(view: &View<'a>, ledger: &mut Ledger<'a>, gangs: Vec<ElasticGang<'a>>) {
    let now = view.snapshot.now;
    let before = |gang: ElasticGang<'a>| Some((gang, vec![ledger.draft.assigned(gang.id)?.clone()]));
    let mut sizes: Vec<(ElasticGang<'a>, Vec<Arc<Assignment>>)> =
        gangs.into_iter().filter_map(before).collect();
    let mut growing: Vec<usize> = (0..sizes.len()).collect();
    while let Some(next) =
        (0..growing.len()).min_by_key(|next| gain(&sizes[growing[*next]].0, &ledger.draft, now))
    {
        let (gang, had) = &mut sizes[growing[next]];
        match grow_by_one(view, &mut ledger.draft, gang) {
            true => had.extend(ledger.draft.assigned(gang.id).cloned()),
            false => drop(growing.remove(next)),
        }
    }
    for (gang, had) in sizes {
        keep_what_pays_on_links(view, ledger, &gang, had, Duration::ZERO);
    }
}

fn grow_running_gangs<'a>(view: &View<'a>, ledger: &mut Ledger<'a>, mut gangs: Vec<ElasticGang<'a>>) {
    let now = view.snapshot.now;
    gangs.sort_by_cached_key(|gang| gain(gang, &ledger.draft, now));
    for gang in gangs {
        match gang.job.ripe(view.snapshot.tuning.decide.resize_interval).filter(|rested| *rested > now) {
            Some(rested) => ledger.wake_at(rested),
            None => grow_if_worth_it(view, ledger, &gang),
        }
    }
}

/// The order in which gangs grow: the gang that gains most first, and of gangs of unknown length the one that has
/// grown least.
type Gain = (bool, Reverse<u128>, u64, JobId);

fn gain(gang: &ElasticGang<'_>, draft: &Draft<'_>, now: Instant) -> Gain {
    let members = size_in(draft, gang);
    let least = u64::from(gang.least().max(1));
    let left = gang.job.foreseen(now);
    let saved = left.map_or(0, |left| saved(gang, members, left) / u128::from(gang.each().gpus.0.max(1)));
    (left.is_none(), Reverse(saved), u64::from(members) * 1000 / least, gang.id)
}

/// What one more member, or team, saves of the remaining time, in thousandths: as measured, else in proportion to
/// members.
fn saved(gang: &ElasticGang<'_>, members: u32, left: Duration) -> u128 {
    if let Some(fit) = gang.job.fit() {
        let time = |members: u32| WorkPace::at(fit.speed(members)).time(left);
        return u128::from((time(members.max(1)) - time(members + gang.unit())).0) * 1000;
    }
    let (has, more) = (u128::from(members.max(1)), u128::from(gang.unit()));
    let least = u128::from(gang.least().max(1));
    u128::from(left.0) * least * more * 1000 / (has * (has + more))
}

fn size_in(draft: &Draft<'_>, gang: &ElasticGang<'_>) -> u32 {
    let held = draft.assigned(gang.id).or_else(|| draft.snapshot.plan.get(gang.id));
    held.map_or(0, |held| gang.members(held))
}

/// Adds one member or team, if it fits, its queue and user may hold it, and the gang is not known to be slower with
/// it.
fn grow_by_one<'a>(view: &View<'a>, draft: &mut Draft<'a>, gang: &ElasticGang<'a>) -> bool {
    let held = draft.assigned(gang.id).or_else(|| draft.snapshot.plan.get(gang.id)).cloned();
    let may_have_more = |held: &Arc<Assignment>| gang.may_have_more(held) && !is_slower_with_more(gang, held);
    let Some(held) = held.filter(may_have_more) else { return false };
    let (spec, each) = (&gang.job.spec, gang.each());
    let may_hold = view.quota_leaves(draft.queues(), draft.held(), spec, each).is_ok()
        && view.leaves_unlent_quota(draft, spec.queue, each, draft.total());
    let larger = may_hold.then(|| gang.with_one_more(draft, &held)).flatten();
    larger.is_some_and(|larger| draft.resize(gang.id, spec, &held, Arc::new(larger)))
}

fn is_slower_with_more(gang: &ElasticGang<'_>, held: &Assignment) -> bool {
    let members = gang.members(held);
    gang.job.fit().is_some_and(|fit| fit.speed(members + gang.unit()) < fit.speed(members))
}

fn grow_if_worth_it<'a>(view: &View<'a>, ledger: &mut Ledger<'a>, gang: &ElasticGang<'a>) {
    let Some(before) = view.snapshot.plan.get(gang.id).cloned() else { return };
    grow_as_far_as_links_allow(view, ledger, gang, before.clone());
    let Some(after) = ledger.draft.assigned(gang.id).cloned() else { return };
    let min_saving = gang.cost().times(view.snapshot.tuning.decide.min_resize_gain);
    let worth = Worth { gang, before: &before, after: &after, min_saving };
    let now = view.snapshot.now;
    if worth.saving(expected_left(gang, now)) <= min_saving {
        ledger.draft.undo_resize(gang.id, &gang.job.spec, &after, &before);
        worth.worth_it_at(now).into_iter().for_each(|at| ledger.wake_at(at));
    }
}

/// Adds as many members as fit, or as many of these as are worth what they cost on links.
fn grow_as_far_as_links_allow<'a>(
    view: &View<'a>,
    ledger: &mut Ledger<'a>,
    gang: &ElasticGang<'a>,
    before: Arc<Assignment>,
) {
    let mut sizes = vec![before];
    while grow_by_one(view, &mut ledger.draft, gang) {
        sizes.extend(ledger.draft.assigned(gang.id).cloned());
    }
    keep_what_pays_on_links(view, ledger, gang, sizes, gang.cost());
}

/// Keeps the largest of the sizes that a gang went through that is worth what it costs all jobs on links.
fn keep_what_pays_on_links<'a>(
    view: &View<'a>,
    ledger: &mut Ledger<'a>,
    gang: &ElasticGang<'a>,
    mut sizes: Vec<Arc<Assignment>>,
    cost: Duration,
) {
    let before = sizes.remove(0);
    let Some(largest) = sizes.last().cloned().filter(|_| is_weighed(view, &ledger.draft, gang)) else {
        return;
    };
    let sizes = last_on_the_same_nodes(sizes);
    let chosen = largest_that_pays(sizes, |size| pays(view, &ledger.draft, gang, &before, size, cost));
    let chosen = chosen.unwrap_or(before);
    if chosen != largest {
        ledger.draft.undo_resize(gang.id, &gang.job.spec, &largest, &chosen);
    }
}

/// Of sizes that grow, the last on each set of nodes: what goes over links hardly differs among them.
fn last_on_the_same_nodes(sizes: Vec<Arc<Assignment>>) -> Vec<Arc<Assignment>> {
    let mut last: Vec<Arc<Assignment>> = Vec::new();
    for size in sizes {
        if last.last().is_some_and(|before| before.nodes().eq(size.nodes())) {
            last.pop();
        }
        last.push(size);
    }
    last
}

/// The largest size that pays; after one that does not, half of the smaller sizes are left out.
fn largest_that_pays(
    mut sizes: Vec<Arc<Assignment>>,
    pays: impl Fn(&Assignment) -> bool,
) -> Option<Arc<Assignment>> {
    while let Some(size) = sizes.pop() {
        if pays(&size) {
            return Some(size);
        }
        sizes.truncate(sizes.len().div_ceil(2));
    }
    None
}

/// The remaining time of a job; one of unknown length is expected to run as long again as it has.
fn expected_left(gang: &ElasticGang<'_>, now: Instant) -> Duration {
    gang.job.foreseen(now).unwrap_or_else(|| gang.job.progress.executed(now))
}

/// What another size is worth to a gang.
struct Worth<'g, 'a> {
    gang: &'g ElasticGang<'a>,
    before: &'g Assignment,
    after: &'g Assignment,
    /// What another size has to save to be worth it.
    min_saving: Duration,
}

impl Worth<'_, '_> {
    /// How much earlier a job with this time left ends.
    fn saving(&self, left: Duration) -> Duration {
        self.pace(self.before).time(left) - self.pace(self.after).time(left)
    }

    fn pace(&self, held: &Assignment) -> WorkPace {
        self.gang.job.pace_on(held)
    }

    /// When a gang of unknown length has run so long that the size is worth it.
    fn worth_it_at(&self, now: Instant) -> Option<Instant> {
        let in_an_hour = self.saving(Duration::HOUR);
        if self.gang.job.foreseen(now).is_some() || in_an_hour.is_zero() {
            return None;
        }
        let nanos = u128::from(self.min_saving.0) * u128::from(Duration::HOUR.0) / u128::from(in_an_hour.0);
        let enough = Duration(u64::try_from(nanos).ok()?);
        let wait = self.pace(self.before).time(enough - expected_left(self.gang, now));
        // The least that is more than enough.
        Some(now + wait + Duration::from_millis(1))
    }
}
