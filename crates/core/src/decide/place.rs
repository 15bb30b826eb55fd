//! On which nodes.
//!
//! A gang is placed whole or not at all: role by role inside one scope (a domain or the whole cluster), and rolled
//! back if any role does not fit. `spread` and `pack` choose node by node for each member, as the schedulers they
//! stand for do; `topology` takes the smallest scope that holds the gang and fills its fewest nodes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::draft::{Draft, Reach};
use super::size::Sizes;
use crate::cluster::Level;
use crate::id::{DomainId, IdVec, NodeId, ShapeId};
use crate::job::{Job, Role, Shape, Topology};
use crate::plan::{Assignment, Part};
use crate::policy::Placement;
use crate::report::Reason;
use crate::room::fit_on;
use crate::units::Resources;

#[derive(Clone, Copy, Debug)]
pub(super) struct Placer {
    rule: Placement,
}

pub(super) fn placer(rule: Placement) -> Placer {
    Placer { rule }
}

/// The nodes that a placement may choose from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Scope {
    Node(NodeId),
    Domain(DomainId),
    Everywhere,
}

/// How far members may be apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Range {
    Within(Level),
    Everywhere,
}

/// How many domains of a level are tried before wider ones: the first fits nearly always, and only gangs of
/// several roles can fail in one that has room for each role by itself.
const MOST_TRIES_PER_LEVEL: usize = 16;

impl Placer {
    /// Takes room for the whole gang, or says why there is none.
    pub(super) fn place(
        self,
        draft: &mut Draft<'_>,
        job: &Job,
        sizes: Sizes,
        reach: Reach,
    ) -> Result<Assignment, Reason> {
        if let Some(reason) = too_little_room(draft, job, sizes) {
            return Err(reason);
        }
        let search = Search { rule: self.rule, job, sizes, reach };
        for range in search.ranges(draft) {
            for scope in search.scopes(draft, range) {
                let mark = draft.mark();
                match search.place_within(draft, scope) {
                    Some(parts) => return Ok(whole(job, parts)),
                    None => draft.rollback(mark),
                }
            }
        }
        Err(search.why_not(draft))
    }
}

fn whole(job: &Job, parts: Vec<Part>) -> Assignment {
    Assignment::whole(&job.spec, parts).expect("every role was given its size")
}

/// The quick answer, by counts that are kept: it is exact for gangs of one role.
fn too_little_room(draft: &Draft<'_>, job: &Job, sizes: Sizes) -> Option<Reason> {
    let fits = |role: &Role, shape: ShapeId| {
        draft.fits(shape).min(u64::from(role.shape.each.count_in(draft.total())))
    };
    let lacking = job.spec.roles.iter().zip(&job.shapes).find_map(|(role, shape)| {
        let fit = fits(role, *shape);
        (fit < u64::from(sizes(role.gang))).then(|| insufficient(role, sizes, fit as u32))
    });
    // Each role fits by itself, but not beside the others.
    let crowded = || {
        let widest = job.spec.roles.iter().zip(&job.shapes).max_by_key(|(role, _)| sizes(role.gang))?;
        (!job.spec.least().fits_in(draft.total()))
            .then(|| insufficient(widest.0, sizes, fits(widest.0, *widest.1) as u32))
    };
    lacking.or_else(crowded)
}

fn insufficient(role: &Role, sizes: Sizes, fit: u32) -> Reason {
    Reason::InsufficientResources { each: role.shape.each, members: sizes(role.gang), fit }
}

/// Members on nodes, each node once.
type Members = Vec<(NodeId, u32)>;

/// One gang looking for its place.
struct Search<'a> {
    rule: Placement,
    job: &'a Job,
    sizes: Sizes,
    reach: Reach,
}

