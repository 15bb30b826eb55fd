//! Objects that declare a gang, of whichever API the cluster has: read leniently from whatever is there, since
//! custom resources may hold anything. What makes no sense is kept as a complaint beside what does.

mod job_set;
mod replicas;

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{ApiResource, DynamicObject};

use super::fields::{Complaint, Fields};
use super::meta::reference;
use super::training::{self, TrainingJob};
use crate::deed::ObjectRef;

/// Which API declares the gang; each has its own way for pods to point at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GroupKind {
    /// `scheduling.k8s.io` PodGroup; pods name it in `spec.schedulingGroup`.
    Upstream,
    /// `scheduling.k8s.io/v1alpha1` Workload of 1.35, one group for each entry; pods name both in `spec.workloadRef`.
    Workload,
    /// `scheduling.x-k8s.io` PodGroup of the scheduler plugins; pods name it by a label.
    Plugins,
    /// `scheduling.volcano.sh` PodGroup; pods name it by an annotation.
    Volcano,
    /// `metronome.dev` TrainingJob; pods name it by a label.
    Training,
    /// `jobset.x-k8s.io` JobSet; pods name it by a label, and ask by an annotation to be its gang.
    JobSet,
    /// Jobs of Kubeflow's operators and clusters of Ray's; pods name them by a label, and ask by an annotation.
    PyTorchJob,
    TfJob,
    MpiJob,
    RayCluster,
}

/// A role whose number of members may change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elastic {
    pub role: String,
    pub min: u32,
    pub max: u32,
    /// Those who run go on when others join or leave.
    pub joins: bool,
}

/// A declared gang.
#[derive(Clone, Debug)]
pub struct Group {
    pub kind: GroupKind,
    pub reference: ObjectRef,
    pub metadata: ObjectMeta,
    /// The entry of a `Workload` it is; its other kinds are one group each.
    pub part: Option<Arc<str>>,
    /// How many must run at once for any to run; 1 where it says that pods go one by one.
    pub min_members: Result<u32, Complaint>,
    /// The role of which there may be more than that, or fewer again.
    pub elastic: Option<Elastic>,
    /// Volcano's minimum for each role.
    pub min_by_role: BTreeMap<String, u32>,
    pub priority_class: Option<String>,
    pub priority: Option<i32>,
    pub queue: Option<String>,
    pub phase: Option<String>,
    /// Scheduler plugins: how long a gang may wait once it has begun to be placed.
    pub schedule_timeout_seconds: Option<u32>,
    /// Node labels whose value all members must share.
    pub topology: Vec<String>,
    /// What else it says that makes no sense or is not supported.
    pub complaints: Vec<Complaint>,
}

impl Group {
    /// The gangs that an object declares: one, except for a `Workload`.
    pub fn read(kind: GroupKind, api: &ApiResource, object: &DynamicObject) -> Vec<Self> {
        let reference = reference(api, &object.metadata);
        let metadata = stripped(object.metadata.clone());
        let body = Fields::of(&object.data);
        match kind {
            GroupKind::Upstream => vec![Reader::new(kind, reference, metadata).upstream(&body)],
            GroupKind::Workload => workload(&reference, &metadata, &body),
            GroupKind::Plugins => vec![Reader::new(kind, reference, metadata).plugins(&body)],
            GroupKind::Volcano => vec![Reader::new(kind, reference, metadata).volcano(&body)],
            GroupKind::Training => vec![training::group(&TrainingJob::read(api, object))],
            GroupKind::JobSet
            | GroupKind::PyTorchJob
            | GroupKind::TfJob
            | GroupKind::MpiJob
            | GroupKind::RayCluster => {
                let group = Self::plain(kind, reference, metadata);
                vec![Self { min_members: of_owner(kind, &body.at("spec")), ..group }]
            }
        }
    }

    /// One that says nothing.
    pub(super) fn plain(kind: GroupKind, reference: ObjectRef, metadata: ObjectMeta) -> Self {
        Reader::new(kind, reference, metadata).0
    }
}

/// How many pods the controller of such an object runs at once.
fn of_owner(kind: GroupKind, spec: &Fields<'_>) -> Result<u32, Complaint> {
    match kind {
        GroupKind::PyTorchJob => replicas::of_kubeflow(spec, "pytorchReplicaSpecs"),
        GroupKind::TfJob => replicas::of_kubeflow(spec, "tfReplicaSpecs"),
        GroupKind::MpiJob => replicas::of_mpi(spec),
        GroupKind::RayCluster => replicas::of_ray(spec),
        _ => job_set::members(spec),
    }
}

