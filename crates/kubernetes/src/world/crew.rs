//! The pods that a job of the engine is made of, and who of them sits where.

use std::sync::Arc;

use metronome_core::engine::{Ending, Event};
use metronome_core::model::id::{JobId, NodeId};
use metronome_core::model::plan::{Assignment, Part};
use metronome_core::model::units::Instant;

use super::World;
use super::gangs::GangKey;
use super::pods::Uid;
use super::wishes::Cores;
use crate::deed::Ticket;

#[derive(Clone, Debug)]
pub(super) struct Crew {
    pub(super) gang: GangKey,
    /// In the order of the job's roles.
    pub(super) roles: Vec<Vec<Member>>,
    pub(super) stage: Stage,
    /// A member's object has changed since the job was described to the engine.
    pub(super) outdated: bool,
    /// Where its only member may be given more cores or fewer while it runs.
    pub(super) cores: Option<Given>,
}

/// The cores of a pod, which are a role of their own for the engine: the last.
#[derive(Clone, Debug)]
pub(super) struct Given {
    pub(super) cores: Cores,
    /// What it is to have by the plan.
    pub(super) planned: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) uid: Uid,
    /// Where it sits, once that is decided.
    pub(super) node: Option<NodeId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Waiting,
    Binding(Ticket),
    Running,
    /// On its way to another place.
    Moving,
    Leaving,
}

impl Crew {
    pub(super) fn waiting(gang: GangKey, roles: &[Vec<Uid>]) -> Self {
        let members =
            |uids: &Vec<Uid>| uids.iter().map(|uid| Member { uid: uid.clone(), node: None }).collect();
        let roles = roles.iter().map(members).collect();
        Self { gang, roles, stage: Stage::Waiting, outdated: false, cores: None }
    }

    pub(super) fn with_cores(mut self, cores: Option<Cores>) -> Self {
        self.cores = cores.map(|cores| Given { planned: cores.now, cores });
        self
    }

    pub(super) fn members(&self) -> impl Iterator<Item = &Member> {
        self.roles.iter().flatten()
    }

    pub(super) fn is_made_of(&self, uids: &[Uid]) -> bool {
        let mut mine: Vec<&Uid> = self.members().map(|member| &member.uid).collect();
        let mut theirs: Vec<&Uid> = uids.iter().collect();
        mine.sort_unstable();
        theirs.sort_unstable();
        mine == theirs
    }

    /// Gives every member its node. Members come in the order of their ranks and nodes in that of the assignment, so
    /// that neighbours share nodes.
    pub(super) fn sit_down(&mut self, assignment: &Assignment) {
        for (role, members) in self.roles.iter_mut().enumerate() {
            let parts = assignment.parts().iter().filter(|part| usize::from(part.role) == role);
            let seats = parts.flat_map(|part| std::iter::repeat_n(part.node, part.members as usize));
            for (member, node) in members.iter_mut().zip(seats) {
                member.node = Some(node);
            }
        }
        let last = self.roles.len();
        let cores = assignment.parts().iter().filter(|part| usize::from(part.role) == last);
        if let Some(given) = &mut self.cores {
            given.planned = cores.map(|part| part.members).sum();
        }
    }

    /// Gives every member its node who has none, beside those who have.
    pub(super) fn sit_down_beside(&mut self, assignment: &Assignment) {
        for (role, members) in self.roles.iter_mut().enumerate() {
            let parts = assignment.parts().iter().filter(|part| usize::from(part.role) == role);
            let mut seats: Vec<NodeId> =
                parts.flat_map(|part| std::iter::repeat_n(part.node, part.members as usize)).collect();
            for taken in members.iter().filter_map(|member| member.node) {
                if let Some(at) = seats.iter().position(|seat| *seat == taken) {
                    seats.remove(at);
                }
            }
            let standing = members.iter_mut().filter(|member| member.node.is_none());
            for (member, node) in standing.zip(seats) {
                member.node = Some(node);
            }
        }
    }

    /// Who sits where, for the engine.
    pub(super) fn parts(&self) -> Vec<Part> {
        let mut parts: Vec<Part> = Vec::new();
        for (role, members) in self.roles.iter().enumerate() {
            let mut nodes: Vec<NodeId> = members.iter().filter_map(|member| member.node).collect();
            nodes.sort_unstable();
            for run in nodes.chunk_by(|a, b| a == b) {
                parts.push(Part::of(role as u8, run[0], run.len() as u32));
            }
        }
        let seat = self.members().find_map(|member| member.node);
        let cores = self.cores.as_ref().zip(seat);
        parts.extend(cores.map(|(given, node)| Part::of(self.roles.len() as u8, node, given.cores.now)));
        parts
    }

    pub(super) fn remove(&mut self, uid: &Uid) -> Option<(u8, Member)> {
        let found = |members: &Vec<Member>| members.iter().position(|member| &member.uid == uid);
        let (role, at) =
            self.roles.iter().enumerate().find_map(|(role, members)| Some((role, found(members)?)))?;
        Some((role as u8, self.roles[role].remove(at)))
    }
}

impl World {
    /// A member's object changed: if its job still waits, it is described anew.
    pub(super) fn pods_job_changed(&mut self, uid: &Uid) {
        let job = self.pods.get(uid).and_then(|known| known.job);
        if let Some(crew) = job.and_then(|job| self.crews.get_mut(&job)) {
            crew.outdated = true;
        }
    }

    /// A member is gone for good. What it held is free; a job that waits, or is being bound, is looked at by `muster`
    /// or when its outcome is heard.
    pub(super) fn member_gone(&mut self, now: Instant, job: JobId, uid: &Uid) {
        self.stop_saving(now, job);
        let Some(crew) = self.crews.get_mut(&job) else { return };
        if !matches!(crew.stage, Stage::Running | Stage::Leaving) {
            return;
        }
        if crew.stage == Stage::Running && self.comes_and_goes(job) {
            // The others go on, and there may be more of them again.
            return self.dissolve(now, job);
        }
        let Some((role, member)) = self.crews.get_mut(&job).and_then(|crew| crew.remove(uid)) else { return };
        let crew = &self.crews[&job];
        let deserted = crew.members().next().is_none();
        if let Some(node) = member.node {
            self.engine.observe(now, Event::MembersLeft { job, role, node, device: None, members: 1 });
        }
        if deserted {
            self.dissolve(now, job);
        }
    }

    /// The job is over for the engine; its pods, if there are any left, are looked at anew.
    pub(super) fn dissolve(&mut self, now: Instant, job: JobId) {
        self.forget_move(job);
        let Some(crew) = self.crews.remove(&job) else { return };
        self.engine.observe(now, Event::JobEnded { job, how: Ending::Withdrawn });
        self.border.job_left(&mut self.engine, now, job);
        for member in crew.members() {
            if let Some(known) = self.pods.get_mut(&member.uid) {
                known.job = None;
            }
        }
        if let Some(gang) = self.gangs.get_mut(&crew.gang) {
            gang.jobs.remove(&job);
        }
        self.changed.insert(crew.gang);
    }

    pub(super) fn waits(&self, job: JobId) -> bool {
        self.crews.get(&job).is_some_and(|crew| crew.stage == Stage::Waiting)
    }

    pub(super) fn node_name(&self, node: NodeId) -> Arc<str> {
        self.border.node_name(node).clone()
    }
}
