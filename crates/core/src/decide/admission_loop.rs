//! One pass over the line: from what is free, and then, where the policy says so, from what others can be made to
//! leave. For the first who get neither, room is kept (`reserve`).
//!
//! When the first of a class does not fit, its whole class is passed over: room only shrinks from there on. But
//! whoever looks at others may fit once those are placed, and everybody may once somebody was told to leave. They are
//! looked at again in the same pass, so that another pass would find nothing to do.

use std::collections::BTreeMap;

use super::admit::Rules;
use super::deadlines::{Schedule, book_start, settle};
use super::draft::{Draft, Reach};
use super::fits::Fits;
use super::migrate::{Gathering, Least};
use super::order::{Line, Rank, Ranker};
use super::preempt::{Grounds, Victims, gains, is_spared};
use super::queue_shares::Rights;
use super::reservations::{MOST_RESERVATIONS, end_if_started, owed_from, reserve};
use super::size::{Giving, give_back_what_is_idle, grow};
use crate::decide::snapshot::{Class, Snapshot};
use crate::model::id::{ClassId, Id, JobId, QueueId};
use crate::model::policy::{Moving, Preemption, Queueing, Sizing};
use crate::model::report::Reason;
use crate::model::units::{Instant, Resources};

/// A cycle starts at most so many jobs; the next goes on from there.
const MOST_STARTS_PER_CYCLE: usize = 10_000;

/// A cycle makes room for at most so many jobs; the next goes on from there.
const MOST_BENEFICIARIES_PER_CYCLE: usize = 16;

/// Up to so many who lack room ask around before all who run are sorted for it.
const FEW_WHO_ASK: usize = 4;

pub(super) fn fill_what_is_free<'a>(
    rules: &Rules<'a>,
    ranker: &'a Ranker<'a>,
    schedule: Schedule<'a>,
) -> Draft<'a> {
    let mut pass = Pass::new(rules, ranker);
    let bounded = settle(rules, &mut pass.draft, schedule);
    give_back_what_is_idle(rules, &mut pass.draft);
    pass.note_holdings();
    let mut line = Line::empty(ranker);
    pass.line_up(&mut line);
    loop {
        pass.serve(&mut line);
        pass.look_again(&mut line);
        let helped = !line.is_empty()
            || pass.take_back_extras(&mut line)
            || pass.make_room(&mut line)
            || pass.move_together(&mut line);
        if !helped {
            bounded.look_again(rules, &mut pass.draft);
            return pass.finish();
        }
    }
}

struct Pass<'a, 'r> {
    rules: &'r Rules<'a>,
    ranker: &'a Ranker<'a>,
    draft: Draft<'a>,
    refused: Vec<Refused>,
    /// Whether each class was looked at.
    looked: Vec<bool>,
    victims: Option<Victims<'a>>,
    giving: Giving,
    gathering: Gathering<'a>,
    /// Where queues have shares and those that do not fit make others leave; as of what queues hold now.
    rights: Option<Rights<'a>>,
    /// Of each class the last who was given a place that was free.
    last_started: BTreeMap<ClassId, JobId>,
    /// What those of each queue have taken who started and could be taken back.
    started: BTreeMap<QueueId, Resources>,
    starts: usize,
    beneficiaries: usize,
    /// How often a time was looked for at which somebody fits.
    attempts: usize,
}

/// A class whose first could not be placed.
#[derive(Clone)]
struct Refused {
    job: JobId,
    class: ClassId,
    reason: Reason,
    /// The draft's stamp then.
    stamp: u64,
    /// What had changed for it when nobody was found who could make room for it.
    tried: Option<u64>,
}

/// Whether somebody was refused because of what others have.
fn lacks_room(reason: &Reason) -> bool {
    matches!(
        reason,
        Reason::InsufficientResources { .. }
            | Reason::TopologyUnsatisfied { .. }
            | Reason::AffinityUnsatisfied { .. }
            | Reason::AntiAffinityUnsatisfied { .. }
            | Reason::SpreadUnsatisfied { .. }
    )
}

