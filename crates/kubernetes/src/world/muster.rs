//! From pods to jobs: which of a gang's pods must start together now, described to the engine.

use std::sync::Arc;

use metronome_core::engine::Event;
use metronome_core::model::id::JobId;
use metronome_core::model::job::RoleKind;
use metronome_core::model::units::Instant;

use super::World;
use super::crew::{Crew, Stage};
use super::describe::{Description, Urgency};
use super::gangs::{self, GangKey, HeldUp};
use super::pods::{Uid, created};
use crate::border::Cast;
use crate::deed::Kind;
use crate::objects::Pod;

/// Who of a gang is where.
struct Roll {
    /// Bound and to stay, however it came about.
    placed: usize,
    /// Bound, but to no job that the engine knows of.
    astray: Vec<Uid>,
    /// To be placed, in the order of their ranks.
    waiting: Vec<Uid>,
}

impl World {
    pub(super) fn muster_the_changed(&mut self, now: Instant) {
        while let Some(key) = self.changed.pop_first() {
            self.muster(now, &key);
        }
    }

    /// Brings the engine's view of a gang up to date.
    fn muster(&mut self, now: Instant, key: &GangKey) {
        let Some(gang) = self.gangs.get(key) else { return };
        if gang.jobs.iter().any(|job| self.is_being_bound(*job) || self.is_moving(*job)) {
            return;
        }
        if gang.is_deserted() && gang.declared.is_none() {
            self.gangs.remove(key);
            self.ask_for_no_members(key);
            return;
        }
        let roll = self.call_the_roll(key);
        self.take_in(now, key, &roll.astray);
        let held_up = self.line_up(now, key, &roll).err();
        if held_up.is_some() {
            self.withdraw_all_but(now, key, &[]);
        }
        let gang = self.gang_mut(key);
        if !matches!(held_up, Some(HeldUp::Incomplete { .. })) {
            gang.lacks_since = None;
        }
        gang.held_up = held_up;
    }

    fn is_being_bound(&self, job: JobId) -> bool {
        self.crews.get(&job).is_some_and(|crew| matches!(crew.stage, Stage::Binding(_)))
    }

    fn call_the_roll(&mut self, key: &GangKey) -> Roll {
        let mut roll = Roll { placed: 0, astray: Vec::new(), waiting: Vec::new() };
        let mut waiting: Vec<(RoleKind, u64, Uid)> = Vec::new();
        for uid in &self.gangs[key].pods {
            let known = &self.pods[uid];
            roll.placed += usize::from(known.is_placed());
            if known.node().is_some() && known.job.is_none_or(|job| self.waits(job)) {
                roll.astray.push(uid.clone());
            } else if known.waits() {
                waiting.push((gangs::role(&known.pod), gangs::rank(&known.pod), uid.clone()));
            }
        }
        waiting.sort();
        roll.waiting = waiting.into_iter().map(|(_, _, uid)| uid).collect();
        let gang = self.gang_mut(key);
        if roll.placed == 0 {
            gang.was_whole = false;
            gang.broken_since = None;
            gang.some_are_done = false;
        }
        roll
    }

    /// Pods that are bound though no job of the engine says so, after a restart or by another's hand, become one.
    fn take_in(&mut self, now: Instant, key: &GangKey, astray: &[Uid]) {
        if astray.is_empty() {
            return;
        }
        self.withdraw_all_but(now, key, &[]);
        let since = astray.iter().map(|uid| created(&self.pods[uid].pod)).min().unwrap_or(now).min(now);
        let seated = astray.iter().all(|uid| self.seat_of(uid).is_some());
        match self.describe(now, key, astray, Urgency::Runs) {
            Ok(description) if seated => self.found(now, key, description, since),
            // What cannot be described still takes room.
            _ => {
                for uid in astray {
                    self.count_as_load(now, uid);
                }
            }
        }
    }

    pub(super) fn seat_of(&self, uid: &Uid) -> Option<metronome_core::model::id::NodeId> {
        self.border.node_id(self.pods[uid].node()?)
    }

    fn count_as_load(&mut self, now: Instant, uid: &Uid) {
        self.others.insert(uid.clone());
        let known = &self.pods[uid];
        let mut pod = Pod::clone(&known.pod);
        pod.spec.node_name = known.node().map(str::to_owned);
        self.border.other_applied(&mut self.engine, now, &pod);
    }

