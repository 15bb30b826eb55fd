//! Each member goes where the network costs least towards the members of its job that were placed before: nothing on
//! one node, little in one domain, ever more from level to level. Among equals the score of kube-scheduler decides.
//!
//! Nodes declare bandwidth and members an average need, so a node is left out whose links the members there would
//! exceed. Links above the nodes, and the times at which jobs send, are not looked at.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::parts::merged;
use super::{Numbered, Scope, Search};
use crate::decide::draft::Draft;
use crate::model::cluster::Cluster;
use crate::model::id::{DomainId, NodeId};
use crate::model::plan::Part;
use crate::traffic::contention_graph::pattern_of;

impl<'a> Search<'a> {
    /// Takes capacity for all members of a role, or says how many found a place.
    pub(super) fn nearest(
        &self,
        draft: &mut Draft<'a>,
        scope: Scope,
        numbered: Numbered<'a>,
        members: u32,
    ) -> Result<Vec<Part>, u32> {
        let shape = &numbered.1.shape;
        let busy = self.used_up(draft);
        let mut placed = PlacedMembers::of(draft);
        let mut parts = Vec::new();
        for count in 0..members {
            let candidates = self.candidates(draft, scope, shape).into_iter().map(|(node, _)| node);
            let allowed =
                candidates.filter(|node| !busy.contains(node) && draft.forbid(shape, *node).is_none());
            let merit = |node: &NodeId| {
                let (disturbance, _, score) = self.score(draft, *node, shape, 0);
                (disturbance, Reverse(placed.cost(draft.snapshot.cluster, *node)), score, Reverse(*node))
            };
            let node = allowed.max_by_key(merit).ok_or(count)?;
            parts.extend(self.seat(draft, numbered, node, 1));
            placed.join(draft.snapshot.cluster, node, 1);
        }
        Ok(merged(parts))
    }

    /// The nodes that have too little bandwidth left on average for a member, in order.
    fn used_up(&self, draft: &Draft<'a>) -> Vec<NodeId> {
        let Some(pattern) = pattern_of(&self.job.spec).filter(|_| !draft.contention.has_no_links()) else {
            return Vec::new();
        };
        let used = draft.contention.average_utilisation().into_iter();
        let members = self.job.spec.roles.iter().map(|role| self.size(role)).sum();
        let exceeds = |(node, used): &(NodeId, f64)| {
            used + draft.contention.average_need(*node, &pattern, members) > 1.0
        };
        used.filter(exceeds).map(|(node, _)| node).collect()
    }
}

/// How many members of the job are where.
#[derive(Default)]
struct PlacedMembers {
    all: u64,
    on: BTreeMap<NodeId, u64>,
    within: BTreeMap<DomainId, u64>,
}

/// The cost of a member that is as far away as possible.
const MOST_COST: u64 = 100;

impl PlacedMembers {
    fn of(draft: &Draft<'_>) -> Self {
        let mut placed = Self::default();
        for part in draft.placed() {
            placed.join(draft.snapshot.cluster, part.node, u64::from(part.members));
        }
        placed
    }

    fn join(&mut self, cluster: &Cluster, node: NodeId, members: u64) {
        self.all += members;
        *self.on.entry(node).or_default() += members;
        for domain in &cluster.node(node).domains {
            *self.within.entry(*domain).or_default() += members;
        }
    }

    /// The cost of a node: nothing for each member there, one for members in the same innermost domain, ten for those
    /// in the next, and so on.
    fn cost(&self, cluster: &Cluster, node: NodeId) -> u64 {
        let mut near = self.on.get(&node).copied().unwrap_or(0);
        let (mut cost, mut each) = (0, 1);
        for domain in cluster.node(node).domains.iter().rev() {
            let within = self.within.get(domain).copied().unwrap_or(0);
            cost += each * (within - near);
            (near, each) = (within, (each * 10).min(MOST_COST));
        }
        cost + each * (self.all - near)
    }
}
