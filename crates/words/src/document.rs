//! An explanation for programs: `explain --output json`, described by `docs/reference/explain.schema.json`.

use serde::Serialize;

use metronome_core::report::Explanation;
use metronome_core::units::Resources;

use super::{members_by_node, sentence, state_name};
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
    position: Option<usize>,
    ahead: Vec<&'a str>,
    nodes: Vec<OnNode>,
}

#[derive(Debug, Serialize)]
struct ReasonText {
    name: &'static str,
    sentence: String,
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
        reason: explanation
            .reason
            .as_ref()
            .map(|reason| ReasonText { name: reason.name(), sentence: sentence(reason, names) }),
        need: amounts(explanation.need),
        free: amounts(explanation.free),
        position: explanation.position,
        ahead: explanation.ahead.iter().map(|name| &**name).collect(),
        nodes: nodes(explanation, names),
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
