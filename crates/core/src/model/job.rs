//! What was asked: roles, gangs, priority, deadline; and the life of a job.

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
pub use life::{Exit, Held, Life};
pub use shape::{Eligibility, Rule, Shape};
pub use unused_cores::Idle;

/// What a member does. The order is the order in which a job's members are started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RoleKind {
    Ps,
    Chief,
    Worker,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Role {
    pub kind: RoleKind,
    pub gang: Gang,
    pub shape: Shape,
}

/// Workers in groups that exchange far more among themselves than with others, as those do that hold one model together:
/// each group of `size` is inside one domain of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Teams {
    pub size: NonZeroU32,
    pub within: Level,
}

impl Teams {
    /// How many of so many members stand in whole groups.
    pub const fn whole(self, members: u64) -> u64 {
        members - members % (self.size.get() as u64)
    }
}

/// Whether members want to be near each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Topology {
    #[default]
    Anywhere,
    Preferred(Level),
    Required(Level),
}

/// Urgency of a job as its owner gave it: greater goes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Priority(pub i32);

impl Priority {
    pub const LOW: Self = Self(-100);
    pub const NORMAL: Self = Self(0);
    pub const HIGH: Self = Self(100);
}

/// What there is to do. What is not known is not guessed here: `progress` estimates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Work {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iterations: Option<Iterations>,
    /// How long it takes alone, at the size it asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone: Option<Duration>,
    /// Where it is done before its iterations are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,
    /// The most CPU it can use, where that is more than it asks for: it shares the cores of its nodes with others, and
    /// `alone` is with so many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Cpu>,
}

/// What its metric is to be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Target {
    AtMost(f64),
    AtLeast(f64),
}

/// What may be done to a job once it runs. `decide` never plans what the world cannot do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Capabilities {
    /// Stopped and started again later without losing what it did.
    pub suspend: bool,
    /// Stopped here and started there in one step.
    pub relocate: bool,
    /// Its CPU quota changed while it runs.
    pub resize_in_place: bool,
    /// Its number of members changed.
    pub rescale: bool,
    /// Slowed down where it is.
    pub throttle: bool,
    /// Stopped for another's sake, though what it did is lost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub evict: bool,
}

impl Capabilities {
    /// Started and left alone.
    pub const START_ONLY: Self = Self {
        suspend: false,
        relocate: false,
        resize_in_place: false,
        rescale: false,
        throttle: false,
        evict: false,
    };
    /// A job with checkpoints: it may be stopped, moved and rescaled.
    pub const CHECKPOINTED: Self = Self { suspend: true, relocate: true, rescale: true, ..Self::START_ONLY };

    /// Whether it may be taken off its nodes to make room.
    pub const fn makes_room(self) -> bool {
        self.suspend || self.evict
    }
}

/// What stopping and starting again costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Checkpointing {
    /// How often it saves by itself; never, if absent: then it saves only when asked to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Duration>,
    pub takes: Duration,
    pub restart: Duration,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobSpec {
    pub name: Name,
    pub queue: QueueId,
    #[serde(default)]
    pub priority: Priority,
    /// How much its user counts, as the queue says.
    #[serde(default)]
    pub user: Share,
    /// Its user, where known by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Name>,
    pub roles: Vec<Role>,
    #[serde(default)]
    pub work: Work,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Deadline>,
    /// The sizes it may have and how fast it is with each; in proportion to its members, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scaling: Option<Arc<Scaling>>,
    #[serde(default)]
    pub topology: Topology,
    /// How its workers stand in groups, where they do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub teams: Option<Teams>,
    pub capabilities: Capabilities,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpointing: Option<Checkpointing>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Arc<Profile>>,
    /// How often a start may fail before the job does.
    pub start_retries: u32,
    /// Submitted, but not to be started.
    #[serde(default)]
    pub suspended: bool,
    /// What evicting its members counts against.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub budgets: Vec<BudgetId>,
    /// Whether others may be stopped for its sake.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    pub preempts: bool,
    /// It completes a gang of which others hold nodes and wait for it: it goes first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repairs: bool,
}

fn yes() -> bool {
    true
}

impl JobSpec {
    pub const DEFAULT_START_RETRIES: u32 = 3;

    /// The smallest request: `members` equal workers, in the default queue.
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

    /// What it takes at its smallest.
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
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Job {
    pub spec: Arc<JobSpec>,
    pub submitted: Instant,
    pub life: Life,
    pub progress: Progress,
    pub standing: Standing,
    /// Starts that failed since it last ran, and why the last one did.
    pub failed_starts: u32,
    /// Times in a row that it could not be moved: the more, the longer it is left alone.
    #[serde(default, skip_serializing_if = "is_none")]
    pub failed_moves: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<Failure>,
    /// Not to be started, or not to be disturbed, before this.
    pub not_before: Instant,
    /// Since when it runs where it is, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs_since: Option<Instant>,
    /// It lost a node and waits to go on: ahead of newcomers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_to_be_repaired: bool,
    /// How often its loop was measured and found to be other than was known.
    #[serde(default, skip_serializing_if = "is_none")]
    pub times_measured: u32,
    /// Its agent found it slower with its traffic directive than in fair windows, by so much: no directive is given to it or
    /// to the jobs it shares links with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slower_than_fair: Option<Share>,
    /// How fast it was with the members it has had.
    #[serde(default, skip_serializing_if = "Measured::is_nothing")]
    pub measured: Measured,
    /// What it does not use of the cores it has.
    #[serde(default, skip_serializing_if = "Idle::is_nothing")]
    pub idle: Idle,
    /// The shapes of its roles and the class it waits in, as interned by the engine.
    #[serde(skip)]
    pub shapes: Vec<ShapeId>,
    #[serde(skip)]
    pub class: Option<ClassId>,
}

fn is_none(count: &u32) -> bool {
    *count == 0
}

impl Job {
    /// What is left to do, as time alone; unknown where the work is. While a job seems to hang it does not become less.
    pub fn remaining(&self, now: Instant) -> Option<Duration> {
        self.spec.work.alone.map(|alone| alone - self.progress.counted_on(now))
    }

    /// The same as far as can be told by now: by how far its iterations have come, if it reports them, else as declared.
    pub fn foreseen(&self, now: Instant) -> Option<Duration> {
        match self.progress.all_work(&self.spec) {
            Some(judged) => Some(judged - self.progress.counted_on(now)),
            None => self.remaining(now),
        }
    }

    /// How long it still takes at the size it runs with, or asks for; unknown where the work is.
    pub fn time_left(&self, now: Instant) -> Option<Duration> {
        self.remaining(now).map(|work| self.progress.pace().time(work))
    }

    /// Whether nodes are held in vain until it runs.
    pub fn goes_first(&self) -> bool {
        self.is_to_be_repaired || self.spec.repairs
    }

    /// When it has run for `least`, if it runs.
    pub fn ripe(&self, least: Duration) -> Option<Instant> {
        self.runs_since.map(|since| since + least)
    }
}

/// A job's place among its equals: by the pass that gave it, then newcomers last, then the place in that pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Standing {
    pub pass: i64,
    pub newcomer: bool,
    pub place: u32,
    /// The level of attained service in the last pass (2D-LAS only).
    pub level: u8,
}
