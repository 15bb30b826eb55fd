//! An immutable view of the engine's state at one instant: what `decide` sees.

use std::collections::{BTreeMap, BTreeSet};

use indexmap::IndexMap;

use crate::model::cluster::{Cluster, Name};
use crate::model::free_capacity::FreeCapacity;
use crate::model::groups::{Groups, Tallies};
use crate::model::id::{BudgetId, ClassId, GroupId, IdVec, JobId, NodeId, QueueId, ShapeId, Window};
use crate::model::job::{ClassPosition, Gang, Job, Priority, RoleKind, Teams, Topology};
use crate::model::plan::Plan;
use crate::model::queue::{Holdings, Queue, UsageHistories};
use crate::model::report::Reason;
use crate::model::units::{Duration, Instant, Share};
use crate::observe::slow_nodes::Slow;
use crate::traffic::contention_graph::ContentionGraph;
use crate::traffic::decision_inputs::DecisionInputs;
use crate::tuning::Tuning;

/// The engine's state as one decision sees it. It is borrowed: taking one costs nothing. Steps under way are counted
/// as done, so `plan` is what the next decision starts from. What has changed since the last decision is part of it
/// (`room.growth`, the classes still closed), so deciding stays a function and looks only at what is new.
///
/// It has a field for each part of the engine that proposers read: the state itself, the indexes that save looking at all of
/// it, and settings. Everything that is planned is one field, `plan`.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot<'a> {
    pub now: Instant,
    pub cluster: &'a Cluster,
    pub queues: &'a IdVec<QueueId, Queue>,
    pub jobs: &'a Window<JobId, Job>,
    pub plan: &'a Plan,
    /// The numbers on which decisions depend, as the policy has them.
    pub tuning: &'a Tuning,
    /// Jobs in the plan whose number of members is not fixed.
    pub elastic: &'a BTreeSet<JobId>,
    pub room: &'a FreeCapacity,
    pub waiting: &'a Waiting,
    /// Partitions of nodes into domains, and how many members of each group are in each domain.
    pub groups: &'a Groups,
    pub tallies: &'a Tallies,
    /// How many members each disruption budget allows to evict, those on their way out included.
    pub budgets: &'a IdVec<BudgetId, u32>,
    /// Jobs that are leaving, each with the job that they make room for.
    pub displaced: &'a BTreeMap<JobId, JobId>,
    /// What queues and users hold in the plan.
    pub held: &'a Holdings,
    /// What queues have held, where that counts.
    pub pasts: &'a UsageHistories,
    /// Which jobs meet on which links.
    pub contention: &'a ContentionGraph,
    /// What the traffic policies in the plan were decided on.
    pub decision_inputs: &'a [DecisionInputs],
    /// Jobs with a node that has not confirmed their traffic policy: their links are shared fairly until it does.
    pub unconfirmed: &'a BTreeSet<JobId>,
    /// Nodes on which members fall behind their peers.
    pub slow: &'a BTreeMap<NodeId, Slow>,
    /// Jobs whose deadlines count.
    pub timed: &'a BTreeSet<JobId>,
    /// Priorities present, with the number of jobs of each.
    pub priorities: &'a BTreeMap<Priority, usize>,
    /// The number of this decision, and the time of the last one.
    pub pass: i64,
    pub last_pass: Option<Instant>,
    /// Wake-ups fall on multiples of `tick`, and decisions on multiples of `round`.
    pub tick: Duration,
    pub round: Duration,
    /// The least time between two decisions.
    pub spacing: Duration,
    /// The time for which a job runs before it may be evicted, moved or resized.
    pub min_run: Duration,
    /// Whether jobs wait that would not fit if every node were ready and free.
    pub keeps_hopeless: bool,
}

impl Snapshot<'_> {
    /// Grows whenever something changes that may let a class fit that was refused.
    pub fn stamp(&self, class: &Class) -> u64 {
        self.room.growth() + self.tallies.changes(&class.watches)
    }
}

