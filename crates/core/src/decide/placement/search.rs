//! The search for the nodes of a gang.
//!
//! A gang is placed whole or not at all: role by role inside one scope (a domain or the whole cluster), and rolled
//! back if any role does not fit. `spread` and `pack` choose node by node for each member, as the schedulers they
//! stand for do, and so does `nearest`, by distance; `buckets` packs parameter servers with their workers; `topology`
//! takes the smallest scope that holds the gang and fills its fewest nodes, with servers and workers where the least
//! crosses links, and where GPUs are shared the node whose remaining GPUs are of most use to other jobs. Roles with
//! rules are placed one member at a time. On a node, shares of GPUs go to the fullest device that has capacity,
//! whatever the policy.

mod alternatives;
mod buckets;
mod fragments;
mod more_members;
mod near;
mod nearest;
mod parts;
mod refusal;
mod ruled;
mod score;
mod servers;
mod teams;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::decide::cpu_sharing::{CoreSharing, cores};
use crate::decide::draft::{Draft, Reach};
use crate::decide::gang_size::GangSize;
use crate::decide::snapshot::Snapshot;
use crate::model::cluster::Level;
use crate::model::groups::Domain;
use crate::model::id::{DomainId, IdVec, NodeId, PartitionId, ShapeId};
use crate::model::job::{Job, Role, Shape, Topology};
use crate::model::plan::{Assignment, Part};
use crate::model::policy::Placement;
use crate::model::report::Reason;
use crate::model::units::Resources;

use fragments::{Loss, Requests};
use parts::Numbered;
use score::{fullness, kube_score};

#[derive(Clone, Copy, Debug)]
pub(super) struct Placer {
    rule: Placement,
}

/// The nodes that a placement may choose from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Scope {
    Node(NodeId),
    Domain(DomainId),
    /// Two domains of one level.
    Pair(DomainId, DomainId),
    /// A domain of a partition.
    Part(PartitionId, Domain),
    Everywhere,
}

/// How far members may be apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Range {
    Within(Level),
    Everywhere,
}

impl Placer {
    pub(super) fn new(rule: Placement) -> Self {
        Self { rule }
    }

    /// Takes capacity for the whole gang, or says why there is none.
    pub(super) fn place<'a>(
        self,
        draft: &mut Draft<'a>,
        job: &'a Job,
        sizes: GangSize,
        reach: Reach,
    ) -> Result<Assignment, Reason> {
        if let Some(reason) = shortage(draft, job, sizes) {
            return Err(reason);
        }
        let requests = Requests::around(draft, self.rule);
        let crowds = crowds(draft, job, self.rule);
        let search = Search { rule: self.rule, job, sizes, reach, requests, crowds };
        let found = draft.prefer_healthy_nodes(|draft| {
            search.ranges(draft).into_iter().find_map(|range| search.place_in(draft, range))
        });
        found.map(|parts| whole(job, parts)).ok_or_else(|| search.why_not(draft))
    }

    /// The nodes beside the plan that take the one member of a job; none for a gang.
    pub(super) fn feasible(self, snapshot: &Snapshot<'_>, job: &Job, sizes: GangSize) -> Vec<NodeId> {
        let [role] = &job.spec.roles[..] else { return Vec::new() };
        if sizes.of(role.gang) != 1 {
            return Vec::new();
        }
        let draft = Draft::beside_the_plan(snapshot);
        let search =
            Search { rule: self.rule, job, sizes, reach: Reach::Unclaimed, requests: None, crowds: None };
        let candidates = search.candidates(&draft, Scope::Everywhere, &role.shape).into_iter();
        let allowed = candidates.filter(|(node, _)| draft.forbid(&role.shape, *node).is_none());
        allowed.map(|(node, _)| node).collect()
    }
}

fn whole(job: &Job, parts: Vec<Part>) -> Assignment {
    Assignment::whole(&job.spec, parts).expect("every role was given its size")
}

/// The reason why a gang does not fit, by counts that are kept: exact for gangs of one role.
pub(super) fn shortage(draft: &Draft<'_>, job: &Job, sizes: GangSize) -> Option<Reason> {
    let fits = |role: &Role, shape: ShapeId| {
        draft.fits(shape).min(u64::from(role.shape.each.count_in(draft.total())))
    };
    let lacking = job.spec.roles.iter().zip(&job.shapes).find_map(|(role, shape)| {
        let fit = fits(role, *shape);
        (fit < u64::from(sizes.of(role.gang))).then(|| insufficient(role, sizes, fit as u32))
    });
    // Each role fits by itself, but not beside the others.
    let crowded = || {
        let widest = job.spec.roles.iter().zip(&job.shapes).max_by_key(|(role, _)| sizes.of(role.gang))?;
        (!total(job, sizes).fits_in(draft.total()))
            .then(|| insufficient(widest.0, sizes, fits(widest.0, *widest.1) as u32))
    };
    lacking.or_else(crowded)
}