    fn found(&mut self, now: Instant, key: &GangKey, description: Description, since: Instant) {
        let Description { spec, roles, casts, cores } = description;
        let mut crew = Crew::waiting(key.clone(), &roles).with_cores(cores);
        crew.stage = Stage::Running;
        for member in crew.roles.iter_mut().flatten() {
            member.node = self.seat_of(&member.uid);
            if self.others.remove(&member.uid) {
                self.border.other_gone(&mut self.engine, now, &member.uid);
            }
        }
        let job = self.engine.found(now, Arc::new(spec), crew.parts(), since);
        self.enlist(now, job, crew, casts);
        self.take_back_old_requests(job);
        self.hear_again(now, job);
    }

    /// Puts the pods that wait in line: all that the gang still lacks as one job; those beyond, once it is whole,
    /// each as its own.
    fn line_up(&mut self, now: Instant, key: &GangKey, roll: &Roll) -> Result<(), HeldUp> {
        if roll.waiting.is_empty() {
            self.withdraw_all_but(now, key, &[]);
            return Ok(());
        }
        if self.comes_for_another(key) {
            return Err(HeldUp::ForNow("those in whose place it comes are still leaving".into()));
        }
        let least = self.least(key)?;
        if roll.placed >= least {
            self.gang_mut(key).was_whole = true;
            let needed = self.without_those_beyond(key, &roll.waiting);
            return self.line_up_each(now, key, &needed);
        }
        if self.gangs[key].was_whole {
            return self.line_up_together(now, key, &roll.waiting, Urgency::Repair);
        }
        let lacking = least - roll.placed;
        if roll.waiting.len() < lacking {
            return Err(HeldUp::Incomplete { have: roll.placed + roll.waiting.len(), least });
        }
        let urgency = if roll.placed > 0 { Urgency::Repair } else { Urgency::Usual };
        // Where some may be there or not, all who are there are offered.
        let offered = if self.elastic(key).is_some() { roll.waiting.len() } else { lacking };
        self.line_up_together(now, key, &roll.waiting[..offered], urgency)
    }

    /// How many of a gang must run for any to.
    pub(super) fn least(&self, key: &GangKey) -> Result<usize, HeldUp> {
        let gang = &self.gangs[key];
        let least = match key {
            GangKey::Single(_) => return Ok(1),
            GangKey::Declared { .. } if self.elastic(key).is_some_and(|elastic| !elastic.joins) => {
                return self.made_for(key);
            }
            GangKey::Declared { .. } => {
                let group = gang.declared.as_ref().ok_or(HeldUp::Undeclared)?;
                *group.min_members.as_ref().map_err(|complaint| HeldUp::Refused(complaint.to_string()))?
            }
            GangKey::Job { .. } => gang.parallelism.ok_or(HeldUp::Undeclared)?,
            GangKey::Labelled { .. } => self.members_by_their_own_word(key)?,
        };
        Ok((least as usize).max(1))
    }

    /// All pods of a labelled gang must say the same number, or they are two gangs with one name.
    fn members_by_their_own_word(&self, key: &GangKey) -> Result<u32, HeldUp> {
        let mut said: Option<(u32, &str)> = None;
        for uid in &self.gangs[key].pods {
            let pod = &self.pods[uid].pod;
            let name = pod.metadata.name.as_deref().unwrap_or_default();
            let word = gangs::annotation(pod, gangs::MEMBERS_ANNOTATION).unwrap_or_default();
            let members = word.parse::<u32>().ok().filter(|members| *members > 0).ok_or_else(|| {
                let key = gangs::MEMBERS_ANNOTATION;
                HeldUp::Refused(format!("pod {name} says {key}: {word:?}, which is no number of members"))
            })?;
            match said {
                Some((before, other)) if before != members => {
                    return Err(HeldUp::Refused(format!(
                        "pod {other} says that the gang has {before} members and pod {name} says {members}: two gangs share one name"
                    )));
                }
                _ => said = Some((members, name)),
            }
        }
        said.map(|(members, _)| members).ok_or(HeldUp::Undeclared)
    }

    fn line_up_each(&mut self, now: Instant, key: &GangKey, waiting: &[Uid]) -> Result<(), HeldUp> {
        let alone = |uid: &Uid| std::slice::from_ref(uid).to_vec();
        let crews: Vec<Vec<Uid>> = waiting.iter().map(alone).collect();
        self.withdraw_all_but(now, key, &crews);
        crews.iter().try_for_each(|crew| self.submit(now, key, crew, Urgency::Usual))
    }

    fn line_up_together(
        &mut self,
        now: Instant,
        key: &GangKey,
        crew: &[Uid],
        urgency: Urgency,
    ) -> Result<(), HeldUp> {
        self.submit(now, key, crew, urgency)?;
        self.withdraw_all_but(now, key, &[crew.to_vec()]);
        Ok(())
    }

