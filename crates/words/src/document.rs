//! An explanation for programs: `explain --output json`, described by `docs/reference/explain.schema.json`.

use serde::Serialize;

use metronome_core::deadlines::DeadlineVerdict;
use metronome_core::model::report::{
    AvoidedNode, BestDomain, DeadlinePrediction, Explanation, JobAhead, LearningReport, NodeCondition,
    NodeProblem, Reason, Unconfirmed,
};
use metronome_core::model::units::{Duration, Gpus, Instant, Resources, Share};
use metronome_core::observe::progress::Category;
use metronome_core::observe::scaling::Speed;

use super::{gain_for_a_gpu_hour, is_worth_stopping, members_by_node, sentence, state_name};
use crate::forecast::Foreseen;
use crate::names::Names;

#[derive(Debug, Serialize)]
pub struct Document<'a> {
    version: u32,
    job: &'a str,
    state: &'static str,
    submitted_s: f64,
    waited_s: f64,
    reason: Option<ReasonText>,
    need: Amounts,
    free: Amounts,
    best: Option<BestText>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    avoided: Vec<AvoidedText>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    awaits: Vec<&'a str>,
    position: Option<usize>,
    priority: i32,
    ahead: Vec<&'a str>,
    ahead_because: Vec<Because>,
    nodes: Vec<OnNode>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unwell: Vec<UnwellText>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unconfirmed: Vec<UnconfirmedText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline: Option<DeadlineText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<ProgressText>,
    forecast: Option<ForecastDocument>,
}

/// What a job has reported of its training, and where that leads.
#[derive(Debug, Serialize)]
struct ProgressText {
    category: Category,
    left_s: Option<f64>,
    gain_in_an_hour: Option<f64>,
    gain_for_a_gpu_hour: Option<f64>,
    worth_stopping: bool,
    believed: bool,
    odd_reports: u32,
}

/// How a job stands to its deadline.
#[derive(Debug, Serialize)]
pub(crate) struct DeadlineText {
    at_s: f64,
    verdict: Option<&'static str>,
    end_s: Option<f64>,
    members_enough: Option<u32>,
    error: f64,
    /// The earliest deadline that it could be booked for, where nothing is booked.
    #[serde(skip_serializing_if = "Option::is_none")]
    earliest_s: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    in_the_way: Vec<String>,
}

/// What is foreseen of one job.
#[derive(Debug, Serialize)]
pub struct ForecastDocument {
    pub(crate) made_at_s: f64,
    pub(crate) start_s: Option<f64>,
    pub(crate) end_s: Option<f64>,
    pub(crate) unknown_lengths: u32,
    pub(crate) overdue_jobs: u32,
    pub(crate) assuming: String,
    pub(crate) not_foreseen: Option<String>,
}

#[derive(Debug, Serialize)]
struct BestText {
    level: String,
    domain: String,
    fit: u32,
    members: u32,
}

/// A node that takes nothing new for so long, as these failed there.
#[derive(Debug, Serialize)]
struct AvoidedText {
    node: String,
    for_s: f64,
    failed: Vec<String>,
}

/// A node under the job, and what is not well with it.
#[derive(Debug, Serialize)]
struct UnconfirmedText {
    node: String,
    since_s: f64,
    for_s: f64,
    failure: Option<String>,
}

#[derive(Debug, Serialize)]
struct UnwellText {
    node: String,
    is: &'static str,
    speed: Option<f64>,
    within_s: Option<f64>,
}

/// What puts a job ahead.
#[derive(Debug, Serialize)]
struct Because {
    priority: i32,
    waited_s: f64,
    left_s: Option<f64>,
}

#[derive(Debug, Serialize)]
pub(crate) struct ReasonText {
    name: &'static str,
    sentence: String,
}

impl ReasonText {
    pub(crate) fn of(reason: &Reason, names: &impl Names) -> Self {
        Self { name: reason.name(), sentence: sentence(reason, names) }
    }
}

#[derive(Debug, Serialize)]
struct Amounts {
    gpus: f64,
    cpu: f64,
    memory_bytes: u64,
}

#[derive(Debug, Serialize)]
struct OnNode {
    node: String,
    members: u32,
}

