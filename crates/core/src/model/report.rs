//! Typed reasons for every verdict, and the data of `explain`. The output layer turns them into text; `core` does not
//! log.

use serde::{Deserialize, Serialize};

use crate::deadlines::{DeadlineVerdict, Timetable};
use crate::model::cluster::{Level, Name};
use crate::model::id::{ClassId, JobId, NodeId, QueueId};
use crate::model::job::{ClassPosition, Priority};
use crate::model::plan::Assignment;
use crate::model::units::{Duration, Instant, Resources, Share};
use crate::observe::progress::Category;
use crate::observe::scaling::Speed;
use crate::traffic::decision_inputs::{DecisionInputs, Reconfiguration};

/// Reasons why a job waits, failed or ended. Each is something that a user can act on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all_fields = "camelCase")]
pub enum Reason {
    /// The owner has not released the job.
    Gated,
    /// The job needs more than its queue may ever hold.
    ExceedsQuota { queue: QueueId, need: Resources, quota: Resources },
    /// No set of nodes could hold the job even if all nodes were free and ready.
    NoMatchingNode { each: Resources, members: u32, fit: u32 },
    /// The job's queue, or its user in the queue, holds as much as it may.
    WaitingForQuota {
        queue: QueueId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        user: Option<Name>,
        need: Resources,
        left: Resources,
    },
    /// Free capacity for `fit` of the `members` members.
    InsufficientResources { each: Resources, members: u32, fit: u32 },
    /// Enough free capacity, but in no single domain of the required level.
    TopologyUnsatisfied { level: Level, members: u32, best: u32 },
    /// Free capacity, but only for `fit` members in domains with the groups that they must be with.
    AffinityUnsatisfied { members: u32, fit: u32 },
    /// Free capacity, but only for `fit` members outside the domains of groups that they must avoid.
    AntiAffinityUnsatisfied { members: u32, fit: u32 },
    /// Free capacity, but only for `fit` members within the allowed skew between domains.
    SpreadUnsatisfied { members: u32, fit: u32 },
    /// Nodes are assigned; the job waits for other jobs to release them.
    WaitingForVictims,
    /// Free capacity, but behind contended links: a start there is predicted to cost this and other jobs more than
    /// waiting for better nodes, and the job starts on any nodes after `patience` in total. Or the links have less
    /// bandwidth left than the job reserves.
    BandwidthContended {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        patience: Option<Duration>,
    },
    /// The job waits for its booked start; it is predicted to complete `margin` before its deadline.
    BookedFrom { from: Instant, members: u32, margin: Duration },
    /// The deadline cannot be met beside the jobs that were accepted before; `earliest` is the earliest feasible one.
    DeadlineInfeasible {
        deadline: Instant,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        earliest: Option<Instant>,
    },
    /// Free capacity, but reserved for a job of higher priority that is expected to start at `until`.
    ReservedUntil { ahead: JobId, until: Instant },
    /// The queue is served in order, and a job of higher priority waits.
    BehindHigherPriority { ahead: JobId },
    /// The world could not start the job; the start is retried.
    StartFailed { times: u32, failure: Failure },
    /// One of its nodes failed.
    NodeLost { node: NodeId },
    /// The running job has shown no sign of life for longer than ten of its iterations take. The scheduler does not
    /// stop it, but predictions do not rely on its progress until it reports again.
    Stalled { since: Instant, silent: Duration },
    /// The job started, and its training code failed.
    TrainingFailed,
    /// The engine holds as many jobs as it can.
    TooManyJobs { most: usize },
    /// The last plan violated a rule and was rejected. A bug: please report it.
    SchedulerError,
}

impl Reason {
    /// Whether the reason may cease to apply without any event, as time advances.
    pub(crate) const fn may_expire(&self) -> bool {
        matches!(self, Self::ReservedUntil { .. } | Self::BandwidthContended { .. })
    }

    /// Identifier in data, the same as in the journal.
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

/// Why the world could not carry out a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Failure {
    /// A newer step for the same job arrived first.
    Stale,
    NodeGone,
    NoRoom,
    /// The job did not stop.
    WouldNotStop,
    /// The world did not answer before the step's deadline.
    TimedOut,
    /// The checker found that the step violates a rule; the world never received it.
    Rejected,
    Other,
}

