//! What a world tells the engine.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::model::cluster::{Name, NodeSpec};
use crate::model::groups::Domain;
use crate::model::id::{BudgetId, DeviceId, GroupId, JobId, LinkId, NodeId, NodeSetId, PartitionId, QueueId};
use crate::model::job::JobSpec;
use crate::model::plan::{Generation, Part, StepId};
use crate::model::policy::Policy;
use crate::model::profile::Profile;
use crate::model::queue::Queue;
use crate::model::report::Failure;
use crate::model::units::{Bandwidth, Duration, Instant, Share};
use crate::observe::progress::Sample;

/// Something that happened in a world. Where an event puts something under an id, the next id adds it, an older one
/// replaces it, and one beyond the next is ignored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Event {
    JobSubmitted(Arc<JobSpec>),
    /// Runs already, whether or not it would be allowed to now. Where `parts` are not a whole gang on nodes that there
    /// are, nothing happens but that its id is used up.
    JobFound {
        spec: Arc<JobSpec>,
        parts: Vec<Part>,
        since: Instant,
    },
    /// Asks for something else now. A waiting job keeps its id and the time of its submission; of one that has nodes
    /// only name, priority and budgets change.
    JobChanged {
        job: JobId,
        spec: Arc<JobSpec>,
    },
    /// Some members of a job that has nodes have ended and freed their room; when none are left, the job is done.
    MembersLeft {
        job: JobId,
        role: u8,
        node: NodeId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        device: Option<DeviceId>,
        members: u32,
    },
    JobCancelled(JobId),
    JobSuspended(JobId),
    JobResumed(JobId),
    /// It ended by itself.
    JobEnded {
        job: JobId,
        how: Ending,
    },
    StepDone {
        job: JobId,
        step: StepId,
    },
    StepFailed {
        job: JobId,
        step: StepId,
        failure: Failure,
    },
    /// A node has applied the directive that a plan of this generation asked for.
    DirectiveApplied {
        job: JobId,
        node: NodeId,
        generation: Generation,
    },
    /// A node could not apply it.
    DirectiveFailed {
        job: JobId,
        node: NodeId,
        generation: Generation,
        reason: Name,
    },
    /// How much work is done and safe, when the world knows better than the clock.
    Worked {
        job: JobId,
        executed: Duration,
    },
    /// What training code reported.
    Progress {
        job: JobId,
        sample: Sample,
    },
    /// A member failed on a node. Whoever is told apart by `of` is one job, however often it is tried again.
    MemberFailed {
        node: NodeId,
        of: Name,
    },
    /// How long members of a role on a node took of late for their own part of an iteration, without waiting for others.
    MemberTook {
        job: JobId,
        role: u8,
        node: NodeId,
        iteration: Duration,
    },
    NodeAdded(NodeSpec),
    /// Has something else now: all but its name may differ. What runs there stays, even if there is too much of it.
    NodeChanged {
        node: NodeId,
        spec: NodeSpec,
    },
    /// Unreachable: its members are lost.
    NodeLost(NodeId),
    /// Takes members again: it was lost, cordoned or drained. Only a node that was lost (`NodeState::Gone`) has been away.
    NodeBack(NodeId),
    NodeCordoned(NodeId),
    /// Takes nothing new, and will go: then, or once nothing runs there.
    NodeDrained {
        node: NodeId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Instant>,
    },
    /// A link carries more or less than before, as measured or said by whoever runs it; nothing at all, if the rate is
    /// zero. Paths stay as they are: jobs whose bytes cross a link that is down wait for it.
    LinkChanged {
        link: LinkId,
        rate: Bandwidth,
    },
    /// What a job does in each iteration as the world has seen it, in place of what was declared or seen before.
    LoopMeasured {
        job: JobId,
        profile: Arc<Profile>,
    },
    /// How much longer than in fair windows a job's iterations take in the windows of its rotation, at least: the lower end
    /// of the interval that its agent measured.
    SlowerThanFair {
        job: JobId,
        by: Share,
    },
    PolicyChanged(Box<Policy>),
    /// There is something more that nodes have a number of: `each`, where a node says nothing else.
    CounterAdded {
        name: Name,
        each: u64,
    },
    NodeSet {
        set: NodeSetId,
        nodes: Vec<NodeId>,
    },
    NodeSetChanged {
        set: NodeSetId,
        node: NodeId,
        allowed: bool,
    },
    /// Nodes that are not named have no domain.
    Partition {
        partition: PartitionId,
        domains: Vec<(NodeId, Domain)>,
    },
    PartitionChanged {
        partition: PartitionId,
        node: NodeId,
        domain: Option<Domain>,
    },
    Group {
        group: GroupId,
        partition: PartitionId,
        /// How many on each node belong to it that are no jobs of this engine.
        others: Vec<(NodeId, u32)>,
        /// Roles of live jobs that belong to it from now on.
        members: Vec<(JobId, u8)>,
    },
    OthersChanged {
        group: GroupId,
        node: NodeId,
        count: u32,
    },
    /// What it is called may differ, too. One that would lie in itself, or in one that there is not, changes nothing.
    Queue {
        queue: QueueId,
        described: Queue,
    },
    /// So many members may be evicted on account of it, those on their way out included.
    Budget {
        budget: BudgetId,
        allowed: u32,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Ending {
    Completed,
    Failed,
    /// Its owner took it away.
    Withdrawn,
}
