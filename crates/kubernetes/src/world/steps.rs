//! Steps of the engine become deeds; outcomes of deeds become events of the engine.

use std::collections::BTreeMap;
use std::sync::Arc;

use metronome_core::engine::Event;
use metronome_core::model::id::JobId;
use metronome_core::model::plan::{Action, Assignment, Generation, Step, StepId};
use metronome_core::model::report::Failure;
use metronome_core::model::units::Instant;

use super::crew::Stage;
use super::gangs::GangKey;
use super::{Mode, World};
use crate::deed::{
    About, Bound, EventReason, Intent, IntentName, Kind, Outcome, PodRef, Seat, Telling, Ticket,
};

/// What a deed is for.
#[derive(Clone, Debug)]
pub(super) enum Errand {
    /// Without a step where it completes what was found half done.
    Bind {
        job: JobId,
        step: Option<StepId>,
        intent: Option<Intent>,
    },
    Evict {
        steps: Vec<(JobId, StepId)>,
    },
    /// Pods make room for those that are made in their place.
    SendAway {
        departure: IntentName,
        job: Option<JobId>,
    },
    Delete,
    /// A pod gets other cores; it runs already where there is no step but to start it.
    Resize {
        job: JobId,
        step: Option<StepId>,
    },
}

impl World {
    pub(super) fn carry_out(&mut self, now: Instant, steps: Vec<Step>) {
        let mut evictions: BTreeMap<Option<JobId>, Vec<(JobId, StepId)>> = BTreeMap::new();
        for step in steps {
            match step.action {
                Action::Start(to) => self.start(now, step.job, step.id, step.generation, &to),
                Action::Preempt { beneficiary } => {
                    evictions.entry(beneficiary).or_default().push((step.job, step.id));
                }
                Action::Stop if self.is_under_way(step.job) => self.dissolve(now, step.job),
                // Only starts that were never heard of again come here, and `act` answers every one of them.
                Action::Stop | Action::Suspend => self.clear_away(step.job),
                Action::ResizeInPlace { to, .. } => self.resize(now, step.job, step.id, &to),
                // Annotations follow the plan: they are written, and written again, until pods carry them.
                Action::Direct { .. } => {
                    self.engine.observe(now, Event::StepDone { job: step.job, step: step.id });
                }
                Action::Move { to, .. } | Action::Rescale { to, .. } => {
                    self.relocate(now, step.job, (step.id, step.generation), &to);
                }
            }
        }
        for (beneficiary, steps) in evictions {
            self.evict(now, beneficiary, steps);
        }
    }

    fn start(
        &mut self,
        now: Instant,
        job: JobId,
        step: StepId,
        generation: Generation,
        to: &Arc<Assignment>,
    ) {
        if self.is_made_for_others(job, to) {
            return self.await_members(now, job, (step, generation), to);
        }
        let Some(crew) = self.crews.get_mut(&job) else { return };
        crew.sit_down(to);
        let key = crew.gang.clone();
        if self.settings.mode == Mode::Observe {
            self.would_start(now, job);
            self.crews.get_mut(&job).expect("it was just there").stage = Stage::Running;
            return self.engine.observe(now, Event::StepDone { job, step });
        }
        let members = self.seats(job);
        let intent =
            (members.len() > 1 || self.is_partly_placed(&key)).then(|| self.intent(&key, job, generation));
        self.bind(job, Some(step), members, intent);
    }

    fn is_partly_placed(&self, key: &GangKey) -> bool {
        let gang = &self.gangs[key];
        !key.is_single() && !gang.was_whole && gang.pods.iter().any(|uid| self.pods[uid].is_placed())
    }

    pub(super) fn bind(
        &mut self,
        job: JobId,
        step: Option<StepId>,
        members: Vec<Seat>,
        intent: Option<Intent>,
    ) {
        self.open_intents.extend(intent.as_ref().and_then(|intent| intent.name.clone()));
        let ticket = self.do_it(Kind::Bind { members, intent: intent.clone() });
        self.errands.insert(ticket, Errand::Bind { job, step, intent });
        if let Some(crew) = self.crews.get_mut(&job) {
            crew.stage = Stage::Binding(ticket);
        }
    }

    /// Where every member of a job goes that is not bound yet.
    pub(super) fn seats(&self, job: JobId) -> Vec<Seat> {
        let seat = |member: &super::crew::Member| {
            let known = self.pods.get(&member.uid).filter(|known| known.node().is_none())?;
            Some(Seat { pod: known.reference(), node: self.node_name(member.node?) })
        };
        self.crews[&job].members().filter_map(seat).collect()
    }

    /// The whole gang as it shall be: who is bound already, and who is to be.
    pub(super) fn intent(&self, key: &GangKey, job: JobId, generation: Generation) -> Intent {
        let placed = self.gangs[key].pods.iter().filter_map(|uid| {
            let known = self.pods.get(uid).filter(|known| known.is_placed())?;
            Some(Seat { pod: known.reference(), node: Arc::from(known.node()?) })
        });
        let mut seats: Vec<Seat> = placed.chain(self.seats(job)).collect();
        seats.sort();
        Intent {
            name: Some(intent_name(key)),
            gang: key.full_name(),
            generation: generation.0,
            epoch: self.settings.epoch,
            seats,
            leaves: Vec::new(),
        }
    }