/// What the scheduler looks at in a waiting job beside its place in the queue: jobs that agree in it fit together or
/// not at all.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClassKey {
    pub queue: QueueId,
    pub priority: Priority,
    pub user: Share,
    pub owner: Option<Name>,
    pub topology: Topology,
    pub teams: Option<Teams>,
    pub preempts: bool,
    pub is_to_be_repaired: bool,
    /// The rough remaining work, where the policy looks at it.
    pub length: u8,
    /// A fingerprint of its traffic, where the policy looks at it.
    pub sends: u64,
    /// The job itself, where it has a deadline that the policy looks at: what it gets is decided by the timetable.
    pub due: Option<JobId>,
    pub roles: Vec<(RoleKind, ShapeId, Gang)>,
}

impl ClassKey {
    /// The rough length of its jobs; zero where it is unknown or does not matter.
    pub fn long(&self) -> Duration {
        Self::length(self.length)
    }

    /// The length that a rough length stands for: each step is half as much again, or a third.
    pub fn length(rough: u8) -> Duration {
        let Some(halves) = rough.checked_sub(1) else { return Duration::ZERO };
        let seconds = 1u64 << (halves / 2).min(40);
        Duration::from_secs(seconds + if halves % 2 == 1 { seconds / 2 } else { 0 })
    }
}

/// The place of a job in its class; it does not change while the job waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub key: u128,
    pub standing: ClassPosition,
    pub job: JobId,
}

#[derive(Clone, Debug)]
pub struct Class {
    pub key: ClassKey,
    pub members: u32,
    pub line: BTreeSet<Place>,
    /// The groups that its rules watch.
    pub watches: Vec<GroupId>,
    /// Why its first job could not be placed, and `Snapshot::stamp` then. While that has not changed, the class needs
    /// no second look.
    pub closed: Option<(u64, Reason)>,
}

impl Class {
    /// Whether the class needs no look. A class that is held up by a reservation, or waits for a better place, is
    /// looked at in every decision, because time alone may let it start.
    pub fn is_closed(&self, stamp: u64) -> bool {
        let closed = self.closed.as_ref().filter(|(_, reason)| !reason.may_expire());
        closed.is_some_and(|(then, _)| *then == stamp)
    }
}

/// Waiting jobs, class by class.
#[derive(Clone, Debug, Default)]
pub struct Waiting {
    known: IndexMap<ClassKey, ClassId>,
    slots: IdVec<ClassId, Option<Class>>,
    vacant: Vec<ClassId>,
    jobs: usize,
}

impl Waiting {
    /// The number of jobs that wait.
    pub fn len(&self) -> usize {
        self.jobs
    }

    pub fn is_empty(&self) -> bool {
        self.jobs == 0
    }

    /// One more than the greatest id of a class.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    pub fn class(&self, id: ClassId) -> Option<&Class> {
        self.slots.get(id)?.as_ref()
    }

    pub fn classes(&self) -> impl Iterator<Item = (ClassId, &Class)> {
        self.slots.iter().filter_map(|(id, class)| Some((id, class.as_ref()?)))
    }

    /// Adds a job to its class. `watches` returns the groups that the rules of the class watch.
    pub(crate) fn join(
        &mut self,
        key: ClassKey,
        place: Place,
        watches: impl FnOnce() -> Vec<GroupId>,
    ) -> ClassId {
        let id = match self.known.get(&key) {
            Some(id) => *id,
            None => self.found(key, watches()),
        };
        let class = self.slots[id].as_mut().expect("a known class exists");
        self.jobs += usize::from(class.line.insert(place));
        id
    }

    fn found(&mut self, key: ClassKey, watches: Vec<GroupId>) -> ClassId {
        let members = key.roles.iter().map(|(_, _, gang)| gang.min()).sum();
        let class = Some(Class { key: key.clone(), members, line: BTreeSet::new(), watches, closed: None });
        let id = match self.vacant.pop() {
            Some(id) => {
                self.slots[id] = class;
                id
            }
            None => self.slots.push(class),
        };
        self.known.insert(key, id);
        id
    }

    pub(crate) fn leave(&mut self, id: ClassId, place: Place) {
        let class = self.slots[id].as_mut().expect("a job waits in a class that exists");
        self.jobs -= usize::from(class.line.remove(&place));
        if class.line.is_empty() {
            self.known.swap_remove(&class.key);
            self.slots[id] = None;
            self.vacant.push(id);
        }
    }

    pub(crate) fn close(&mut self, id: ClassId, stamp: u64, reason: Reason) {
        if let Some(class) = self.slots[id].as_mut() {
            class.closed = Some((stamp, reason));
        }
    }
}