pub fn document<'a>(explanation: &'a Explanation, names: &impl Names) -> Document<'a> {
    Document {
        version: 1,
        job: &explanation.job,
        state: state_name(explanation.state),
        submitted_s: explanation.submitted.as_secs_f64(),
        waited_s: explanation.waited.as_secs_f64(),
        reason: explanation.reason.as_ref().map(|reason| ReasonText::of(reason, names)),
        need: amounts(explanation.need),
        free: amounts(explanation.free),
        best: explanation.best.as_ref().map(|best| best_text(best, names)),
        avoided: explanation.avoided.iter().map(|avoided| avoided_text(avoided, names)).collect(),
        awaits: explanation.awaits.iter().map(|job| &**job).collect(),
        position: explanation.position,
        priority: explanation.priority.0,
        ahead: explanation.ahead.iter().map(|ahead| &*ahead.job).collect(),
        ahead_because: explanation.ahead.iter().map(because).collect(),
        nodes: nodes(explanation, names),
        unwell: explanation.unwell.iter().map(|unwell| unwell_text(unwell, names)).collect(),
        unconfirmed: explanation.unconfirmed.iter().map(|one| unconfirmed_text(one, names)).collect(),
        deadline: explanation.due.as_ref().map(deadline),
        progress: explanation.learned.as_ref().map(|learned| progress(learned, explanation.need.gpus)),
        forecast: None,
    }
}

/// The same, with what is foreseen of the job.
pub fn document_foreseeing<'a>(
    explanation: &'a Explanation,
    names: &impl Names,
    foreseen: &Foreseen<'_>,
) -> Document<'a> {
    Document { forecast: Some(foreseen.document()), ..document(explanation, names) }
}

fn progress(learned: &LearningReport, gpus: Gpus) -> ProgressText {
    let gains = learned.gains_in_an_hour;
    ProgressText {
        category: learned.category,
        left_s: learned.left.map(Duration::as_secs_f64),
        gain_in_an_hour: gains.map(Share::as_f64),
        gain_for_a_gpu_hour: gains.and_then(|gains| gain_for_a_gpu_hour(gains, gpus)),
        worth_stopping: is_worth_stopping(learned),
        believed: learned.is_believed,
        odd_reports: learned.odd,
    }
}

pub(crate) fn deadline(due: &DeadlinePrediction) -> DeadlineText {
    DeadlineText {
        at_s: due.deadline.as_secs_f64(),
        verdict: due.verdict.map(|verdict| match verdict {
            DeadlineVerdict::Promised => "promised",
            DeadlineVerdict::Planned => "planned",
            DeadlineVerdict::Pending => "pending",
        }),
        end_s: due.ends.map(Instant::as_secs_f64),
        members_enough: due.enough,
        error: due.error.as_f64(),
        earliest_s: due.earliest.map(Instant::as_secs_f64),
        in_the_way: due.in_the_way.iter().map(ToString::to_string).collect(),
    }
}

fn avoided_text(avoided: &AvoidedNode, names: &impl Names) -> AvoidedText {
    AvoidedText {
        node: names.node(avoided.node).to_string(),
        for_s: avoided.lasts.as_secs_f64(),
        failed: avoided.failed.iter().map(ToString::to_string).collect(),
    }
}

fn unconfirmed_text(unconfirmed: &Unconfirmed, names: &impl Names) -> UnconfirmedText {
    UnconfirmedText {
        node: names.node(unconfirmed.node).to_string(),
        since_s: unconfirmed.since.as_secs_f64(),
        for_s: unconfirmed.lasts.as_secs_f64(),
        failure: unconfirmed.failure.as_ref().map(ToString::to_string),
    }
}

fn unwell_text(unwell: &NodeProblem, names: &impl Names) -> UnwellText {
    let (is, speed, within) = match unwell.is {
        NodeCondition::Slow { speed } => ("slow", Some(speed.0 as f64 / Speed::PLAIN.0 as f64), None),
        NodeCondition::Draining { within } => ("draining", None, within),
    };
    UnwellText {
        node: names.node(unwell.node).to_string(),
        is,
        speed,
        within_s: within.map(Duration::as_secs_f64),
    }
}

fn best_text(best: &BestDomain, names: &impl Names) -> BestText {
    let level = names.level(best.level).to_string();
    BestText { level, domain: best.domain.to_string(), fit: best.fit, members: best.members }
}

fn because(ahead: &JobAhead) -> Because {
    Because {
        priority: ahead.priority.0,
        waited_s: ahead.waited.as_secs_f64(),
        left_s: ahead.left.map(Duration::as_secs_f64),
    }
}

fn amounts(resources: Resources) -> Amounts {
    Amounts {
        gpus: resources.gpus.0 as f64 / 1000.0,
        cpu: resources.cpu.0 as f64 / 1000.0,
        memory_bytes: resources.memory.0,
    }
}

fn nodes(explanation: &Explanation, names: &impl Names) -> Vec<OnNode> {
    let on = |(node, members)| OnNode { node: names.node(node).to_string(), members };
    explanation.assignment.iter().flat_map(members_by_node).map(on).collect()
}
