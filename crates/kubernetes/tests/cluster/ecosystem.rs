//! Objects of others, from which their real controllers make pods: these start together, too.

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams};
use metronome_testcluster::{Companion, ControlPlane, Corner, MpiGroups, Operator, shared_with_controllers};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::scheduler::Scheduled;

async fn plane() -> Option<&'static ControlPlane> {
    static OPERATORS: OnceCell<[Companion; 2]> = OnceCell::const_new();
    let plane = shared_with_controllers().await?;
    let start = async || {
        let job_set = plane.operate(Operator::JobSet).await.unwrap();
        [job_set, plane.operate(Operator::Trainer).await.unwrap()]
    };
    OPERATORS.get_or_init(start).await;
    Some(plane)
}

/// A pod on a GPU as a template, with one annotation.
fn template(corner: &Corner, annotation: (&str, &str)) -> Value {
    let mut pod = corner.pod("unnamed", 1);
    pod["metadata"] = json!({"annotations": {annotation.0: annotation.1}});
    pod["spec"]["restartPolicy"] = json!("Never");
    pod
}

fn job_of(template: &Value, pods: u32) -> Value {
    json!({"parallelism": pods, "completions": pods, "completionMode": "Indexed", "template": template})
}

async fn make(corner: &Corner, api_version: &str, kind: &str, name: &str, spec: Value) {
    let metadata = json!({"name": name, "namespace": corner.namespace});
    let object = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec});
    corner.plane.apply_yaml(&object.to_string()).await.unwrap();
}

/// One GPU too few is free for so many pods: who fills the others.
async fn nearly_enough(corner: &Corner, members: u32) {
    corner.create([corner.pod("other", 4 + 1 - members)]).await;
    corner.until_bound(1).await;
}

async fn members(corner: &Corner) -> Vec<Pod> {
    let pods = corner.pods().list(&ListParams::default()).await.unwrap().items;
    pods.into_iter().filter(|pod| pod.name_any() != "other").collect()
}

