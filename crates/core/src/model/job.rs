//! Jobs: request (roles, gangs, priority, deadline), state and history.

mod deadline;
mod gang;
mod life;
mod shape;
mod speed;
mod unused_cores;

use std::num::NonZeroU32;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::model::cluster::{Level, Name};
use crate::model::id::{BudgetId, ClassId, QueueId, ShapeId};
use crate::model::profile::Profile;
use crate::model::report::Failure;
use crate::model::units::{Cpu, Duration, Gpus, Instant, Iterations, Resources, Share};
use crate::observe::progress::Progress;
use crate::observe::scaling::{Measured, Scaling};

pub use deadline::{Binding, Deadline, OnMiss};
pub use gang::{Gang, GangError, Members};
pub use life::{ExitReason, HeldAssignments, Life};
pub use shape::{Eligibility, Rule, Shape};
pub use unused_cores::Idle;

/// Purpose of a member. The order of the variants is the start order of a job's members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RoleKind {
    Ps,
    Chief,
    Worker,
}

/// Members of one kind and shape.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Role {
    pub kind: RoleKind,
    pub gang: Gang,
    pub shape: Shape,
}

/// Teams: groups of workers that exchange far more data within the group than between groups, such as the workers of
/// one model replica. Each group of `size` workers is placed within one domain of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Teams {
    pub size: NonZeroU32,
    pub within: Level,
}

impl Teams {
    /// Number of members in complete groups.
    pub const fn whole(self, members: u64) -> u64 {
        members - members % (self.size.get() as u64)
    }
}

/// Placement of members relative to the topology.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Topology {
    #[default]
    Anywhere,
    Preferred(Level),
    Required(Level),
}

/// Priority that the owner gave a job: higher values are served first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Priority(pub i32);

impl Priority {
    pub const LOW: Self = Self(-100);
    pub const NORMAL: Self = Self(0);
    pub const HIGH: Self = Self(100);
}

/// Size of a job's work, as declared; [`Progress`] estimates what is not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Work {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iterations: Option<Iterations>,
    /// Duration without contention at the requested size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone: Option<Duration>,
    /// Target of the metric, at which the job completes before its last iteration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,
    /// Largest CPU capacity that the job can use, if it shares the cores of its nodes with other jobs; `alone` is the
    /// duration with this capacity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Cpu>,
}

/// Target of a job's metric.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Target {
    AtMost(f64),
    AtLeast(f64),
}

/// Operations that the world supports for a running job. `decide` plans no others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Capabilities {
    /// Stop and later restart without loss of work.
    pub suspend: bool,
    /// Migration in one step.
    pub relocate: bool,
    /// Change of the CPU quota while the job runs.
    pub resize_in_place: bool,
    /// Change of the number of members.
    pub rescale: bool,
    /// Throttling in place.
    pub throttle: bool,
    /// Eviction with loss of work.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub evict: bool,
}

impl Capabilities {
    /// Start only.
    pub const START_ONLY: Self = Self {
        suspend: false,
        relocate: false,
        resize_in_place: false,
        rescale: false,
        throttle: false,
        evict: false,
    };
    /// A job with checkpoints: it may be suspended, migrated and rescaled.
    pub const CHECKPOINTED: Self = Self { suspend: true, relocate: true, rescale: true, ..Self::START_ONLY };

    /// Whether the job may be preempted.
    pub const fn makes_room(self) -> bool {
        self.suspend || self.evict
    }
}

/// Cost of stopping and restarting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Checkpointing {
    /// Interval of periodic checkpoints; `None` if the job saves on request only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Duration>,
    pub takes: Duration,
    pub restart: Duration,
}

/// A job as its owner requested it.
///
/// One struct of 19 fields: each is an independent part of the request and a field of the job's journal record, which
/// events carry as a whole; the decision stages read different ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobSpec {
    pub name: Name,
    pub queue: QueueId,
    #[serde(default)]
    pub priority: Priority,
    /// Weight of the user, as the queue states it.
    #[serde(default)]
    pub user: Share,
    /// Name of the user, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Name>,
    pub roles: Vec<Role>,
    #[serde(default)]
    pub work: Work,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Deadline>,
    /// Sizes and the speed at each; speed proportional to members if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scaling: Option<Arc<Scaling>>,
    #[serde(default)]
    pub topology: Topology,
    /// Teams of the workers, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub teams: Option<Teams>,
    pub capabilities: Capabilities,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpointing: Option<Checkpointing>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Arc<Profile>>,
    /// Failed starts after which the job fails.
    pub start_retries: u32,
    /// Submitted but not released.
    #[serde(default)]
    pub suspended: bool,
    /// Disruption budgets of its members.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub budgets: Vec<BudgetId>,
    /// Whether the job may preempt others.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    pub preempts: bool,
    /// Whether the job completes a gang whose other members already hold nodes: it is served first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repairs: bool,
}

