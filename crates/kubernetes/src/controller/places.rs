//! Who there is to be of a job, and who there is.

use std::sync::Arc;

use super::course::Of;
use crate::objects::{Member, Rendezvous, RoleOf};

/// A member that there is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) name: Arc<str>,
    pub(super) role: String,
    pub(super) index: u32,
    pub(super) attempt: u32,
}

impl Of<'_> {
    /// The role whose members come and go, without anybody else having to start again.
    pub(super) fn come_and_go(&self) -> Option<RoleOf<'_>> {
        self.spec.elastic_role().filter(|_| self.spec.rendezvous == Rendezvous::Elastic)
    }

    /// Those that there are to be of a role; of who comes and goes, those who are there stay whatever their places are.
    pub(super) fn indices(&self, role: &RoleOf<'_>) -> Vec<u32> {
        let size = self.job.status.size_of(role);
        if self.come_and_go().is_none_or(|comes| comes.name != role.name) {
            return (0..size).collect();
        }
        let mine = self.current().filter(|member| member.role() == Some(role.name) && !member.is_leaving());
        let mut there: Vec<u32> = mine.filter_map(Member::index).collect();
        let free = (0..).filter(|index| !there.contains(index));
        let more: Vec<u32> = free.take((size as usize).saturating_sub(there.len())).collect();
        there.extend(more);
        there
    }

    /// Those of who comes and goes that there is no room for, and that are on no node: the others are the scheduler's to choose.
    pub(super) fn beyond_its_size(&self) -> impl Iterator<Item = &Member> {
        let role = self.come_and_go();
        let is_of_it =
            move |member: &&Member| role.as_ref().is_some_and(|role| member.role() == Some(role.name));
        let size = self.come_and_go().map_or(0, |role| self.job.status.size_of(&role) as usize);
        let mine: Vec<&Member> =
            self.current().filter(is_of_it).filter(|member| !member.is_leaving()).collect();
        let beyond = mine.len().saturating_sub(size);
        let mut waiting: Vec<&Member> = mine.into_iter().filter(|member| !member.is_placed()).collect();
        waiting.sort_by_key(|member| std::cmp::Reverse(member.index()));
        waiting.into_iter().take(beyond)
    }

    /// Every member that there is to be.
    pub(super) fn places(&self) -> impl Iterator<Item = Place> {
        let name = &self.job.reference.name;
        self.spec.all_roles().into_iter().flat_map(move |role| {
            self.indices(&role).into_iter().map(move |index| Place {
                name: format!("{name}-{}-{index}", role.name).into(),
                role: role.name.to_owned(),
                index,
                attempt: self.job.status.attempt,
            })
        })
    }

    /// The pods that were made for this very job.
    pub(super) fn own(&self) -> impl Iterator<Item = &Member> {
        self.members.values().filter(|member| member.owner() == Some(&self.job.reference.uid))
    }

    /// Those of this attempt.
    pub(super) fn current(&self) -> impl Iterator<Item = &Member> {
        self.own().filter(|member| member.attempt() == Some(self.job.status.attempt))
    }

    /// Those of an earlier attempt that are still there.
    pub(super) fn former(&self) -> impl Iterator<Item = &Member> {
        self.own().filter(|member| member.attempt() != Some(self.job.status.attempt))
    }
}
