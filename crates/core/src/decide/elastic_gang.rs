//! An elastic gang: its sizes, what it has beyond its minimum, and which members go first.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::decide::snapshot::Snapshot;
use crate::model::allocated::is_eligible;
use crate::model::cluster::{Cluster, NodeState};
use crate::model::id::{DomainId, JobId, NodeId};
use crate::model::job::{Capabilities, Job, Life, Role, RoleKind, Teams, Topology};
use crate::model::plan::{Assignment, Part};
use crate::model::units::{Duration, Resources};

/// A job with one role that may have more members than it asks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct ElasticGang<'a> {
    pub(super) id: JobId,
    pub(super) job: &'a Job,
    pub(super) index: u8,
    pub(super) role: &'a Role,
    /// How its members form teams, where they do.
    pub(super) teams: Option<Teams>,
}

/// The place inside which a team stays: a domain, or a node where there is no domain or no team.
pub(super) type Place = Result<DomainId, NodeId>;

impl<'a> ElasticGang<'a> {
    /// `None` for jobs whose size stays as it is: also those with rules about other members, those that rules of
    /// others watch, those that budgets protect, and those that share GPUs in teams. For them more than capacity
    /// decides about every member.
    pub(super) fn of(id: JobId, job: &'a Job) -> Option<Self> {
        let spec = &job.spec;
        let alone = |role: &Role| role.shape.rules.is_empty() && role.shape.groups.is_empty();
        let is_plain = spec.budgets.is_empty() && spec.roles.iter().all(alone);
        let mut elastic = spec.roles.iter().enumerate().filter(|(_, role)| role.gang.is_elastic());
        let (index, role) = elastic.next().filter(|_| is_plain)?;
        let only = elastic.next().is_none();
        let teams = spec.teams.filter(|_| role.kind == RoleKind::Worker);
        let on_whole_gpus = teams.is_none() || role.shape.each.gpus.is_whole();
        let index = u8::try_from(index).ok()?;
        (only && on_whole_gpus).then_some(Self { id, job, index, role, teams })
    }

    /// Whether a gang runs where it is planned and may be given another size there.
    pub(super) fn may_change(&self, snapshot: &Snapshot<'_>, held: &Arc<Assignment>) -> bool {
        let runs = matches!(&self.job.life, Life::Running(there) if there == held);
        let ripe = self.job.ripe(snapshot.min_run).is_none_or(|ripe| ripe <= snapshot.now);
        let rested = ripe && self.job.not_before <= snapshot.now;
        runs && rested && self.job.spec.capabilities.rescale && self.lies_well(snapshot, held)
    }

    /// Whether all members are where they might be placed now.
    fn lies_well(&self, snapshot: &Snapshot<'_>, held: &Assignment) -> bool {
        let well = |part: &Part| {
            let on = self.job.spec.roles[usize::from(part.role)].shape.on;
            snapshot.cluster.node(part.node).state == NodeState::Ready
                && is_eligible(snapshot.cluster, part.node, on)
        };
        let near = Proximity::to(snapshot, self.job, held);
        let unit = u64::from(self.unit());
        let whole = |members: &u32| u64::from(*members).is_multiple_of(unit);
        held.parts().iter().all(well)
            && held.nodes().all(|node| near.allows(node))
            && self.by_place(snapshot.cluster, held).values().all(whole)
    }

    /// The number of members that come and go together.
    pub(super) fn unit(&self) -> u32 {
        self.teams.map_or(1, |teams| teams.size.get())
    }

    pub(super) fn place(&self, cluster: &Cluster, node: NodeId) -> Place {
        let domain = |teams: Teams| cluster.node(node).domains.get(usize::from(teams.within.0)).copied();
        self.teams.and_then(domain).ok_or(node)
    }

    /// The number of members in each place.
    fn by_place(&self, cluster: &Cluster, held: &Assignment) -> BTreeMap<Place, u32> {
        let mut by_place = BTreeMap::new();
        for part in held.parts().iter().filter(|part| part.role == self.index) {
            *by_place.entry(self.place(cluster, part.node)).or_default() += part.members;
        }
        by_place
    }

    pub(super) fn members(&self, held: &Assignment) -> u32 {
        held.parts().iter().filter(|part| part.role == self.index).map(|part| part.members).sum()
    }

    pub(super) fn least(&self) -> u32 {
        self.role.gang.min()
    }

