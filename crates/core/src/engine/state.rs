//! Everything an engine knows. What can be computed from it lies in `index` and is not kept.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::directive::Directive;
use super::settings::Settings;
use crate::model::cluster::{Cluster, Name};
use crate::model::groups::Groups;
use crate::model::id::{BudgetId, IdVec, JobId, QueueId, Window};
use crate::model::job::Job;
use crate::model::plan::{Action, Plan, StepId};
use crate::model::policy::Policy;
use crate::model::queue::{Queue, UsageHistories};
use crate::model::report::{Reason, State as JobState};
use crate::model::units::Instant;
use crate::observe::node_failures::NodeFailures;
use crate::observe::slow_nodes::SlowNodes;
use crate::traffic::decision_inputs::{DecisionInputs, Reconfiguration};

/// All that an engine knows, as one record: a copy of it is a state record of the journal, from which an engine goes on. It has
/// this many fields because it is the one place where anything is kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct State {
    pub now: Instant,
    pub settings: Settings,
    pub policy: Policy,
    pub cluster: Cluster,
    pub queues: IdVec<QueueId, Queue>,
    #[serde(default, skip_serializing_if = "Groups::is_empty")]
    pub groups: Groups,
    /// What queues have held, where that counts.
    #[serde(default, skip_serializing_if = "UsageHistories::is_empty")]
    pub pasts: UsageHistories,
    /// How many members may be evicted on account of each budget, those on their way out included.
    #[serde(default, skip_serializing_if = "IdVec::is_empty")]
    pub budgets: IdVec<BudgetId, u32>,
    /// Jobs that are not over.
    pub jobs: Window<JobId, Job>,
    pub plan: Plan,
    /// The step of which each job's outcome is awaited: never more than one.
    pub under_way: BTreeMap<JobId, UnderWay>,
    pub next_step: StepId,
    /// Who leaves, or is about to, and for whose sake.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub displaced: BTreeMap<JobId, JobId>,
    /// Traffic policies and CPU weights on their way to nodes, and those that nodes have applied.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub directives: BTreeMap<JobId, Directive>,
    /// What the traffic policies in the plan were decided on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decision_inputs: Vec<DecisionInputs>,
    /// What the job in the middle learned when it was last decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usual_learning: Option<f64>,
    /// Where members failed of late, and the nodes that are avoided for it.
    #[serde(default, skip_serializing_if = "NodeFailures::is_nothing")]
    pub node_failures: NodeFailures,
    /// Nodes on which members of jobs fall behind their peers.
    #[serde(default, skip_serializing_if = "SlowNodes::is_nothing")]
    pub slow_nodes: SlowNodes,
    /// What the last decision changed for running jobs because of links.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reconfigured: Vec<Reconfiguration>,
    /// The number of the next pass over the jobs, and when the last one was.
    pub pass: i64,
    pub last_pass: Option<Instant>,
    /// Something changed since the last decision.
    pub dirty: bool,
    /// When the last decision asked to decide again.
    pub wake: Option<Instant>,
    pub blocked_by: Option<JobId>,
    pub cycles: u64,
    /// Plans that broke a rule, and what the last one broke. Anything but zero is a bug.
    pub alarms: u64,
    pub last_alarm: Option<String>,
    /// The last few jobs that are over, newest last.
    pub over: VecDeque<(JobId, Ended)>,
}

/// A step that was handed to the world and not yet heard of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnderWay {
    pub step: StepId,
    pub action: Action,
    pub deadline: Instant,
}

/// What remains of a job that is over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ended {
    pub name: Name,
    pub submitted: Instant,
    pub ended: Instant,
    pub state: JobState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
}

impl State {
    pub(super) fn new(
        cluster: Cluster,
        queues: IdVec<QueueId, Queue>,
        policy: Policy,
        settings: Settings,
    ) -> Self {
        assert!(!queues.is_empty(), "there is always a default queue");
        Self {
            now: Instant::START,
            settings,
            policy,
            cluster,
            queues,
            groups: Groups::default(),
            pasts: UsageHistories::default(),
            budgets: IdVec::new(),
            jobs: Window::new(),
            plan: Plan::default(),
            under_way: BTreeMap::new(),
            next_step: StepId(1),
            displaced: BTreeMap::new(),
            directives: BTreeMap::new(),
            decision_inputs: Vec::new(),
            usual_learning: None,
            node_failures: NodeFailures::default(),
            slow_nodes: SlowNodes::default(),
            reconfigured: Vec::new(),
            pass: 1,
            last_pass: None,
            dirty: false,
            wake: None,
            blocked_by: None,
            cycles: 0,
            alarms: 0,
            last_alarm: None,
            over: VecDeque::new(),
        }
    }
}