/// What a decision reports beside its plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[must_use]
pub struct Report {
    /// Classes that were considered and stay waiting, with the common reason of their jobs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<(ClassId, Reason)>,
    /// The job that blocks the queue, where the queue is served in order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_by: Option<JobId>,
    /// Whether the work budget of one cycle was exhausted; the next cycle continues.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut_short: bool,
    /// Preempted or migrated jobs, each with the job for which it makes room.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub displaced: Vec<(JobId, JobId)>,
    /// Changes of running jobs because of links, cores or nodes, with reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reconfigured: Vec<Reconfiguration>,
    /// Places among equals that this pass gives.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub standings: Vec<(JobId, ClassPosition)>,
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

/// Everything that a user may ask about one job.
///
/// One struct of 18 fields: it is one document of the command line and the API, whose fields are independent answers.
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
    /// Free resources of all ready nodes.
    pub free: Resources,
    /// Insufficient counters: name, demand, and free amount on eligible nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lacks: Vec<(Name, u64, u64)>,
    /// Position in the queue, from 1; `None` once planned or ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<usize>,
    /// Priority from its owner; most orders combine it with the waiting time.
    #[serde(default)]
    pub priority: Priority,
    /// The first few jobs of higher priority, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ahead: Vec<JobAhead>,
    /// Domain with free capacity for most of its members, while the job waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best: Option<BestDomain>,
    /// Avoided nodes that the job could use, while it waits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub avoided: Vec<AvoidedNode>,
    /// The first few jobs that still hold its assigned nodes: preempted or migrated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub awaits: Vec<Name>,
    /// Present or planned nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignment: Option<Assignment>,
    /// Problems of its nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unwell: Vec<NodeProblem>,
    /// Nodes under it that have not applied its traffic policy or its CPU weight.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unconfirmed: Vec<Unconfirmed>,
    /// Prediction for its deadline, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<DeadlinePrediction>,
    /// Learning progress, if it reports a metric.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learned: Option<LearningReport>,
}

/// A node that accepts no members for `lasts`, because these jobs failed on it and on no other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AvoidedNode {
    pub node: NodeId,
    pub failed: Vec<Name>,
    pub lasts: Duration,
}

/// A node under a job that was asked for a traffic policy or a CPU weight and has not confirmed it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Unconfirmed {
    pub node: NodeId,
    pub since: Instant,
    pub lasts: Duration,
    /// What the node says of it, if it says anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Name>,
}

/// A node of a job, and its problem.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeProblem {
    pub node: NodeId,
    pub is: NodeCondition,
}

/// Problem of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum NodeCondition {
    /// Members on the node reach this fraction of their peers' speed.
    Slow { speed: Speed },
    /// The node accepts no members and leaves, in `within` if known.
    Draining { within: Option<Duration> },
}

/// Learning progress of a job and its prediction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LearningReport {
    pub category: Category,
    /// Remaining work in time without contention, by its reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<Duration>,
    /// Predicted improvement in one more hour, in parts of the metric. Where it is small, the owner may want to stop
    /// the job; the scheduler does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gains_in_an_hour: Option<Share>,
    /// Whether the prediction is plausible: false once the job has executed far more than it predicted.
    pub is_believed: bool,
    /// Reports without information.
    pub odd: u32,
}

/// Prediction for a job's deadline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeadlinePrediction {
    pub deadline: Instant,
    /// Certainty of meeting the deadline; `None` if the policy ignores deadlines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<DeadlineVerdict>,
    /// Completion time by its booking; without a booking, at its fastest from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends: Option<Instant>,
    /// Smallest number of members that meets the deadline from now on, if any does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enough: Option<u32>,
    /// 90th percentile of recent prediction errors.
    pub error: Share,
    /// Earliest deadline for which the job could be booked, if its own cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earliest: Option<Instant>,
    /// Some of the jobs without any one of which the deadline could be booked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_the_way: Vec<Name>,
}

/// A job of higher priority, with the values that determine the order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobAhead {
    pub job: Name,
    pub priority: Priority,
    pub waited: Duration,
    /// Remaining work, if the order depends on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<Duration>,
}

/// Domain that comes nearest to holding a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BestDomain {
    pub level: Level,
    pub domain: Name,
    /// Members that fit there, each role by itself.
    pub fit: u32,
    pub members: u32,
}

/// `Life` without its data, for output and filters.
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
