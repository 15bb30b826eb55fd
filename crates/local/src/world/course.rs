//! How a job stands in this world.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use metronome_core::model::id::{JobId, NodeId};
use metronome_core::model::plan::{Assignment, StepId};
use metronome_core::model::units::{Duration, Instant};
use serde::{Deserialize, Serialize};

use super::outcome::Fate;
use crate::names::MemberNumber;
use crate::process::Member;

#[derive(Debug, Default)]
pub(super) struct Course {
    /// Once it is submitted.
    pub(super) id: Option<JobId>,
    pub(super) doing: Doing,
    /// The newest step seen for it: older ones are refused.
    pub(super) newest: StepId,
    pub(super) tally: Tally,
    /// What the agent has last learned of what it sends.
    pub(super) learned: Option<serde_json::Value>,
    /// The first profile that decisions were made with.
    pub(super) first_used: Option<serde_json::Value>,
    /// Traffic directives, each with the time since the world began.
    pub(super) directives: Vec<(Instant, Option<serde_json::Value>)>,
    /// When it had last saved something as it last failed.
    pub(super) saved: Option<SystemTime>,
    /// The state file says that the job is over.
    pub(super) end_recorded: bool,
}

/// What has become of it so far: all of it is written down.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Tally {
    pub(super) submitted: Option<Instant>,
    pub(super) started: Option<Instant>,
    pub(super) ended: Option<Instant>,
    /// Why it last failed.
    pub(super) why: Option<String>,
    /// The log of the member that failed.
    #[serde(default)]
    pub(super) log: Option<PathBuf>,
    /// How often its members were started, all together.
    pub(super) starts: u32,
    /// How often in a row they failed.
    pub(super) failures: u32,
    /// The start, counted by `starts`, whose failure was counted last: a failure that is found again after a crash of the
    /// scheduler counts once.
    #[serde(default)]
    pub(super) failed_start: Option<u32>,
    pub(super) restarts: u32,
    pub(super) moves: u32,
    pub(super) resizes: u32,
    /// As it last reported.
    pub(super) iterations: u64,
}

#[derive(Debug, Default)]
pub(super) enum Doing {
    /// It has nothing.
    #[default]
    Out,
    Up(Up),
    /// All members are to be gone; then comes what comes.
    Leaving {
        seats: Vec<Seat>,
        then: Then,
        /// From then on they are not asked any more.
        killed_at: Instant,
        retry: Retry,
    },
    /// It has failed, and its members will be started again where they were.
    Pausing {
        held: Arc<Assignment>,
        until: Instant,
    },
    Over(Fate),
}

#[derive(Debug)]
pub(super) struct Up {
    pub(super) held: Arc<Assignment>,
    pub(super) seats: Vec<Seat>,
    /// The step that is done once all run.
    pub(super) step: Option<StepId>,
}

/// When to try again to remove a member's pieces, after an error.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Retry {
    pub(super) tries: u32,
    pub(super) at: Instant,
}

impl Retry {
    /// After one more error. The pause doubles each time.
    pub(super) fn after_error(self, now: Instant) -> Self {
        const FIRST_PAUSE: Duration = Duration::from_millis(100);
        Self { tries: self.tries + 1, at: now + FIRST_PAUSE.times(1 << self.tries.min(8)) }
    }
}

/// What comes when all members have left.
#[derive(Clone, Debug)]
pub(super) enum Then {
    /// Nothing: a step is done.
    Done(Option<StepId>),
    /// They are started elsewhere, or in another number, for a step.
    Start { to: Arc<Assignment>, step: StepId },
    /// They are started again where they were.
    Again { held: Arc<Assignment>, why: String },
    /// The job is over.
    End(Fate),
}

/// A member and what it has on this machine.
#[derive(Debug)]
pub(super) struct Seat {
    pub(super) number: MemberNumber,
    pub(super) node: NodeId,
    pub(super) role: u8,
    /// Among those of its role.
    pub(super) index: u32,
    pub(super) member: Member,
}

impl Course {
    pub(super) fn is_over(&self) -> bool {
        matches!(self.doing, Doing::Over(_))
    }

    pub(super) fn end(&mut self, fate: Fate, at: Instant) {
        self.doing = Doing::Over(fate);
        self.tally.ended.get_or_insert(at);
    }

    /// All members are to be gone, asked to leave until `killed_at`.
    pub(super) fn leaves(&mut self, seats: Vec<Seat>, then: Then, killed_at: Instant) {
        self.doing = Doing::Leaving { seats, then, killed_at, retry: Retry::default() };
    }

    /// Takes the members out of it; it has none afterwards.
    pub(super) fn take_seats(&mut self) -> Vec<Seat> {
        match std::mem::take(&mut self.doing) {
            Doing::Up(up) => up.seats,
            Doing::Leaving { seats, .. } => seats,
            Doing::Out | Doing::Pausing { .. } | Doing::Over(_) => Vec::new(),
        }
    }

    pub(super) fn seats_mut(&mut self) -> &mut [Seat] {
        match &mut self.doing {
            Doing::Up(up) => &mut up.seats,
            Doing::Leaving { seats, .. } => seats,
            Doing::Out | Doing::Pausing { .. } | Doing::Over(_) => &mut [],
        }
    }

    pub(super) fn up(&self) -> Option<&Up> {
        match &self.doing {
            Doing::Up(up) => Some(up),
            _ => None,
        }
    }

    /// The members that there are of it.
    pub(super) fn seats(&self) -> &[Seat] {
        match &self.doing {
            Doing::Up(up) => &up.seats,
            Doing::Leaving { seats, .. } => seats,
            Doing::Out | Doing::Pausing { .. } | Doing::Over(_) => &[],
        }
    }
}
