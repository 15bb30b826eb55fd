//! Queues: whose work it is, how much it counts, and how much it may hold.

mod usage_history;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::cluster::Name;
use crate::model::id::{IdVec, QueueId};
use crate::model::job::JobSpec;
use crate::model::policy::Weights;
use crate::model::units::{Cpu, Duration, Gpus, Memory, Resources, Share};

pub use usage_history::Pasts;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Queue {
    pub name: Name,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<QueueId>,
    pub weight: u32,
    /// What it may call its own. Without one that is its part, by weight, of what those beside it leave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<Resources>,
    /// What it may never exceed, also where it borrows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Resources>,
    /// Whether others may use what is left of its quota until it wants it back.
    pub lends: bool,
    /// What it never lends, of a quota that it lends otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<Resources>,
    /// Whether it may hold more than its quota while others leave room.
    pub borrows: bool,
    /// Whether others may take back what it holds beyond its own.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    pub gives_back: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub users: Vec<QueueUser>,
    /// How its jobs are ordered, where that is not as everywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<Weights>,
    /// What it held lately counts as much as what it holds when it is compared with others; half as much after each of
    /// these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<Duration>,
}

/// How much a user counts in a queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueUser {
    pub name: Name,
    pub priority: Share,
    /// What the jobs of this user together may never exceed there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Resources>,
}

impl Queue {
    /// A queue that holds nobody back.
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

    /// What it may never exceed; nothing bounds a queue that borrows without a limit.
    pub fn bound(&self) -> Option<Resources> {
        self.quota.filter(|_| !self.borrows).or(self.limit)
    }

    /// What it leaves to nobody, used or not.
    pub fn keeps(&self) -> Option<Resources> {
        self.quota.filter(|_| !self.lends).or(self.kept).map(named)
    }

    /// What a user may never exceed there.
    pub fn bound_of(&self, user: &Name) -> Option<Resources> {
        self.users.iter().find(|known| known.name == *user)?.limit
    }
}

fn yes() -> bool {
    true
}

/// What a quota says: what it does not name it does not bound, nor keep.
pub(crate) fn named(quota: Resources) -> Resources {
    let named = |amount: u64| if amount == u64::MAX { 0 } else { amount };
    Resources {
        cpu: Cpu(named(quota.cpu.0)),
        memory: Memory(named(quota.memory.0)),
        gpus: Gpus(named(quota.gpus.0)),
    }
}

/// Whether a queue may lie where it says: in one that there is, and not in itself.
pub fn has_its_place(queues: &IdVec<QueueId, Queue>, id: QueueId, queue: &Queue) -> bool {
    queue
        .parent
        .is_none_or(|parent| queues.get(parent).is_some() && lineage(queues, parent).all(|above| above != id))
}

/// A queue, the one it lies in, and so on to the outermost.
pub fn lineage(queues: &IdVec<QueueId, Queue>, queue: QueueId) -> impl Iterator<Item = QueueId> {
    let above = |below: &QueueId| queues.get(*below)?.parent;
    // Files with a queue above itself are refused; should one come all the same, this still ends.
    std::iter::successors(Some(queue), above).take(queues.len())
}

/// What queues hold, those inside them included, and what users hold whom a queue bounds.
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
            // Who holds nothing is not kept: then what was counted on the way and what is counted anew are equal.
            let held = changed(self.by_user.remove(&user).unwrap_or_default());
            if held != Resources::NONE {
                self.by_user.insert(user, held);
            }
        }
    }
}
