//! Moves: the pods of a job save their work and leave, their owners make them anew, and those go where the plan says.
//!
//! What it takes to save is done first, and a move is called off as long as nobody has left. From then on the job is on
//! its way: its new pods are bound only once all of the old ones are gone, so that nobody runs twice. Where anything comes
//! in between after that, the job is given up for the engine, and what there is of it is looked at anew.
//!
//! So it is where a job is to have more members than it has, or fewer; one that is about to start has nothing to save.

use std::sync::Arc;

use metronome_core::engine::Event;
use metronome_core::model::id::JobId;
use metronome_core::model::plan::{Assignment, Generation, StepId};
use metronome_core::model::report::Failure;
use metronome_core::model::units::{Duration, Instant};

use super::consent::{How, Saving};
use super::crew::{Crew, Stage};
use super::departures::Lineage;
use super::describe::{Description, Urgency};
use super::gangs::{GangKey, HeldUp, annotation, is_owned};
use super::joins::Leavers;
use super::pods::{Known, Uid};
use super::sizes::{COME_WITHIN, size};
use super::{Mode, World};
use crate::deed::{About, EventReason, IntentName, Kind, Telling};
use crate::objects::GroupKind;
use crate::watch::Binding;

/// By which pods are asked to save their work, and say that they have: both have the same value.
pub(super) const REQUEST: &str = "metronome.dev/checkpoint-request";
pub(super) const CHECKPOINTED: &str = "metronome.dev/checkpointed";

/// How long owners have to make pods anew.
const RETURN_WITHIN: Duration = Duration(5 * Duration::MINUTE.0);

/// A job that is on its way.
#[derive(Clone, Debug)]
pub(super) struct Move {
    step: StepId,
    generation: Generation,
    to: Arc<Assignment>,
    /// How many pods it takes.
    pods: usize,
    pub(super) lineage: Lineage,
    phase: Phase,
}

#[derive(Clone, Debug)]
enum Phase {
    /// Its pods were asked to save their work, and have until then.
    Saving { word: String, until: Instant },
    /// Its pods are on their way out.
    Leaving(IntentName),
    /// They are gone, and others are to come in their place by then.
    Away { until: Instant },
    /// Those are being bound.
    Arriving,
    /// Nobody leaves, and others are to join by then.
    Awaiting { until: Instant },
    /// Some are on their way out, and the others go on.
    ThinningOut(IntentName),
}

impl World {
    pub(super) fn relocate(
        &mut self,
        now: Instant,
        job: JobId,
        (step, generation): (StepId, Generation),
        to: &Arc<Assignment>,
    ) {
        let Some((saving, lineage)) = self.may_go(job).filter(|_| self.settings.mode == Mode::Bind) else {
            return self.engine.observe(now, Event::StepFailed { job, step, failure: Failure::Other });
        };
        let word = (now.0 / 1_000_000).to_string();
        let until = now + saving.takes.times(2) + Duration::MINUTE;
        let phase = Phase::Saving { word: word.clone(), until };
        let pods = self.pods_for(job, to);
        self.moves.insert(job, Move { step, generation, to: to.clone(), pods, lineage, phase });
        self.crews.get_mut(&job).expect("it may go").stage = Stage::Moving;
        match saving.how {
            How::Request => self.say_on_all(job, REQUEST, Some(&word)),
            How::Signal => self.send_away(now, job),
        }
    }

    /// Nobody will come in the place of those who left: what declared them is gone.
    fn is_called_back(&self, job: JobId) -> bool {
        let key = &self.crews[&job].gang;
        let declared = self.gangs.get(key).and_then(|gang| gang.declared.as_ref());
        matches!(key, GangKey::Declared { kind: GroupKind::Training, .. }) && declared.is_none()
    }

    /// As many as were to come did not; with those who did, if any, it is tried again.
    fn came_at_most(&mut self, job: JobId) {
        let crew = &self.crews[&job];
        let (key, here) = (crew.gang.clone(), crew.members().count());
        let came = here + self.heirs(&self.moves[&job].lineage).len();
        self.had_at_most(&key, came);
    }

