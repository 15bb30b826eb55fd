//! Those who run, in orders in which whoever may make room for a job is found without a look at all of them.
//!
//! After every event everybody who lacks room asks whose place it may take, and nearly always the answer is nobody's. So
//! those who run are sorted and added up once a pass: by priority, and by what they have left to do. What a job might get
//! at most is then found by a few searches, and only if that is enough for it victims are looked at, those alone who may
//! be some.

use std::cmp::Reverse;

use super::victim::Victim;
use crate::decide::preemption_rules::{Margin, is_below, margin, service};
use crate::decide::snapshot::Snapshot;
use crate::model::id::{Id, QueueId};
use crate::model::job::{Job, Priority};
use crate::model::units::{Instant, Resources, Share};

/// Where queues have shares, jobs make room for others of their own queue by priority or gain; else for all.
pub(super) struct VictimIndex<'a> {
    /// The lowest priority first.
    running: Vec<Victim<'a>>,
    apart: bool,
    /// By queue, or one for all.
    parts: Vec<Part>,
    total: Resources,
    /// The tuning entry `min_preemption_gain`.
    min_gain: u128,
}

/// A place among all, and whose it is: most are told apart by that.
type Place = (usize, Share);

/// Somebody by how much is gained if it goes later, with what it and all before it hold.
type Gain = (Margin, Place, Resources);

/// Those of one queue, by their place among all.
#[derive(Default)]
struct Part {
    /// In order of priority.
    members: Vec<Place>,
    /// From the lowest priority up: how many there are so far, the least user among them, and what they hold.
    lower: Vec<(Priority, usize, Share, Resources)>,
    /// Of each priority, from the most left to do down; with what all so far hold.
    gain: Vec<(Priority, Vec<Gain>)>,
}

impl<'a> VictimIndex<'a> {
    pub(super) fn of(snapshot: &Snapshot<'_>, mut running: Vec<Victim<'a>>, apart: bool) -> Self {
        let (now, min_gain) = (snapshot.now, snapshot.tuning.decide.min_preemption_gain);
        running.sort_unstable_by_key(|victim| (victim.priority, victim.job.spec.user, Reverse(victim.id)));
        let mut parts: Vec<Part> = Vec::new();
        for (place, victim) in running.iter().enumerate() {
            let part = part_of(apart, victim.job.spec.queue);
            parts.resize_with(parts.len().max(part + 1), Part::default);
            parts[part].add(place, victim, now, min_gain);
        }
        parts.iter_mut().flat_map(|part| &mut part.gain).for_each(|(_, gain)| add_up(gain));
        let total = running.iter().map(|victim| victim.held).sum();
        Self { running, apart, parts, total, min_gain }
    }

    pub(super) fn all(&self) -> &[Victim<'a>] {
        &self.running
    }

    /// What all hold, if there is anybody.
    pub(super) fn total(&self) -> Option<Resources> {
        (!self.running.is_empty()).then_some(self.total)
    }

    fn part(&self, job: &Job) -> Option<&Part> {
        self.parts.get(part_of(self.apart, job.spec.queue))
    }

    /// What those hold at most who make room for a job by priority or, where that counts, for gain, if there may be any.
    pub(super) fn most(&self, job: &Job, for_gain: bool, now: Instant) -> Option<Resources> {
        let part = self.part(job)?;
        let gained = part.gains(job, now, self.min_gain).filter(|_| for_gain).filter_map(<[_]>::last);
        let gained = gained.map(|(_, _, held)| *held).reduce(|one, other| one + other);
        let lower = part.levels_below(job).map(|(_, _, _, total)| *total);
        lower.into_iter().chain(gained).reduce(|one, other| one + other)
    }

