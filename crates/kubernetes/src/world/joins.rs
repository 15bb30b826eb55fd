//! Jobs whose members come and go: those who run go on when others join them, or when some leave.
//!
//! Only who has to leaves. The first member stays as long as anybody does: it is where the others meet.

use std::collections::BTreeMap;

use metronome_core::model::id::{JobId, NodeId};
use metronome_core::model::job::RoleKind;
use metronome_core::model::plan::Assignment;
use metronome_core::model::units::Instant;

use super::World;
use super::describe::Urgency;
use super::gangs::{self, GangKey, HeldUp};
use super::pods::{Known, Uid};
use crate::deed::PodRef;
use crate::objects::ROLE_LABEL;
use crate::watch::Binding;

/// Who leaves so that a job comes to be as it is to be.
pub(super) enum Leavers {
    /// Others join those who are there.
    Nobody,
    Some(Vec<PodRef>),
    Everybody,
}

impl World {
    pub(super) fn comes_and_goes(&self, job: JobId) -> bool {
        let gang = self.crews.get(&job).map(|crew| &crew.gang);
        gang.and_then(|key| self.elastic(key)).is_some_and(|elastic| elastic.joins)
    }

    pub(super) fn leavers(&self, job: JobId, to: &Assignment) -> Leavers {
        if !self.comes_and_goes(job) {
            return Leavers::Everybody;
        }
        let mut seats: BTreeMap<(u8, NodeId), u32> = BTreeMap::new();
        for part in to.parts() {
            *seats.entry((part.role, part.node)).or_default() += part.members;
        }
        let (mut leavers, mut staying) = (Vec::new(), 0);
        for (role, member, known) in self.by_rank(job) {
            match seats.get_mut(&(role, member)).filter(|free| **free > 0) {
                Some(free) => {
                    *free -= 1;
                    staying += 1;
                }
                None => leavers.push(known),
            }
        }
        let is_first = |known: &&Known| gangs::rank(&known.pod) == 0;
        if leavers.is_empty() {
            Leavers::Nobody
        } else if staying < to.members() || leavers.iter().any(is_first) {
            Leavers::Everybody
        } else {
            Leavers::Some(leavers.into_iter().map(Known::reference).collect())
        }
    }

    /// The members of a job with their roles and nodes.
    fn by_rank(&self, job: JobId) -> Vec<(u8, NodeId, &Known)> {
        let roles = self.crews[&job].roles.iter().enumerate();
        let members =
            roles.flat_map(|(role, members)| members.iter().map(move |member| (role as u8, member)));
        let seated =
            members.filter_map(|(role, member)| Some((role, member.node?, self.pods.get(&member.uid)?)));
        let mut all: Vec<_> = seated.collect();
        all.sort_by_key(|(role, _, known)| (*role, gangs::rank(&known.pod)));
        all
    }

    /// Whether somebody has ended meanwhile who was to stay.
    pub(super) fn has_lost_somebody(&self, job: JobId) -> bool {
        let stays = |uid: &Uid| self.pods.get(uid).is_some_and(Known::is_placed);
        !self.crews[&job].members().all(|member| stays(&member.uid))
    }

    /// Those who wait for a gang that runs, without those it has enough of: whether more of them are of use is decided with
    /// where, and who is lost is made anew only then.
    pub(super) fn without_those_beyond(&mut self, key: &GangKey, waiting: &[Uid]) -> Vec<Uid> {
        let Some(elastic) = self.elastic(key).filter(|elastic| elastic.joins).cloned() else {
            return waiting.to_vec();
        };
        let is_of_it = |uid: &&Uid| gangs::label(&self.pods[*uid].pod, ROLE_LABEL) == Some(&elastic.role);
        let of_it = self.gangs[key].pods.iter().filter(is_of_it);
        let running = of_it.filter(|uid| self.pods[*uid].is_placed()).count() as u32;
        if running < elastic.min {
            return waiting.to_vec();
        }
        let needed = waiting.iter().filter(|uid| !is_of_it(uid)).cloned().collect();
        self.ask_for(key, running);
        needed
    }

    /// Binds those who were made beside those who run, once they have all come.
    pub(super) fn join(&mut self, now: Instant, job: JobId) {
        if self.has_lost_somebody(job) {
            return self.dissolve(now, job);
        }
        let (lineage, pods) = self.is_joined_by(job);
        let crew = &self.crews[&job];
        let key = crew.gang.clone();
        let here = crew.members().map(|member| member.uid.clone());
        let all: Vec<Uid> = here.chain(self.heirs(&lineage)).collect();
        if all.len() != pods || self.binding == Binding::Off {
            return;
        }
        let mut ranked: Vec<(RoleKind, u64, Uid)> = all.into_iter().map(|uid| self.ranked(uid)).collect();
        ranked.sort();
        let all: Vec<Uid> = ranked.into_iter().map(|(_, _, uid)| uid).collect();
        match self.describe(now, &key, &all, Urgency::Runs) {
            Ok(description) if self.is_alike(job, &description) => self.arrive(now, job, &key, description),
            Err(HeldUp::ForNow(_)) => {}
            _ => self.dissolve(now, job),
        }
    }

    fn ranked(&self, uid: Uid) -> (RoleKind, u64, Uid) {
        let pod = &self.pods[&uid].pod;
        (gangs::role(pod), gangs::rank(pod), uid)
    }

    /// Those who had to leave are gone, and the others go on.
    pub(super) fn has_thinned_out(&mut self, now: Instant, job: JobId) {
        let Some(crew) = self.crews.get_mut(&job) else { return };
        let gone = |uid: &Uid| !self.pods.contains_key(uid);
        let leavers: Vec<Uid> = crew.members().map(|member| member.uid.clone()).filter(gone).collect();
        for uid in &leavers {
            crew.remove(uid);
        }
        let step = self.step_of_move(job);
        self.has_started(now, job, step);
    }
}
