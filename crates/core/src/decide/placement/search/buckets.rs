//! Parameter servers and workers in buckets, as Volcano's task-topology has it with affinity between servers and workers
//! and anti-affinity among servers.
//!
//! Each server begins a bucket, and workers join in turn the bucket that asks for least so far. Buckets are placed one
//! after the other, the largest first, member by member. A node counts for one more member of a bucket as many members
//! of it as are there already, and as would fit of those to come; less the servers it has, if the member is a server.
//! That and how full the node would be (binpack) weigh the same.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::parts::merged;
use super::score::fullness;
use super::{Scope, Score, Search};
use crate::decide::draft::Draft;
use crate::model::id::NodeId;
use crate::model::job::{Role, RoleKind};
use crate::model::plan::Part;
use crate::model::units::Resources;

/// The whole of a score, as in `score`.
const WHOLE: u64 = 100_000;

/// Members that are to share a node, as roles of the job; servers first.
#[derive(Clone, Default)]
struct Bucket {
    members: Vec<usize>,
    asks: u64,
}

/// The members of a job that have a place so far.
#[derive(Default)]
struct Placed {
    /// One for each member.
    parts: Vec<Part>,
    servers: BTreeMap<NodeId, u64>,
    /// Of the bucket that is being placed.
    of_bucket: BTreeMap<NodeId, u64>,
}

impl<'a> Search<'a> {
    /// Takes capacity for the whole gang, bucket by bucket.
    pub(super) fn bucket_by_bucket(&self, draft: &mut Draft<'a>, scope: Scope) -> Option<Vec<Part>> {
        let buckets = self.buckets();
        let largest = buckets.iter().map(|bucket| bucket.members.len()).max()? as u64;
        let mut placed = Placed::default();
        for bucket in &buckets {
            placed.of_bucket.clear();
            for (at, index) in bucket.members.iter().enumerate() {
                let role = &self.job.spec.roles[*index];
                let rest = &bucket.members[at..];
                let score = |node| self.bucket_score(draft, node, role, rest, &placed, largest);
                let candidates = self.candidates(draft, scope, &role.shape).into_iter();
                let (node, _) = candidates.max_by_key(|(node, _)| (score(*node), Reverse(*node)))?;
                placed.add(role.kind, node);
                placed.parts.extend(self.seat(draft, (*index, role), node, 1));
            }
        }
        Some(merged(placed.parts))
    }

    /// The largest first, older ones among equals.
    fn buckets(&self) -> Vec<Bucket> {
        let mut buckets: Vec<Bucket> = Vec::new();
        for (index, role) in self.in_placing_order() {
            for _ in 0..self.size(role) {
                let least = buckets.iter_mut().min_by_key(|bucket| bucket.asks);
                match least.filter(|_| role.kind != RoleKind::Ps) {
                    Some(bucket) => bucket.add(index, role),
                    None => {
                        let mut bucket = Bucket::default();
                        bucket.add(index, role);
                        buckets.push(bucket);
                    }
                }
            }
        }
        buckets.sort_by_key(|bucket| Reverse(bucket.members.len()));
        buckets
    }

    /// How good a node is for the first of the `rest` of a bucket.
    fn bucket_score(
        &self,
        draft: &Draft<'a>,
        node: NodeId,
        role: &Role,
        rest: &[usize],
        placed: &Placed,
        largest: u64,
    ) -> Score {
        let (each, free) = (role.shape.each, draft.free_on(node, self.reach));
        let here = placed.of_bucket.get(&node).copied().unwrap_or(0) + self.fit_of(rest, free);
        let apart = match role.kind {
            RoleKind::Ps => placed.servers.get(&node).copied().unwrap_or(0),
            RoleKind::Chief | RoleKind::Worker => 0,
        };
        let together = here.saturating_sub(apart) * WHOLE / largest;
        let full = fullness(draft.snapshot.cluster.node(node).capacity, free, each) / kinds(each);
        (Reverse(self.disturbance(draft, node)), Reverse(0), together + full)
    }

    /// How many of these members fit together, those left out that come last.
    fn fit_of(&self, members: &[usize], free: Resources) -> u64 {
        let each = |index: &usize| self.job.spec.roles[*index].shape.each;
        let mut asks: Resources = members.iter().map(each).sum();
        let mut fit = members.len();
        while fit > 1 && !asks.fits_in(free) {
            fit -= 1;
            asks = asks - each(&members[fit]);
        }
        fit as u64
    }
}

impl Bucket {
    /// A CPU, a GPU and a GiB of memory ask for the same.
    fn add(&mut self, index: usize, role: &Role) {
        let each = role.shape.each;
        self.members.push(index);
        self.asks += each.cpu.0 + each.gpus.0 + each.memory.0 / MEMORY_LIKE_A_CPU;
    }
}

/// CPUs and GPUs are counted in thousandths, so a thousandth of a GiB is like one of them.
const MEMORY_LIKE_A_CPU: u64 = (1 << 30) / 1000;

impl Placed {
    fn add(&mut self, kind: RoleKind, node: NodeId) {
        *self.of_bucket.entry(node).or_default() += 1;
        *self.servers.entry(node).or_default() += u64::from(kind == RoleKind::Ps);
    }
}

/// How many kinds of resources a member asks for, at least one.
fn kinds(each: Resources) -> u64 {
    let asked = [each.cpu.is_zero(), each.memory.is_zero(), each.gpus.is_zero()];
    (asked.into_iter().filter(|none| !none).count() as u64).max(1)
}