    /// Those who were to join did not come: it goes on as it is.
    fn go_on_without(&mut self, now: Instant, job: JobId) {
        let key = self.crews[&job].gang.clone();
        self.came_at_most(job);
        self.call_off(now, job, "the members that there is room for did not come");
        self.take_in_again(now, &key);
    }

    /// How many pods a place takes. Cores may be a part of it, which are no pods.
    fn pods_for(&self, job: JobId, to: &Assignment) -> usize {
        let crew = &self.crews[&job];
        match self.elastic(&crew.gang) {
            Some(_) => to.members() as usize,
            None => crew.members().count(),
        }
    }

    /// Whether its pods were made for another number of members than it is to start with.
    pub(super) fn is_made_for_others(&self, job: JobId, to: &Assignment) -> bool {
        let binds = self.settings.mode == Mode::Bind;
        let made = self.crews.get(&job).filter(|_| binds).map(|crew| crew.members().count());
        made.is_some_and(|made| made != self.pods_for(job, to))
    }

    /// Nobody of it runs: as many as there is room for are made, and bound when they have come.
    pub(super) fn await_members(
        &mut self,
        now: Instant,
        job: JobId,
        (step, generation): (StepId, Generation),
        to: &Arc<Assignment>,
    ) {
        let key = self.crews[&job].gang.clone();
        let pods = self.pods_for(job, to);
        self.strike_off(job);
        self.crews.insert(job, Crew { stage: Stage::Moving, ..Crew::waiting(key.clone(), &[]) });
        let (lineage, phase) = (Lineage::Gang(key.clone()), Phase::Away { until: now + COME_WITHIN });
        self.moves.insert(job, Move { step, generation, to: to.clone(), pods, lineage, phase });
        self.ask_for_members(&key, to.members());
    }

    /// How a job saves its work, if all of its gang is there and somebody will make it anew.
    fn may_go(&self, job: JobId) -> Option<(Saving, Lineage)> {
        let crew = self.crews.get(&job).filter(|crew| crew.stage == Stage::Running)?;
        let gang: Vec<Uid> = self.gangs.get(&crew.gang)?.pods.iter().cloned().collect();
        let returns = |known: &Known| known.is_placed() && is_owned(&known.pod);
        let all = crew.is_made_of(&gang) && gang.iter().all(|uid| self.pods.get(uid).is_some_and(returns));
        let first = &self.pods.get(gang.first()?)?.pod;
        let (consent, _) = self.consent(&crew.gang, first);
        consent.saving.filter(|_| all).zip(Lineage::of(&crew.gang, first))
    }

    /// Whatever has happened since: goes on with all who are on their way.
    pub(super) fn go_on_with_moves(&mut self, now: Instant) {
        let moving: Vec<JobId> = self.moves.keys().copied().collect();
        for job in moving {
            match self.moves[&job].phase.clone() {
                Phase::Saving { word, until } => self.go_on_saving(now, job, &word, until),
                Phase::Leaving(departure) if !self.departures.contains_key(&departure) => {
                    self.set_phase(job, Phase::Away { until: now + RETURN_WITHIN });
                    self.gather(now, job);
                }
                Phase::Away { until } if until <= now || self.is_called_back(job) => {
                    self.came_at_most(job);
                    self.dissolve(now, job);
                }
                Phase::Away { .. } => self.gather(now, job),
                Phase::Awaiting { until } if until <= now => self.go_on_without(now, job),
                Phase::Awaiting { .. } => self.join(now, job),
                Phase::ThinningOut(departure) if !self.departures.contains_key(&departure) => {
                    self.has_thinned_out(now, job);
                }
                Phase::Leaving(_) | Phase::Arriving | Phase::ThinningOut(_) => {}
            }
        }
    }

