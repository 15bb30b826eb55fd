//! Jobs that may have more members than they need: how many they are given is decided with where, and their controller
//! makes so many.
//!
//! Pods say for how many members they were made, since each is told so when it starts. A job that is to have another
//! number is on its way, as if it were moved: whoever runs saves its work and leaves, as many as there is room for are made,
//! and those are bound together. Where they do not come, because a quota forbids it or for whatever reason, the job goes on
//! with the fewest it needs.

use std::collections::BTreeMap;
use std::sync::Arc;

use metronome_core::model::id::JobId;
use metronome_core::model::job::{Gang as Size, Role};
use metronome_core::model::units::{Duration, Instant};

use super::World;
use super::crew::Stage;
use super::gangs::{GangKey, HeldUp, annotation, label};
use super::pods::{Known, Uid};
use crate::objects::{Elastic, GroupKind, ROLE_LABEL, SIZE};

/// For how many members of the role that may have more there is room, by namespace and name of the job.
pub type Sizes = BTreeMap<(Arc<str>, Arc<str>), u32>;

/// How long the members that there is room for may be missing.
pub(super) const COME_WITHIN: Duration = Duration::MINUTE;

impl World {
    /// The jobs that are to have another number of members than were made.
    pub fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    /// The role of a gang that may have more members or fewer, until the first of them is done.
    pub(super) fn elastic(&self, key: &GangKey) -> Option<&Elastic> {
        let gang = self.gangs.get(key).filter(|gang| !gang.some_are_done)?;
        gang.declared.as_ref()?.elastic.as_ref()
    }

    /// For how many members the pods of such a gang were made: they differ while some are made anew.
    pub(super) fn made_for(&self, key: &GangKey) -> Result<usize, HeldUp> {
        let stays =
            self.gangs[key].pods.iter().map(|uid| &self.pods[uid]).filter(|known| !known.is_leaving());
        let mut said: Vec<Option<usize>> = stays.map(size).collect();
        said.dedup();
        match said[..] {
            [Some(members)] => Ok(members.max(1)),
            _ => Err(HeldUp::ForNow("its members are being made anew".into())),
        }
    }

    /// Lets the role that may have more members have them, where these pods are all of a gang, or all that run.
    pub(super) fn stretch(&self, key: &GangKey, roles: &mut [Role], pods: &[Vec<Uid>]) -> bool {
        let gang = &self.gangs[key];
        let left_out = || gang.pods.iter().filter(|uid| !pods.iter().flatten().any(|one| one == *uid));
        let runs = |uid: &Uid| self.pods[uid].is_placed();
        let all_of_it =
            left_out().next().is_none() || pods.iter().flatten().all(runs) && !left_out().any(runs);
        let Some(elastic) = self.elastic(key).filter(|_| all_of_it) else { return false };
        let is_of_it = |uid: &&Uid| label(&self.pods[*uid].pod, ROLE_LABEL) == Some(&elastic.role);
        let counts: Vec<usize> = pods.iter().map(|uids| uids.iter().filter(is_of_it).count()).collect();
        let mut with_any = counts.iter().enumerate().filter(|(_, members)| **members > 0);
        let (Some((at, members)), None) = (with_any.next(), with_any.next()) else { return false };
        let (members, others) = (*members as u64, (pods[at].len() - members) as u64);
        let most = gang.most.unwrap_or(elastic.max).clamp(elastic.min, elastic.max);
        let (min, max) = (u64::from(elastic.min).min(members), u64::from(most).max(members));
        roles[at].gang =
            Size::elastic(others + min, others + max).expect("at least one, and no fewer than that");
        min < max
    }

    /// From now on its controller makes so many in all, as far as they are of the role that may have more.
    pub(super) fn ask_for_members(&mut self, key: &GangKey, all: u32) {
        if let Some(min) = self.elastic(key).map(|elastic| elastic.min) {
            self.ask_for(key, all.saturating_sub(self.others_beside(key, min)));
        }
    }

    /// So many of the role that may have more, as far as it may.
    pub(super) fn ask_for(&mut self, key: &GangKey, members: u32) {
        let (Some(job), Some(elastic)) = (job(key), self.elastic(key)) else { return };
        let members = members.clamp(elastic.min, elastic.max);
        self.sizes.insert(job, members);
    }

    /// The members of all other roles, where it has at least so many of the one that may have more.
    fn others_beside(&self, key: &GangKey, min: u32) -> u32 {
        let group = self.gangs.get(key).and_then(|gang| gang.declared.as_ref());
        let least = group.and_then(|group| group.min_members.as_ref().ok());
        least.map_or(0, |least| least.saturating_sub(min))
    }

    /// Whether members that came later, each for itself, have joined the others: only a whole gang can have another size.
    pub(super) fn is_one_by_now(&self, key: &GangKey) -> bool {
        let runs = |job: &JobId| self.crews.get(job).is_some_and(|crew| crew.stage == Stage::Running);
        self.elastic(key).is_some() && self.gangs[key].jobs.iter().filter(|job| runs(job)).count() > 1
    }

    /// No more than these came, so no more are asked for.
    pub(super) fn had_at_most(&mut self, key: &GangKey, all: usize) {
        let Some(min) = self.elastic(key).map(|elastic| elastic.min) else { return };
        let others = self.others_beside(key, min);
        self.gang_mut(key).most = Some(u32::try_from(all).unwrap_or(u32::MAX).saturating_sub(others));
    }

    /// It has as many as it is to have, or will not.
    pub(super) fn ask_for_no_members(&mut self, key: &GangKey) {
        if let Some(job) = job(key) {
            self.sizes.remove(&job);
        }
    }

    /// Gangs that wait in vain for members they could do without go on with the fewest.
    pub(super) fn make_do_with_fewer(&mut self, now: Instant) {
        let waits_in_vain = |key: &GangKey| match (&self.gangs[key].held_up, self.elastic(key)) {
            (Some(HeldUp::Incomplete { have, .. }), Some(elastic)) => Some((*have, elastic.min)),
            _ => None,
        };
        let lacking: Vec<_> =
            self.gangs.keys().filter_map(|key| Some((key.clone(), waits_in_vain(key)?))).collect();
        for (key, (have, min)) in lacking {
            let gang = self.gang_mut(&key);
            let since = *gang.lacks_since.get_or_insert(now);
            if now.since(since) >= COME_WITHIN {
                gang.lacks_since = None;
                self.had_at_most(&key, have);
                self.ask_for_members(&key, 0);
                tracing::info!(
                    gang = key.full_name(),
                    have,
                    min,
                    "the members there is room for do not come"
                );
            }
        }
    }
}

/// For how many members a pod was made.
pub(super) fn size(known: &Known) -> Option<usize> {
    annotation(&known.pod, SIZE)?.parse().ok()
}

fn job(key: &GangKey) -> Option<(Arc<str>, Arc<str>)> {
    match key {
        GangKey::Declared { kind: GroupKind::Training, namespace, name } => {
            Some((namespace.clone(), name.clone()))
        }
        _ => None,
    }
}