fn yes() -> bool {
    true
}

impl JobSpec {
    pub const DEFAULT_START_RETRIES: u32 = 3;

    /// The smallest request: `members` equal workers in the default queue.
    pub fn workers(name: &str, gang: Gang, each: Resources) -> Self {
        Self {
            name: Name::from(name),
            queue: QueueId(0),
            priority: Priority::NORMAL,
            user: Share(500_000),
            owner: None,
            roles: vec![Role { kind: RoleKind::Worker, gang, shape: Shape::of(each) }],
            work: Work::default(),
            deadline: None,
            scaling: None,
            topology: Topology::Anywhere,
            teams: None,
            capabilities: Capabilities::START_ONLY,
            checkpointing: None,
            profile: None,
            start_retries: Self::DEFAULT_START_RETRIES,
            suspended: false,
            budgets: Vec::new(),
            preempts: true,
            repairs: false,
        }
    }

    /// Resources at its smallest size.
    pub fn least(&self) -> Resources {
        self.roles.iter().map(|role| role.shape.each.times(u64::from(role.gang.min()))).sum()
    }

    pub fn gpus(&self) -> Gpus {
        self.least().gpus
    }

    pub fn members(&self) -> u32 {
        self.roles.iter().map(|role| role.gang.min()).sum()
    }
}

/// A job as the engine knows it.
///
/// One struct of 17 fields: together they are the job's record in the journal, and every engine module reads some of
/// them.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Job {
    pub spec: Arc<JobSpec>,
    pub submitted: Instant,
    pub life: Life,
    pub progress: Progress,
    pub standing: ClassPosition,
    /// Failed starts since the job last ran, and the failure of the last one.
    pub failed_starts: u32,
    /// Consecutive failed migrations: each lengthens the time before the next attempt.
    #[serde(default, skip_serializing_if = "is_none")]
    pub failed_moves: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<Failure>,
    /// Time before which the job is not started or disturbed.
    pub not_before: Instant,
    /// Start time on its present nodes, while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs_since: Option<Instant>,
    /// Whether the job lost a node and waits to continue: it is served before new jobs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_to_be_repaired: bool,
    /// Number of times that a measured traffic profile differed from the known one.
    #[serde(default, skip_serializing_if = "is_none")]
    pub times_measured: u32,
    /// Slowdown that its agent measured with its traffic directive compared with fair sharing: the job and those that
    /// share links with it get no directive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slower_than_fair: Option<Share>,
    /// Measured speed at the sizes that the job has had.
    #[serde(default, skip_serializing_if = "Measured::is_nothing")]
    pub measured: Measured,
    /// Unused part of its cores.
    #[serde(default, skip_serializing_if = "Idle::is_nothing")]
    pub idle: Idle,
    /// Interned shapes of its roles and class in which it waits.
    #[serde(skip)]
    pub shapes: Vec<ShapeId>,
    #[serde(skip)]
    pub class: Option<ClassId>,
}

fn is_none(count: &u32) -> bool {
    *count == 0
}

impl Job {
    /// Remaining work in time without contention; `None` if the work is unknown. It does not shrink while the job is
    /// stalled.
    pub fn remaining(&self, now: Instant) -> Option<Duration> {
        self.spec.work.alone.map(|alone| alone - self.progress.reliable_work(now))
    }

    /// Estimated remaining work: from the reported iterations if the job reports, otherwise as declared.
    pub fn foreseen(&self, now: Instant) -> Option<Duration> {
        match self.progress.all_work(&self.spec) {
            Some(judged) => Some(judged - self.progress.reliable_work(now)),
            None => self.remaining(now),
        }
    }

    /// Remaining duration at the present size, or at the requested size while it waits; `None` if the work is
    /// unknown.
    pub fn time_left(&self, now: Instant) -> Option<Duration> {
        self.remaining(now).map(|work| self.progress.pace().time(work))
    }

    /// Whether other members hold nodes in vain until the job runs.
    pub fn goes_first(&self) -> bool {
        self.is_to_be_repaired || self.spec.repairs
    }

    /// Time at which a running job has run for `least`.
    pub fn ripe(&self, least: Duration) -> Option<Instant> {
        self.runs_since.map(|since| since + least)
    }
}

/// Position of a job among equals: by the pass that assigned it, then new jobs last, then the position in that pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ClassPosition {
    pub pass: i64,
    pub newcomer: bool,
    pub place: u32,
    /// Queue level by attained service in the last pass (2D-LAS only).
    pub level: u8,
}