/// What the whole gang takes.
fn total(job: &Job, sizes: GangSize) -> Resources {
    job.spec.roles.iter().map(|role| role.shape.each.times(u64::from(sizes.of(role.gang)))).sum()
}

fn insufficient(role: &Role, sizes: GangSize, fit: u32) -> Reason {
    Reason::InsufficientResources { each: role.shape.each, members: sizes.of(role.gang), fit }
}

/// Members on nodes, each node once.
type Members = Vec<(NodeId, u32)>;

/// One gang looking for its place.
struct Search<'a> {
    rule: Placement,
    job: &'a Job,
    sizes: GangSize,
    reach: Reach,
    /// The requests of other jobs that the place should leave capacity for, where the policy looks at them.
    requests: Option<Requests>,
    /// The jobs with which it would share cores, where the policy looks at them.
    crowds: Option<CoreSharing>,
}

/// The jobs that share the cores of nodes, for a job that would as well.
fn crowds(draft: &Draft<'_>, job: &Job, rule: Placement) -> Option<CoreSharing> {
    (rule == Placement::Topology && job.spec.work.cpu.is_some()).then(|| CoreSharing::of(draft))
}

/// Least disturbance, least loss to others, then the policy's own score: greater is better.
type Score = (Reverse<Resources>, Reverse<Loss>, u64);

impl<'a> Search<'a> {
    fn size(&self, role: &Role) -> u32 {
        self.sizes.of(role.gang)
    }

    /// How far the gang may be spread, from the nearest to the widest.
    fn ranges(&self, draft: &Draft<'_>) -> Vec<Range> {
        let innermost = draft.snapshot.cluster.depth().0;
        match (self.rule, self.job.spec.topology) {
            (Placement::Topology, Topology::Required(widest)) => {
                (widest.0..=innermost).rev().map(|level| Range::Within(Level(level))).collect()
            }
            (Placement::Topology, Topology::Anywhere | Topology::Preferred(_)) => {
                let levels = (0..=innermost).rev().map(|level| Range::Within(Level(level)));
                levels.chain([Range::Everywhere]).collect()
            }
            (_, Topology::Required(level)) => vec![Range::Within(level)],
            (_, _) => vec![Range::Everywhere],
        }
    }

    fn scopes(&self, draft: &Draft<'a>, range: Range) -> Vec<Scope> {
        match range {
            Range::Everywhere => self.anchors(draft).into_iter().chain([Scope::Everywhere]).collect(),
            Range::Within(level) => self.scopes_at(draft, level),
        }
    }

    /// The scopes of one level that have capacity for each role by itself, the tightest first (for `spread`, the
    /// roomiest); of nodes, those first on which the gang costs other jobs least.
    fn scopes_at(&self, draft: &Draft<'_>, level: Level) -> Vec<Scope> {
        let cluster = draft.snapshot.cluster;
        let mut found: Vec<(Loss, u64, Scope)> = if level == cluster.depth() {
            let nodes = cluster.nodes().ids().map(|node| (node, Scope::Node(node)));
            let taking = nodes.filter_map(|(node, scope)| Some((node, self.slack(draft, scope)?, scope)));
            taking.map(|(node, slack, scope)| (self.costs(draft, node), slack, scope)).collect()
        } else {
            let domains = cluster.domains_at(level).map(Scope::Domain);
            domains.filter_map(|scope| Some((0, self.slack(draft, scope)?, scope))).collect()
        };
        if matches!(self.rule, Placement::Spread | Placement::Nearest) {
            found.iter_mut().for_each(|(_, slack, _)| *slack = u64::MAX - *slack);
        }
        let kept = found.len().min(draft.snapshot.tuning.decide.max_scopes_per_level);
        if kept < found.len() {
            found.select_nth_unstable(kept);
            found.truncate(kept);
        }
        found.sort_unstable();
        found.into_iter().map(|(_, _, scope)| scope).collect()
    }

