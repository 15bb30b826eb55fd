//! Running jobs in orders in which victims of a job are found without a look at all running jobs.
//!
//! After every event each job that lacks capacity asks for victims, and nearly always there are none. So running jobs
//! are sorted and added up once in a decision: by priority, and by what they have left to do. The most that a job
//! might get is then found by a few searches, and only if that is enough are victims looked at, and of all running
//! jobs only those that may be some.

use std::cmp::Reverse;

use super::victim::Victim;
use crate::decide::preemption_rules::{Margin, is_below, margin, service};
use crate::decide::snapshot::Snapshot;
use crate::model::id::{Id, QueueId};
use crate::model::job::{Job, Priority};
use crate::model::units::{Instant, Resources, Share};

/// Running jobs by queue where queues have shares, because victims by priority or gain are then of the same queue;
/// else all together.
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

/// The position of a job among all, and the priority of its user: that excludes most.
type Place = (usize, Share);

/// A job by its margin, with what it and all before it hold.
type Gain = (Margin, Place, Resources);

/// The jobs of one queue.
#[derive(Default)]
struct Part {
    /// In order of priority.
    members: Vec<Place>,
    /// From the lowest priority up: the number of jobs so far, the least user priority among them, and what they hold.
    lower: Vec<(Priority, usize, Share, Resources)>,
    /// Of each priority, from the largest margin down; with what all so far hold.
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

    /// What all jobs hold, if there are any.
    pub(super) fn total(&self) -> Option<Resources> {
        (!self.running.is_empty()).then_some(self.total)
    }

    fn part(&self, job: &Job) -> Option<&Part> {
        self.parts.get(part_of(self.apart, job.spec.queue))
    }

    /// The most that the victims of a job may hold, by priority and, where that counts, for gain; `None` if there are
    /// none.
    pub(super) fn most(&self, job: &Job, for_gain: bool, now: Instant) -> Option<Resources> {
        let part = self.part(job)?;
        let gained = part.gains(job, now, self.min_gain).filter(|_| for_gain).filter_map(<[_]>::last);
        let gained = gained.map(|(_, _, held)| *held).reduce(|one, other| one + other);
        let lower = part.levels_below(job).map(|(_, _, _, total)| *total);
        lower.into_iter().chain(gained).reduce(|one, other| one + other)
    }

    /// Jobs below a job, in order of priority.
    pub(super) fn below(&self, job: &Job) -> impl Iterator<Item = &Victim<'a>> {
        let no_higher = self.part(job).map_or(&[][..], |part| part.no_higher(job));
        let user = job.spec.user;
        let victims = no_higher.iter().filter(move |(_, theirs)| *theirs <= user);
        victims.map(|(place, _)| &self.running[*place]).filter(|victim| is_below(victim.job, job))
    }

    /// Victims of a job by priority and, where that counts, for gain, in order of priority. Conditions beyond that are
    /// left to the caller.
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

    /// Jobs of no higher priority, if one of them may be below the job.
    fn no_higher(&self, job: &Job) -> &[Place] {
        self.levels_below(job).map_or(&[], |(_, count, _, _)| &self.members[..*count])
    }

    /// All levels up to the highest of which a job may be below this one.
    fn levels_below(&self, job: &Job) -> Option<&(Priority, usize, Share, Resources)> {
        let (priority, user) = (job.spec.priority, job.spec.user);
        let up_to = |end: usize| end.checked_sub(1).map(|last| &self.lower[last]);
        let below = up_to(self.lower.partition_point(|(other, ..)| *other < priority));
        let no_higher = up_to(self.lower.partition_point(|(other, ..)| *other <= priority));
        let lesser_user = no_higher.filter(|(_, _, least, _)| *least < user);
        lesser_user.or(below.filter(|(_, _, least, _)| *least <= user))
    }

    /// Of each priority that is no higher, the jobs with enough left to do.
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
