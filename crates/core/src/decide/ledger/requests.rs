//! Waiting jobs in one decision: the first of each class, in the order in which they are served.
//!
//! When the first of a class does not fit, its whole class is passed over, because capacity only shrinks from there on. A
//! class is looked at again in the same decision once its stamp grows: a job was evicted, a reservation was released, or
//! members were placed in a group that its rules watch.

use std::collections::BTreeMap;

use super::Ledger;
use super::request::{Request, Serves};
use crate::decide::order::QueueCursor;
use crate::decide::placement;
use crate::decide::queue_shares::Rights;
use crate::decide::reservations::owed_from;
use crate::decide::snapshot::{Class, Snapshot};
use crate::decide::view::View;
use crate::model::id::{ClassId, Id, JobId, QueueId};
use crate::model::policy::Queueing;
use crate::model::report::Reason;
use crate::model::units::{Instant, Resources};

/// A request that was refused.
#[derive(Clone, Debug)]
pub(in crate::decide) struct Refused {
    pub(in crate::decide) request: Request,
    pub(in crate::decide) reason: Reason,
    /// The draft's stamp of its class then.
    stamp: u64,
    /// The count of `preemption_chances` when preemption found no victims for it.
    pub(in crate::decide) tried: Option<u64>,
}

pub(in crate::decide) struct Requests<'a> {
    pub(in crate::decide) cursor: QueueCursor<'a>,
    pub(in crate::decide) refused: Vec<Refused>,
    /// Whether each class was looked at.
    looked: Vec<bool>,
    /// What queues may reclaim, as of what they hold now; where queues have shares and the policy evicts.
    pub(in crate::decide) rights: Option<Rights<'a>>,
    /// The last job of each class that was started from free capacity and may be withdrawn.
    pub(in crate::decide) last_started: BTreeMap<ClassId, JobId>,
    /// What such jobs of each queue were given.
    pub(in crate::decide) started: BTreeMap<QueueId, Resources>,
    /// Whether waiting jobs were put in the queue.
    is_open: bool,
}

impl<'a> Requests<'a> {
    pub(super) fn closed(view: &View<'a>) -> Self {
        let shares = view.ranker.shares().filter(|_| view.policy.preemption.makes_room());
        Self {
            cursor: QueueCursor::empty(view.ranker),
            refused: Vec::new(),
            looked: vec![false; view.snapshot.waiting.slots()],
            rights: shares.map(|shares| Rights::of(view.snapshot, shares)),
            last_started: BTreeMap::new(),
            started: BTreeMap::new(),
            is_open: false,
        }
    }
}

/// Whether a job was refused because of what other jobs hold.
pub(in crate::decide) fn lacks_capacity(reason: &Reason) -> bool {
    matches!(
        reason,
        Reason::InsufficientResources { .. }
            | Reason::TopologyUnsatisfied { .. }
            | Reason::AffinityUnsatisfied { .. }
            | Reason::AntiAffinityUnsatisfied { .. }
            | Reason::SpreadUnsatisfied { .. }
    )
}

/// Whether the head of the queue blocks all requests behind it.
pub(in crate::decide) fn head_blocks(view: &View<'_>) -> bool {
    view.policy.queueing == Queueing::HeadBlocks
}

fn class<'a>(view: &View<'a>, id: ClassId) -> &'a Class {
    view.snapshot.waiting.class(id).expect("the class of a waiting job")
}

impl<'a> Ledger<'a> {
    /// Puts the first of each class that may be served into the queue, when first called. Requests that counts alone refuse
    /// are noted at once.
    pub(in crate::decide) fn open_queue(&mut self, view: &View<'a>) {
        if std::mem::replace(&mut self.requests.is_open, true) {
            return;
        }
        self.note_holdings();
        let open = view.snapshot.waiting.classes().filter(|(_, class)| self.may_be_served(view, class));
        let open = open.filter(|(_, class)| !self.is_booked(class));
        let open: Vec<Request> = open.filter_map(first_of).collect();
        open.into_iter().for_each(|request| self.enqueue(view, request));
    }

    /// The next request that nothing has closed yet.
    pub(in crate::decide) fn next_request(&mut self, view: &View<'a>) -> Option<Request> {
        loop {
            let (job, class) = self.requests.cursor.pop(self.draft.held().by_queue())?;
            if !self.is_closed(view, self::class(view, class)) {
                self.requests.looked[class.index()] = true;
                return Some(Request { job, class });
            }
        }
    }

    /// Notes that a request was refused.
    pub(in crate::decide) fn refuse(&mut self, view: &View<'a>, request: Request, reason: Reason) {
        self.requests.looked[request.class.index()] = true;
        let stamp = self.draft.stamp(class(view, request.class));
        self.requests.refused.push(Refused { request, reason, stamp, tried: None });
    }