impl<'a, 'r> Pass<'a, 'r> {
    fn new(rules: &'r Rules<'a>, ranker: &'a Ranker<'a>) -> Self {
        Self {
            rules,
            ranker,
            draft: Self::draft(rules.snapshot),
            refused: Vec::new(),
            looked: vec![false; rules.snapshot.waiting.slots()],
            victims: None,
            giving: Giving::default(),
            gathering: Gathering::default(),
            rights: ranker
                .shares()
                .filter(|_| rules.preemption.makes_room())
                .map(|shares| Rights::of(rules.snapshot, shares)),
            last_started: BTreeMap::new(),
            started: BTreeMap::new(),
            starts: 0,
            beneficiaries: 0,
            attempts: 0,
        }
    }

    /// What was promised is kept, until its time has come.
    fn draft(snapshot: &'a Snapshot<'a>) -> Draft<'a> {
        let mut draft = Draft::beside_the_plan(snapshot);
        draft.reservations = snapshot.plan.reservations().to_vec();
        draft
    }

    /// Whether a class is that of a job with a booking, or of one that was refused: what it gets is settled.
    fn is_booked(&self, class: &Class) -> bool {
        let is_refused = |job: JobId| self.draft.refused.iter().any(|(refused, _)| *refused == job);
        class.key.due.is_some_and(|job| self.draft.timetable.governs(job) || is_refused(job))
    }

    fn in_order(&self) -> bool {
        self.rules.queueing == Queueing::HeadBlocks
    }

    fn class(&self, id: ClassId) -> &'a Class {
        self.rules.snapshot.waiting.class(id).expect("the class of a waiting job")
    }

    fn was_closed(&self, class: &Class) -> bool {
        class.is_closed(self.rules.snapshot.stamp(class)) && !self.has_new_rights(class)
    }

    /// Whether a class that lacked room may now have some kept, or take some back: time and what queues hold tell.
    fn has_new_rights(&self, class: &Class) -> bool {
        let lacked = class.closed.as_ref().is_some_and(|(_, reason)| lacks_room(reason));
        let Some(first) = class.line.first().filter(|_| lacked) else { return false };
        let need = || self.rules.snapshot.jobs[first.job].spec.least();
        let held = self.draft.held().by_queue();
        let takes_back = |rights: &Rights<'_>| rights.may_take_back(held, class.key.queue, need());
        self.is_owed_room(first.job) || self.rights.as_ref().is_some_and(takes_back)
    }

    /// Whether a class is open, or may become so in the course of the pass.
    fn may_be_served(&self, class: &Class) -> bool {
        self.in_order() || !self.was_closed(class) || !class.watches.is_empty()
    }

    /// Whether nothing has happened since a class was closed.
    fn is_closed(&self, class: &Class) -> bool {
        !self.in_order() && self.was_closed(class) && self.draft.stamp(class) == 0
    }

    /// Lets the first of each class stand in line that may be served. Who can be refused at sight need not.
    fn line_up(&mut self, line: &mut Line<'a>) {
        let snapshot = self.rules.snapshot;
        let open = snapshot.waiting.classes().filter(|(_, class)| self.may_be_served(class));
        let open = open.filter(|(_, class)| !self.is_booked(class));
        let open: Vec<(ClassId, JobId)> =
            open.filter_map(|(id, class)| Some((id, class.line.first()?.job))).collect();
        for (class, job) in open {
            self.line_up_one(job, class, line);
        }
    }

    fn line_up_one(&mut self, job: JobId, class: ClassId, line: &mut Line<'a>) {
        match self.refusal_at_sight(job, class) {
            Some(reason) => {
                self.looked[class.index()] = true;
                let stamp = self.draft.stamp(self.class(class));
                self.refused.push(Refused { job, class, reason, stamp, tried: None });
            }
            None => line.stand(job, class),
        }
    }

    /// Why a job would be refused when its turn came, where that is plain already: there is too little for it now, and
    /// until then there will not be more. Room may be kept for who is owed some, in the order of the line.
    fn refusal_at_sight(&self, job: JobId, class: ClassId) -> Option<Reason> {
        let waits = self.in_order() || self.is_closed(self.class(class)) || self.is_owed_room(job);
        let refused = || self.rules.refuse_at_sight(&self.draft, &self.rules.snapshot.jobs[job]);
        if waits { None } else { refused() }
    }

    /// Serves the line until nobody stands in it, or the first that is refused holds up everybody.
    fn serve(&mut self, line: &mut Line<'a>) {
        while let Some((job, class)) = line.pop(self.draft.held().by_queue()) {
            if self.is_closed(self.class(class)) {
                continue;
            }
            if self.admit(job, class) || self.in_order() && self.make_room_for_the_head() {
                line.step_up(job, class);
            } else if self.in_order() {
                self.draft.report.blocked_by = Some(job);
                line.clear();
            }
            if self.starts >= MOST_STARTS_PER_CYCLE {
                self.draft.report.cut_short = true;
                line.clear();
            }
        }
    }

    /// Places the first of a class, or notes why not.
    fn admit(&mut self, job: JobId, class: ClassId) -> bool {
        self.looked[class.index()] = true;
        match self.admit_beside_reservations(job, class) {
            Ok(()) => {
                self.starts += 1;
                book_start(self.rules, &mut self.draft, job);
                self.note_start(job, class);
                self.note_holdings();
            }
            Err(reason) => {
                self.reserve_for(job, &reason);
                let stamp = self.draft.stamp(self.class(class));
                self.refused.push(Refused { job, class, reason, stamp, tried: None });
                return false;
            }
        }
        true
    }

    fn note_holdings(&mut self) {
        let held = self.draft.held().by_queue();
        self.rights.iter_mut().for_each(|rights| rights.note(held));
    }

    /// Remembers who would be told to leave as soon as it runs: it may as well not start. Whoever cannot be stopped keeps
    /// its turn, and so does whom others may look at: they may have been placed by it since.
    fn note_start(&mut self, job: JobId, class: ClassId) {
        let Snapshot { jobs, min_run, .. } = self.rules.snapshot;
        let spec = &jobs[job].spec;
        let unseen = spec.roles.iter().all(|role| role.shape.groups.is_empty());
        match spec.capabilities.makes_room() && min_run.is_zero() && unseen {
            true => {
                let started = self.started.entry(spec.queue).or_default();
                *started = *started + spec.least();
                self.last_started.insert(class, job)
            }
            false => self.last_started.remove(&class),
        };
    }

    /// Places a job where that delays nobody ahead for whom room is kept.
    fn admit_beside_reservations(&mut self, job: JobId, class: ClassId) -> Result<(), Reason> {
        if self.draft.reservations.is_empty() {
            return self.rules.admit_one(&mut self.draft, job, Reach::Unclaimed);
        }
        let (rank, end) = (self.rank(job, class), self.end(job));
        let kept = self.draft.reservations.iter();
        let delayed = kept.filter(|kept| kept.job != job && end.is_none_or(|end| end > kept.from));
        let heeded = delayed.filter(|kept| self.rank_in_class(kept.job).is_some_and(|ahead| ahead < rank));
        let heeded: Vec<JobId> =
            heeded.map(|kept| kept.job).filter(|ahead| !self.would_make_room(*ahead, job)).collect();
        self.draft.heed(|kept| heeded.contains(&kept.job));
        let admitted = match self.only_reserved(job) {
            Some(reason) => Err(reason),
            None => self.rules.admit_one(&mut self.draft, job, Reach::Unclaimed),
        };
        let admitted = admitted.map_err(|reason| self.or_reserved(job, reason));
        self.draft.heed(|_| false);
        if admitted.is_ok() {
            self.draft.keep_nothing_for(job);
            self.draft.use_up_spare(job, |kept| end.is_none_or(|end| end > kept.from));
        }
        admitted
    }

    /// Whether somebody ahead, once started, would make room for a job again: then there is no point in waiting for it.
    fn would_make_room(&self, ahead: JobId, job: JobId) -> bool {
        let Snapshot { jobs, now, .. } = self.rules.snapshot;
        self.rules.preemption == Preemption::ByGain
            && !is_spared(&jobs[ahead], self.ranker, *now)
            && gains(self.rules, &jobs[job], &jobs[ahead])
    }

    fn rank(&self, job: JobId, class: ClassId) -> Rank {
        self.ranker.rank_of(job, self.class(class))
    }

    fn rank_in_class(&self, job: JobId) -> Option<Rank> {
        let class = self.rules.snapshot.jobs.get(job)?.class?;
        Some(self.rank(job, class))
    }

    fn end(&self, job: JobId) -> Option<Instant> {
        let Snapshot { jobs, now, .. } = self.rules.snapshot;
        end_if_started(&jobs[job], *now)
    }

    /// That what is kept for others stands in the way, and nothing else, where counting tells: when much is kept, very
    /// many would look for a place in vain.
    fn only_reserved(&self, job: JobId) -> Option<Reason> {
        let who = &self.rules.snapshot.jobs[job];
        let fits = Fits::of(who).filter(|_| !self.draft.heeds_nobody())?;
        let fits_beside_it = self.draft.fits_beside_what_is_kept(*who.shapes.first()?) >= fits.wanted;
        let refused = fits_beside_it || self.rules.refuse_at_sight(&self.draft, who).is_some();
        if refused { None } else { self.first_kept_for_others(job) }
    }

    fn first_kept_for_others(&self, job: JobId) -> Option<Reason> {
        let kept = self.draft.reservations.iter().filter(|kept| kept.job != job);
        let first = kept.min_by_key(|kept| kept.from)?;
        Some(Reason::ReservedUntil { ahead: first.job, until: first.from })
    }

    /// Whether only what is kept for others stands in the way.
    fn or_reserved(&mut self, job: JobId, reason: Reason) -> Reason {
        if self.draft.heeds_nobody() || !lacks_room(&reason) {
            return reason;
        }
        let Some(reserved) = self.first_kept_for_others(job) else { return reason };
        self.draft.heed(|_| false);
        let mark = self.draft.mark();
        let Rules { snapshot, placer, sizes, .. } = self.rules;
        let fits = placer.place(&mut self.draft, &snapshot.jobs[job], *sizes, Reach::Unclaimed).is_ok();
        self.draft.rollback(mark);
        if fits { reserved } else { reason }
    }

    /// Keeps room for one of the first who have waited long and do not fit.
    fn reserve_for(&mut self, job: JobId, reason: &Reason) {
        if lacks_room(reason) && self.is_owed_room(job) {
            self.attempts += 1;
            self.draft.reservations.extend(reserve(self.rules, &self.draft, job));
        }
    }

    /// Whether room is to be kept for a job, and is not yet.
    fn is_owed_room(&self, job: JobId) -> bool {
        let Snapshot { jobs, now, .. } = self.rules.snapshot;
        let kept = &self.draft.reservations;
        self.rules.queueing == Queueing::Reserve
            && kept.len() + self.attempts < MOST_RESERVATIONS
            && owed_from(&jobs[job], self.ranker, *now) <= *now
            && kept.iter().all(|kept| kept.job != job)
    }

    /// When the next will have waited so long that room is to be kept for it.
    fn next_owed(&self) -> Option<Instant> {
        let Snapshot { jobs, now, waiting, .. } = self.rules.snapshot;
        let reserves = self.rules.queueing == Queueing::Reserve;
        let classes = waiting.classes().filter(|_| reserves);
        let unbooked = classes.filter(|(_, class)| !self.is_booked(class));
        let firsts = unbooked.filter_map(|(_, class)| class.line.first());
        let due = firsts.map(|place| owed_from(&jobs[place.job], self.ranker, *now));
        due.filter(|at| at > now).min()
    }

    /// Lets those stand in line again about whom something has changed since they were looked at.
    fn look_again(&mut self, line: &mut Line<'a>) {
        if self.in_order() || self.draft.report.cut_short {
            return;
        }
        let snapshot = self.rules.snapshot;
        let refused = std::mem::take(&mut self.refused);
        let (same, changed): (Vec<Refused>, Vec<Refused>) =
            refused.into_iter().partition(|refused| refused.stamp == self.stamp(refused.class));
        self.refused = same;
        for Refused { job, class, .. } in changed {
            self.line_up_one(job, class, line);
        }
        if self.draft.has_changed_for_others() || self.rights.is_some() {
            let unseen = snapshot.waiting.classes().filter(|(id, _)| !self.looked[id.index()]);
            let unseen = unseen.filter(|(_, class)| !self.is_booked(class));
            let open = unseen.filter(|(id, class)| self.stamp(*id) != 0 || self.has_new_rights(class));
            let open: Vec<(ClassId, JobId)> =
                open.filter_map(|(id, class)| Some((id, class.line.first()?.job))).collect();
            for (class, job) in open {
                self.line_up_one(job, class, line);
            }
        }
    }

    fn stamp(&self, class: ClassId) -> u64 {
        self.rules.snapshot.waiting.class(class).map_or(0, |class| self.draft.stamp(class))
    }

    /// Has gangs give back what they have beyond their least, for the first who can be helped by it; true if there was
    /// one.
    fn take_back_extras(&mut self, line: &mut Line<'a>) -> bool {
        let none = self.rules.sizing == Sizing::Least || self.rules.snapshot.elastic.is_empty();
        if none || self.in_order() || self.draft.report.cut_short {
            return false;
        }
        let bounded = |reason: &Reason| matches!(reason, Reason::WaitingForQuota { .. });
        let mut lacking = Line::empty(self.ranker);
        for refused in &self.refused {
            if lacks_room(&refused.reason) || bounded(&refused.reason) {
                lacking.stand(refused.job, refused.class);
            }
        }
        while let Some((job, class)) = lacking.pop(self.draft.held().by_queue()) {
            if self.take_back_for(job, class) {
                line.step_up(job, class);
                return true;
            }
        }
        false
    }

    fn take_back_for(&mut self, job: JobId, class: ClassId) -> bool {
        let given = self.giving.make_room(self.rules, self.rights.as_ref(), &mut self.draft, job);
        let Some(given) = given else { return false };
        if self.admit_beside_reservations(job, class).is_err() {
            given.undo(&mut self.draft);
            return false;
        }
        self.refused.retain(|refused| refused.class != class);
        self.last_started.remove(&class);
        self.note_holdings();
        self.starts += 1;
        true
    }

    /// Has others leave for the first who can be helped by it; true if there was one.
    fn make_room(&mut self, line: &mut Line<'a>) -> bool {
        if !self.rules.preemption.makes_room() || self.in_order() || self.is_spent() {
            return false;
        }
        self.look_at_the_patient();
        let mut lacking = Line::empty(self.ranker);
        let mut places: BTreeMap<ClassId, usize> = BTreeMap::new();
        let untried = self.refused.iter().enumerate().filter(|(_, refused)| self.is_untried(refused));
        let untried: Vec<(usize, JobId, ClassId)> =
            untried.map(|(at, refused)| (at, refused.job, refused.class)).collect();
        let few = untried.len() <= FEW_WHO_ASK;
        for (at, job, class) in untried {
            if (!few || self.has_anybody_to_ask(job)) && self.may_be_helped(job) {
                lacking.stand(job, class);
                places.insert(class, at);
            } else {
                self.refused[at].tried = Some(self.changes_for(class));
            }
        }
        while let Some((job, class)) = lacking.pop(self.draft.held().by_queue()) {
            if let Some(waiting) = self.make_room_for(places[&class]) {
                line.step_up(job, class);
                self.stand_again(waiting, line);
                return true;
            }
        }
        false
    }

    /// Whether there may be anybody at all whose place a job could take.
    fn has_anybody_to_ask(&self, job: JobId) -> bool {
        let spec = &self.rules.snapshot.jobs[job].spec;
        let held = self.draft.held().by_queue();
        let takes_back = |rights: &Rights<'_>| rights.may_take_back(held, spec.queue, spec.least());
        self.victims.is_some()
            || !self.last_started.is_empty()
            || self.rights.as_ref().is_some_and(takes_back)
            || Victims::may_yield_to(self.rules, self.ranker, job)
    }

    /// Who preferred to wait may have lost the choice: others were placed since.
    fn look_at_the_patient(&mut self) {
        let Rules { snapshot, placer, sizes, .. } = self.rules;
        for refused in &mut self.refused {
            if matches!(refused.reason, Reason::BandwidthContended { .. }) {
                let mark = self.draft.mark();
                let job = &snapshot.jobs[refused.job];
                let placed = placer.place(&mut self.draft, job, *sizes, Reach::Unclaimed);
                self.draft.rollback(mark);
                refused.reason = placed.err().unwrap_or_else(|| refused.reason.clone());
            }
        }
    }

    /// Whether others might leave enough for a job: told without a look at each of them.
    fn may_be_helped(&mut self, job: JobId) -> bool {
        let (rules, ranker) = (self.rules, self.ranker);
        let victims = self.victims.get_or_insert_with(|| Victims::of(rules, ranker));
        let queue = rules.snapshot.jobs[job].spec.queue;
        let started = self.started.get(&queue).filter(|_| !self.last_started.is_empty());
        victims.may_help(rules, self.rights.as_ref(), &self.draft, job, started.copied())
    }

    fn make_room_for_the_head(&mut self) -> bool {
        let preempts = self.rules.preemption.makes_room() && !self.is_spent();
        preempts && self.make_room_for(self.refused.len() - 1).is_some()
    }

    fn is_spent(&mut self) -> bool {
        self.draft.report.cut_short |= self.beneficiaries >= MOST_BENEFICIARIES_PER_CYCLE;
        self.draft.report.cut_short
    }

    fn is_untried(&self, refused: &Refused) -> bool {
        lacks_room(&refused.reason) && refused.tried != Some(self.changes_for(refused.class))
    }

    /// Grows whenever others may make room for a class who might not before: the groups it looks at have changed, or
    /// what queues hold.
    fn changes_for(&self, class: ClassId) -> u64 {
        let of_queues = self.ranker.shares().map_or(0, |_| self.starts as u64);
        self.draft.counts.changes(&self.class(class).watches) + of_queues
    }

    /// Tells those to leave whose place a refused job may take, and gives it to it. Returns who had just been given a
    /// place and has none any more; nothing if nobody can be told.
    fn make_room_for(&mut self, at: usize) -> Option<Vec<JobId>> {
        let Refused { job, class, .. } = self.refused[at];
        // Somebody before it may have been looked for in vain, and this one with it.
        if !self.may_be_helped(job) {
            self.refused[at].tried = Some(self.changes_for(class));
            return None;
        }
        let (rules, ranker, rights, in_order) =
            (self.rules, self.ranker, self.rights.as_ref(), self.in_order());
        let victims = self.victims.get_or_insert_with(|| Victims::of(rules, ranker));
        // Those ahead in its own class stay ahead.
        let others = self.last_started.iter().filter(|(other, _)| **other != class && !in_order);
        let starting = others.map(|(_, started)| *started).collect();
        let decision_inputs = Grounds { rules, ranker, rights, starting: &starting };
        let Some(waiting) = victims.make_room(&decision_inputs, &mut self.draft, job) else {
            self.refused[at].tried = Some(self.changes_for(class));
            return None;
        };
        self.refused.remove(at);
        self.last_started.remove(&class);
        self.note_holdings();
        self.draft.keep_nothing_for(job);
        self.beneficiaries += 1;
        self.starts += 1;
        Some(waiting)
    }

    /// Has others move closer together for the first who fits then; true if there was one.
    fn move_together(&mut self, line: &mut Line<'a>) -> bool {
        if self.rules.moving != Moving::ForGain || self.in_order() || self.draft.report.cut_short {
            return false;
        }
        let refused = self.refused.iter().filter(|refused| lacks_room(&refused.reason));
        let refused = refused.map(|refused| (refused.job, refused.class));
        let without: Vec<(JobId, ClassId)> = refused.chain(self.closed_for_want_of_room()).collect();
        let least = Least::of(self.rules, &without);
        let mut lacking = Line::empty(self.ranker);
        without
            .into_iter()
            .filter(|(job, _)| self.gathering.may_help(self.rules, &self.draft, &least, *job))
            .for_each(|(job, class)| lacking.stand(job, class));
        while !lacking.is_empty() && self.gathering.may_look(self.rules, &mut self.draft) {
            let Some((job, class)) = lacking.pop(self.draft.held().by_queue()) else { break };
            if self.gathering.make_room(self.rules, &mut self.draft, job) {
                self.refused.retain(|refused| refused.class != class);
                self.looked[class.index()] = true;
                self.last_started.remove(&class);
                self.note_holdings();
                self.starts += 1;
                line.step_up(job, class);
                return true;
            }
        }
        false
    }

    /// The first of each class that was found to lack room before this pass, and since when nothing has changed.
    fn closed_for_want_of_room(&self) -> impl Iterator<Item = (JobId, ClassId)> {
        let unseen = self.rules.snapshot.waiting.classes().filter(|(id, _)| !self.looked[id.index()]);
        let lacking = unseen.filter(|(_, class)| {
            let lacked = class.closed.as_ref().is_some_and(|(_, reason)| lacks_room(reason));
            lacked && !self.is_booked(class)
        });
        lacking.filter_map(|(id, class)| Some((class.line.first()?.job, id)))
    }

    /// Those who had a place and have none any more are the first of their classes again.
    fn stand_again(&mut self, waiting: Vec<JobId>, line: &mut Line<'a>) {
        let jobs = self.rules.snapshot.jobs;
        for (job, class) in waiting.into_iter().filter_map(|job| Some((job, jobs[job].class?))) {
            self.last_started.remove(&class);
            self.refused.retain(|refused| refused.class != class);
            line.stand(job, class);
        }
    }

    /// When the first of those who wait for a better place waits no longer.
    fn end_of_patience(&self) -> Option<Instant> {
        let jobs = self.rules.snapshot.jobs;
        let until = self.refused.iter().filter_map(|refused| match refused.reason {
            Reason::BandwidthContended { patience } => Some(jobs[refused.job].submitted + patience?),
            _ => None,
        });
        until.min()
    }

    /// When somebody who cannot be stopped may fit beside what is booked, who does not now.
    fn end_of_bookings(&self) -> Option<Instant> {
        let held_up = |refused: &Refused| matches!(refused.reason, Reason::ReservedUntil { .. });
        let pools = self.draft.pools.as_ref().filter(|_| self.refused.iter().any(held_up))?;
        pools.first_change()
    }

    fn finish(mut self) -> Draft<'a> {
        let wakes = self.next_owed().into_iter().chain(self.end_of_patience());
        self.draft.wake = wakes.chain(self.draft.wake).chain(self.end_of_bookings()).min();
        let refused = self.refused.into_iter().map(|refused| (refused.class, refused.reason));
        self.draft.report.waiting.extend(refused);
        grow(self.rules, &mut self.draft);
        self.draft
    }
}