    /// The number of members, or teams, beyond the minimum.
    pub(super) fn count(&self, held: &Assignment) -> u32 {
        self.members(held).saturating_sub(self.least()) / self.unit()
    }

    /// What the members beyond the minimum take.
    pub(super) fn total(&self, held: &Assignment) -> Resources {
        self.each().times(u64::from(self.count(held)))
    }

    /// What one member, or team, takes.
    pub(super) fn each(&self) -> Resources {
        self.role.shape.each.times(u64::from(self.unit()))
    }

    pub(super) fn may_have_more(&self, held: &Assignment) -> bool {
        let used = self.job.idle.enough().unwrap_or(u32::MAX);
        self.members(held) + self.unit() <= self.role.gang.max().min(used)
    }

    /// The most members it may have.
    pub(super) fn most(&self) -> u32 {
        self.role.gang.max()
    }

    /// What one member takes.
    pub(super) fn of_one(&self) -> Resources {
        self.role.shape.each
    }

    /// What the whole gang takes with this number of members.
    pub(super) fn total_with(&self, members: u32) -> Resources {
        let more = u64::from(members.saturating_sub(self.least()));
        self.job.spec.least() + self.role.shape.each.times(more)
    }

    /// Whether it may be resized once it runs, with or without a restart.
    pub(super) fn may_be_resized(&self) -> bool {
        let Capabilities { rescale, resize_in_place, .. } = self.job.spec.capabilities;
        rescale || resize_in_place
    }

    /// The gang with this number of members fewer.
    pub(super) fn with_fewer(
        &self,
        cluster: &Cluster,
        held: &Assignment,
        members: u32,
    ) -> Option<Assignment> {
        self.without(cluster, held, members / self.unit())
    }

    /// The gang without this number of members, or teams: those first with the fewest other members beside them.
    pub(super) fn without(&self, cluster: &Cluster, held: &Assignment, count: u32) -> Option<Assignment> {
        let (mut parts, mut left) = (held.parts().to_vec(), count * self.unit());
        let by_place = self.by_place(cluster, held);
        let beside = |node: NodeId| {
            let place = self.place(cluster, node);
            (by_place.get(&place).copied().unwrap_or(0), Reverse(place))
        };
        parts.sort_by_key(|part| (beside(part.node), part.members, Reverse((part.node, part.device))));
        for part in parts.iter_mut().filter(|part| part.role == self.index) {
            let gone = part.members.min(left);
            part.members -= gone;
            left -= gone;
        }
        Assignment::whole(&self.job.spec, parts).ok().filter(|_| left == 0)
    }

    /// The time that a resize costs: the job saves its work and goes on from there.
    pub(super) fn cost(&self) -> Duration {
        self.job.spec.checkpointing.map_or(Duration::ZERO, |saving| saving.takes + saving.restart)
    }
}

/// Where a gang is, and how near other nodes are to it.
pub(super) struct Proximity<'s> {
    snapshot: &'s Snapshot<'s>,
    held: &'s Assignment,
    domains: BTreeSet<DomainId>,
    topology: Topology,
}

impl<'s> Proximity<'s> {
    pub(super) fn to(snapshot: &'s Snapshot<'s>, job: &Job, held: &'s Assignment) -> Self {
        let nodes = held.nodes().map(|node| snapshot.cluster.node(node));
        let domains = nodes.flat_map(|node| node.domains.iter().copied()).collect();
        Self { snapshot, held, domains, topology: job.spec.topology }
    }

    /// The number of domains that a node shares with the gang; the node counts as one if the gang is on it.
    pub(super) fn count(&self, node: NodeId) -> usize {
        let shared = self.snapshot.cluster.node(node).domains.iter();
        shared.filter(|domain| self.domains.contains(*domain)).count() + usize::from(self.held.touches(node))
    }

    /// Whether a node is as near as the required topology of the gang asks for.
    pub(super) fn allows(&self, node: NodeId) -> bool {
        let Topology::Required(level) = self.topology else { return true };
        let cluster = self.snapshot.cluster;
        let place = |node: NodeId| match level == cluster.depth() {
            true => Err(node),
            false => Ok(cluster.node(node).domains.get(usize::from(level.0)).copied()),
        };
        self.held.nodes().next().is_none_or(|first| place(first) == place(node))
    }
}
