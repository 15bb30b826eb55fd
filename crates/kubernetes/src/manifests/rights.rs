//! What the scheduler may do, verb by verb, each with its reason. Roles and the reference are made of these tables.

use serde_json::{Value, json};

/// Some verbs on one kind of object, and why they are needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Right {
    pub group: &'static str,
    pub resource: &'static str,
    pub verbs: &'static [&'static str],
    pub why: &'static str,
}

const READ: &[&str] = &["list", "watch"];

const fn right(
    group: &'static str,
    resource: &'static str,
    verbs: &'static [&'static str],
    why: &'static str,
) -> Right {
    Right { group, resource, verbs, why }
}

const STORAGE: &str = "storage.k8s.io";
const OURS: &str = "metronome.dev";
const VOLCANO: &str = "scheduling.volcano.sh";
const VOLCANO_TOPOLOGY: &str = "topology.volcano.sh";
const KUBEFLOW: &str = "kubeflow.org";

/// In every namespace, and of what belongs to none.
pub const IN_THE_CLUSTER: &[Right] = &[
    right("", "pods", READ, "Which pods wait, and what those that run hold, whoever placed them."),
    right("", "nodes", READ, "Where pods can go."),
    right("", "namespaces", READ, "Rules among pods may choose namespaces by their labels."),
    right("", "persistentvolumeclaims", READ, "Volumes of a pod bound to some nodes keep it there."),
    right("", "persistentvolumes", READ, "On which nodes a volume can be used."),
    right(STORAGE, "storageclasses", READ, "Whether a claim is bound before or after its pod is placed."),
    right(STORAGE, "csidrivers", READ, "Whether a driver says how much room there is for new volumes."),
    right(STORAGE, "csistoragecapacities", READ, "How much room there is for new volumes, and where."),
    right(STORAGE, "csinodes", READ, "How many volumes of a driver a node takes."),
    right(STORAGE, "volumeattachments", READ, "How many volumes a node has already."),
    right("policy", "poddisruptionbudgets", READ, "Nobody is evicted whom a budget guards."),
    right("batch", "jobs", READ, "The parallelism of a job is its gang, where its pods ask for that."),
    right("scheduling.k8s.io", "podgroups", READ, "Gangs declared by upstream's groups."),
    right("scheduling.k8s.io", "workloads", READ, "Gangs declared as Kubernetes 1.35 does."),
    right("scheduling.x-k8s.io", "podgroups", READ, "Gangs declared by the groups of scheduler-plugins."),
    right(VOLCANO, "podgroups", READ, "Gangs declared by Volcano's groups."),
    right(VOLCANO, "queues", READ, "Queues declared by Volcano's objects."),
    right(VOLCANO_TOPOLOGY, "hypernodes", READ, "Where nodes lie by Volcano's objects."),
    right(OURS, "queues", READ, "Queues, their weights, quotas and users."),
    right(OURS, "fabrics", READ, "Where nodes lie, and what the links between them carry."),
    right(OURS, "trainingjobs", READ, "Training jobs, whose pods and restarts are seen to."),
    right("jobset.x-k8s.io", "jobsets", READ, "All pods of a job set are its gang, where they ask for that."),
    right(KUBEFLOW, "pytorchjobs", READ, "All pods of a job are its gang, where they ask for that."),
    right(KUBEFLOW, "tfjobs", READ, "The same for jobs of TensorFlow."),
    right(KUBEFLOW, "mpijobs", READ, "The same for jobs of MPI."),
    right("ray.io", "rayclusters", READ, "The same for clusters of Ray."),
    right("trainer.kubeflow.org", "trainjobs", READ, "How far jobs of Kubeflow's Trainer are."),
    right("", "pods/binding", &["create"], "A pod is placed by binding it."),
    right(
        "",
        "pods/eviction",
        &["create"],
        "Whole gangs make room, or move, by the way that honours budgets.",
    ),
    right(
        "",
        "pods/status",
        &["patch"],
        "Why a pod waits, where it will go, and whether it will be in time.",
    ),
    right(
        "",
        "pods/resize",
        &["patch"],
        "Cores are given to running pods, and taken back, as deadlines need.",
    ),
    right("", "pods", &["get"], "What became of a pod whose answer was lost, before anything is said of it."),
    right(
        "",
        "pods",
        &["patch"],
        "Annotations: a request to save work, the weight of the CPU, and turns on links.",
    ),
    right("", "pods", &["create"], "The members of training jobs."),
    right(
        "",
        "pods",
        &["delete"],
        "Members whose attempt is over, and what is left of a gang that cannot be whole.",
    ),
    right("", "services", &["create"], "The name by which members of a training job find each other."),
    right("", "configmaps", &["create"], "The hosts of a training job that uses MPI."),
    right(
        "events.k8s.io",
        "events",
        &["create", "patch"],
        "What people are told, and how often it happened.",
    ),
    right(OURS, "queues/status", &["patch"], "What a queue holds, and how many run and wait in it."),
    right(OURS, "fabrics/status", &["patch"], "Whether a fabric is in force, and why not."),
    right(OURS, "trainingjobs/status", &["patch"], "What has become of a training job."),
    right(OURS, "trainingjobs", &["delete"], "Training jobs whose time after their end is over."),
    right(VOLCANO, "podgroups/status", &["patch"], "The phase that Volcano's tools show, if kept apart."),
    right(VOLCANO, "podgroups", &["patch"], "The phase that Volcano's tools show, if part of the object."),
];

/// In the namespace that the scheduler runs in.
pub const IN_THE_OWN_NAMESPACE: &[Right] = &[
    right("", "configmaps", READ, "The policy, and what an earlier leader meant to bind."),
    right("coordination.k8s.io", "leases", &["get", "create", "patch"], "One replica leads at a time."),
    right(
        "",
        "configmaps",
        &["get", "update", "delete"],
        "What is about to be bound is recorded first, and forgotten afterwards. Making such records is allowed above.",
    ),
];

/// Of the agent on each node. Which pods it may write on, and what, is for its admission policy to say: roles know no
/// nodes.
pub const OF_THE_AGENT: &[Right] = &[
    right("", "pods", READ, "Which members of jobs run on its node, and which turns they have."),
    right(
        "",
        "pods",
        &["patch"],
        "Annotations: what a member was measured to send, and how far it says it is.",
    ),
];

/// Of these, what the test of all rights does not see used, and why not.
pub const UNSEEN: &[(&str, &str, &str)] =
    &[("scheduling.k8s.io", "workloads", "Kubernetes 1.37 has them no more; 1.35 has nothing else.")];

impl Right {
    pub fn only_reads(&self) -> bool {
        self.verbs == READ
    }

    pub(super) fn rule(&self) -> Value {
        json!({"apiGroups": [self.group], "resources": [self.resource], "verbs": self.verbs})
    }
}
