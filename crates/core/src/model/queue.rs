//! Queues: weights, quotas, limits and users.

mod usage_history;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::cluster::Name;
use crate::model::id::{IdVec, QueueId};
use crate::model::job::JobSpec;
use crate::model::policy::Weights;
use crate::model::units::{Cpu, Duration, Gpus, Memory, Resources, Share};

pub use usage_history::UsageHistories;

/// A queue of jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Queue {
    pub name: Name,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<QueueId>,
    pub weight: u32,
    /// Guaranteed resources. Without a quota: the queue's weighted share of what its siblings' quotas leave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<Resources>,
    /// Upper bound of its allocations, borrowed resources included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Resources>,
    /// Whether other queues may use the free part of its quota until it needs it.
    pub lends: bool,
    /// Part of a lent quota that is never lent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<Resources>,
    /// Whether the queue may exceed its quota while resources are free.
    pub borrows: bool,
    /// Whether other queues may reclaim what it holds beyond its quota.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    pub gives_back: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub users: Vec<QueueUser>,
    /// Weights of its job order, if they differ from the policy's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<Weights>,
    /// Half-life of its usage history, which counts as much as its present usage when queues are compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<Duration>,
}

/// A user's weight and limit in a queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueUser {
    pub name: Name,
    pub priority: Share,
    /// Upper bound of the allocations of all jobs of this user in the queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Resources>,
}

impl Queue {
    /// Creates a queue without bounds.
    pub fn open(name: &str) -> Self {
        Self {
            name: Name::from(name),
            parent: None,
            weight: 1,
            quota: None,
            limit: None,
            lends: true,
            kept: None,
            borrows: true,
            gives_back: true,
            users: Vec::new(),
            order: None,
            history: None,
        }
    }

    /// Upper bound of its allocations; `None` for a queue that borrows without a limit.
    pub fn bound(&self) -> Option<Resources> {
        self.quota.filter(|_| !self.borrows).or(self.limit)
    }

    /// Resources that it never lends.
    pub fn keeps(&self) -> Option<Resources> {
        self.quota.filter(|_| !self.lends).or(self.kept).map(named)
    }

    /// Upper bound of a user's allocations in the queue.
    pub fn bound_of(&self, user: &Name) -> Option<Resources> {
        self.users.iter().find(|known| known.name == *user)?.limit
    }
}

fn yes() -> bool {
    true
}

/// Resources that a quota names; zero for the others.
pub(crate) fn named(quota: Resources) -> Resources {
    let named = |amount: u64| if amount == u64::MAX { 0 } else { amount };
    Resources {
        cpu: Cpu(named(quota.cpu.0)),
        memory: Memory(named(quota.memory.0)),
        gpus: Gpus(named(quota.gpus.0)),
    }
}

/// Whether the parent of a queue exists and is not inside the queue.
pub fn has_valid_parent(queues: &IdVec<QueueId, Queue>, id: QueueId, queue: &Queue) -> bool {
    queue
        .parent
        .is_none_or(|parent| queues.get(parent).is_some() && lineage(queues, parent).all(|above| above != id))
}

/// A queue and its ancestors up to the outermost.
pub fn lineage(queues: &IdVec<QueueId, Queue>, queue: QueueId) -> impl Iterator<Item = QueueId> {
    let above = |below: &QueueId| queues.get(*below)?.parent;
    // Input with a cyclic parent is rejected; the bound ends the iteration if such input arrives nevertheless.
    std::iter::successors(Some(queue), above).take(queues.len())
}

/// Allocations of each queue including its children, and of each user with a limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holdings {
    by_queue: IdVec<QueueId, Resources>,
    by_user: BTreeMap<(QueueId, Name), Resources>,
}

impl Holdings {
    pub fn nothing(queues: usize) -> Self {
        Self { by_queue: IdVec::filled(Resources::NONE, queues), by_user: BTreeMap::new() }
    }

    pub fn by_queue(&self) -> &IdVec<QueueId, Resources> {
        &self.by_queue
    }

    pub fn of_user(&self, queue: QueueId, user: &Name) -> Resources {
        self.by_user.get(&(queue, user.clone())).copied().unwrap_or(Resources::NONE)
    }

    pub fn add(&mut self, queues: &IdVec<QueueId, Queue>, spec: &JobSpec, amount: Resources) {
        self.change(queues, spec, |held| held + amount);
    }

    pub fn remove(&mut self, queues: &IdVec<QueueId, Queue>, spec: &JobSpec, amount: Resources) {
        self.change(queues, spec, |held| held - amount);
    }

    fn change(
        &mut self,
        queues: &IdVec<QueueId, Queue>,
        spec: &JobSpec,
        changed: impl Fn(Resources) -> Resources,
    ) {
        for queue in lineage(queues, spec.queue) {
            self.by_queue[queue] = changed(self.by_queue[queue]);
        }
        let bounded = spec.owner.as_ref().filter(|owner| queues[spec.queue].bound_of(owner).is_some());
        if let Some(owner) = bounded {
            let user = (spec.queue, owner.clone());
            // Zero entries are removed so that incremental and recomputed sums are equal.
            let held = changed(self.by_user.remove(&user).unwrap_or_default());
            if held != Resources::NONE {
                self.by_user.insert(user, held);
            }
        }
    }
}