    /// What other jobs lose if the gang is on that node; for a job that shares cores, the milliseconds until the jobs
    /// there have ended.
    fn costs(&self, draft: &Draft<'_>, node: NodeId) -> Loss {
        match &self.crowds {
            Some(crowds) => {
                let capacity = cores(draft.snapshot.cluster.node(node).capacity.cpu);
                (crowds.drains(node, capacity) * 1e3) as Loss
            }
            None => self.loss(draft, node),
        }
    }

    /// How many members more than needed a scope takes; none if some role does not fit.
    fn slack(&self, draft: &Draft<'_>, scope: Scope) -> Option<u64> {
        self.slack_by(|role| match self.teams_of(role) {
            Some(teams) => self.fit_in_teams(draft, scope, role, teams),
            None => self.fit_in(draft, scope, &role.shape),
        })
    }

    fn slack_by(&self, fit: impl Fn(&Role) -> u64) -> Option<u64> {
        let mut slack = 0;
        for role in &self.job.spec.roles {
            slack += fit(role).checked_sub(u64::from(self.size(role)))?;
        }
        Some(slack)
    }

    /// How many members of a shape a scope takes.
    fn fit_in(&self, draft: &Draft<'_>, scope: Scope, shape: &Shape) -> u64 {
        let cluster = draft.snapshot.cluster;
        let fit = |node: NodeId| u64::from(self.fit(draft, node, shape));
        match scope {
            Scope::Node(node) => fit(node),
            Scope::Domain(domain) => cluster.nodes_in(domain).iter().map(|node| fit(*node)).sum(),
            Scope::Pair(one, other) => {
                [one, other].iter().flat_map(|domain| cluster.nodes_in(*domain)).map(|node| fit(*node)).sum()
            }
            Scope::Part(partition, domain) => nodes_of(draft, partition, domain).map(fit).sum(),
            Scope::Everywhere => cluster.nodes().ids().map(fit).sum(),
        }
    }

    fn fit(&self, draft: &Draft<'_>, node: NodeId, shape: &Shape) -> u32 {
        draft.fit_on(node, shape, self.reach)
    }

    /// Places the gang in the first scope that has capacity; where servers and workers exchange, in the one where
    /// least crosses links.
    fn place_in(&self, draft: &mut Draft<'a>, range: Range) -> Option<Vec<Part>> {
        let scopes = self.scopes(draft, range);
        let exchange = self.exchange(draft);
        match (self.rule, exchange) {
            (Placement::Topology, Some(all)) => self.beside_their_servers(draft, scopes, all),
            (Placement::Buckets, Some(_)) => {
                let in_buckets = self.first_of(draft, &scopes, Self::bucket_by_bucket);
                in_buckets.or_else(|| self.first_of(draft, &scopes, Self::place_within))
            }
            _ => self.first_of(draft, &scopes, Self::place_within),
        }
    }

    fn first_of(
        &self,
        draft: &mut Draft<'a>,
        scopes: &[Scope],
        place: impl Fn(&Self, &mut Draft<'a>, Scope) -> Option<Vec<Part>>,
    ) -> Option<Vec<Part>> {
        scopes.iter().find_map(|scope| {
            let mark = draft.mark();
            let parts = place(self, draft, *scope);
            if parts.is_none() {
                draft.rollback(mark);
            }
            parts
        })
    }

    fn place_within(&self, draft: &mut Draft<'a>, scope: Scope) -> Option<Vec<Part>> {
        let mut parts = Vec::new();
        for role in self.in_placing_order() {
            parts.extend(self.place_role(draft, scope, role).ok()?);
        }
        Some(parts)
    }

    /// Takes capacity for all members of a role, or says how many found a place where that can be told.
    fn place_role(
        &self,
        draft: &mut Draft<'a>,
        scope: Scope,
        numbered: Numbered<'a>,
    ) -> Result<Vec<Part>, u32> {
        let (_, role) = numbered;
        let (shape, members) = (&role.shape, self.size(role));
        if members == 0 {
            return Ok(Vec::new());
        }
        if self.rule == Placement::Nearest && self.teams_of(role).is_none() {
            return self.nearest(draft, scope, numbered, members);
        }
        if draft.is_ruled(shape) {
            return self.one_at_a_time(draft, scope, numbered, members);
        }
        let candidates = match self.teams_of(role) {
            Some(teams) => self.candidates_for_teams(draft, scope, role, teams),
            None => self.candidates(draft, scope, shape),
        };
        let chosen = match self.rule {
            _ if self.teams_of(role).is_some() => self.fewest(draft, Level(0), candidates, members),
            Placement::Topology => self.fewest(draft, Level(0), candidates, members),
            Placement::Spread | Placement::Pack | Placement::Buckets | Placement::Nearest => {
                self.one_by_one(draft, candidates, shape, members)
            }
        };
        let chosen = chosen.ok_or(0u32)?;
        Ok(chosen.into_iter().flat_map(|(node, count)| self.seat(draft, numbered, node, count)).collect())
    }

    /// Parameter servers, then the chief, then workers; larger members first among equals.
    fn in_placing_order(&self) -> Vec<Numbered<'a>> {
        let mut roles: Vec<Numbered<'a>> = self.job.spec.roles.iter().enumerate().collect();
        roles.sort_by_key(|(index, role)| (role.kind, Reverse(role.shape.each), *index));
        roles
    }