fn workload(reference: &ObjectRef, metadata: &ObjectMeta, body: &Fields<'_>) -> Vec<Group> {
    let reader = || Reader::new(GroupKind::Workload, reference.clone(), metadata.clone());
    let entries = body.at("spec").at("podGroups").items();
    entries.iter().map(|entry| reader().entry(entry)).collect()
}

/// Fills a group field by field.
struct Reader(Group);

impl Reader {
    fn new(kind: GroupKind, reference: ObjectRef, metadata: ObjectMeta) -> Self {
        Self(Group {
            kind,
            reference,
            metadata,
            part: None,
            min_members: Ok(1),
            elastic: None,
            min_by_role: BTreeMap::new(),
            priority_class: None,
            priority: None,
            queue: None,
            phase: None,
            schedule_timeout_seconds: None,
            topology: Vec::new(),
            complaints: Vec::new(),
        })
    }

    fn upstream(mut self, body: &Fields<'_>) -> Group {
        let spec = body.at("spec");
        self.0.min_members = policy(&spec.at("schedulingPolicy"));
        self.0.priority_class = self.heard(spec.at("priorityClassName").text());
        self.0.priority = self.heard(spec.at("priority").integer());
        self.0.topology = self.topology(&spec.at("schedulingConstraints").at("topology"));
        self.refuse(&spec.at("parentCompositePodGroupName"));
        self.refuse(&spec.at("resourceClaims"));
        self.0
    }

    fn entry(mut self, entry: &Fields<'_>) -> Group {
        self.0.part = self.heard(entry.at("name").text()).map(Arc::from);
        self.0.min_members = policy(&entry.at("policy"));
        self.0
    }

    fn plugins(mut self, body: &Fields<'_>) -> Group {
        let spec = body.at("spec");
        self.0.min_members = spec.at("minMember").count();
        self.0.schedule_timeout_seconds = self.heard(spec.at("scheduleTimeoutSeconds").integer());
        self.0.phase = self.heard(body.at("status").at("phase").text());
        self.0
    }

    fn volcano(mut self, body: &Fields<'_>) -> Group {
        let spec = body.at("spec");
        self.0.min_members = spec.at("minMember").count_or_none().map(|count| count.unwrap_or(1));
        self.0.min_by_role = self.roles(&spec.at("minTaskMember"));
        self.0.queue = self.heard(spec.at("queue").text());
        self.0.priority_class = self.heard(spec.at("priorityClassName").text());
        self.0.phase = self.heard(body.at("status").at("phase").text());
        self.refuse(&spec.at("networkTopology"));
        self.refuse(&spec.at("subGroupPolicy"));
        self.0
    }

    fn topology(&mut self, constraints: &Fields<'_>) -> Vec<String> {
        let keys = constraints.items().into_iter().map(|constraint| constraint.at("key").text());
        keys.collect::<Vec<_>>().into_iter().filter_map(|key| self.heard(key)).collect()
    }

    fn roles(&mut self, field: &Fields<'_>) -> BTreeMap<String, u32> {
        let roles = field.entries().into_iter().map(|(role, least)| (role, least.count_or_none()));
        let roles = roles.collect::<Vec<_>>().into_iter();
        roles.filter_map(|(role, least)| Some((role, self.heard(least)?))).collect()
    }

    /// Keeps the value, or what is wrong with it.
    fn heard<T>(&mut self, read: Result<Option<T>, Complaint>) -> Option<T> {
        read.unwrap_or_else(|complaint| {
            self.0.complaints.push(complaint);
            None
        })
    }

    fn refuse(&mut self, field: &Fields<'_>) {
        if field.is_given() {
            self.0.complaints.push(Complaint::Unsupported { field: field.path().to_owned() });
        }
    }
}

/// `gang: {minCount: N}`, or `basic: {}` for pods that go one by one.
fn policy(policy: &Fields<'_>) -> Result<u32, Complaint> {
    let gang = policy.at("gang");
    match (gang.is_given(), policy.at("basic").is_given()) {
        (true, _) => gang.at("minCount").count(),
        (false, true) => Ok(1),
        (false, false) => Err(Complaint::Missing { field: policy.path().to_owned() }),
    }
}