    fn evict(&mut self, now: Instant, beneficiary: Option<JobId>, steps: Vec<(JobId, StepId)>) {
        if self.settings.mode == Mode::Observe {
            for (job, step) in steps {
                self.engine.observe(now, Event::StepFailed { job, step, failure: Failure::WouldNotStop });
            }
            return;
        }
        let victims = steps.iter().flat_map(|(job, _)| self.all_of_its_gang(*job)).collect();
        let why = self.why_they_leave(beneficiary, &steps);
        let ticket = self.do_it(Kind::Evict { victims, why, intent: None });
        for (job, _) in &steps {
            if let Some(crew) = self.crews.get_mut(job) {
                crew.stage = Stage::Leaving;
            }
        }
        self.errands.insert(ticket, Errand::Evict { steps });
    }

    /// Inside a queue priorities tell who makes room; a queue gives back what it holds beyond its own.
    fn why_they_leave(&self, beneficiary: Option<JobId>, steps: &[(JobId, StepId)]) -> String {
        let Some(job) = beneficiary.and_then(|job| self.engine.job(job)) else {
            return "preempted to make room for a job that goes first".into();
        };
        let theirs = steps.iter().filter_map(|(victim, _)| Some(self.engine.job(*victim)?.spec.queue));
        let gives_back = theirs.into_iter().any(|queue| queue != job.spec.queue);
        let name = &job.spec.name;
        if gives_back {
            let queue = &self.engine.state().queues[job.spec.queue].name;
            return format!(
                "preempted to make room for {name}: its queue {queue} takes back what is its own"
            );
        }
        format!("preempted to make room for {name}, which has a higher priority")
    }

    /// A gang goes whole: also those that joined it after it had started.
    pub(super) fn all_of_its_gang(&self, job: JobId) -> Vec<PodRef> {
        let Some(crew) = self.crews.get(&job) else { return Vec::new() };
        let pods = self.gangs.get(&crew.gang).into_iter().flat_map(|gang| &gang.pods);
        let placed = pods.filter_map(|uid| self.pods.get(uid)).filter(|known| known.is_placed());
        placed.map(super::pods::Known::reference).collect()
    }

    fn clear_away(&mut self, job: JobId) {
        let pods = self.all_of_its_gang(job);
        let why = "nothing was heard of its start; it is deleted to be made anew".into();
        let ticket = self.do_it(Kind::Delete { pods, why });
        self.errands.insert(ticket, Errand::Delete);
    }

    /// Folds what became of a deed into what is known.
    pub fn heard(&mut self, now: Instant, outcome: Outcome) {
        self.stirred = true;
        match outcome {
            Outcome::Bound { ticket, members } => self.bound(now, ticket, &members),
            Outcome::IntentTaken { ticket } if self.is_sending_away(ticket) => {
                self.not_sent_away(now, ticket, "somebody else has recorded who leaves");
            }
            Outcome::IntentTaken { ticket } => self.not_bound(now, ticket, Failure::Stale),
            Outcome::GivenUp { ticket, .. } | Outcome::EvictedInPart { ticket, .. } => self.try_again(ticket),
            Outcome::Resized { ticket } => self.resized(now, ticket),
            Outcome::NotResized { ticket, refusal } => self.not_resized(now, ticket, &refusal),
            Outcome::Evicted { ticket } | Outcome::Deleted { ticket } => {
                self.errands.remove(&ticket);
            }
            // Nothing is made here: that is for the controller of jobs.
            Outcome::Made { .. } | Outcome::NotMade { .. } | Outcome::Written { .. } => {}
            Outcome::NotEvicted { ticket, refusal } if self.is_sending_away(ticket) => {
                self.not_sent_away(now, ticket, &refusal);
            }
            Outcome::NotEvicted { ticket, .. } => self.not_evicted(now, ticket),
        }
    }

    fn bound(&mut self, now: Instant, ticket: Ticket, members: &[(Seat, Bound)]) {
        for (seat, _) in members.iter().filter(|(_, bound)| *bound == Bound::Here) {
            self.is_bound(seat);
        }
        if members.iter().any(|(_, bound)| *bound == Bound::Unknown) {
            return self.try_again(ticket);
        }
        let here = members.iter().filter(|(_, bound)| *bound == Bound::Here).count();
        if here == members.len() {
            self.runs(now, ticket);
        } else if here == 0 {
            self.not_bound(now, ticket, Failure::Other);
        } else {
            self.half_bound(now, ticket);
        }
    }

    fn is_bound(&mut self, seat: &Seat) {
        let Some(known) = self.pods.get_mut(&seat.pod.uid) else { return };
        known.assumed = Some(seat.node.clone());
        let about = About::Pod(seat.pod.clone());
        let message = format!("assigned {}/{} to {}", seat.pod.namespace, seat.pod.name, seat.node);
        self.do_it(Kind::Tell(Telling { about, reason: EventReason::Scheduled, message }));
    }

