//! Parameter servers and their workers: which of them share a node.
//!
//! **Problem.** Every worker exchanges with every server, an equal part with each, and what members on one node
//! exchange crosses no link. On a node with `s` of `S` servers and `w` of `W` workers, `s/S (W - w) + w (1 - s/S)`
//! gradients cross its link each way, and the whole gang waits for the node where most do. Find places for servers and
//! workers so that this is least, on the fewest nodes of the smallest domain that holds the gang.
//!
//! **Solution.** Several places are found in each scope and the best of all is taken: role by role as any gang;
//! workers first, with each server then where least crosses; and, where there is little to choose from, the optimum
//! (`exact`). So no gang is placed worse than role by role.

mod exact;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::parts::{Numbered, merged};
use super::{Scope, Search};
use crate::decide::draft::{Draft, Reach};
use crate::model::cluster::Level;
use crate::model::id::{DomainId, NodeId};
use crate::model::job::RoleKind;
use crate::model::plan::Part;
use crate::model::units::Resources;

/// The number of servers and workers that exchange gradients. A chief works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Exchange {
    servers: u64,
    workers: u64,
}

impl Exchange {
    fn with(self, kind: RoleKind, members: u32) -> Self {
        let members = u64::from(members);
        match kind {
            RoleKind::Ps => Self { servers: self.servers + members, ..self },
            RoleKind::Chief | RoleKind::Worker => Self { workers: self.workers + members, ..self },
        }
    }

    fn and(self, other: Self) -> Self {
        Self { servers: self.servers + other.servers, workers: self.workers + other.workers }
    }

    /// Grows with the servers that share a node: of places that are equal otherwise, one goes down with fewer of them.
    fn crowding(self) -> u64 {
        self.servers * self.servers
    }

    /// What crosses the link of a node with these members: gradients, times the number of servers.
    fn crossing(self, here: Self) -> u64 {
        here.servers * (self.workers - here.workers) + here.workers * (self.servers - here.servers)
    }
}

/// What a place costs: less is better, the first difference decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Cost {
    disturbance: Resources,
    domains: usize,
    /// What leaves the domain that most leaves.
    between: u64,
    nodes: usize,
    /// What crosses the link of the node where most does.
    busiest: u64,
    /// What crosses the links of all nodes.
    crossing: u64,
    /// How little servers are apart.
    crowding: u64,
}

impl<'a> Search<'a> {
    /// The servers and workers that exchange, where neither rules nor teams decide their places.
    pub(super) fn exchange(&self, draft: &Draft<'_>) -> Option<Exchange> {
        let roles = self.job.spec.roles.iter();
        let all = roles.clone().fold(Exchange::default(), |sum, role| sum.with(role.kind, self.size(role)));
        let exchanges = all.servers > 0 && all.workers > 0 && self.job.spec.teams.is_none();
        (exchanges && !roles.into_iter().any(|role| draft.is_ruled(&role.shape))).then_some(all)
    }

