//! What is to spare goes to elastic gangs.
//!
//! Those that start in this very decision come first, because more members cost them nothing: one member at a time,
//! or one group of them (`Teams`), goes to the gang that gains most by it, time saved for each GPU. What is not worth it to
//! all on links is given back at once (`on_links`). Who runs has to save
//! its work and start again for it, however many members come; so one gang after the other grows as far as it can, if
//! the time it saves is worth more than twice that, and none that was started or changed just before.
//!
//! Nothing is to spare while somebody waits who might use it: anybody but those whose quota forbids them to run even
//! if all extras were given back. Who cannot give members back has them only while nobody waits at all.

use std::cmp::Reverse;
use std::sync::Arc;

use super::marginal_gain::{says_how_it_scales, share_out};
use super::{Extras, PAUSE, TIMES_THE_COST, looks_at, pays};
use crate::decide::admit::Rules;
use crate::decide::deadlines::may_have_extras;
use crate::decide::draft::Draft;
use crate::decide::infeasible::hopeless;
use crate::decide::snapshot::{Class, Snapshot};
use crate::model::id::JobId;
use crate::model::plan::Assignment;
use crate::model::policy::{Queueing, Sizing};
use crate::model::queue::Holdings;
use crate::model::units::{Duration, Instant};
use crate::observe::progress::Pace;

/// Gives what is to spare to those whose size may change.
pub(in crate::decide) fn grow<'a>(rules: &Rules<'a>, draft: &mut Draft<'a>) {
    let unsettled = draft.report.cut_short || !draft.reservations.is_empty() || is_somebody_leaving(draft);
    if rules.sizing == Sizing::Least || rules.queueing == Queueing::HeadBlocks || unsettled {
        return;
    }
    let (starting, running) = (starting(draft), running(draft));
    if draft.snapshot.elastic.is_empty() && starting.is_empty() || !is_room_to_spare(rules, draft) {
        return;
    }
    share_out(rules, draft);
    let says = |gang: &Extras<'_>| says_how_it_scales(gang, rules.snapshot.now);
    grow_those_that_start(rules, draft, starting.into_iter().filter(|gang| !says(gang)).collect());
    grow_those_that_run(rules, draft, running.into_iter().filter(|gang| !says(gang)).collect());
}

/// Whoever makes room for others will wait for it again.
fn is_somebody_leaving(draft: &Draft<'_>) -> bool {
    !draft.snapshot.displaced.is_empty() || !draft.report.displaced.is_empty()
}

fn starting<'a>(draft: &Draft<'a>) -> Vec<Extras<'a>> {
    let jobs = draft.snapshot.jobs;
    let unbooked = draft.starting().filter(|(id, _)| !draft.timetable.governs(*id));
    let waited = unbooked.map(|(id, _)| (id, &jobs[id])).filter(|(_, job)| job.life.is_waiting());
    let may_grow = waited.filter(|(_, job)| may_have_extras(draft, job));
    let elastic: Vec<Extras<'a>> = may_grow.filter_map(|(id, job)| Extras::of(id, job)).collect();
    let nobody_waits = elastic.is_empty()
        || draft.snapshot.waiting.classes().all(|(_, class)| first_waiting(draft, class).is_none());
    elastic.into_iter().filter(|gang| nobody_waits || gang.job.spec.capabilities.rescale).collect()
}

fn running<'a>(draft: &Draft<'a>) -> Vec<Extras<'a>> {
    let Snapshot { jobs, plan, elastic, .. } = *draft.snapshot;
    let unchanged = elastic.iter().filter(|id| !draft.is_changed(**id) && !draft.timetable.governs(**id));
    let gangs = unchanged.filter_map(|id| Some((Extras::of(*id, &jobs[*id])?, plan.get(*id)?)));
    let small =
        gangs.filter(|(gang, held)| gang.may_have_more(held) && gang.may_change(draft.snapshot, held));
    small.map(|(gang, _)| gang).filter(|gang| may_have_extras(draft, gang.job)).collect()
}

/// The first of a class who is not given a place in this draft.
fn first_waiting(draft: &Draft<'_>, class: &Class) -> Option<JobId> {
    let waiting = class.line.iter().map(|place| place.job).filter(|job| !draft.timetable.governs(*job));
    waiting.into_iter().find(|job| draft.assigned(*job).is_none())
}

