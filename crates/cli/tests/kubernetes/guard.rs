//! Who may say which user, queue and priority class, as the API server itself decides it.

use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::ApiResource;
use metronome_kubernetes::objects::TrainingJobObject;
use metronome_testcluster::{ControlPlane, Options};
use serde_json::{Value, json};

use crate::helm::printed;

/// What people of this test may do besides: make what is guarded, and use one queue and one class.
const RIGHTS: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: people}
rules:
- {apiGroups: ['', batch, metronome.dev], resources: [pods, jobs, trainingjobs], verbs: [create, patch]}
- {apiGroups: [metronome.dev], resources: [queues], resourceNames: [research], verbs: [use]}
- {apiGroups: [scheduling.k8s.io], resources: [priorityclasses], resourceNames: [normal], verbs: [use]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: people}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: people}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: people}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: for-bob}
rules: [{apiGroups: [metronome.dev], resources: [users], resourceNames: [bob], verbs: [as]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: for-bob}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: for-bob}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: robot}]
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: normal}
value: 1
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 2
";

struct Person<'a> {
    client: Client,
    namespace: &'a str,
}

impl Person<'_> {
    /// Whether the API server takes it; where not, what it says. Nothing is made.
    async fn tries(&self, object: &Value) -> Result<(), String> {
        let object: DynamicObject = serde_json::from_value(object.clone()).unwrap();
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        let made = self.of(&object).create(&dry, &object).await;
        made.map(drop).map_err(|error| error.to_string())
    }

    fn of(&self, object: &DynamicObject) -> Api<DynamicObject> {
        let types = object.types.as_ref().unwrap();
        let resource = match types.kind.as_str() {
            "TrainingJob" => ApiResource::erase::<TrainingJobObject>(&()),
            "Job" => ApiResource::erase::<k8s_openapi::api::batch::v1::Job>(&()),
            _ => ApiResource::erase::<k8s_openapi::api::core::v1::Pod>(&()),
        };
        Api::namespaced_with(self.client.clone(), self.namespace, &resource)
    }
}

fn pod(metadata: Value, class: Option<&str>) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "spec": {"schedulerName": "metronome", "containers": [{"name": "main", "image": "none"}]},
    });
    pod["metadata"] = metadata;
    pod["metadata"]["name"] = json!("p");
    if let Some(class) = class {
        pod["spec"]["priorityClassName"] = json!(class);
    }
    pod
}

fn job_of(pod: &Value) -> Value {
    let mut template = json!({"metadata": pod["metadata"], "spec": pod["spec"]});
    template["metadata"].as_object_mut().unwrap().remove("name");
    template["spec"]["restartPolicy"] = json!("Never");
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"template": template}})
}

fn training_job(metadata: Value, spec: Value) -> Value {
    let mut job = json!({"apiVersion": "metronome.dev/v1alpha1", "kind": "TrainingJob"});
    job["metadata"] = metadata;
    job["metadata"]["name"] = json!("t");
    job["spec"] = spec;
    job["spec"]["members"] = json!(1);
    job["spec"]["image"] = json!("none");
    job
}

fn says(key: &str, value: &str) -> Value {
    json!({"annotations": {format!("metronome.dev/{key}"): value}})
}

#[tokio::test(flavor = "multi_thread")]
async fn people_say_what_they_may_and_nothing_else() {
    let Some(plane) = ControlPlane::start_or_skip(Options::from_env()).await else { return };
    plane.apply_yaml(&printed("metronome", &["--guard"])).await.unwrap();
    plane.apply_yaml(RIGHTS).await.unwrap();
    let namespace = plane.namespace("people").await.unwrap();
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": namespace}});
    plane.apply_yaml(&account.to_string()).await.unwrap();
    let person = async |name: &str| {
        let client = plane.user_client(name, &["people", "system:authenticated"]).await.unwrap();
        Person { client, namespace: &namespace }
    };
    let (ann, robot) = (person("ann").await, person("robot").await);
    until_guarded(&ann).await;
    let may = [
        pod(json!({}), None),
        pod(says("user", "ann"), Some("normal")),
        pod(says("queue", "research"), None),
        job_of(&pod(says("user", "ann"), None)),
        training_job(says("user", "ann"), json!({"queue": "research", "priorityClassName": "normal"})),
    ];
    for object in &may {
        assert_eq!(ann.tries(object).await, Ok(()), "{object}");
    }
    let may_not = [
        (pod(says("user", "bob"), None), "another user"),
        (pod(json!({"labels": {"metronome.dev/user": "bob"}}), None), "another user"),
        (pod(says("queue", "other"), None), "names a queue"),
        (pod(json!({}), Some("high")), "names a priority class"),
        (job_of(&pod(says("user", "bob"), None)), "another user"),
        (job_of(&pod(json!({}), Some("high"))), "names a priority class"),
        (training_job(says("user", "bob"), json!({})), "another user"),
        (training_job(json!({}), json!({"queue": "other"})), "names a queue"),
        (training_job(json!({}), json!({"priorityClassName": "high"})), "names a priority class"),
    ];
    for (object, why) in &may_not {
        let said = ann.tries(object).await.unwrap_err();
        assert!(said.contains(why), "{object}: {said}");
    }
    let mut both = pod(says("user", "ann"), None);
    both["metadata"]["labels"] = json!({"metronome.dev/user": "bob"});
    assert!(ann.tries(&both).await.unwrap_err().contains("several users"));
    assert_eq!(robot.tries(&pod(says("user", "bob"), None)).await, Ok(()), "the robot may speak for bob");
    let mut of_others = pod(says("user", "bob"), None);
    of_others["spec"]["schedulerName"] = json!("default-scheduler");
    assert_eq!(ann.tries(&of_others).await, Ok(()), "pods of other schedulers are left alone");
    only_changes_take_a_right(&ann, &robot).await;
}

async fn only_changes_take_a_right(ann: &Person<'_>, robot: &Person<'_>) {
    let object: DynamicObject = serde_json::from_value(pod(says("user", "bob"), None)).unwrap();
    robot.of(&object).create(&PostParams::default(), &object).await.unwrap();
    let patch = async |metadata: Value| {
        let patch = Patch::Merge(json!({"metadata": metadata}));
        ann.of(&object).patch("p", &PatchParams::default(), &patch).await
    };
    patch(json!({"annotations": {"colour": "red"}})).await.unwrap();
    let said = patch(says("user", "carl")).await.unwrap_err().to_string();
    assert!(said.contains("another user"), "{said}");
}

/// A policy is in force some moments after it was made.
async fn until_guarded(ann: &Person<'_>) {
    let begin = std::time::Instant::now();
    while ann.tries(&pod(says("user", "bob"), None)).await.is_ok() {
        assert!(begin.elapsed() < metronome_testcluster::corner::PATIENCE, "the policy is not in force");
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
}