/// Managed fields and other people's annotations fill most of an object and are of no use here.
fn stripped(metadata: ObjectMeta) -> ObjectMeta {
    ObjectMeta { managed_fields: None, finalizers: None, ..metadata }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(kind: GroupKind, body: &Value) -> Vec<Group> {
        let api = ApiResource {
            group: "g".into(),
            version: "v1".into(),
            api_version: "g/v1".into(),
            kind: "PodGroup".into(),
            plural: "podgroups".into(),
        };
        let mut object = json!({"metadata": {"name": "gang", "namespace": "a", "uid": "u1"}});
        object.as_object_mut().unwrap().extend(body.as_object().cloned().unwrap_or_default());
        Group::read(kind, &api, &serde_json::from_value(object).unwrap())
    }

    fn one(kind: GroupKind, body: &Value) -> Group {
        read(kind, body).pop().expect("one group")
    }

    #[test]
    fn each_api_says_its_minimum_its_own_way() {
        let upstream = json!({"spec": {"schedulingPolicy": {"gang": {"minCount": 4}}, "priority": 7}});
        let group = one(GroupKind::Upstream, &upstream);
        assert_eq!((group.min_members, group.priority), (Ok(4), Some(7)));

        let plugins =
            json!({"spec": {"minMember": 3, "scheduleTimeoutSeconds": 20}, "status": {"phase": "Pending"}});
        let group = one(GroupKind::Plugins, &plugins);
        assert_eq!((group.min_members, group.schedule_timeout_seconds), (Ok(3), Some(20)));

        let volcano =
            json!({"spec": {"minMember": 5, "queue": "research", "minTaskMember": {"ps": 1, "worker": 4}}});
        let group = one(GroupKind::Volcano, &volcano);
        assert_eq!((group.min_members, group.queue.as_deref()), (Ok(5), Some("research")));
        assert_eq!(group.min_by_role, BTreeMap::from([("ps".into(), 1), ("worker".into(), 4)]));
    }

    #[test]
    fn a_workload_declares_a_gang_for_each_entry() {
        let groups = read(
            GroupKind::Workload,
            &json!({"spec": {"podGroups": [
                {"name": "workers", "policy": {"gang": {"minCount": 8}}},
                {"name": "ps", "policy": {"basic": {}}},
                {"name": "odd"},
            ]}}),
        );
        let parts: Vec<_> =
            groups.iter().map(|group| (group.part.as_deref(), group.min_members.clone())).collect();
        let missing = Complaint::Missing { field: "spec.podGroups[2].policy".into() };
        assert_eq!(parts, [(Some("workers"), Ok(8)), (Some("ps"), Ok(1)), (Some("odd"), Err(missing))]);
    }

    #[test]
    fn a_pod_group_without_a_minimum_is_no_gang_to_volcano_only() {
        assert_eq!(one(GroupKind::Volcano, &json!({"spec": {}})).min_members, Ok(1));
        let missing = Complaint::Missing { field: "spec.minMember".into() };
        assert_eq!(one(GroupKind::Plugins, &json!({"spec": {}})).min_members, Err(missing));
    }

    #[test]
    fn hostile_values_become_complaints() {
        let said = |value: Value| {
            let group = one(GroupKind::Plugins, &json!({"spec": {"minMember": value}}));
            group.min_members.unwrap_err().to_string()
        };
        assert_eq!(said(json!(-3)), "spec.minMember is -3, which is out of range");
        assert_eq!(said(json!(0)), "spec.minMember is 0, which is out of range");
        assert_eq!(said(json!(2_000_000)), "spec.minMember is 2000000, which is out of range");
        assert_eq!(said(json!(u64::MAX)), format!("spec.minMember is {}, which is out of range", u64::MAX));
        assert_eq!(said(json!(1e300)), "spec.minMember is 1e+300, which is out of range");
        assert_eq!(said(json!(2.5)), "spec.minMember is 2.5, which is out of range");
        assert_eq!(said(json!("4")), "spec.minMember is \"4\", not a whole number");
        assert_eq!(said(json!([1])), "spec.minMember is a list, not a whole number");
        assert!(said(json!("x".repeat(1_000_000))).len() < 100);
    }

    #[test]
    fn what_is_wrong_beside_the_minimum_does_not_cost_the_gang() {
        let body =
            json!({"spec": {"minMember": 2, "queue": {"a": 1}, "minTaskMember": {"ps": -1, "worker": 1}}});
        let group = one(GroupKind::Volcano, &body);
        assert_eq!((group.min_members, group.queue), (Ok(2), None));
        assert_eq!(group.min_by_role, BTreeMap::from([("worker".into(), 1)]));
        assert_eq!(group.complaints.len(), 2);
    }

    #[test]
    fn bodies_of_any_shape_are_read() {
        for body in
            [json!({}), json!({"spec": null}), json!({"spec": [1, 2]}), json!({"spec": "x", "status": 3})]
        {
            for kind in [GroupKind::Upstream, GroupKind::Workload, GroupKind::Plugins, GroupKind::Volcano] {
                read(kind, &body);
            }
        }
    }

    #[test]
    fn what_we_cannot_keep_is_said() {
        let body = json!({"spec": {"schedulingPolicy": {"basic": {}}, "parentCompositePodGroupName": "big"}});
        let complaints = one(GroupKind::Upstream, &body).complaints;
        assert_eq!(complaints, [Complaint::Unsupported { field: "spec.parentCompositePodGroupName".into() }]);
    }
}