    /// The best place that is found in any of the scopes, taken in the draft.
    pub(super) fn beside_their_servers(
        &self,
        draft: &mut Draft<'a>,
        scopes: Vec<Scope>,
        all: Exchange,
    ) -> Option<Vec<Part>> {
        let mut best: Option<(Cost, Vec<Part>)> = None;
        for scope in scopes {
            for parts in self.places_in(draft, scope, all) {
                let cost = self.cost(draft, &parts, all);
                if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                    best = Some((cost, parts));
                }
            }
            if self.reach == Reach::Unclaimed && best.as_ref().is_some_and(|(least, _)| least.busiest == 0) {
                break;
            }
        }
        let (_, parts) = best?;
        for part in &parts {
            draft.take(*part, &self.job.spec.roles[usize::from(part.role)].shape);
        }
        Some(parts)
    }

    /// Places in one scope, found in different ways; the draft stays as it was.
    fn places_in(&self, draft: &mut Draft<'a>, scope: Scope, all: Exchange) -> Vec<Vec<Part>> {
        let mark = draft.mark();
        let role_by_role = self.place_within(draft, scope);
        draft.rollback(mark);
        if matches!(scope, Scope::Node(_)) {
            return role_by_role.into_iter().collect();
        }
        let workers_first = self.workers_first(draft, scope, all);
        draft.rollback(mark);
        let exact = self.exact(draft, scope, all);
        [role_by_role, workers_first, exact].into_iter().flatten().collect()
    }

    fn cost(&self, draft: &Draft<'_>, parts: &[Part], all: Exchange) -> Cost {
        let mut nodes: BTreeMap<NodeId, Exchange> = BTreeMap::new();
        for part in parts {
            let here = nodes.entry(part.node).or_default();
            *here = here.with(self.job.spec.roles[usize::from(part.role)].kind, part.members);
        }
        let crossing = || nodes.values().map(|here| all.crossing(*here));
        let mut domains: BTreeMap<Option<DomainId>, Exchange> = BTreeMap::new();
        for (node, here) in &nodes {
            let sum = domains.entry(domain_of(draft, *node)).or_default();
            *sum = sum.and(*here);
        }
        Cost {
            disturbance: nodes.keys().map(|node| self.disturbance(draft, *node)).sum(),
            domains: domains.len(),
            between: domains.values().map(|here| all.crossing(*here)).max().unwrap_or(0),
            nodes: nodes.len(),
            busiest: crossing().max().unwrap_or(0),
            crossing: crossing().sum(),
            crowding: nodes.values().map(|here| here.crowding()).sum(),
        }
    }

    /// Workers on the fewest nodes, then the servers among them.
    fn workers_first(&self, draft: &mut Draft<'a>, scope: Scope, all: Exchange) -> Option<Vec<Part>> {
        let (servers, workers): (Vec<_>, Vec<_>) =
            self.in_placing_order().into_iter().partition(|(_, role)| role.kind == RoleKind::Ps);
        let mut parts = Vec::new();
        let mut nodes: BTreeMap<NodeId, Exchange> = BTreeMap::new();
        for numbered in workers.into_iter().chain(servers) {
            let kind = numbered.1.kind;
            let chosen = match kind {
                RoleKind::Ps => self.servers_among(draft, scope, numbered, &nodes, all)?,
                RoleKind::Chief | RoleKind::Worker => self.place_role(draft, scope, numbered).ok()?,
            };
            for part in &chosen {
                let here = nodes.entry(part.node).or_default();
                *here = here.with(kind, part.members);
            }
            parts.extend(chosen);
        }
        Some(parts)
    }

    /// Places each server on the node of the gang where least crosses with it, in the domain where that loads the
    /// links between domains least; where no node of the gang has capacity, on the fewest others.
    fn servers_among(
        &self,
        draft: &mut Draft<'a>,
        scope: Scope,
        numbered: Numbered<'a>,
        nodes: &BTreeMap<NodeId, Exchange>,
        all: Exchange,
    ) -> Option<Vec<Part>> {
        let (_, role) = numbered;
        let (mut parts, mut left) = (Vec::new(), self.size(role));
        if left == 0 {
            return Some(parts);
        }
        let mut domains = Domains::of(draft, nodes, all);
        while left > 0
            && let Some((node, here)) = domains.take_least()
        {
            if self.fit(draft, node, &role.shape) > 0 {
                parts.extend(self.seat(draft, numbered, node, 1));
                left -= 1;
                domains.add_server(draft, node, here);
            }
        }
        if left > 0 {
            let others = self.candidates(draft, scope, &role.shape);
            let others = self.fewest(draft, Level(0), others, left)?;
            parts
                .extend(others.into_iter().flat_map(|(node, count)| self.seat(draft, numbered, node, count)));
        }
        Some(merged(parts))
    }
}

/// The gang's nodes by domain, for one server after another.
struct Domains {
    all: Exchange,
    groups: BTreeMap<Option<DomainId>, Group>,
}

/// The members in a domain, and its nodes: the one first where least crosses with one more server.
#[derive(Default)]
struct Group {
    here: Exchange,
    nodes: BinaryHeap<Reverse<(u64, NodeId, Exchange)>>,
}

impl Domains {
    fn of(draft: &Draft<'_>, nodes: &BTreeMap<NodeId, Exchange>, all: Exchange) -> Self {
        let mut domains = Self { all, groups: BTreeMap::new() };
        for (node, here) in nodes {
            let group = domains.groups.entry(domain_of(draft, *node)).or_default();
            group.here = group.here.and(*here);
            group.nodes.push(Reverse((all.crossing(here.with(RoleKind::Ps, 1)), *node, *here)));
        }
        domains
    }

    /// The best node for one more server, with the members there.
    fn take_least(&mut self) -> Option<(NodeId, Exchange)> {
        let open = self.groups.iter().filter_map(|(id, group)| Some((*id, group.nodes.peek()?.0.0)));
        let (best, _) = open.min_by_key(|(id, crossing)| (self.busiest_with(*id), *crossing, *id))?;
        let Reverse((_, node, here)) = self.groups.get_mut(&best)?.nodes.pop()?;
        Some((node, here))
    }

    /// What crosses between domains where most does, with one more server in that one.
    fn busiest_with(&self, domain: Option<DomainId>) -> u64 {
        let here = |(id, group): (&Option<DomainId>, &Group)| match *id == domain {
            true => self.all.crossing(group.here.with(RoleKind::Ps, 1)),
            false => self.all.crossing(group.here),
        };
        self.groups.iter().map(here).max().unwrap_or(0)
    }

    fn add_server(&mut self, draft: &Draft<'_>, node: NodeId, here: Exchange) {
        let here = here.with(RoleKind::Ps, 1);
        let group = self.groups.entry(domain_of(draft, node)).or_default();
        group.here = group.here.with(RoleKind::Ps, 1);
        // Where every server is, no more will come.
        if here.servers < self.all.servers {
            group.nodes.push(Reverse((self.all.crossing(here.with(RoleKind::Ps, 1)), node, here)));
        }
    }
}

fn domain_of(draft: &Draft<'_>, node: NodeId) -> Option<DomainId> {
    draft.snapshot.cluster.node(node).domains.last().copied()
}