impl Search<'_> {
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
            (Placement::Spread | Placement::Pack, Topology::Required(level)) => vec![Range::Within(level)],
            (Placement::Spread | Placement::Pack, _) => vec![Range::Everywhere],
        }
    }

    fn scopes(&self, draft: &Draft<'_>, range: Range) -> Vec<Scope> {
        match range {
            Range::Everywhere => vec![Scope::Everywhere],
            Range::Within(level) => self.scopes_at(draft, level),
        }
    }

    /// The scopes of one level that have room for each role by itself, the tightest first (for `spread`, the
    /// roomiest).
    fn scopes_at(&self, draft: &Draft<'_>, level: Level) -> Vec<Scope> {
        let cluster = draft.snapshot.cluster;
        let mut found: Vec<(u64, Scope)> = if level == cluster.depth() {
            let nodes = cluster.nodes().ids().map(Scope::Node);
            nodes.filter_map(|scope| Some((self.slack(draft, scope)?, scope))).collect()
        } else {
            let domains = cluster.domains_at(level).map(Scope::Domain);
            domains.filter_map(|scope| Some((self.slack(draft, scope)?, scope))).collect()
        };
        if self.rule == Placement::Spread {
            found.iter_mut().for_each(|(slack, _)| *slack = u64::MAX - *slack);
        }
        let kept = found.len().min(MOST_TRIES_PER_LEVEL);
        if kept < found.len() {
            found.select_nth_unstable(kept);
            found.truncate(kept);
        }
        found.sort_unstable();
        found.into_iter().map(|(_, scope)| scope).collect()
    }

    /// How many members more than needed a scope takes; none if some role does not fit.
    fn slack(&self, draft: &Draft<'_>, scope: Scope) -> Option<u64> {
        let mut slack = 0;
        for role in &self.job.spec.roles {
            let fit: u64 = self.fit_in(draft, scope, &role.shape);
            slack += fit.checked_sub(u64::from((self.sizes)(role.gang)))?;
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
            Scope::Everywhere => cluster.nodes().ids().map(fit).sum(),
        }
    }

    fn fit(&self, draft: &Draft<'_>, node: NodeId, shape: &Shape) -> u32 {
        fit_on(draft.snapshot.cluster, node, draft.room_on(node, self.reach), shape)
    }

    fn place_within(&self, draft: &mut Draft<'_>, scope: Scope) -> Option<Vec<Part>> {
        let mut parts = Vec::new();
        for (index, role) in self.in_placing_order() {
            let members = (self.sizes)(role.gang);
            let candidates = self.candidates(draft, scope, &role.shape);
            let chosen = match self.rule {
                Placement::Topology => self.fewest(draft, Level(0), candidates, members)?,
                Placement::Spread | Placement::Pack => {
                    self.one_by_one(draft, candidates, &role.shape, members)?
                }
            };
            for (node, members) in chosen {
                draft.take(node, role.shape.each.times(u64::from(members)));
                parts.push(Part { role: index as u8, node, members });
            }
        }
        Some(parts)
    }

    /// Parameter servers, then the chief, then workers; larger members first among equals.
    fn in_placing_order(&self) -> Vec<(usize, &Role)> {
        let mut roles: Vec<(usize, &Role)> = self.job.spec.roles.iter().enumerate().collect();
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
            Scope::Domain(domain) => cluster.nodes_in(domain).iter().copied().filter_map(taking).collect(),
        }
    }

    /// The fewest domains of this level and of those inside it: whole domains, the roomiest first, until one can take
    /// all that is left; then the tightest of those.
    fn fewest(&self, draft: &Draft<'_>, level: Level, candidates: Members, members: u32) -> Option<Members> {
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

    /// Each member in turn to the node of the best score, which then changes.
    fn one_by_one(
        &self,
        draft: &Draft<'_>,
        candidates: Members,
        shape: &Shape,
        members: u32,
    ) -> Option<Members> {
        let score = |node: NodeId, placed: u32| {
            let taken = shape.each.times(u64::from(placed));
            let free = draft.room_on(node, self.reach) - taken;
            let score = match self.rule {
                Placement::Spread => kube_score(draft.snapshot.cluster.node(node).capacity, free, shape.each),
                Placement::Pack | Placement::Topology => fullness(draft, node, free, shape.each),
            };
            (Reverse(self.disturbance(draft, node)), score)
        };
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

    /// What choosing this node would take from others: the least disruptive place wins.
    fn disturbance(&self, draft: &Draft<'_>, node: NodeId) -> Resources {
        match self.reach {
            Reach::Unclaimed => Resources::NONE,
            Reach::Claimed => draft.claimed_on(node),
        }
    }

    /// The role that lacks most, or the level at which all would fit but do not.
    fn why_not(&self, draft: &mut Draft<'_>) -> Reason {
        let mut scarcest: Option<(u64, u64, &Role)> = None;
        for (role, shape) in self.job.spec.roles.iter().zip(&self.job.shapes) {
            let fit = self.fit_in(draft, Scope::Everywhere, &role.shape);
            if self.reach == Reach::Claimed {
                draft.found_to_fit(*shape, fit);
            }
            let covered = fit.saturating_mul(1000) / u64::from((self.sizes)(role.gang));
            if scarcest.is_none_or(|(least, _, _)| covered < least) {
                scarcest = Some((covered, fit, role));
            }
        }
        let (_, fit, role) = scarcest.expect("a job has at least one role");
        let members = (self.sizes)(role.gang);
        match self.job.spec.topology {
            Topology::Required(level) if fit >= u64::from(members) => {
                Reason::TopologyUnsatisfied { level, members, best: self.best_at(draft, level, &role.shape) }
            }
            _ => insufficient(role, self.sizes, u32::try_from(fit).unwrap_or(u32::MAX)),
        }
    }

    /// The most members that any one place of a level takes.
    fn best_at(&self, draft: &Draft<'_>, level: Level, shape: &Shape) -> u32 {
        let cluster = draft.snapshot.cluster;
        let best = if level == cluster.depth() {
            cluster.nodes().ids().map(|node| self.fit_in(draft, Scope::Node(node), shape)).max()
        } else {
            cluster.domains_at(level).map(|domain| self.fit_in(draft, Scope::Domain(domain), shape)).max()
        };
        u32::try_from(best.unwrap_or(0)).unwrap_or(u32::MAX)
    }
}

/// The default score of kube-scheduler: half for the least allocated node, half for the best balanced one, over the
/// resources the member asks for among CPU and memory; over GPUs where it asks for neither. Where kube-scheduler
/// picks one of the best at random, the first node is taken here.
fn kube_score(capacity: Resources, free: Resources, each: Resources) -> u64 {
    let asked = [
        (capacity.cpu.0, free.cpu.0, each.cpu.0),
        (capacity.memory.0, free.memory.0, each.memory.0),
        (capacity.gpus.0, free.gpus.0, each.gpus.0),
    ];
    let scored = if each.cpu.is_zero() && each.memory.is_zero() { &asked[2..] } else { &asked[..2] };
    let left = |(capacity, free, each): &(u64, u64, u64)| match capacity {
        0 => 0,
        capacity => (u128::from(free.saturating_sub(*each)) * 100_000 / u128::from(*capacity)) as u64,
    };
    let shares: Vec<u64> = scored.iter().map(left).collect();
    let least_allocated = shares.iter().sum::<u64>() / shares.len() as u64;
    let imbalance = match shares[..] {
        [cpu, memory] => cpu.abs_diff(memory) / 2,
        _ => 0,
    };
    least_allocated + (100_000 - imbalance)
}

/// How full the node would be, over the resources the member asks for.
fn fullness(draft: &Draft<'_>, node: NodeId, free: Resources, each: Resources) -> u64 {
    let capacity = draft.snapshot.cluster.node(node).capacity;
    let used = |capacity: u64, free: u64, each: u64| match (capacity, each) {
        (0, _) | (_, 0) => 0,
        _ => (u128::from(capacity - free.min(capacity) + each) * 100_000 / u128::from(capacity)) as u64,
    };
    used(capacity.cpu.0, free.cpu.0, each.cpu.0)
        + used(capacity.memory.0, free.memory.0, each.memory.0)
        + used(capacity.gpus.0, free.gpus.0, each.gpus.0)
}