    /// The nodes of a scope that take at least one member, with how many they take.
    fn candidates(&self, draft: &Draft<'_>, scope: Scope, shape: &Shape) -> Members {
        let cluster = draft.snapshot.cluster;
        let taking = |node: NodeId| Some((node, self.fit(draft, node, shape))).filter(|(_, fit)| *fit > 0);
        match scope {
            Scope::Node(node) => taking(node).into_iter().collect(),
            Scope::Everywhere => cluster.nodes().ids().filter_map(taking).collect(),
            Scope::Part(partition, domain) => nodes_of(draft, partition, domain).filter_map(taking).collect(),
            Scope::Domain(domain) => cluster.nodes_in(domain).iter().copied().filter_map(taking).collect(),
            Scope::Pair(one, other) => {
                let nodes = [one, other].into_iter().flat_map(|domain| cluster.nodes_in(domain));
                nodes.copied().filter_map(taking).collect()
            }
        }
    }

    /// Each member in turn to the node of the best score, which then changes.
    fn one_by_one(
        &self,
        draft: &Draft<'_>,
        candidates: Members,
        shape: &Shape,
        members: u32,
    ) -> Option<Members> {
        let score = |node: NodeId, placed: u32| self.score(draft, node, shape, placed);
        if members == 1 {
            let best = candidates.into_iter().max_by_key(|(node, _)| (score(*node, 0), Reverse(*node)));
            return best.map(|(node, _)| vec![(node, 1)]);
        }
        let mut placed: IdVec<NodeId, u32> = IdVec::filled(0, draft.snapshot.cluster.nodes().len());
        let mut best: BinaryHeap<_> =
            candidates.into_iter().map(|(node, fit)| (score(node, 0), Reverse(node), fit)).collect();
        for _ in 0..members {
            let (_, Reverse(node), fit) = best.pop()?;
            placed[node] += 1;
            if fit > 1 {
                best.push((score(node, placed[node]), Reverse(node), fit - 1));
            }
        }
        Some(placed.iter().filter(|(_, count)| **count > 0).map(|(node, count)| (node, *count)).collect())
    }

    /// How good a node is for one more member beside those it was given already.
    fn score(&self, draft: &Draft<'_>, node: NodeId, shape: &Shape, placed: u32) -> Score {
        let free = draft.free_on(node, self.reach) - shape.each.times(u64::from(placed));
        let capacity = draft.snapshot.cluster.node(node).capacity;
        let score = match self.rule {
            Placement::Spread | Placement::Nearest => kube_score(capacity, free, shape.each),
            Placement::Pack | Placement::Buckets | Placement::Topology => {
                fullness(capacity, free, shape.each)
            }
        };
        let loss = self.loss_by(draft, node, [(shape.each, placed + 1)].into_iter());
        (Reverse(self.disturbance(draft, node)), Reverse(loss), score)
    }

    /// What a place on this node takes from jobs of lower rank: the least disruptive place wins.
    fn disturbance(&self, draft: &Draft<'_>, node: NodeId) -> Resources {
        match self.reach {
            Reach::Unclaimed => Resources::NONE,
            Reach::Claimed => draft.claimed_on(node),
        }
    }
}

/// The nodes of a domain of a partition that there are, in order of id.
fn nodes_of<'d>(
    draft: &'d Draft<'_>,
    partition: PartitionId,
    domain: Domain,
) -> impl Iterator<Item = NodeId> + use<'d> {
    let nodes = draft.snapshot.cluster.nodes();
    let lies = draft.snapshot.groups.partitions[partition].iter().filter(move |(_, here)| *here == domain);
    lies.map(|(node, _)| node).filter(move |node| nodes.get(*node).is_some())
}
