//! Members placed one at a time, because where one is decides where the next may be.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::{Numbered, Scope, Score, Search};
use crate::decide::draft::Draft;
use crate::model::groups::Domain;
use crate::model::id::{DeviceId, NodeId, PartitionId};
use crate::model::job::{Role, Rule, Shape};
use crate::model::plan::Part;

impl<'a> Search<'a> {
    /// Places each member in turn on the best node that the rules allow then. The error is how many found a place.
    pub(super) fn one_at_a_time(
        &self,
        draft: &mut Draft<'a>,
        scope: Scope,
        numbered: Numbered<'a>,
        members: u32,
    ) -> Result<Vec<Part>, u32> {
        let shape = &numbered.1.shape;
        let mut choice = Choice::default();
        let candidates = self.candidates(draft, scope, shape);
        choice.open.extend(candidates.iter().map(|(node, _)| self.scored(draft, *node, shape)));
        let mut placed: BTreeMap<(NodeId, Option<DeviceId>), Part> = BTreeMap::new();
        for count in 0..members {
            let node = self.next_allowed(draft, shape, &mut choice).ok_or(count)?;
            for part in self.seat(draft, numbered, node, 1) {
                let all = placed.entry((node, part.device)).or_insert(Part { members: 0, ..part });
                all.members += part.members;
            }
            choice.has_changed = true;
            if self.fit(draft, node, shape) > 0 {
                choice.open.push(self.scored(draft, node, shape));
            }
        }
        Ok(placed.into_values().collect())
    }

    fn scored(&self, draft: &Draft<'a>, node: NodeId, shape: &Shape) -> (Score, Reverse<NodeId>) {
        (self.score(draft, node, shape, 0), Reverse(node))
    }

    /// The best allowed node. A forbidden node is set aside, and looked at again when no other node is left and a
    /// member was placed since: that member may be the one that its rule asks for.
    fn next_allowed(&self, draft: &Draft<'a>, shape: &Shape, choice: &mut Choice) -> Option<NodeId> {
        loop {
            while let Some(best @ (_, Reverse(node))) = choice.open.pop() {
                if draft.forbid(shape, node).is_none() {
                    return Some(node);
                }
                choice.aside.push(best);
            }
            if !std::mem::take(&mut choice.has_changed) {
                return None;
            }
            choice.open.extend(choice.aside.drain(..));
        }
    }

    /// The domains that hold the whole gang, the tightest first, where the first member decides where all others go:
    /// the node with the best score may lie in a domain that does not hold them.
    pub(super) fn anchors(&self, draft: &Draft<'a>) -> Vec<Scope> {
        let Some(partition) = self.job.spec.roles.iter().find_map(|role| anchor(draft, role)) else {
            return Vec::new();
        };
        let mut domains: BTreeMap<Domain, Vec<NodeId>> = BTreeMap::new();
        for (node, domain) in draft.snapshot.groups.partitions[partition].iter() {
            domains.entry(domain).or_default().push(node);
        }
        let slack = |(domain, nodes): (Domain, Vec<NodeId>)| {
            let fit =
                |role: &Role| nodes.iter().map(|node| u64::from(self.fit(draft, *node, &role.shape))).sum();
            Some((self.slack_by(fit)?, domain))
        };
        let mut found: Vec<(u64, Domain)> = domains.into_iter().filter_map(slack).collect();
        found.sort_unstable();
        found.truncate(draft.snapshot.tuning.decide.max_scopes_per_level);
        found.into_iter().map(|(_, domain)| Scope::Part(partition, domain)).collect()
    }
}

/// Nodes to choose from, best first, and those that were forbidden when they were looked at.
#[derive(Default)]
struct Choice {
    open: BinaryHeap<(Score, Reverse<NodeId>)>,
    aside: Vec<(Score, Reverse<NodeId>)>,
    has_changed: bool,
}

/// The partition inside one domain of which a role stays once its first member is placed, because its groups are empty
/// yet.
fn anchor(draft: &Draft<'_>, role: &Role) -> Option<PartitionId> {
    role.shape.rules.iter().find_map(|rule| match rule {
        Rule::Together { groups, or_first: true }
            if groups.iter().all(|group| draft.counts.is_empty(*group)) =>
        {
            draft.snapshot.groups.groups.get(*groups.first()?).map(|group| group.partition)
        }
        _ => None,
    })
}
