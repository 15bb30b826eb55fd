//! What a kubelet needs to know of a pod.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, Pod, ResourceRequirements};
use kube::ResourceExt;

use super::amounts::Amounts;

/// The pod ends well this long after it began to run.
pub const RUNS_FOR: &str = "sim.metronome.dev/runs-for";
/// The pod fails this long after it began to run.
pub const FAILS_AFTER: &str = "sim.metronome.dev/fails-after";

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct PodKey {
    pub(super) namespace: String,
    pub(super) name: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Pending,
    Running,
    Over,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Succeeded,
    Failed,
    /// It was told to.
    Stopped,
}

/// A pod that is bound, with everything left out that no kubelet of ours looks at.
#[derive(Debug, Clone)]
pub(super) struct BoundPod {
    pub(super) key: PodKey,
    pub(super) uid: String,
    pub(super) node: String,
    pub(super) phase: Phase,
    /// The grace period of a pod that is to be deleted.
    pub(super) deleted_within: Option<Duration>,
    pub(super) ends: Option<(Duration, Ending)>,
    /// It is not started again when it has ended.
    pub(super) is_finite: bool,
    pub(super) requests: Amounts,
    pub(super) containers: Vec<BoundContainer>,
}

#[derive(Debug, Clone)]
pub(super) struct BoundContainer {
    pub(super) name: String,
    pub(super) image: String,
    /// As it asks for them.
    pub(super) resources: ResourceRequirements,
}

impl BoundPod {
    pub(super) fn of(pod: &Pod) -> Option<Self> {
        let spec = pod.spec.as_ref()?;
        let container = |each: &Container| BoundContainer {
            name: each.name.clone(),
            image: each.image.clone().unwrap_or_default(),
            resources: each.resources.clone().unwrap_or_default(),
        };
        Some(Self {
            key: PodKey { namespace: pod.namespace()?, name: pod.name_any() },
            uid: pod.uid()?,
            node: spec.node_name.clone()?,
            phase: phase(pod),
            deleted_within: grace(pod),
            ends: ending(pod),
            is_finite: spec.restart_policy.as_deref().is_some_and(|policy| policy != "Always"),
            requests: Amounts::requested_by(pod),
            containers: spec.containers.iter().map(container).collect(),
        })
    }
}

fn phase(pod: &Pod) -> Phase {
    match pod.status.as_ref().and_then(|status| status.phase.as_deref()) {
        Some("Running") => Phase::Running,
        Some("Succeeded" | "Failed") => Phase::Over,
        _ => Phase::Pending,
    }
}

fn grace(pod: &Pod) -> Option<Duration> {
    pod.metadata.deletion_timestamp.as_ref()?;
    let seconds = pod.metadata.deletion_grace_period_seconds.unwrap_or_default();
    Some(Duration::from_secs(seconds.try_into().unwrap_or_default()))
}

fn ending(pod: &Pod) -> Option<(Duration, Ending)> {
    let after = |name: &str| pod.annotations().get(name).map(|text| duration(text));
    let succeeds = after(RUNS_FOR).map(|time| (time, Ending::Succeeded));
    let fails = after(FAILS_AFTER).map(|time| (time, Ending::Failed));
    succeeds.into_iter().chain(fails).min_by_key(|(time, _)| *time)
}

/// `5s`, `1h30m`, `250ms`. An annotation that says something else is a mistake in the test.
fn duration(text: &str) -> Duration {
    let span = text.parse::<jiff::SignedDuration>().ok().and_then(|span| span.try_into().ok());
    span.unwrap_or_else(|| panic!("`{text}` is not a time that a pod could run"))
}