    fn go_on_saving(&mut self, now: Instant, job: JobId, word: &str, until: Instant) {
        let crew = &self.crews[&job];
        let of = |member: &super::crew::Member| self.pods.get(&member.uid);
        let stays = crew.members().all(|member| of(member).is_some_and(Known::is_placed));
        let has_saved = |known: &Known| annotation(&known.pod, CHECKPOINTED) == Some(word);
        let saved = crew.members().all(|member| of(member).is_some_and(has_saved));
        if !stays {
            self.call_off(now, job, "some of its pods have ended meanwhile");
        } else if saved {
            self.send_away(now, job);
        } else if until <= now {
            self.call_off(now, job, "it was asked to save its work and did not say in time that it had");
        }
    }

    /// From here on there is no way back.
    fn send_away(&mut self, now: Instant, job: JobId) {
        if self.binding == Binding::Off {
            return self.call_off(now, job, "binding was switched off meanwhile");
        }
        let Move { generation, lineage, to, .. } = self.moves[&job].clone();
        let key = self.crews[&job].gang.clone();
        self.ask_for_members(&key, to.members());
        let phase = match self.leavers(job, &to) {
            Leavers::Nobody => Phase::Awaiting { until: now + COME_WITHIN },
            Leavers::Some(pods) => Phase::ThinningOut(self.depart(&key, lineage, job, generation, pods)),
            Leavers::Everybody => {
                let pods = self.all_of_its_gang(job);
                Phase::Leaving(self.depart(&key, lineage, job, generation, pods))
            }
        };
        self.set_phase(job, phase);
    }

    /// Nobody has left: the job goes on where it is.
    pub(super) fn call_off(&mut self, now: Instant, job: JobId, why: &str) {
        let Some(Move { step, phase, .. }) = self.moves.remove(&job) else { return };
        match phase {
            Phase::Saving { .. } => self.say_on_all(job, REQUEST, None),
            _ => self.take_back_old_requests(job),
        }
        let first = self.crews.get(&job).and_then(|crew| crew.members().next());
        if let Some(known) = first.and_then(|member| self.pods.get(&member.uid)) {
            let (about, message) = (About::Pod(known.reference()), format!("it is not moved: {why}"));
            self.do_it(Kind::Tell(Telling { about, reason: EventReason::NotMoved, message }));
        }
        if let Some(crew) = self.crews.get_mut(&job) {
            crew.stage = Stage::Running;
            let (key, members) = (crew.gang.clone(), crew.members().count());
            match self.comes_and_goes(job) {
                true => self.ask_for_members(&key, u32::try_from(members).unwrap_or(u32::MAX)),
                false => self.ask_for_no_members(&key),
            }
            self.changed.insert(key);
        }
        self.engine.observe(now, Event::StepFailed { job, step, failure: Failure::WouldNotStop });
        let members = self.crews.get(&job).into_iter().flat_map(Crew::members);
        let gone = members.map(|member| member.uid.clone()).filter(|uid| !self.pods.contains_key(uid));
        let gone: Vec<Uid> = gone.collect();
        gone.iter().for_each(|uid| self.member_gone(now, job, uid));
    }

    /// Binds those who were made anew where the job is to go, once there are enough of them.
    fn gather(&mut self, now: Instant, job: JobId) {
        let Move { lineage, pods, .. } = &self.moves[&job];
        let mut heirs = self.heirs(lineage);
        heirs.retain(|uid| size(&self.pods[uid]).is_none_or(|size| size == *pods));
        // Who is one too many is about to be removed.
        let too_many = heirs.len() > *pods && self.comes_and_goes(job);
        if heirs.len() < *pods || too_many || self.binding == Binding::Off {
            return;
        }
        heirs.truncate(*pods);
        let key = self.pods[&heirs[0]].gang.clone();
        match self.describe(now, &key, &heirs, Urgency::Runs) {
            Ok(description) if self.is_alike(job, &description) => self.arrive(now, job, &key, description),
            Err(HeldUp::ForNow(_)) => {}
            // They ask for something else: whoever decided on the move did not know.
            _ => self.dissolve(now, job),
        }
    }

