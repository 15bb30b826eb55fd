//! Policies: changes to one that is built in.

use metronome_core::model::policy::{
    Deadlines, Gangs, Links, Moving, Order, Parts, Placement, Policy, Preemption, Queueing, Sharing, Sizing,
    Slowdowns, Throttling, Weights,
};
use metronome_core::model::units::{GpuTime, Share};
use metronome_core::tuning::{Tuning, TuningError};
use serde_saphyr::Spanned;

use super::Named;
use crate::near::{did_you_mean, meant_or_known};
use crate::scenario::documents::{OrderShape, PolicySpec, TuningShape, WeightsShape};
use crate::scenario::error::{Problem, quoted};
use crate::scenario::values::{Placed, Text, share, some_quantity, whole, word};

const GANGS: [(&str, Gangs); 2] = [("whole", Gangs::Whole), ("memberByMember", Gangs::MemberByMember)];
const QUEUEING: [(&str, Queueing); 3] =
    [("headBlocks", Queueing::HeadBlocks), ("skip", Queueing::Skip), ("reserve", Queueing::Reserve)];
const SHARING: [(&str, Sharing); 2] = [("ignored", Sharing::Ignored), ("fair", Sharing::Fair)];
const SIZING: [(&str, Sizing); 2] = [("least", Sizing::Least), ("spare", Sizing::Spare)];
const PREEMPTION: [(&str, Preemption); 4] = [
    ("never", Preemption::Never),
    ("byRank", Preemption::ByRank),
    ("byPriority", Preemption::ByPriority),
    ("byGain", Preemption::ByGain),
];
const PLACEMENT: [(&str, Placement); 5] = [
    ("spread", Placement::Spread),
    ("pack", Placement::Pack),
    ("buckets", Placement::Buckets),
    ("topology", Placement::Topology),
    ("nearest", Placement::Nearest),
];

const LINKS: [(&str, Links); 7] = [
    ("shared", Links::Shared),
    ("shift", Links::Shift),
    ("weighted", Links::Weighted),
    ("classes", Links::Classes),
    ("chosen", Links::Chosen),
    ("rotated", Links::Rotated),
    ("cushioned", Links::Cushioned),
];
const SLOWDOWNS: [(&str, Slowdowns); 6] = [
    ("unseen", Slowdowns::Unseen),
    ("weighed", Slowdowns::Weighed),
    ("waitedOut", Slowdowns::WaitedOut),
    ("reserved", Slowdowns::Reserved),
    ("compatible", Slowdowns::Compatible),
    ("keptApart", Slowdowns::KeptApart),
];
const MOVING: [(&str, Moving); 3] =
    [("never", Moving::Never), ("forGain", Moving::ForGain), ("speculative", Moving::Speculative)];
const THROTTLING: [(&str, Throttling); 2] =
    [("never", Throttling::Never), ("leastLeftFirst", Throttling::LeastLeftFirst)];

const DEADLINES: [(&str, Deadlines); 4] = [
    ("ignored", Deadlines::Ignored),
    ("earliest", Deadlines::Earliest),
    ("filled", Deadlines::Filled),
    ("promised", Deadlines::Promised),
];

const DEFAULT_BASE: &str = "metronome";

pub(super) fn policies(documents: &[Named<PolicySpec>]) -> Result<Vec<Policy>, Problem> {
    documents.iter().map(policy).collect()
}

fn policy(document: &Named<PolicySpec>) -> Result<Policy, Problem> {
    let PolicySpec {
        base,
        order: ranks,
        gangs,
        queueing,
        sharing,
        sizing,
        preemption,
        placement,
        links,
        slowdowns,
        moving,
        throttling,
        deadlines,
        tuning: overrides,
    } = &document.spec;
    let base = match base {
        Some(base) => Policy::named(&base.value).ok_or_else(|| unknown_base(base))?,
        None => Policy::named(DEFAULT_BASE).expect("the default is in the table"),
    };
    let base = overrides.as_ref().map_or(Ok(base.clone()), |overrides| tuned(base, overrides))?;
    let default_weights = Weights::of(&base.tuning.decide).expect("the table of a policy has sound weights");
    Ok(Policy {
        name: document.name().to_owned(),
        order: ranks.as_ref().map_or(Ok(base.order), |shape| order(shape, default_weights))?,
        gangs: gangs.as_ref().map_or(Ok(base.gangs), |text| word(text, "word for gangs", &GANGS))?,
        queueing: queueing.as_ref().map_or(Ok(base.queueing), |text| word(text, "queueing", &QUEUEING))?,
        sharing: sharing.as_ref().map_or(Ok(base.sharing), |text| word(text, "sharing", &SHARING))?,
        sizing: sizing.as_ref().map_or(Ok(base.sizing), |text| word(text, "sizing", &SIZING))?,
        preemption: preemption
            .as_ref()
            .map_or(Ok(base.preemption), |text| word(text, "preemption", &PREEMPTION))?,
        placement: placement
            .as_ref()
            .map_or(Ok(base.placement), |text| word(text, "placement", &PLACEMENT))?,
        links: links.as_ref().map_or(Ok(base.links), |text| word(text, "word for links", &LINKS))?,
        slowdowns: slowdowns
            .as_ref()
            .map_or(Ok(base.slowdowns), |text| word(text, "word for slowdowns", &SLOWDOWNS))?,
        moving: moving.as_ref().map_or(Ok(base.moving), |text| word(text, "word for moving", &MOVING))?,
        throttling: throttling
            .as_ref()
            .map_or(Ok(base.throttling), |text| word(text, "word for throttling", &THROTTLING))?,
        deadlines: deadlines
            .as_ref()
            .map_or(Ok(base.deadlines), |text| word(text, "word for deadlines", &DEADLINES))?,
        tuning: base.tuning,
    })
}

