//! What was asked: roles, gangs, priority, deadline; and the life of a job.

mod shape;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::cluster::{Level, Name};
use crate::id::{BudgetId, ClassId, NodeId, QueueId, ShapeId};
use crate::plan::Assignment;
use crate::profile::Profile;
use crate::progress::Progress;
use crate::report::{Failure, Reason, State};
use crate::units::{Duration, Gpus, Instant, Iterations, Resources, Share};

pub use shape::{Eligibility, Rule, Shape};

/// What a member does. The order is the order in which a job's members are started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RoleKind {
    Ps,
    Chief,
    Worker,
}

/// How many members a role has: all of them or nothing runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", try_from = "GangText", into = "GangText")]
pub enum Gang {
    Rigid(Members),
    Elastic {
        min: Members,
        max: Members,
    },
    /// All its members have ended, and it asks for none.
    Ended,
}

/// A number of members, at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Members(std::num::NonZeroU32);

impl Members {
    /// More members than any cluster has nodes; above it a count is a mistake.
    pub const MOST: u32 = 1_000_000;

    pub const fn get(self) -> u32 {
        self.0.get()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GangError {
    #[error("a gang has at least one member")]
    Empty,
    #[error("a gang has at most {most} members, not {0}", most = Members::MOST)]
    TooLarge(u64),
    #[error("the smallest size, {min}, is above the largest, {max}")]
    Inverted { min: u64, max: u64 },
}

impl Gang {
    pub fn rigid(members: u64) -> Result<Self, GangError> {
        Ok(Self::Rigid(Self::members(members)?))
    }

    pub fn elastic(min: u64, max: u64) -> Result<Self, GangError> {
        if min > max {
            return Err(GangError::Inverted { min, max });
        }
        Ok(Self::Elastic { min: Self::members(min)?, max: Self::members(max)? })
    }

    fn members(count: u64) -> Result<Members, GangError> {
        let narrow = u32::try_from(count).ok().filter(|count| *count <= Members::MOST);
        let narrow = narrow.ok_or(GangError::TooLarge(count))?;
        std::num::NonZeroU32::new(narrow).map(Members).ok_or(GangError::Empty)
    }

    pub const fn min(self) -> u32 {
        match self {
            Self::Rigid(members) | Self::Elastic { min: members, .. } => members.get(),
            Self::Ended => 0,
        }
    }

    pub const fn max(self) -> u32 {
        match self {
            Self::Rigid(members) | Self::Elastic { max: members, .. } => members.get(),
            Self::Ended => 0,
        }
    }

    /// The gang once `ended` of its members have, and `left` are still there.
    pub(crate) fn without(self, ended: u32, left: u32) -> Self {
        let (min, max) = (self.min().min(left), self.max().saturating_sub(ended).max(left));
        Self::sized(u64::from(min), u64::from(max)).unwrap_or(Self::Ended)
    }

    fn sized(min: u64, max: u64) -> Result<Self, GangError> {
        if min == max { Self::rigid(min) } else { Self::elastic(min, max) }
    }
}

#[derive(Serialize, Deserialize)]
struct GangText {
    min: u64,
    max: u64,
}

impl TryFrom<GangText> for Gang {
    type Error = GangError;
    fn try_from(text: GangText) -> Result<Self, GangError> {
        if text.max == 0 { Ok(Self::Ended) } else { Self::sized(text.min, text.max) }
    }
}

impl From<Gang> for GangText {
    fn from(gang: Gang) -> Self {
        Self { min: u64::from(gang.min()), max: u64::from(gang.max()) }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Role {
    pub kind: RoleKind,
    pub gang: Gang,
    pub shape: Shape,
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
    pub roles: Vec<Role>,
    #[serde(default)]
    pub work: Work,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Instant>,
    #[serde(default)]
    pub topology: Topology,
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
            roles: vec![Role { kind: RoleKind::Worker, gang, shape: Shape::of(each) }],
            work: Work::default(),
            deadline: None,
            topology: Topology::Anywhere,
            capabilities: Capabilities::START_ONLY,
            checkpointing: None,
            profile: None,
            start_retries: Self::DEFAULT_START_RETRIES,
            suspended: false,
            budgets: Vec::new(),
            preempts: true,
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

/// The whole life of a job. Only the states that hold nodes carry an assignment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Life {
    Queued,
    Starting(Arc<Assignment>),
    Running(Arc<Assignment>),
    /// A node under it is gone; what is left of it is being stopped.
    Degraded {
        held: Arc<Assignment>,
        lost: NodeId,
    },
    Resizing {
        from: Arc<Assignment>,
        to: Arc<Assignment>,
    },
    Moving {
        from: Arc<Assignment>,
        to: Arc<Assignment>,
    },
    /// On its way out: it holds its nodes until the world says that they are free.
    Leaving {
        held: Held,
        exit: Exit,
    },
    /// Stopped with its work kept; waits to go on.
    Preempted,
    Suspended,
    Refused(Reason),
    Failed(Reason),
    Done,
}

/// What a leaving job may still hold: its nodes, or those of both ends of a move that was never heard of again.
pub type Held = Vec<Arc<Assignment>>;

/// Why a job leaves, and so what becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Exit {
    /// It makes room and waits to go on.
    Preempt,
    /// Its owner wants it to pause.
    Suspend,
    /// Its owner wants it to end.
    Cancel,
    /// It is not known to have started or moved; it is cleared away and tried again.
    Abort(Failure),
}

impl Life {
    /// The assignments whose room it physically holds.
    pub fn holds(&self) -> Held {
        match self {
            Self::Starting(held) | Self::Running(held) | Self::Degraded { held, .. } => vec![held.clone()],
            Self::Resizing { from, to } | Self::Moving { from, to } => vec![from.clone(), to.clone()],
            Self::Leaving { held, .. } => held.clone(),
            Self::Queued
            | Self::Preempted
            | Self::Suspended
            | Self::Refused(_)
            | Self::Failed(_)
            | Self::Done => Vec::new(),
        }
    }

    /// The same life, with another assignment in place of each it has.
    pub(crate) fn with_each(&self, change: impl Fn(&Arc<Assignment>) -> Arc<Assignment>) -> Self {
        match self {
            Self::Starting(held) => Self::Starting(change(held)),
            Self::Running(held) => Self::Running(change(held)),
            Self::Degraded { held, lost } => Self::Degraded { held: change(held), lost: *lost },
            Self::Resizing { from, to } => Self::Resizing { from: change(from), to: change(to) },
            Self::Moving { from, to } => Self::Moving { from: change(from), to: change(to) },
            Self::Leaving { held, exit } => {
                Self::Leaving { held: held.iter().map(change).collect(), exit: *exit }
            }
            without => without.clone(),
        }
    }

    pub const fn is_waiting(&self) -> bool {
        matches!(self, Self::Queued | Self::Preempted)
    }

    pub fn state(&self) -> State {
        match self {
            Self::Queued => State::Queued,
            Self::Starting(_) => State::Starting,
            Self::Running(_) => State::Running,
            Self::Degraded { .. } => State::Degraded,
            Self::Resizing { .. } => State::Resizing,
            Self::Moving { .. } => State::Moving,
            Self::Leaving { .. } => State::Leaving,
            Self::Preempted => State::Preempted,
            Self::Suspended => State::Suspended,
            Self::Refused(_) => State::Refused,
            Self::Failed(_) => State::Failed,
            Self::Done => State::Done,
        }
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<Failure>,
    /// Not to be started, or not to be disturbed, before this.
    pub not_before: Instant,
    /// Since when it runs where it is, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs_since: Option<Instant>,
    /// The shapes of its roles and the class it waits in, as interned by the engine.
    #[serde(skip)]
    pub shapes: Vec<ShapeId>,
    #[serde(skip)]
    pub class: Option<ClassId>,
}

impl Job {
    /// What is left to do, as time alone; unknown where the work is.
    pub fn remaining(&self, now: Instant) -> Option<Duration> {
        self.spec.work.alone.map(|alone| alone - self.progress.executed(now))
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