    /// Makes a job of these pods; one that stands in line for their gang already keeps its place.
    fn submit(&mut self, now: Instant, key: &GangKey, uids: &[Uid], urgency: Urgency) -> Result<(), HeldUp> {
        let made_of_them = |job: &&JobId| self.waits(**job) && self.crews[*job].is_made_of(uids);
        let same = self.gangs[key].jobs.iter().find(made_of_them).copied();
        if same.is_some_and(|job| !self.crews[&job].outdated) {
            return Ok(());
        }
        let Description { spec, roles, casts, cores } = self.describe(now, key, uids, urgency)?;
        let in_line = same.or_else(|| {
            let together = uids.len() > 1 || key.is_single();
            self.gangs[key].jobs.iter().copied().find(|job| together && self.waits(*job))
        });
        let crew = Crew::waiting(key.clone(), &roles).with_cores(cores);
        let job = match in_line {
            Some(job) => {
                self.engine.observe(now, Event::JobChanged { job, spec: Arc::new(spec) });
                self.strike_off(job);
                job
            }
            None => self.engine.submit(now, Arc::new(spec)),
        };
        self.enlist(now, job, crew, casts);
        Ok(())
    }

    pub(super) fn enlist(&mut self, now: Instant, job: JobId, crew: Crew, casts: Vec<Cast>) {
        for member in crew.members() {
            if let Some(known) = self.pods.get_mut(&member.uid) {
                known.job = Some(job);
            }
        }
        self.border.job_joined(&mut self.engine, now, job, casts);
        self.gang_mut(&crew.gang.clone()).jobs.insert(job);
        self.crews.insert(job, crew);
    }

    /// The pods of a job are no longer its own; the engine goes on with the job under another description.
    pub(super) fn strike_off(&mut self, job: JobId) {
        let Some(crew) = self.crews.remove(&job) else { return };
        for member in crew.members() {
            if let Some(known) = self.pods.get_mut(&member.uid) {
                known.job = None;
            }
        }
    }

    /// Takes a gang's waiting jobs out of the line that are not made of one of these crews.
    fn withdraw_all_but(&mut self, now: Instant, key: &GangKey, crews: &[Vec<Uid>]) {
        let is_wanted = |job: JobId| crews.iter().any(|crew| self.crews[&job].is_made_of(crew));
        let jobs = self.gangs[key].jobs.iter().copied();
        let unwanted: Vec<JobId> = jobs.filter(|job| self.waits(*job) && !is_wanted(*job)).collect();
        for job in unwanted {
            self.dissolve(now, job);
            self.changed.remove(key);
        }
    }

    /// Jobs whose shapes no longer say all they should, because somebody came who keeps such pods away.
    pub(super) fn note_what_is_outdated(&mut self) {
        for job in self.border.outdated() {
            if let Some(crew) = self.crews.get_mut(&job) {
                crew.outdated = true;
                self.changed.insert(crew.gang.clone());
            }
        }
    }

    /// What could not be described because of its volumes may be so now.
    pub(super) fn volumes_differ(&mut self) {
        let held_up = |gang: &super::gangs::Gang| matches!(gang.held_up, Some(HeldUp::ForNow(_)));
        let keys = self.gangs.iter().filter(|(_, gang)| held_up(gang)).map(|(key, _)| key.clone());
        self.changed.extend(keys);
    }

    /// Where a gang could be bound only in part and nothing has come to complete it, what somebody owns is deleted to
    /// be made anew: half a gang must not hold nodes for ever.
    pub(super) fn give_up_on_repairs(&mut self, now: Instant) {
        let patience = self.settings.repair_patience;
        let overdue = |since: Instant| now.since(since) >= patience;
        let gangs = self.gangs.iter().filter(|(_, gang)| gang.broken_since.is_some_and(overdue));
        let keys: Vec<GangKey> = gangs.map(|(key, _)| key.clone()).collect();
        for key in keys {
            self.gang_mut(&key).broken_since = None;
            let mine = self.gangs[&key].pods.iter().map(|uid| &self.pods[uid]);
            let owned = mine.filter(|known| known.is_placed() && gangs::is_owned(&known.pod));
            let pods: Vec<_> = owned.map(super::pods::Known::reference).collect();
            if !pods.is_empty() {
                let why =
                    "its gang could not be completed; it is deleted so that its owner makes it anew".into();
                self.do_it(Kind::Delete { pods, why });
            }
        }
    }
}
