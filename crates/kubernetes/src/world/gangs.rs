//! Which gang a pod belongs to, and what is known of that gang.

use std::collections::BTreeSet;
use std::sync::Arc;

use metronome_core::model::id::JobId;
use metronome_core::model::job::RoleKind;
use metronome_core::model::units::Instant;

use super::pods::Uid;
use super::verdicts::Said;
use crate::objects::{Group, GroupKind, INDEX_LABEL, JOB_LABEL, Pod, ROLE_LABEL};

/// The label of pods that are a gang by their own word, and the annotation that says how many it takes.
pub(crate) const GANG_LABEL: &str = "metronome.dev/gang";
pub(super) const MEMBERS_ANNOTATION: &str = "metronome.dev/gang-members";
/// The annotation by which a pod asks that all pods of its owner start together: a `Job`, a `JobSet` or another.
pub(super) const GANG_OF_ANNOTATION: &str = "metronome.dev/gang-of";
const PLUGINS_LABEL: &str = "scheduling.x-k8s.io/pod-group";
const VOLCANO_ANNOTATION: &str = "scheduling.k8s.io/group-name";
/// The `JobSet` that a pod belongs to. The set that a `TrainJob` makes has its name.
pub(super) const JOB_SET_LABEL: &str = "jobset.sigs.k8s.io/jobset-name";
/// The job of one of Kubeflow's operators that a pod belongs to, and the cluster of Ray's.
const KUBEFLOW_LABEL: &str = "training.kubeflow.org/job-name";
const RAY_LABEL: &str = "ray.io/cluster";
/// What pods call their owners, which of them that is, and the label that names it.
const OWNERS: [(&str, GroupKind, &str); 5] = [
    ("jobset", GroupKind::JobSet, JOB_SET_LABEL),
    ("pytorchjob", GroupKind::PyTorchJob, KUBEFLOW_LABEL),
    ("tfjob", GroupKind::TfJob, KUBEFLOW_LABEL),
    ("mpijob", GroupKind::MpiJob, KUBEFLOW_LABEL),
    ("raycluster", GroupKind::RayCluster, RAY_LABEL),
];
/// Which of the jobs of its set a pod is of.
const JOB_INDEX_LABEL: &str = "jobset.sigs.k8s.io/job-global-index";
const ROLE_LABELS: [&str; 5] = [
    ROLE_LABEL,
    "training.kubeflow.org/replica-type",
    "ray.io/group",
    "volcano.sh/task-spec",
    "jobset.sigs.k8s.io/replicatedjob-name",
];
const INDEX_LABELS: [&str; 5] = [
    INDEX_LABEL,
    "batch.kubernetes.io/job-completion-index",
    "apps.kubernetes.io/pod-index",
    "training.kubeflow.org/replica-index",
    "volcano.sh/task-index",
];

/// What pods start together by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum GangKey {
    /// A pod on its own.
    Single(Uid),
    /// Declared by an object of its own.
    Declared { kind: GroupKind, namespace: Arc<str>, name: Arc<str> },
    /// All pods of a `Job`, as many as its parallelism.
    Job { namespace: Arc<str>, name: Arc<str> },
    /// Pods that carry the same label.
    Labelled { namespace: Arc<str>, name: Arc<str> },
}

impl GangKey {
    pub(super) fn of(pod: &Pod) -> Self {
        let namespace: Arc<str> = Arc::from(pod.metadata.namespace.as_deref().unwrap_or_default());
        let declared =
            |kind, name: &str| Self::Declared { kind, namespace: namespace.clone(), name: name.into() };
        if let Some(name) =
            pod.spec.scheduling_group.as_ref().and_then(|group| group.pod_group_name.as_deref())
        {
            return declared(GroupKind::Upstream, name);
        }
        if let Some(workload) = &pod.spec.workload_ref {
            return declared(GroupKind::Workload, &format!("{}/{}", workload.name, workload.pod_group));
        }
        if let Some(name) = label(pod, PLUGINS_LABEL) {
            return declared(GroupKind::Plugins, name);
        }
        if let Some(name) = annotation(pod, VOLCANO_ANNOTATION) {
            return declared(GroupKind::Volcano, name);
        }
        if let Some(name) = label(pod, JOB_LABEL) {
            return declared(GroupKind::Training, name);
        }
        if let Some(name) = label(pod, GANG_LABEL) {
            return Self::Labelled { namespace, name: name.into() };
        }
        let asked = annotation(pod, GANG_OF_ANNOTATION);
        if let (Some("job"), Some(name)) = (asked, owning_job(pod)) {
            return Self::Job { namespace, name: name.into() };
        }
        let owner = OWNERS.iter().find(|(word, ..)| asked == Some(word));
        match owner.and_then(|(_, kind, key)| Some((*kind, label(pod, key)?))) {
            Some((kind, name)) => declared(kind, name),
            None => Self::Single(super::pods::uid(pod)),
        }
    }

