//! Why: typed reasons for every verdict, and `explain`. Text is made at the edge; `core` does not log, it reports.

use serde::{Deserialize, Serialize};

use crate::deadlines::{Timetable, Verdict};
use crate::model::cluster::{Level, Name};
use crate::model::id::{ClassId, JobId, NodeId, QueueId};
use crate::model::job::{Priority, Standing};
use crate::model::plan::Assignment;
use crate::model::units::{Duration, Instant, Resources, Share};
use crate::observe::progress::Category;
use crate::observe::scaling::Speed;
use crate::traffic::decision_inputs::{DecisionInputs, Reconfiguration};

/// The one vocabulary of verdicts. Each is something a user can act on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all_fields = "camelCase")]
pub enum Reason {
    /// Submitted, but its owner has not released it.
    Gated,
    /// Larger than its queue may ever hold.
    ExceedsQuota { queue: QueueId, need: Resources, quota: Resources },
    /// No set of nodes could ever hold it, even if all were free and well.
    NoMatchingNode { each: Resources, members: u32, fit: u32 },
    /// Its queue, or its user there, holds as much as it may.
    WaitingForQuota {
        queue: QueueId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        user: Option<Name>,
        need: Resources,
        left: Resources,
    },
    /// Room for `fit` of the `members` it needs.
    InsufficientResources { each: Resources, members: u32, fit: u32 },
    /// Enough room, but in no single domain of the level it requires.
    TopologyUnsatisfied { level: Level, members: u32, best: u32 },
    /// Room for its members, but only for `fit` of them beside those they must be with.
    AffinityUnsatisfied { members: u32, fit: u32 },
    /// Room for its members, but only for `fit` of them away from those they must not be with.
    AntiAffinityUnsatisfied { members: u32, fit: u32 },
    /// Room for its members, but only for `fit` of them without crowding a domain more than they allow.
    SpreadUnsatisfied { members: u32, fit: u32 },
    /// Its place is chosen; others have yet to leave it.
    WaitingForVictims,
    /// There is room, but over links that others use: starting there is predicted to cost itself and others more than to
    /// wait for a better place, and it starts anywhere once it has waited so long in all; or too little is left of the
    /// links for what it asks of them, and it waits until there is enough.
    BandwidthContended {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        patience: Option<Duration>,
    },
    /// It waits for the time from which its members are booked, and will be done so long before its deadline.
    BookedFrom { from: Instant, members: u32, margin: Duration },
    /// It cannot be in time beside those who were taken on; the earliest that it could be done.
    DeadlineInfeasible {
        deadline: Instant,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        earliest: Option<Instant>,
    },
    /// There would be room, but it is kept for somebody ahead who is expected to start then.
    ReservedUntil { ahead: JobId, until: Instant },
    /// The line is served in order and somebody ahead is waiting.
    BehindHigherPriority { ahead: JobId },
    /// The world could not start it; it is tried again.
    StartFailed { times: u32, failure: Failure },
    /// A node under it is gone.
    NodeLost { node: NodeId },
    /// It runs and reported, and then nothing was heard of it for longer than ten of its iterations take: it seems to hang.
    /// Nothing is done about it but that nobody counts on its progress until it reports again.
    Stalled { since: Instant, silent: Duration },
    /// It started, and its training code failed.
    TrainingFailed,
    /// There are as many jobs as can be kept track of.
    TooManyJobs { most: usize },
    /// The last plan broke a rule and was thrown away. A bug: please report it.
    SchedulerError,
}

impl Reason {
    /// Whether it may be over though nothing has happened but that time went on.
    pub(crate) const fn passes_with_time(&self) -> bool {
        matches!(self, Self::ReservedUntil { .. } | Self::BandwidthContended { .. })
    }

    /// The word for it in data: the same as in the journal.
    pub const fn name(&self) -> &'static str {
        match self {
            Reason::Gated => "Gated",
            Reason::ExceedsQuota { .. } => "ExceedsQuota",
            Reason::NoMatchingNode { .. } => "NoMatchingNode",
            Reason::WaitingForQuota { .. } => "WaitingForQuota",
            Reason::InsufficientResources { .. } => "InsufficientResources",
            Reason::TopologyUnsatisfied { .. } => "TopologyUnsatisfied",
            Reason::AffinityUnsatisfied { .. } => "AffinityUnsatisfied",
            Reason::AntiAffinityUnsatisfied { .. } => "AntiAffinityUnsatisfied",
            Reason::SpreadUnsatisfied { .. } => "SpreadUnsatisfied",
            Reason::WaitingForVictims => "WaitingForVictims",
            Reason::BandwidthContended { .. } => "BandwidthContended",
            Reason::BookedFrom { .. } => "BookedFrom",
            Reason::DeadlineInfeasible { .. } => "DeadlineInfeasible",
            Reason::ReservedUntil { .. } => "ReservedUntil",
            Reason::BehindHigherPriority { .. } => "BehindHigherPriority",
            Reason::StartFailed { .. } => "StartFailed",
            Reason::NodeLost { .. } => "NodeLost",
            Reason::Stalled { .. } => "Stalled",
            Reason::TrainingFailed => "TrainingFailed",
            Reason::TooManyJobs { .. } => "TooManyJobs",
            Reason::SchedulerError => "SchedulerError",
        }
    }
}