/// All members are there and wait for one another; once there is room, all are bound.
async fn starts_whole(corner: &Corner, count: u32) {
    let count = count as usize;
    let wanted = format!("need {count} GPUs");
    for index in 0..count {
        corner
            .until(&format!("all {count} members wait"), async |corner| {
                let members = members(corner).await;
                let pod = members.get(index).filter(|_| members.len() == count)?;
                let (reason, message) = corner.verdict(&pod.name_any()).await?;
                (reason == "Unschedulable" && message.contains(&wanted)).then_some(())
            })
            .await;
    }
    let seats = corner.seats().await;
    assert_eq!(seats.keys().collect::<Vec<_>>(), ["other"], "a part of it would fit");
    corner.delete("other").await;
    corner
        .until("all members are bound", async |corner| {
            let bound = |pod: &Pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
            (members(corner).await.iter().filter(|pod| bound(pod)).count() == count).then_some(())
        })
        .await;
    corner.judge();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_starts_whole() {
    let Some(plane) = plane().await else { return };
    let corner = Scheduled::new(plane, "job", 1).await;
    nearly_enough(&corner, 3).await;
    let template = template(&corner, ("metronome.dev/gang-of", "job"));
    make(&corner, "batch/v1", "Job", "train", job_of(&template, 3)).await;
    starts_whole(&corner, 3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_set_starts_whole() {
    let Some(plane) = plane().await else { return };
    let corner = Scheduled::new(plane, "set", 1).await;
    nearly_enough(&corner, 4).await;
    let template = template(&corner, ("metronome.dev/gang-of", "jobset"));
    let replicated = |name: &str| json!({"name": name, "template": {"spec": job_of(&template, 2)}});
    let spec = json!({"replicatedJobs": [replicated("ps"), replicated("workers")]});
    make(&corner, "jobset.x-k8s.io/v1alpha2", "JobSet", "train", spec).await;
    starts_whole(&corner, 4).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_set_whose_jobs_wait_for_one_another_is_told_that_it_is_no_gang() {
    let Some(plane) = plane().await else { return };
    let corner = Scheduled::new(plane, "order", 1).await;
    let template = template(&corner, ("metronome.dev/gang-of", "jobset"));
    let first = json!({"name": "data", "template": {"spec": job_of(&template, 1)}});
    let depends = json!([{"name": "data", "status": "Complete"}]);
    let second = json!({"name": "train", "dependsOn": depends, "template": {"spec": job_of(&template, 1)}});
    let spec = json!({"replicatedJobs": [first, second]});
    make(&corner, "jobset.x-k8s.io/v1alpha2", "JobSet", "train", spec).await;
    let pod = corner.until("its first pod is there", async |corner| members(corner).await.pop()).await;
    let (reason, message) = corner.until_verdict(&pod.name_any(), |_, said| said.contains("dependsOn")).await;
    assert_eq!(reason, "SchedulerError", "{message}");
}

/// A runtime of Kubeflow's with one role, and a job of two nodes that uses it.
async fn train(corner: &Corner, template: &Value, mut runtime: Value) {
    let mut pod = template.clone();
    pod["spec"]["containers"][0]["name"] = json!("node");
    let labels = json!({"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"});
    let node =
        json!({"name": "node", "template": {"metadata": {"labels": labels}, "spec": {"template": pod}}});
    runtime["template"] = json!({"spec": {"replicatedJobs": [node]}});
    let api_version = "trainer.kubeflow.org/v1alpha1";
    make(corner, api_version, "TrainingRuntime", "torch", runtime).await;
    let reference = json!({"name": "torch", "kind": "TrainingRuntime"});
    let spec = json!({"runtimeRef": reference, "trainer": {"numNodes": 2}});
    make(corner, api_version, "TrainJob", "train", spec).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_train_job_starts_whole_by_the_set_it_makes() {
    let Some(plane) = plane().await else { return };
    let corner = Scheduled::new(plane, "kubeflow", 1).await;
    nearly_enough(&corner, 2).await;
    let policy = json!({"mlPolicy": {"numNodes": 1, "torch": {}}});
    train(&corner, &template(&corner, ("metronome.dev/gang-of", "jobset")), policy).await;
    starts_whole(&corner, 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_train_job_starts_whole_by_the_group_it_makes() {
    let Some(plane) = plane().await else { return };
    let corner = Scheduled::new(plane, "cosched", 1).await;
    nearly_enough(&corner, 2).await;
    let policy = json!({"mlPolicy": {"numNodes": 1}, "podGroupPolicy": {"coscheduling": {"scheduleTimeoutSeconds": 120}}});
    train(&corner, &template(&corner, ("example.com/nothing", "of-ours")), policy).await;
    starts_whole(&corner, 2).await;
    let kind = GroupVersionKind::gvk("scheduling.x-k8s.io", "v1alpha1", "PodGroup");
    let groups: Api<DynamicObject> =
        Api::namespaced_with(corner.client.clone(), &corner.namespace, &ApiResource::from_gvk(&kind));
    assert_eq!(groups.get("train").await.unwrap().data["spec"]["minMember"], 2);
}

/// One after the other: the operator serves its health at one port, whatever is said.
#[tokio::test(flavor = "multi_thread")]
async fn an_mpi_job_starts_whole_by_the_group_it_makes_and_where_its_pods_ask_for_it() {
    let Some(plane) = shared_with_controllers().await else { return };
    let ways = [(MpiGroups::Written, "example.com/nothing"), (MpiGroups::None, "metronome.dev/gang-of")];
    for (groups, annotation) in ways {
        let corner = Scheduled::new(plane, "mpi", 1).await;
        let _operator = plane.operate_mpi(&corner.namespace, groups).await.unwrap();
        nearly_enough(&corner, 3).await;
        let template = template(&corner, (annotation, "mpijob"));
        let replicas =
            |count: u32| json!({"replicas": count, "restartPolicy": "Never", "template": template});
        let spec = json!({"mpiReplicaSpecs": {"Launcher": replicas(1), "Worker": replicas(2)}});
        make(&corner, "kubeflow.org/v2beta1", "MPIJob", "train", spec).await;
        starts_whole(&corner, 3).await;
    }
}

/// As Ray's operator makes them, and that of Kubeflow's training: the pods say whose they are by a label.
#[tokio::test(flavor = "multi_thread")]
async fn clusters_of_ray_and_jobs_of_kubeflow_start_whole_where_their_pods_ask_for_it() {
    let Some(plane) = shared_with_controllers().await else { return };
    let worker = json!({"replicas": 2});
    let ray = json!({"headGroupSpec": {}, "workerGroupSpecs": [worker]});
    let torch = json!({"pytorchReplicaSpecs": {"Master": {"replicas": 1}, "Worker": worker}});
    let tensorflow = json!({"tfReplicaSpecs": {"PS": {}, "Worker": worker}});
    let owners = [
        ("ray.io/v1", "RayCluster", "ray.io/cluster", ray),
        ("kubeflow.org/v1", "PyTorchJob", "training.kubeflow.org/job-name", torch),
        ("kubeflow.org/v1", "TFJob", "training.kubeflow.org/job-name", tensorflow),
    ];
    for (api_version, kind, label, spec) in owners {
        define(plane, api_version, kind).await;
        let corner = Scheduled::new(plane, &kind.to_lowercase(), 1).await;
        nearly_enough(&corner, 3).await;
        make(&corner, api_version, kind, "train", spec).await;
        let pods = (0..3).map(|at| {
            let mut pod = corner.pod(&format!("train-{at}"), 1);
            pod["metadata"]["labels"] = json!({label: "train"});
            pod["metadata"]["annotations"] = json!({"metronome.dev/gang-of": kind.to_lowercase()});
            pod
        });
        corner.create(pods).await;
        starts_whole(&corner, 3).await;
    }
}

/// A kind that takes any object.
async fn define(plane: &ControlPlane, api_version: &str, kind: &str) {
    let (group, version) = api_version.split_once('/').unwrap();
    let plural = format!("{}s", kind.to_lowercase());
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version =
        json!({"name": version, "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    let names = json!({"plural": plural, "singular": kind.to_lowercase(), "kind": kind});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    });
    plane.apply_yaml(&definition.to_string()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_kueue_holds_back_is_left_alone_and_then_starts_whole() {
    let Some(plane) = plane().await else { return };
    let corner = Scheduled::new(plane, "kueue", 1).await;
    let mut gang = corner.gang("g", 2, 1);
    for pod in &mut gang {
        pod["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = json!("team");
        pod["spec"]["schedulingGates"] = json!([{"name": "kueue.x-k8s.io/admission"}]);
    }
    corner.create(gang).await;
    let template = template(&corner, ("metronome.dev/gang-of", "job"));
    let mut suspended = job_of(&template, 2);
    suspended["suspend"] = json!(true);
    make(&corner, "batch/v1", "Job", "held", suspended.clone()).await;
    corner.patch("g-0", json!({"spec": {"schedulingGates": null}})).await;
    corner.until_verdict("g-0", |_, message| message.contains("1 of the 2")).await;
    assert!(corner.seats().await.is_empty());
    let (reason, _) = corner.verdict("g-1").await.unwrap();
    assert_eq!(reason, "SchedulingGated", "its verdict is the API server's own");
    corner.patch("g-1", json!({"spec": {"schedulingGates": null}})).await;
    assert_eq!(corner.until_bound(2).await.into_keys().collect::<Vec<_>>(), ["g-0", "g-1"]);
    suspended["suspend"] = json!(false);
    make(&corner, "batch/v1", "Job", "held", suspended).await;
    corner.until_bound(4).await;
    corner.judge();
}
