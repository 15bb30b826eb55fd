//! The members of a job, as their pods say.

use std::fmt;

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::ResourceExt;
use kube::api::ListParams;

use metronome_kubernetes::objects::{INDEX_LABEL, JOB_LABEL, ROLE_LABEL};
use metronome_sim::near::meant_or_known;

use super::Logs;
use crate::cluster::JobRef;
use crate::failure::Failure;

/// The annotation by which a pod says which of its containers people mean.
const USUAL_CONTAINER: &str = "kubectl.kubernetes.io/default-container";

/// A member, and what of it has a log.
#[derive(Clone, Debug)]
pub(super) struct Member {
    role: String,
    index: u32,
    pub(super) pod: String,
    /// The container that has started.
    pub(super) container: Option<Container>,
    waits: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Container {
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) restarts: i32,
    pub(super) is_running: bool,
}

impl Container {
    /// Whether the other is the same, started as often.
    pub(super) fn is_same_run(&self, other: &Self) -> bool {
        (&self.uid, self.restarts) == (&other.uid, other.restarts)
    }
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}-{}", self.role, self.index))
    }
}

impl Member {
    /// Nothing, for a pod that is no member of ours.
    pub(super) fn of(pod: &Pod, container: Option<&str>) -> Option<Self> {
        let role = pod.labels().get(ROLE_LABEL)?.clone();
        let index = pod.labels().get(INDEX_LABEL)?.parse().ok()?;
        Some(Self {
            role,
            index,
            pod: pod.name_any(),
            container: started(pod, container),
            waits: condition(pod, "PodScheduled"),
        })
    }

    /// Why it has not started, where that is known.
    pub(super) fn why(&self) -> String {
        self.waits.as_ref().map_or_else(String::new, |why| format!(": {why}"))
    }

    pub(super) fn is(&self, name: &str) -> bool {
        self.pod == name || self.to_string() == name
    }

    /// The same at every run: by its place among the members.
    pub(super) fn colour(&self) -> usize {
        let role: usize = self.role.bytes().map(usize::from).sum();
        role + self.index as usize
    }
}

/// The container that people mean, if it runs or has run.
pub(super) fn started(pod: &Pod, named: Option<&str>) -> Option<Container> {
    let usual = || pod.annotations().get(USUAL_CONTAINER).map(String::as_str);
    let first = || pod.spec.as_ref()?.containers.first().map(|container| container.name.as_str());
    let name = named.or_else(usual).or_else(first)?;
    let status = pod.status.as_ref()?;
    let all = [&status.container_statuses, &status.init_container_statuses];
    let of = all.into_iter().flatten().flatten().find(|container| container.name == name)?;
    has_started(of).then(|| Container {
        name: name.to_owned(),
        uid: pod.uid().unwrap_or_default(),
        restarts: of.restart_count,
        is_running: of.state.as_ref().is_some_and(|state| state.running.is_some()),
    })
}

fn has_started(container: &ContainerStatus) -> bool {
    let state = container.state.as_ref();
    state.is_some_and(|state| state.running.is_some() || state.terminated.is_some())
}

fn condition(pod: &Pod, kind: &str) -> Option<String> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let said = conditions.iter().find(|condition| condition.type_ == kind && condition.status == "False")?;
    said.message.clone()
}

pub(super) fn of_job(job: &JobRef) -> String {
    format!("{JOB_LABEL}={}", job.name)
}

/// All that there are, in order, or the one that was asked for.
pub(super) async fn chosen(job: &JobRef, args: &Logs) -> Result<Vec<Member>, Failure> {
    let pods = job.pods().list(&ListParams::default().labels(&of_job(job))).await;
    let pods = pods.map_err(|error| job.cannot_ask(&error))?;
    let members = pods.items.iter().filter_map(|pod| Member::of(pod, args.container.as_deref()));
    let mut members: Vec<Member> = members.collect();
    members.sort_by(|one, other| (&one.role, one.index).cmp(&(&other.role, other.index)));
    let Some(name) = &args.member else { return Ok(members) };
    if !members.is_empty() && !members.iter().any(|member| member.is(name)) {
        let known: Vec<String> = members.iter().map(Member::to_string).collect();
        let hint = meant_or_known(name, known.iter().map(String::as_str));
        return Err(Failure::input(format!("find a member {name} of {job}")).hint(hint));
    }
    members.retain(|member| member.is(name));
    Ok(members)
}