    pub(super) fn is_single(&self) -> bool {
        matches!(self, Self::Single(_))
    }

    /// What it is called in plans, intents and explanations.
    pub(super) fn name(&self, of_single: impl FnOnce() -> String) -> String {
        match self {
            Self::Single(_) => of_single(),
            Self::Declared { namespace, name, .. }
            | Self::Job { namespace, name }
            | Self::Labelled { namespace, name } => format!("{namespace}/{name}"),
        }
    }

    /// As `name`, but gangs of two kinds never share it.
    pub(super) fn full_name(&self) -> String {
        match self {
            Self::Single(uid) => format!("pod/{uid}"),
            Self::Declared { kind, namespace, name } => format!("{kind:?}/{namespace}/{name}"),
            Self::Job { namespace, name } => format!("job/{namespace}/{name}"),
            Self::Labelled { namespace, name } => format!("label/{namespace}/{name}"),
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Gang {
    /// The object that declares it, once it is seen.
    pub(super) declared: Option<Group>,
    /// What its `Job` runs at once, where that decides.
    pub(super) parallelism: Option<u32>,
    pub(super) pods: BTreeSet<Uid>,
    pub(super) jobs: BTreeSet<JobId>,
    /// All it asks for were bound once, and not all of them have gone since.
    pub(super) was_whole: bool,
    /// Since when some of it are bound and others cannot be.
    pub(super) broken_since: Option<Instant>,
    /// Some of those who ran have done their part.
    pub(super) some_are_done: bool,
    /// Since when it waits for members that it could do without, and how many came at most when they did not all come.
    pub(super) lacks_since: Option<Instant>,
    pub(super) most: Option<u32>,
    /// Why none of its waiting pods is a job of the engine.
    pub(super) held_up: Option<HeldUp>,
    pub(super) said: Option<Said>,
}

/// Why a gang does not stand in line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HeldUp {
    /// Not all of its pods exist yet.
    Incomplete { have: usize, least: usize },
    /// Nothing declares how many it takes.
    Undeclared,
    /// The queue it names takes nobody in, or is not there.
    NoQueue(String),
    /// Its volumes are not there yet.
    ForNow(String),
    /// Something about it cannot be understood or is not supported.
    Refused(String),
}

impl Gang {
    /// Nothing is known of it any more but, perhaps, its declaration.
    pub(super) fn is_deserted(&self) -> bool {
        self.pods.is_empty() && self.jobs.is_empty()
    }
}

pub(super) fn label<'a>(pod: &'a Pod, key: &str) -> Option<&'a str> {
    pod.metadata.labels.as_ref()?.get(key).map(String::as_str).filter(|value| !value.is_empty())
}

pub(super) fn annotation<'a>(pod: &'a Pod, key: &str) -> Option<&'a str> {
    pod.metadata.annotations.as_ref()?.get(key).map(String::as_str).filter(|value| !value.is_empty())
}

/// The `Job` that controls a pod.
fn owning_job(pod: &Pod) -> Option<&str> {
    let owners = pod.metadata.owner_references.as_deref().unwrap_or_default();
    owners
        .iter()
        .find(|owner| owner.controller == Some(true) && owner.kind == "Job")
        .map(|owner| &*owner.name)
}

/// Whether somebody makes a pod anew when it is deleted.
pub(super) fn is_owned(pod: &Pod) -> bool {
    owner(pod).is_some()
}

/// Who does, by uid.
pub(super) fn owner(pod: &Pod) -> Option<&str> {
    let owners = pod.metadata.owner_references.as_deref().unwrap_or_default();
    owners.iter().find(|owner| owner.controller == Some(true)).map(|owner| &*owner.uid)
}

/// Its place among those of its owner, where they have places.
pub(super) fn index(pod: &Pod) -> Option<&str> {
    INDEX_LABELS.iter().find_map(|key| label(pod, key))
}

pub(super) fn role(pod: &Pod) -> RoleKind {
    let word = ROLE_LABELS.iter().find_map(|key| label(pod, key)).unwrap_or_default();
    match word.to_ascii_lowercase().as_str() {
        "ps" | "server" | "parameter-server" => RoleKind::Ps,
        "chief" | "master" | "launcher" | "leader" | "driver" | "head" => RoleKind::Chief,
        _ => RoleKind::Worker,
    }
}

/// Its place among its like: neighbours in a ring are neighbours here, so that they can be put on one node.
pub(super) fn rank(pod: &Pod) -> u64 {
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let labelled = index(pod).and_then(|index| index.parse().ok());
    let digits = name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let within = labelled.or_else(|| name[digits..].parse().ok()).unwrap_or(u64::MAX);
    // The jobs of a set follow one another.
    let job: Option<u32> = label(pod, JOB_INDEX_LABEL).and_then(|index| index.parse().ok());
    within.saturating_add(u64::from(job.unwrap_or(0)) << u32::BITS)
}
