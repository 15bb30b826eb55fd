//! Whose fault it is that a member failed.

use crate::objects::{FailureAction, Member, TrainingJobSpec};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Blame {
    pub(super) whose: Whose,
    pub(super) reason: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    /// The job's own: it may fail so only a few times.
    ItsOwn,
    /// The cluster's, or one that a rule of the job says not to count.
    NotItsOwn,
    /// By a rule of the job, there is no use in trying again.
    Final,
}

/// What kubelets say of pods that never ran, or were put out.
const PUT_OUT: [&str; 9] = [
    "Evicted",
    "Preempting",
    "NodeLost",
    "NodeShutdown",
    "Terminated",
    "Shutdown",
    "NodeAffinity",
    "UnexpectedAdmissionError",
    "TopologyAffinityError",
];

pub(super) fn blame(spec: &TrainingJobSpec, failed: &Member) -> Blame {
    let said = failed.status.reason.as_deref().unwrap_or_default();
    if let Some(taken) = failed.condition("DisruptionTarget").filter(|condition| condition.status == "True") {
        let reason = taken.message.clone().or_else(|| taken.reason.clone()).unwrap_or_default();
        return Blame { whose: Whose::NotItsOwn, reason };
    }
    if PUT_OUT.contains(&said) || said.starts_with("OutOf") {
        return Blame { whose: Whose::NotItsOwn, reason: said.to_owned() };
    }
    let ended = failed.failure();
    let code = ended.map(|ended| ended.exit_code);
    let rule = code.and_then(|code| spec.failures.iter().find(|rule| rule.exit_codes.contains(&code)));
    let whose = match rule.map(|rule| rule.action) {
        None => Whose::ItsOwn,
        Some(FailureAction::Ignore) => Whose::NotItsOwn,
        Some(FailureAction::Fail) => Whose::Final,
    };
    let said = ended.and_then(|ended| ended.reason.clone()).or_else(|| failed.status.reason.clone());
    let reason = match (code, said) {
        (Some(code), Some(said)) => format!("exit code {code} ({said})"),
        (Some(code), None) => format!("exit code {code}"),
        (None, Some(said)) => said,
        (None, None) => "nothing is said about why".into(),
    };
    Blame { whose, reason }
}