/// Whether nobody waits who would be helped by room, now or when extras are given back.
fn is_room_to_spare(rules: &Rules<'_>, draft: &Draft<'_>) -> bool {
    let Snapshot { jobs, cluster, room, keeps_hopeless, .. } = *draft.snapshot;
    let held = held_at_least(draft);
    let may_run = |id: &JobId| {
        let job = &jobs[*id];
        let never = keeps_hopeless && hopeless(cluster, room, job).is_some();
        !never && rules.quota_leaves(draft.queues(), &held, &job.spec, job.spec.least()).is_ok()
    };
    let mut waiting = draft.snapshot.waiting.classes().filter_map(|(_, class)| first_waiting(draft, class));
    !waiting.any(|id| may_run(&id))
}

/// What queues and users hold, without what can be given back.
fn held_at_least(draft: &Draft<'_>) -> Holdings {
    let Snapshot { jobs, plan, elastic, queues, .. } = *draft.snapshot;
    let mut held = draft.held().clone();
    let planned = elastic.iter().filter(|id| !draft.is_leaving(**id) && !draft.timetable.governs(**id));
    for gang in planned.filter_map(|id| Extras::of(*id, &jobs[*id])) {
        let now = draft.assigned(gang.id).or_else(|| plan.get(gang.id));
        if let Some(now) = now.filter(|_| gang.job.spec.capabilities.rescale) {
            held.remove(queues, &gang.job.spec, gang.total(now));
        }
    }
    held
}

fn grow_those_that_start<'a>(rules: &Rules<'a>, draft: &mut Draft<'a>, gangs: Vec<Extras<'a>>) {
    let now = draft.snapshot.now;
    let before = |gang: Extras<'a>| Some((gang, vec![draft.assigned(gang.id)?.clone()]));
    let mut sizes: Vec<(Extras<'a>, Vec<Arc<Assignment>>)> = gangs.into_iter().filter_map(before).collect();
    let mut growing: Vec<usize> = (0..sizes.len()).collect();
    while let Some(next) = (0..growing.len()).min_by_key(|next| gain(&sizes[growing[*next]].0, draft, now)) {
        let (gang, had) = &mut sizes[growing[next]];
        match grow_by_one(rules, draft, gang) {
            true => had.extend(draft.assigned(gang.id).cloned()),
            false => drop(growing.remove(next)),
        }
    }
    for (gang, had) in sizes {
        keep_what_pays_on_links(rules, draft, &gang, had, Duration::ZERO);
    }
}

fn grow_those_that_run<'a>(rules: &Rules<'a>, draft: &mut Draft<'a>, mut gangs: Vec<Extras<'a>>) {
    let now = draft.snapshot.now;
    gangs.sort_by_cached_key(|gang| gain(gang, draft, now));
    for gang in gangs {
        match gang.job.ripe(PAUSE).filter(|rested| *rested > now) {
            Some(rested) => draft.wake = [draft.wake, Some(rested)].into_iter().flatten().min(),
            None => grow_if_worth_it(rules, draft, &gang),
        }
    }
}

/// Least goes first: who gains most, and where nobody knows how long it takes, who has grown least.
type Gain = (bool, Reverse<u128>, u64, JobId);

fn gain(gang: &Extras<'_>, draft: &Draft<'_>, now: Instant) -> Gain {
    let members = size_in(draft, gang);
    let least = u64::from(gang.least().max(1));
    let left = gang.job.foreseen(now);
    let saved = left.map_or(0, |left| saved(gang, members, left) / u128::from(gang.each().gpus.0.max(1)));
    (left.is_none(), Reverse(saved), u64::from(members) * 1000 / least, gang.id)
}

/// What one more member, or group, saves of what is left, in thousandths: as measured, else in proportion to members.
fn saved(gang: &Extras<'_>, members: u32, left: Duration) -> u128 {
    if let Some(fit) = gang.job.fit() {
        let time = |members: u32| Pace::at(fit.speed(members)).time(left);
        return u128::from((time(members.max(1)) - time(members + gang.unit())).0) * 1000;
    }
    let (has, more) = (u128::from(members.max(1)), u128::from(gang.unit()));
    let least = u128::from(gang.least().max(1));
    u128::from(left.0) * least * more * 1000 / (has * (has + more))
}

fn size_in(draft: &Draft<'_>, gang: &Extras<'_>) -> u32 {
    let held = draft.assigned(gang.id).or_else(|| draft.snapshot.plan.get(gang.id));
    held.map_or(0, |held| gang.members(held))
}