    /// Those below a job, in order of priority.
    pub(super) fn below(&self, job: &Job) -> impl Iterator<Item = &Victim<'a>> {
        let no_higher = self.part(job).map_or(&[][..], |part| part.no_higher(job));
        let user = job.spec.user;
        let victims = no_higher.iter().filter(move |(_, theirs)| *theirs <= user);
        victims.map(|(place, _)| &self.running[*place]).filter(|victim| is_below(victim.job, job))
    }

    /// Those who make room for a job by priority or, where that counts, for gain, in order of priority. Whom else that
    /// depends on is not looked at.
    pub(super) fn may_yield(&self, job: &Job, for_gain: bool, now: Instant) -> Vec<&Victim<'a>> {
        let Some(part) = self.part(job) else { return Vec::new() };
        let below = |place: &Place| is_below(self.running[place.0].job, job);
        let own = |place: &Place| place.1 <= job.spec.user;
        let lower = part.no_higher(job).iter().copied().filter(|place| own(place) && below(place));
        let gains =
            part.gains(job, now, self.min_gain).filter(|_| for_gain).flatten().map(|(_, place, _)| *place);
        let mut places: Vec<usize> = lower.chain(gains.filter(own)).map(|(place, _)| place).collect();
        places.sort_unstable();
        places.dedup();
        places.into_iter().map(|place| &self.running[place]).collect()
    }
}

fn part_of(apart: bool, queue: QueueId) -> usize {
    if apart { queue.index() } else { 0 }
}

impl Part {
    fn add(&mut self, place: usize, victim: &Victim<'_>, now: Instant, min_gain: u128) {
        let (user, held) = (victim.job.spec.user, victim.held);
        let place = (place, user);
        self.members.push(place);
        let (least, total) = self
            .lower
            .last()
            .map_or((user, held), |(_, _, least, total)| ((*least).min(user), *total + held));
        if self.lower.last().is_some_and(|(priority, ..)| *priority == victim.priority) {
            self.lower.pop();
        }
        self.lower.push((victim.priority, self.members.len(), least, total));
        let Some(margin) = margin(victim.job, now, min_gain) else { return };
        match self.gain.last_mut().filter(|(priority, _)| *priority == victim.priority) {
            Some((_, gain)) => gain.push((margin, place, held)),
            None => self.gain.push((victim.priority, vec![(margin, place, held)])),
        }
    }

    /// Of no higher priority, if one of them may be below the job.
    fn no_higher(&self, job: &Job) -> &[Place] {
        self.levels_below(job).map_or(&[], |(_, count, _, _)| &self.members[..*count])
    }

    /// All levels up to the highest of which somebody may be below the job.
    fn levels_below(&self, job: &Job) -> Option<&(Priority, usize, Share, Resources)> {
        let (priority, user) = (job.spec.priority, job.spec.user);
        let up_to = |end: usize| end.checked_sub(1).map(|last| &self.lower[last]);
        let below = up_to(self.lower.partition_point(|(other, ..)| *other < priority));
        let no_higher = up_to(self.lower.partition_point(|(other, ..)| *other <= priority));
        let lesser_user = no_higher.filter(|(_, _, least, _)| *least < user);
        lesser_user.or(below.filter(|(_, _, least, _)| *least <= user))
    }

    /// Of each priority that is no higher, those who have enough left to do.
    fn gains(&self, job: &Job, now: Instant, min_gain: u128) -> impl Iterator<Item = &[Gain]> {
        let cost = job.remaining(now).map(|left| service(job, left) as Margin * min_gain as Margin);
        let no_higher = self.gain.iter().take_while(|(priority, _)| *priority <= job.spec.priority);
        no_higher.filter_map(move |(_, gain)| {
            let end = cost.map_or(0, |cost| gain.partition_point(|(margin, ..)| *margin > cost));
            (end > 0).then_some(&gain[..end])
        })
    }
}

fn add_up(gain: &mut Vec<Gain>) {
    gain.sort_unstable_by_key(|(margin, place, _)| (Reverse(*margin), *place));
    let mut total = Resources::NONE;
    for (_, _, held) in gain {
        total = total + *held;
        *held = total;
    }
}
