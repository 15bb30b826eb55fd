//! A gang on the fewest nodes of the fewest domains.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::{Members, Search};
use crate::decide::draft::Draft;
use crate::model::cluster::Level;
use crate::model::id::DomainId;
use crate::model::id::NodeId;

impl Search<'_> {
    /// The fewest domains of this level and of those inside it: whole domains, the roomiest first, until one can take
    /// all that is left; then the tightest of those.
    pub(super) fn fewest(
        &self,
        draft: &Draft<'_>,
        level: Level,
        candidates: Members,
        members: u32,
    ) -> Option<Members> {
        let cluster = draft.snapshot.cluster;
        if level == cluster.depth() {
            return self.fewest_nodes(draft, candidates, members);
        }
        let inwards = Level(level.0 + 1);
        let mut domains: BTreeMap<DomainId, (u64, Members)> = BTreeMap::new();
        for (node, fit) in candidates {
            let (total, nodes) = domains.entry(cluster.node(node).domains[usize::from(level.0)]).or_default();
            *total += u64::from(fit);
            nodes.push((node, fit));
        }
        let (mut chosen, mut left) = (Vec::new(), u64::from(members));
        loop {
            let fit = |domain: &DomainId| domains[domain].0;
            let enough = domains.keys().copied().filter(|domain| fit(domain) >= left);
            if let Some(tightest) = enough.min_by_key(|domain| (fit(domain), *domain)) {
                let (_, nodes) = domains.remove(&tightest)?;
                chosen.extend(self.fewest(draft, inwards, nodes, left as u32)?);
                return Some(chosen);
            }
            let roomiest = domains.keys().copied().max_by_key(|domain| (fit(domain), Reverse(*domain)))?;
            let (total, nodes) = domains.remove(&roomiest)?;
            chosen.extend(nodes);
            left -= total;
        }
    }

    /// The roomiest nodes until one can take all that is left; then the tightest of those.
    fn fewest_nodes(&self, draft: &Draft<'_>, mut candidates: Members, members: u32) -> Option<Members> {
        let disturbs = |node: NodeId| self.disturbance(draft, node);
        candidates.sort_by_key(|(node, fit)| (disturbs(*node), Reverse(*fit), *node));
        let (mut chosen, mut left) = (Vec::new(), members);
        while left > 0 {
            let all_that_is_left = candidates.iter().filter(|(_, fit)| *fit >= left);
            if let Some((node, _)) = all_that_is_left.min_by_key(|(node, fit)| (disturbs(*node), *fit, *node))
            {
                chosen.push((*node, left));
                return Some(chosen);
            }
            let (node, fit) = (!candidates.is_empty()).then(|| candidates.remove(0))?;
            chosen.push((node, fit));
            left -= fit;
        }
        Some(chosen)
    }
}