/// One more member, if there is room for it, its queue and user may hold it, and it is not known to be slower with it.
fn grow_by_one<'a>(rules: &Rules<'a>, draft: &mut Draft<'a>, gang: &Extras<'a>) -> bool {
    let held = draft.assigned(gang.id).or_else(|| draft.snapshot.plan.get(gang.id)).cloned();
    let may_have_more = |held: &Arc<Assignment>| gang.may_have_more(held) && !is_slower_with_more(gang, held);
    let Some(held) = held.filter(may_have_more) else { return false };
    let (spec, each) = (&gang.job.spec, gang.each());
    let may_hold = rules.quota_leaves(draft.queues(), draft.held(), spec, each).is_ok()
        && rules.leaves_what_is_kept(draft, spec.queue, each, draft.total());
    let larger = may_hold.then(|| gang.with_one_more(draft, &held)).flatten();
    larger.is_some_and(|larger| draft.resize(gang.id, spec, &held, Arc::new(larger)))
}

fn is_slower_with_more(gang: &Extras<'_>, held: &Assignment) -> bool {
    let members = gang.members(held);
    gang.job.fit().is_some_and(|fit| fit.speed(members + gang.unit()) < fit.speed(members))
}

fn grow_if_worth_it<'a>(rules: &Rules<'a>, draft: &mut Draft<'a>, gang: &Extras<'a>) {
    let Some(before) = draft.snapshot.plan.get(gang.id).cloned() else { return };
    grow_as_far_as_links_allow(rules, draft, gang, before.clone());
    let Some(after) = draft.assigned(gang.id).cloned() else { return };
    let worth = Worth { gang, before: &before, after: &after };
    let now = draft.snapshot.now;
    if worth.saving(expected_left(gang, now)) <= gang.cost().times(TIMES_THE_COST) {
        draft.undo_resize(gang.id, &gang.job.spec, &after, &before);
        draft.wake = draft.wake.into_iter().chain(worth.worth_it_at(now)).min();
    }
}

/// As many members as there is room for, or as many of these as are worth what they cost all on links.
fn grow_as_far_as_links_allow<'a>(
    rules: &Rules<'a>,
    draft: &mut Draft<'a>,
    gang: &Extras<'a>,
    before: Arc<Assignment>,
) {
    let mut sizes = vec![before];
    while grow_by_one(rules, draft, gang) {
        sizes.extend(draft.assigned(gang.id).cloned());
    }
    keep_what_pays_on_links(rules, draft, gang, sizes, gang.cost());
}

/// Of the sizes that a gang went through, from the one it had before, the largest that is worth what it costs all on links.
fn keep_what_pays_on_links<'a>(
    rules: &Rules<'a>,
    draft: &mut Draft<'a>,
    gang: &Extras<'a>,
    mut sizes: Vec<Arc<Assignment>>,
    cost: Duration,
) {
    let before = sizes.remove(0);
    let Some(largest) = sizes.last().cloned().filter(|_| looks_at(rules, draft, gang)) else { return };
    let sizes = last_on_the_same_nodes(sizes);
    let chosen = largest_that_pays(sizes, |size| pays(rules, draft, gang, &before, size, cost));
    let chosen = chosen.unwrap_or(before);
    if chosen != largest {
        draft.undo_resize(gang.id, &gang.job.spec, &largest, &chosen);
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

/// Half of what is left is tried next, and the smallest last.
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

/// What is left of a job. Who does not say how long it takes is expected to go on for as long as it has.
fn expected_left(gang: &Extras<'_>, now: Instant) -> Duration {
    gang.job.foreseen(now).unwrap_or_else(|| gang.job.progress.executed(now))
}

/// What another size is worth to a gang.
struct Worth<'g, 'a> {
    gang: &'g Extras<'a>,
    before: &'g Assignment,
    after: &'g Assignment,
}

impl Worth<'_, '_> {
    /// How much earlier it ends that has so much left.
    fn saving(&self, left: Duration) -> Duration {
        self.pace(self.before).time(left) - self.pace(self.after).time(left)
    }

    fn pace(&self, held: &Assignment) -> Pace {
        self.gang.job.pace_on(held)
    }

    /// When a gang of unknown length has gone on for so long that it is worth it.
    fn worth_it_at(&self, now: Instant) -> Option<Instant> {
        let (dear, in_an_hour) = (self.gang.cost().times(TIMES_THE_COST), self.saving(Duration::HOUR));
        if self.gang.job.foreseen(now).is_some() || in_an_hour.is_zero() {
            return None;
        }
        let nanos = u128::from(dear.0) * u128::from(Duration::HOUR.0) / u128::from(in_an_hour.0);
        let enough = Duration(u64::try_from(nanos).ok()?);
        let wait = self.pace(self.before).time(enough - expected_left(self.gang, now));
        // The least that is more than enough.
        Some(now + wait + Duration::from_millis(1))
    }
}