fn unknown_base(base: &Text) -> Problem {
    base.problem(format!("there is no built-in policy {}", quoted(&base.value)))
        .with_hint(meant_or_known(&base.value, Policy::names().collect::<Vec<_>>()))
}

/// The policy with these entries of the tuning table.
fn tuned(base: Policy, overrides: &Spanned<TuningShape>) -> Result<Policy, Problem> {
    let mut tuning = base.tuning.clone();
    for (name, value) in &overrides.value.0 {
        tuning.set(&name.value, &value.value).map_err(|error| match error {
            TuningError::UnknownName(_) => unknown_entry(name),
            TuningError::BadValue { text, kind, least, most } => {
                value.problem(format!("{} is not {kind} from {least} to {most}", quoted(&text)))
            }
        })?;
    }
    base.tuned(tuning).map_err(|error| overrides.problem(error.to_string()))
}

fn unknown_entry(name: &Text) -> Problem {
    let known = Tuning::DEFAULT.entries();
    let known = known.iter().map(|entry| entry.name.as_str());
    let hint =
        did_you_mean(&name.value, known).unwrap_or_else(|| "docs/reference/tuning.md lists them".to_owned());
    name.problem(format!("there is no tuning entry {}", quoted(&name.value))).with_hint(hint)
}

fn order(shape: &OrderShape, default_weights: Weights) -> Result<Order, Problem> {
    Ok(match shape {
        OrderShape::Fifo => Order::Fifo,
        OrderShape::Priority => Order::Priority,
        OrderShape::Srtf => Order::Srtf,
        OrderShape::Srsf => Order::Srsf,
        OrderShape::LeastAttained(shape) => Order::LeastAttained { limits: limits(&shape.limits)? },
        OrderShape::Weighted(shape) => Order::Weighted(weights(shape, default_weights)?),
    })
}

/// Limits in whole GPU-seconds, rising from level to level.
fn limits(written: &Spanned<Vec<Text>>) -> Result<Vec<GpuTime>, Problem> {
    const MOST: usize = 16;
    if written.value.is_empty() || written.value.len() > MOST {
        return Err(written.problem(format!("there are 1 to {MOST} limits")));
    }
    let mut limits: Vec<GpuTime> = Vec::new();
    for text in &written.value {
        let limit = GpuTime::gpu_seconds(whole(text, 1..=1_000_000_000_000)?);
        if limits.last().is_some_and(|last| *last >= limit) {
            return Err(text.problem("the limits rise from level to level"));
        }
        limits.push(limit);
    }
    Ok(limits)
}

/// A part that is not given has weight 0: a sum that is not 1 then says that one was forgotten.
pub(super) fn weights(written: &Spanned<WeightsShape>, default: Weights) -> Result<Weights, Problem> {
    let WeightsShape { user, task, wait, width, brevity, window } = &written.value;
    if [user, task, wait, width, brevity, window].iter().all(|field| field.is_none()) {
        return Ok(default);
    }
    let window =
        window.as_ref().map_or(Ok(default.window()), |window| some_quantity(window, "the waiting window"))?;
    let given = |text: &Option<Text>| text.as_ref().map_or(Ok(Share::NONE), share);
    let parts = Parts {
        user: given(user)?,
        task: given(task)?,
        wait: given(wait)?,
        width: given(width)?,
        brevity: given(brevity)?,
    };
    Weights::new(parts, window).map_err(|error| written.problem(error.to_string()))
}