    /// All members are bound.
    fn runs(&mut self, now: Instant, ticket: Ticket) {
        let Some(Errand::Bind { job, step, intent }) = self.errands.remove(&ticket) else { return };
        self.forget(intent);
        if self.lacks_cores(job) {
            return self.ask_for_cores(job, step);
        }
        self.has_started(now, job, step);
    }

    /// All members are bound and have what they are to have.
    pub(super) fn has_started(&mut self, now: Instant, job: JobId, step: Option<StepId>) {
        let Some(crew) = self.crews.get_mut(&job) else { return };
        crew.stage = Stage::Running;
        let key = crew.gang.clone();
        if self.moves.remove(&job).is_some() {
            self.take_back_old_requests(job);
        }
        self.ask_for_no_members(&key);
        let gone: Vec<_> = self.crews[&job]
            .members()
            .filter(|member| !self.pods.contains_key(&member.uid))
            .cloned()
            .collect();
        if let Some(step) = step {
            self.engine.observe(now, Event::StepDone { job, step });
        }
        for member in gone {
            self.member_gone(now, job, &member.uid);
        }
        let gang = self.gang_mut(&key);
        gang.was_whole = true;
        gang.broken_since = None;
        gang.said = None;
        self.write_phase(&key);
        if self.is_one_by_now(&key) {
            self.take_in_again(now, &key);
        }
        self.changed.insert(key);
    }

    /// Nobody is bound: the engine tries again later.
    fn not_bound(&mut self, now: Instant, ticket: Ticket, failure: Failure) {
        let Some(Errand::Bind { job, step, intent }) = self.errands.remove(&ticket) else { return };
        if failure != Failure::Stale {
            self.forget(intent);
        }
        let Some(crew) = self.crews.get_mut(&job) else { return };
        crew.stage = Stage::Waiting;
        self.changed.insert(crew.gang.clone());
        match step {
            // It is no longer where it was.
            Some(_) if self.is_moving(job) => self.dissolve(now, job),
            Some(step) => self.engine.observe(now, Event::StepFailed { job, step, failure }),
            None => self.dissolve(now, job),
        }
    }

    /// Some are bound and others never will be. Those that are become a job of their own, and the gang is completed
    /// before anybody else is served, or given up when that does not come about.
    fn half_bound(&mut self, now: Instant, ticket: Ticket) {
        let Some(Errand::Bind { job, intent, .. }) = self.errands.remove(&ticket) else { return };
        self.forget(intent);
        let Some(key) = self.crews.get(&job).map(|crew| crew.gang.clone()) else { return };
        self.dissolve(now, job);
        // Where others were to join those who run, these go on.
        let placed = self.gangs[&key].pods.iter().filter(|uid| self.pods[*uid].is_placed()).count();
        if !self.least(&key).is_ok_and(|least| placed >= least) {
            self.gang_mut(&key).broken_since = Some(now);
        }
    }

    /// Nothing is known of some of them, so nothing may be assumed: the same binds are asked for again, which changes
    /// nothing where they have happened.
    fn try_again(&mut self, ticket: Ticket) {
        let Some(errand) = self.errands.remove(&ticket) else { return };
        match errand {
            Errand::Bind { job, step, intent } if self.crews.contains_key(&job) => {
                let members = self.seats(job);
                self.bind(job, step, members, intent);
            }
            Errand::Evict { steps } => {
                let victims = steps.iter().flat_map(|(job, _)| self.all_of_its_gang(*job)).collect();
                let why = self.why_they_leave(None, &steps);
                let ticket = self.do_it(Kind::Evict { victims, why, intent: None });
                self.errands.insert(ticket, Errand::Evict { steps });
            }
            Errand::SendAway { departure, job } => self.tell_them_to_leave(departure, job),
            Errand::Resize { job, step } => self.ask_for_cores(job, step),
            Errand::Bind { .. } | Errand::Delete => {}
        }
    }

    fn not_evicted(&mut self, now: Instant, ticket: Ticket) {
        let Some(Errand::Evict { steps }) = self.errands.remove(&ticket) else { return };
        for (job, step) in steps {
            if let Some(crew) = self.crews.get_mut(&job) {
                crew.stage = Stage::Running;
            }
            self.engine.observe(now, Event::StepFailed { job, step, failure: Failure::WouldNotStop });
        }
    }

    /// The gang runs, or is given up.
    pub(super) fn forget(&mut self, intent: Option<Intent>) {
        let Some(Intent { name: Some(name), generation, .. }) = intent else { return };
        self.open_intents.remove(&name);
        // From now on it is on its way out; only later is it left over.
        let now = self.engine.state().now;
        if let Some((_, since)) = self.recorded.get_mut(&name) {
            *since = now;
        }
        self.do_it(Kind::Forget { intent: name, generation: Some(generation) });
    }
}

/// A name that every leader gives to the same gang, whatever characters its own name has.
pub(super) fn intent_name(key: &GangKey) -> IntentName {
    let mut hash: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    for byte in key.full_name().bytes() {
        hash ^= u128::from(byte);
        hash = hash.wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
    }
    IntentName(format!("metronome-gang-{hash:032x}"))
}