    /// Puts those classes into the queue again whose stamp has grown since they were looked at.
    pub(in crate::decide) fn requeue_changed(&mut self, view: &View<'a>) {
        if head_blocks(view) || self.report.cut_short {
            return;
        }
        let refused = std::mem::take(&mut self.requests.refused);
        let (same, changed): (Vec<Refused>, Vec<Refused>) =
            refused.into_iter().partition(|refused| refused.stamp == self.stamp(view, refused.request.class));
        self.requests.refused = same;
        changed.into_iter().for_each(|refused| self.enqueue(view, refused.request));
        if self.draft.has_reopened_classes() || self.requests.rights.is_some() {
            let unseen = self.unseen(view).filter(|(_, class)| !self.is_booked(class));
            let open =
                unseen.filter(|(id, class)| self.stamp(view, *id) != 0 || self.has_new_rights(view, class));
            let open: Vec<Request> = open.filter_map(first_of).collect();
            open.into_iter().for_each(|request| self.enqueue(view, request));
        }
    }

    /// The refused requests that `wanted` selects, in a queue of their own.
    pub(in crate::decide) fn refused_queue(
        &self,
        view: &View<'a>,
        wanted: impl Fn(&Reason) -> bool,
    ) -> QueueCursor<'a> {
        let mut queue = QueueCursor::empty(view.ranker);
        for Refused { request, .. } in self.requests.refused.iter().filter(|refused| wanted(&refused.reason))
        {
            queue.stand(request.job, request.class);
        }
        queue
    }

    /// The first of each class that lacked capacity in an earlier decision, where nothing has changed since.
    pub(in crate::decide) fn closed_for_lack_of_capacity(
        &self,
        view: &View<'a>,
    ) -> impl Iterator<Item = Request> {
        let lacking = self.unseen(view).filter(|(_, class)| {
            let lacked = class.closed.as_ref().is_some_and(|(_, reason)| lacks_capacity(reason));
            lacked && !self.is_booked(class)
        });
        lacking.filter_map(first_of)
    }

    /// Grows whenever preemption may succeed for a class where it did not before: the groups that its rules watch have
    /// changed, or what queues hold.
    pub(in crate::decide) fn preemption_chances(&self, view: &View<'a>, id: ClassId) -> u64 {
        let of_queues = view.ranker.shares().map_or(0, |_| self.work.starts as u64);
        self.draft.counts.changes(&class(view, id).watches) + of_queues
    }

    /// Whether room is to be reserved for a job, and is not yet.
    pub(in crate::decide) fn is_owed_reservation(&self, view: &View<'a>, job: JobId) -> bool {
        let Snapshot { jobs, now, .. } = view.snapshot;
        let kept = &self.draft.reservations;
        view.policy.queueing == Queueing::Reserve
            && kept.len() + self.work.reservation_searches < view.snapshot.tuning.decide.max_reservations
            && owed_from(&jobs[job], view.ranker, *now) <= *now
            && kept.iter().all(|kept| kept.job != job)
    }

    /// Reports the refused requests, and asks for a decision when the first of them may be served by time alone.
    pub(in crate::decide) fn close_queue(&mut self, view: &View<'a>) {
        if self.requests.is_open {
            let ends = [self.next_owed(view), self.end_of_patience(view), self.end_of_bookings()];
            ends.into_iter().flatten().for_each(|at| self.wake_at(at));
        }
        let refused = std::mem::take(&mut self.requests.refused).into_iter();
        self.report.waiting.extend(refused.map(|refused| (refused.request.class, refused.reason)));
    }

    /// Notes that a request is served: the next of its class comes forward.
    pub(super) fn note_served(&mut self, view: &View<'a>, request: Request, serves: Serves) {
        let Request { job, class } = request;
        self.requests.refused.retain(|refused| refused.request.class != class);
        self.requests.looked[class.index()] = true;
        self.work.starts += 1;
        self.work.beneficiaries += usize::from(serves == Serves::ByEviction);
        self.report.blocked_by = None;
        match serves {
            Serves::FromFreeCapacity => self.note_start(view, request),
            Serves::ByRearranging | Serves::ByEviction => {
                self.requests.last_started.remove(&class);
            }
        }
        self.note_holdings();
        self.requests.cursor.step_up(job, class);
    }

    /// Puts a job that lost the place it was given in this decision back at the head of its class.
    pub(super) fn requeue(&mut self, view: &View<'a>, job: JobId) {
        let Some(class) = view.snapshot.jobs[job].class else { return };
        self.requests.last_started.remove(&class);
        self.requests.refused.retain(|refused| refused.request.class != class);
        self.requests.cursor.stand(job, class);
    }

    /// Remembers a job that would be evicted as soon as it runs: it may as well not start. A job that cannot be stopped
    /// keeps its place, and so does a job that the rules of others look at: they may have been placed by it since.
    fn note_start(&mut self, view: &View<'a>, Request { job, class }: Request) {
        let Snapshot { jobs, min_run, .. } = view.snapshot;
        let spec = &jobs[job].spec;
        let unseen = spec.roles.iter().all(|role| role.shape.groups.is_empty());
        match spec.capabilities.makes_room() && min_run.is_zero() && unseen {
            true => {
                let started = self.requests.started.entry(spec.queue).or_default();
                *started = *started + spec.least();
                self.requests.last_started.insert(class, job)
            }
            false => self.requests.last_started.remove(&class),
        };
    }

    fn note_holdings(&mut self) {
        let held = self.draft.held().by_queue();
        self.requests.rights.iter_mut().for_each(|rights| rights.note(held));
    }

    fn enqueue(&mut self, view: &View<'a>, request: Request) {
        match self.refusal_by_counts(view, request) {
            Some(reason) => self.refuse(view, request, reason),
            None => self.requests.cursor.stand(request.job, request.class),
        }
    }

    /// The reason why a request would be refused when its turn came, where counts tell it now: until then there will not be
    /// more capacity. A request that is owed a reservation waits for its turn.
    fn refusal_by_counts(&self, view: &View<'a>, Request { job, class }: Request) -> Option<Reason> {
        let waits = head_blocks(view)
            || self.is_closed(view, self::class(view, class))
            || self.is_owed_reservation(view, job);
        let refused = || placement::refusal_by_counts(view, &self.draft, &view.snapshot.jobs[job]);
        if waits { None } else { refused() }
    }

    fn unseen(&self, view: &View<'a>) -> impl Iterator<Item = (ClassId, &'a Class)> {
        view.snapshot.waiting.classes().filter(|(id, _)| !self.requests.looked[id.index()])
    }

    /// Whether the bookings decide about a class: it is that of a job with a booking, or of one that they refuse.
    fn is_booked(&self, class: &Class) -> bool {
        let is_refused = |job: JobId| self.bookings.refused.iter().any(|(refused, _)| *refused == job);
        class.key.due.is_some_and(|job| self.bookings.govern(job) || is_refused(job))
    }

    fn was_closed(&self, view: &View<'a>, class: &Class) -> bool {
        class.is_closed(view.snapshot.stamp(class)) && !self.has_new_rights(view, class)
    }

    /// Whether a class that lacked capacity may now get a reservation or reclaim some: time and what queues hold decide.
    fn has_new_rights(&self, view: &View<'a>, class: &Class) -> bool {
        let lacked = class.closed.as_ref().is_some_and(|(_, reason)| lacks_capacity(reason));
        let Some(first) = class.line.first().filter(|_| lacked) else { return false };
        let need = || view.snapshot.jobs[first.job].spec.least();
        let held = self.draft.held().by_queue();
        let reclaims = |rights: &Rights<'_>| rights.may_reclaim(held, class.key.queue, need());
        self.is_owed_reservation(view, first.job) || self.requests.rights.as_ref().is_some_and(reclaims)
    }

    /// Whether a class is open, or may become so in the course of the decision.
    fn may_be_served(&self, view: &View<'a>, class: &Class) -> bool {
        head_blocks(view) || !self.was_closed(view, class) || !class.watches.is_empty()
    }

    /// Whether nothing has happened since a class was closed.
    fn is_closed(&self, view: &View<'a>, class: &Class) -> bool {
        !head_blocks(view) && self.was_closed(view, class) && self.draft.stamp(class) == 0
    }

    fn stamp(&self, view: &View<'a>, class: ClassId) -> u64 {
        view.snapshot.waiting.class(class).map_or(0, |class| self.draft.stamp(class))
    }

    /// When the next class is owed a reservation.
    fn next_owed(&self, view: &View<'a>) -> Option<Instant> {
        let Snapshot { jobs, now, waiting, .. } = view.snapshot;
        let reserves = view.policy.queueing == Queueing::Reserve;
        let classes = waiting.classes().filter(|_| reserves);
        let unbooked = classes.filter(|(_, class)| !self.is_booked(class));
        let firsts = unbooked.filter_map(|(_, class)| class.line.first());
        let due = firsts.map(|place| owed_from(&jobs[place.job], view.ranker, *now));
        due.filter(|at| at > now).min()
    }

    /// When the first job that waits for a better place on links starts anywhere.
    fn end_of_patience(&self, view: &View<'a>) -> Option<Instant> {
        let jobs = view.snapshot.jobs;
        let until = self.requests.refused.iter().filter_map(|refused| match refused.reason {
            Reason::BandwidthContended { patience } => Some(jobs[refused.request.job].submitted + patience?),
            _ => None,
        });
        until.min()
    }

    /// When a job that cannot be stopped may first fit beside the bookings that hold it up now.
    fn end_of_bookings(&self) -> Option<Instant> {
        let held_up = |refused: &Refused| matches!(refused.reason, Reason::ReservedUntil { .. });
        let pools = self.bookings.pools.as_ref().filter(|_| self.requests.refused.iter().any(held_up))?;
        pools.first_change()
    }
}

fn first_of((id, class): (ClassId, &Class)) -> Option<Request> {
    Some(Request { job: class.line.first()?.job, class: id })
}