    pub(super) fn is_alike(&self, job: JobId, description: &Description) -> bool {
        self.engine.job(job).is_some_and(|job| job.spec.roles == description.spec.roles)
    }

    /// Binds who is not bound yet, to where the job is to be.
    pub(super) fn arrive(&mut self, now: Instant, job: JobId, key: &GangKey, description: Description) {
        let Move { step, generation, to, .. } = self.moves[&job].clone();
        self.set_phase(job, Phase::Arriving);
        let before = self.crews[&job].gang.clone();
        self.strike_off(job);
        self.gang_mut(&before).jobs.remove(&job);
        self.changed.insert(before);
        let Description { spec, roles, casts, .. } = description;
        self.engine.observe(now, Event::JobChanged { job, spec: Arc::new(spec) });
        let mut crew = Crew::waiting(key.clone(), &roles);
        for member in crew.roles.iter_mut().flatten() {
            member.node = self.seat_of(&member.uid);
        }
        crew.sit_down_beside(&to);
        self.enlist(now, job, crew, casts);
        let members = self.seats(job);
        let intent = (members.len() > 1).then(|| self.intent(key, job, generation));
        self.bind(job, Some(step), members, intent);
    }

    /// A member of a job is gone that was only asked to save its work.
    pub(super) fn stop_saving(&mut self, now: Instant, job: JobId) {
        if self.moves.get(&job).is_some_and(|it| matches!(it.phase, Phase::Saving { .. })) {
            self.call_off(now, job, "some of its pods have ended meanwhile");
        }
    }

    /// The job is no longer the engine's: whatever its pods do, nobody waits for it.
    pub(super) fn forget_move(&mut self, job: JobId) {
        let phase = self.moves.get(&job).map(|it| it.phase.clone());
        if let Some(Phase::Saving { .. }) = phase {
            self.say_on_all(job, REQUEST, None);
        }
        self.moves.remove(&job);
    }

    pub(super) fn is_moving(&self, job: JobId) -> bool {
        self.moves.contains_key(&job)
    }

    /// How those are known who join a job, and how many pods it has then.
    pub(super) fn is_joined_by(&self, job: JobId) -> (Lineage, usize) {
        let Move { lineage, pods, .. } = &self.moves[&job];
        (lineage.clone(), *pods)
    }

    pub(super) fn step_of_move(&self, job: JobId) -> Option<StepId> {
        self.moves.get(&job).map(|it| it.step)
    }

    /// Whether a job has no place for now that it is bound to, or soon will not.
    pub(super) fn is_under_way(&self, job: JobId) -> bool {
        let stays =
            |phase: &Phase| matches!(phase, Phase::Arriving | Phase::Awaiting { .. } | Phase::ThinningOut(_));
        self.moves.get(&job).is_some_and(|it| !stays(&it.phase))
    }

    /// An earlier leader asked pods to save their work, and nobody waits for that any more.
    pub(super) fn take_back_old_requests(&mut self, job: JobId) {
        let members = self.crews.get(&job).into_iter().flat_map(Crew::members);
        let known = members.filter_map(|member| self.pods.get(&member.uid));
        if known.into_iter().any(|known| annotation(&known.pod, REQUEST).is_some()) {
            self.say_on_all(job, REQUEST, None);
        }
    }

    fn set_phase(&mut self, job: JobId, phase: Phase) {
        if let Some(it) = self.moves.get_mut(&job) {
            it.phase = phase;
        }
    }

    fn say_on_all(&mut self, job: JobId, key: &'static str, value: Option<&str>) {
        let Some(crew) = self.crews.get(&job) else { return };
        let members = crew.members().filter_map(|member| self.pods.get(&member.uid));
        let pods: Vec<_> = members.map(Known::reference).collect();
        for pod in pods {
            self.do_it(Kind::Annotate { pod, key, value: value.map(str::to_owned) });
        }
    }
}