/// Why a world could not carry out a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Failure {
    /// A newer step for the same job came first.
    Stale,
    NodeGone,
    NoRoom,
    /// The job would not let go.
    WouldNotStop,
    /// Nothing was heard before the step's deadline.
    TimedOut,
    /// The checker found that the step breaks a rule, so no world was told to carry it out.
    Rejected,
    Other,
}

/// What one decision says beside its plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[must_use]
pub struct Report {
    /// Classes that were looked at and stay waiting, with the reason all their jobs share.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<(ClassId, Reason)>,
    /// Where the line is served in order: who holds it up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_by: Option<JobId>,
    /// The bound on work in one cycle was reached; the next cycle goes on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut_short: bool,
    /// Who makes room, and for whom.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub displaced: Vec<(JobId, JobId)>,
    /// What changes for running jobs because of links, cores or nodes, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reconfigured: Vec<Reconfiguration>,
    /// Places among equals that this pass gives.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub standings: Vec<(JobId, Standing)>,
    /// What the traffic policies in the plan were decided on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decision_inputs: Vec<DecisionInputs>,
    /// Jobs that will never run, with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<(JobId, Reason)>,
    /// What the next timetable is made from; its entries are in the amendment.
    #[serde(default, skip_serializing_if = "Timetable::is_empty")]
    pub timetable_basis: Timetable,
}

/// Everything a user may ask about one job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    pub job: Name,
    pub state: State,
    pub submitted: Instant,
    pub waited: Duration,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    pub need: Resources,
    /// Free now, over all nodes that are well.
    pub free: Resources,
    /// Counters of which there is too little: by name, what it needs and what is free where it may run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lacks: Vec<(Name, u64, u64)>,
    /// Its place in the line, from 1; none once it is planned or over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<usize>,
    /// What its owner gave it; with the wait, what most orders go by.
    #[serde(default)]
    pub priority: Priority,
    /// The first few ahead of it, first first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ahead: Vec<Ahead>,
    /// Where most of its members would find room now, if it waits for some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best: Option<Best>,
    /// Nodes that it might use and that are avoided, if it waits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub avoided: Vec<NotUsed>,
    /// The first few who have yet to leave its place, where that is chosen: stopped for its sake, or moved elsewhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub awaits: Vec<Name>,
    /// Where it runs, or shall run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignment: Option<Assignment>,
    /// What is not well with nodes under it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unwell: Vec<Unwell>,
    /// How it stands to its deadline, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Due>,
    /// What it has reported of its training, if it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learned: Option<Learned>,
}

/// A node that takes nothing new for so long, because these jobs failed there and nowhere else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NotUsed {
    pub node: NodeId,
    pub failed: Vec<Name>,
    pub lasts: Duration,
}

/// A node under a job, and what is not well with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Unwell {
    pub node: NodeId,
    pub is: Condition,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Condition {
    /// Members there go at such a part of the speed of their peers elsewhere.
    Slow { speed: Speed },
    /// It takes nothing new and is about to go: so soon, if that was said.
    Draining { within: Option<Duration> },
}

/// What a job has reported of its training, and where that leads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Learned {
    pub category: Category,
    /// What is left to do, as time alone, as far as its reports tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<Duration>,
    /// The part of its metric that another hour alone would take off. Where that is little its owner may want to stop it;
    /// nobody else does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gains_in_an_hour: Option<Share>,
    /// Whether it has not been nearly done for far longer than that takes.
    pub is_believed: bool,
    /// Reports that made no sense.
    pub odd: u32,
}

/// Whether a job will be in time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Due {
    pub deadline: Instant,
    /// How sure that is; nothing where nobody looks at deadlines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// When it will be done by its booking; without one, when it would be at its fastest from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends: Option<Instant>,
    /// The least members with which it would be in time from now on, if any are enough: what would save it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enough: Option<u32>,
    /// What nine in ten predictions were not off by.
    pub error: Share,
    /// The earliest deadline that it could be booked for, where nothing is booked for the one it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earliest: Option<Instant>,
    /// Some of those without any one of whom it could be booked for that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_the_way: Vec<Name>,
}

/// Somebody who stands further ahead in the line, with what puts it there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ahead {
    pub job: Name,
    pub priority: Priority,
    pub waited: Duration,
    /// What it has left to do, where the order goes by that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<Duration>,
}

/// The domain that comes nearest to holding a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Best {
    pub level: Level,
    pub domain: Name,
    /// How many of its members have room there, each role by itself.
    pub fit: u32,
    pub members: u32,
}

/// `Life` without its data, for people and filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum State {
    Queued,
    Starting,
    Running,
    Degraded,
    Resizing,
    Moving,
    Leaving,
    Preempted,
    Suspended,
    Refused,
    Failed,
    Done,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_has_the_same_name_in_data_and_in_the_journal() {
        let reasons = [
            Reason::Gated,
            Reason::AffinityUnsatisfied { members: 2, fit: 1 },
            Reason::AntiAffinityUnsatisfied { members: 2, fit: 1 },
            Reason::SpreadUnsatisfied { members: 2, fit: 1 },
            Reason::WaitingForVictims,
            Reason::BehindHigherPriority { ahead: crate::model::id::JobId(3) },
            Reason::Stalled { since: Instant::START, silent: Duration::MINUTE },
            Reason::TrainingFailed,
            Reason::TooManyJobs { most: 1 },
            Reason::SchedulerError,
        ];
        for reason in reasons {
            let json = serde_json::to_value(&reason).unwrap();
            assert_eq!(json["reason"], reason.name());
        }
    }
}
