//! Workers in teams, each inside one domain of a level.
//!
//! **Problem.** Some workers exchange far more with each other than with the rest: those that hold one model together
//! want one node, those of one replica one rack. The gang may be spread, its teams may not.
//!
//! **Solution.** The world decides which worker belongs to which team; the scheduler sees to it that every domain has
//! whole teams. So of every domain as many places are offered as whole teams fill. A search that takes whole domains,
//! or all that is left from one, then takes whole teams only; `fewest` does.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::{Members, Scope, Search};
use crate::decide::draft::Draft;
use crate::model::id::{DomainId, NodeId};
use crate::model::job::{Role, RoleKind, Teams};

impl Search<'_> {
    pub(super) fn teams_of(&self, role: &Role) -> Option<Teams> {
        self.job.spec.teams.filter(|_| role.kind == RoleKind::Worker)
    }

    pub(super) fn fit_in_teams(&self, draft: &Draft<'_>, scope: Scope, role: &Role, teams: Teams) -> u64 {
        let places = self.candidates_for_teams(draft, scope, role, teams);
        places.into_iter().map(|(_, fit)| u64::from(fit)).sum()
    }

    /// The nodes of a scope with how many members they take, of which every domain has whole groups.
    pub(super) fn candidates_for_teams(
        &self,
        draft: &Draft<'_>,
        scope: Scope,
        role: &Role,
        teams: Teams,
    ) -> Members {
        let cluster = draft.snapshot.cluster;
        let mut domains: BTreeMap<Result<DomainId, NodeId>, Members> = BTreeMap::new();
        for (node, fit) in self.candidates(draft, scope, &role.shape) {
            let domain = cluster.node(node).domains.get(usize::from(teams.within.0)).copied();
            domains.entry(domain.ok_or(node)).or_default().push((node, fit));
        }
        domains.into_values().flat_map(|nodes| in_whole_groups(nodes, teams)).collect()
    }
}

/// Leaves out places that would hold part of a group, where the fewest are.
fn in_whole_groups(mut nodes: Members, teams: Teams) -> Members {
    let all: u64 = nodes.iter().map(|(_, fit)| u64::from(*fit)).sum();
    nodes.sort_by_key(|(node, fit)| (Reverse(*fit), *node));
    let mut left = teams.whole(all);
    for (_, fit) in &mut nodes {
        *fit = (*fit).min(u32::try_from(left).unwrap_or(u32::MAX));
        left -= u64::from(*fit);
    }
    nodes.retain(|(_, fit)| *fit > 0);
    nodes.sort_unstable();
    nodes
}
