//! One elastic gang: what it has beyond its least, where one more member would go, and who goes first.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::cluster::NodeState;
use crate::decide::draft::{Draft, Reach};
use crate::id::{DomainId, JobId, NodeId};
use crate::job::{Job, Life, Role, Topology};
use crate::plan::{Assignment, Part};
use crate::snapshot::Snapshot;
use crate::taken::is_eligible;
use crate::units::{Duration, Resources};

/// A job with one role that may have more members than it asks for.
#[derive(Clone, Copy, Debug)]
pub(in crate::decide) struct Extras<'a> {
    pub(super) id: JobId,
    pub(super) job: &'a Job,
    index: u8,
    role: &'a Role,
}

impl<'a> Extras<'a> {
    /// `None` for jobs whose size stays as it is: also those that stand in groups, that look at others or are looked
    /// at, or that budgets protect. For them more than room decides about every member.
    pub(in crate::decide) fn of(id: JobId, job: &'a Job) -> Option<Self> {
        let spec = &job.spec;
        let alone = |role: &Role| role.shape.rules.is_empty() && role.shape.groups.is_empty();
        let is_plain = spec.teams.is_none() && spec.budgets.is_empty() && spec.roles.iter().all(alone);
        let mut elastic = spec.roles.iter().enumerate().filter(|(_, role)| role.gang.is_elastic());
        let (index, role) = elastic.next().filter(|_| is_plain)?;
        let only = elastic.next().is_none();
        only.then_some(Self { id, job, index: u8::try_from(index).ok()?, role })
    }

    /// Whether a planned gang runs where it is planned and may be given another size there.
    pub(super) fn may_change(&self, snapshot: &Snapshot<'_>, held: &Arc<Assignment>) -> bool {
        let runs = matches!(&self.job.life, Life::Running(there) if there == held);
        let ripe = self.job.ripe(snapshot.min_run).is_none_or(|ripe| ripe <= snapshot.now);
        let rested = ripe && self.job.not_before <= snapshot.now;
        runs && rested && self.job.spec.capabilities.rescale && self.lies_well(snapshot, held)
    }

    /// Whether all its members are where they might be placed now.
    fn lies_well(&self, snapshot: &Snapshot<'_>, held: &Assignment) -> bool {
        let well = |part: &Part| {
            let on = self.job.spec.roles[usize::from(part.role)].shape.on;
            snapshot.cluster.node(part.node).state == NodeState::Ready
                && is_eligible(snapshot.cluster, part.node, on)
        };
        let near = Near::to(snapshot, self.job, held);
        held.parts().iter().all(well) && held.nodes().all(|node| near.allows(node))
    }

    pub(super) fn members(&self, held: &Assignment) -> u32 {
        held.parts().iter().filter(|part| part.role == self.index).map(|part| part.members).sum()
    }

    pub(super) fn least(&self) -> u32 {
        self.role.gang.min()
    }

    /// How many it has that it could do without.
    pub(super) fn count(&self, held: &Assignment) -> u32 {
        self.members(held).saturating_sub(self.least())
    }

    /// What those take.
    pub(super) fn total(&self, held: &Assignment) -> Resources {
        self.each().times(u64::from(self.count(held)))
    }

    pub(super) fn each(&self) -> Resources {
        self.role.shape.each
    }

    pub(super) fn may_have_more(&self, held: &Assignment) -> bool {
        self.members(held) < self.role.gang.max()
    }

    /// The gang with one more member: where it is already before where it is not, near before far, and where least is
    /// left.
    pub(super) fn with_one_more(&self, draft: &Draft<'a>, held: &Assignment) -> Option<Assignment> {
        let near = Near::to(draft.snapshot, self.job, held);
        let nodes = draft.snapshot.cluster.nodes().ids().filter(|node| near.allows(*node));
        let fit = |node: NodeId| draft.fit_on(node, &self.role.shape, Reach::Unclaimed);
        let taking = nodes.map(|node| (node, fit(node))).filter(|(_, fit)| *fit > 0);
        let (node, _) = taking.min_by_key(|(node, fit)| (Reverse(near.count(*node)), *fit, *node))?;
        let each = self.each().gpus;
        let device = draft.devices_on(node, Reach::Unclaimed).best_for(each).filter(|_| each.is_share());
        let one = Part { device, ..Part::of(self.index, node, 1) };
        let mut parts = held.parts().to_vec();
        match parts.iter_mut().find(|part| part.is_with(&one)) {
            Some(part) => part.members += 1,
            None => parts.push(one),
        }
        Assignment::whole(&self.job.spec, parts).ok()
    }

    /// The gang without so many of its members: those first that have the fewest beside them on their node.
    pub(super) fn without(&self, held: &Assignment, mut count: u32) -> Option<Assignment> {
        let mut parts = held.parts().to_vec();
        let here = |node: NodeId| -> u32 {
            let own = held.parts().iter().filter(|part| part.role == self.index && part.node == node);
            own.map(|part| part.members).sum()
        };
        parts.sort_by_key(|part| (here(part.node), Reverse(part.node), Reverse(part.device)));
        for part in parts.iter_mut().filter(|part| part.role == self.index) {
            let gone = part.members.min(count);
            part.members -= gone;
            count -= gone;
        }
        Assignment::whole(&self.job.spec, parts).ok().filter(|_| count == 0)
    }

    /// What it loses by another size: it saves its work and goes on from there.
    pub(super) fn cost(&self) -> Duration {
        self.job.spec.checkpointing.map_or(Duration::ZERO, |saving| saving.takes + saving.restart)
    }
}

/// Where a gang is, and how near to that others are.
struct Near<'s> {
    snapshot: &'s Snapshot<'s>,
    held: &'s Assignment,
    domains: BTreeSet<DomainId>,
    topology: Topology,
}

impl<'s> Near<'s> {
    fn to(snapshot: &'s Snapshot<'s>, job: &Job, held: &'s Assignment) -> Self {
        let nodes = held.nodes().map(|node| snapshot.cluster.node(node));
        let domains = nodes.flat_map(|node| node.domains.iter().copied()).collect();
        Self { snapshot, held, domains, topology: job.spec.topology }
    }

    /// Of how many domains that the gang is in a node is part, itself included.
    fn count(&self, node: NodeId) -> usize {
        let shared = self.snapshot.cluster.node(node).domains.iter();
        shared.filter(|domain| self.domains.contains(*domain)).count() + usize::from(self.held.touches(node))
    }

    /// Whether a gang that must not be spread is as near there as it must be.
    fn allows(&self, node: NodeId) -> bool {
        let Topology::Required(level) = self.topology else { return true };
        let cluster = self.snapshot.cluster;
        let place = |node: NodeId| match level == cluster.depth() {
            true => Err(node),
            false => Ok(cluster.node(node).domains.get(usize::from(level.0)).copied()),
        };
        self.held.nodes().next().is_none_or(|first| place(first) == place(node))
    }
}
