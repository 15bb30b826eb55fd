//! `TrainingJob`s on a real API server: their pods start together, are made anew when they fail, and end.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod, Service};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::ApiResource;
use metronome_kubernetes::objects::{TrainingJobObject, training_job_definition};
use metronome_testcluster::{Corner, shared_with_controllers};
use serde_json::{Value, json};

use crate::scheduler::Scheduled;

/// A corner whose API server knows such jobs, with our scheduler and controller. What jobs own is deleted with them by
/// Kubernetes' own controllers.
async fn corner(name: &str, nodes: usize) -> Option<Scheduled> {
    let plane = shared_with_controllers().await?;
    plane.apply_yaml(&training_job_definition()).await.unwrap();
    Some(Scheduled::new(plane, name, nodes).await)
}

fn jobs(corner: &Corner) -> Api<DynamicObject> {
    let api = ApiResource::erase::<TrainingJobObject>(&());
    Api::namespaced_with(corner.client.clone(), &corner.namespace, &api)
}

/// Workers that run for so long on a GPU each.
fn template(corner: &Corner, gpus: u32, annotations: &Value) -> Value {
    let mut pod = corner.pod("unnamed", gpus);
    pod["metadata"] = json!({"annotations": annotations});
    pod["spec"].as_object_mut().unwrap().remove("schedulerName");
    pod
}

async fn try_submit(corner: &Corner, name: &str, mut spec: Value) -> Result<(), String> {
    spec["schedulerName"] = json!(corner.namespace);
    let job = json!({
        "apiVersion": "metronome.dev/v1alpha1", "kind": "TrainingJob",
        "metadata": {"name": name}, "spec": spec,
    });
    let job: DynamicObject = serde_json::from_value(job).unwrap();
    let made = jobs(corner).create(&PostParams::default(), &job).await;
    made.map(drop).map_err(|error| error.to_string())
}

async fn submit(corner: &Corner, name: &str, spec: Value) {
    try_submit(corner, name, spec).await.unwrap();
}

async fn status(corner: &Corner, name: &str) -> Value {
    let job = jobs(corner).get_opt(name).await.unwrap();
    job.map(|job| job.data["status"].clone()).unwrap_or_default()
}

async fn until_phase(corner: &Corner, name: &str, phase: &str) -> Value {
    corner
        .until(&format!("{name} is {phase}"), async |corner| {
            let status = status(corner, name).await;
            (status["phase"] == phase).then_some(status)
        })
        .await
}

async fn pods(corner: &Corner) -> Vec<Pod> {
    corner.pods().list(&ListParams::default()).await.unwrap().items
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_runs_as_a_gang_and_is_done() {
    let Some(corner) = corner("training", 2).await else { return };
    let worker = template(&corner, 1, &json!({"sim.metronome.dev/runs-for": "1s"}));
    let server = template(&corner, 0, &json!({}));
    let roles = json!([{"name": "ps", "members": 1, "template": server}, {"name": "worker", "members": 4, "template": worker}]);
    submit(&corner, "bert", json!({"roles": roles})).await;
    let seats = corner.until_bound(5).await;
    assert!(seats.contains_key("bert-ps-0") && seats.contains_key("bert-worker-3"), "{seats:?}");
    let pod = corner.pods().get("bert-worker-2").await.unwrap();
    let env = pod.spec.unwrap().containers[0].env.clone().unwrap();
    let said =
        |name: &str| env.iter().find(|one| one.name == name).and_then(|one| one.value.clone()).unwrap();
    assert_eq!((said("RANK"), said("WORLD_SIZE")), ("2".into(), "4".into()));
    assert_eq!(said("MASTER_ADDR"), "bert-worker-0.bert");
    let services: Api<Service> = Api::namespaced(corner.client.clone(), &corner.namespace);
    assert_eq!(services.get("bert").await.unwrap().spec.unwrap().cluster_ip.as_deref(), Some("None"));
    let status = until_phase(&corner, "bert", "Succeeded").await;
    assert_eq!((&status["restarts"], &status["attempt"]), (&json!(0), &json!(0)));
    corner
        .until("its server is no longer there", async |corner| {
            corner.pods().get_opt("bert-ps-0").await.unwrap().is_none().then_some(())
        })
        .await;
    corner.judge();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_fails_is_started_again_as_a_whole_and_not_for_ever() {
    let Some(corner) = corner("fails", 2).await else { return };
    let worker = template(&corner, 1, &json!({"sim.metronome.dev/fails-after": "500ms"}));
    submit(&corner, "bad", json!({"members": 2, "template": worker, "backoffLimit": 1})).await;
    let status = until_phase(&corner, "bad", "Failed").await;
    assert_eq!((&status["restarts"], &status["lastFailure"]["exitCode"]), (&json!(1), &json!(1)), "{status}");
    let message = status["message"].as_str().unwrap();
    assert!(message.contains("exit code 1") && message.ends_with("it has failed too often"), "{message}");
    corner.judge();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_is_taken_away_starts_the_gang_again_and_does_not_count() {
    let Some(corner) = corner("taken", 2).await else { return };
    submit(
        &corner,
        "job",
        json!({"members": 2, "template": template(&corner, 1, &json!({})), "backoffLimit": 0}),
    )
    .await;
    until_phase(&corner, "job", "Running").await;
    let before = corner.pods().get("job-worker-1").await.unwrap().uid();
    corner
        .until("the first runs", async |corner| {
            let pod = corner.pods().get("job-worker-1").await.unwrap();
            (pod.status?.phase? == "Running").then_some(())
        })
        .await;
    corner.delete("job-worker-0").await;
    corner
        .until("both are made anew", async |corner| {
            let pod = corner.pods().get_opt("job-worker-1").await.unwrap()?;
            (pod.uid() != before && pod.spec?.node_name.is_some()).then_some(())
        })
        .await;
    let status = until_phase(&corner, "job", "Running").await;
    assert_eq!((&status["restarts"], &status["attempt"]), (&json!(0), &json!(1)), "{status}");
    corner.judge();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_is_suspended_has_no_pods_and_leaves_nothing_behind() {
    let Some(corner) = corner("suspended", 1).await else { return };
    submit(&corner, "job", json!({"members": 2, "template": template(&corner, 1, &json!({}))})).await;
    until_phase(&corner, "job", "Running").await;
    let suspend = |suspend: bool| Patch::Merge(json!({"spec": {"suspend": suspend}}));
    jobs(&corner).patch("job", &PatchParams::default(), &suspend(true)).await.unwrap();
    until_phase(&corner, "job", "Suspended").await;
    corner.until("it has no pods", async |corner| pods(corner).await.is_empty().then_some(())).await;
    jobs(&corner).patch("job", &PatchParams::default(), &suspend(false)).await.unwrap();
    until_phase(&corner, "job", "Running").await;
    jobs(&corner).delete("job", &DeleteParams::default()).await.unwrap();
    corner.until("it has no pods again", async |corner| pods(corner).await.is_empty().then_some(())).await;
    let services: Api<Service> = Api::namespaced(corner.client.clone(), &corner.namespace);
    corner
        .until("its service is gone", async |_| {
            services.list(&ListParams::default()).await.unwrap().items.is_empty().then_some(())
        })
        .await;
    corner.judge();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_makes_no_sense_is_refused_with_a_sentence() {
    let Some(corner) = corner("refused", 1).await else { return };
    let refused = async |spec: Value, sentence: &str| {
        let said = try_submit(&corner, "job", spec).await.unwrap_err();
        assert!(said.contains(sentence), "{said}");
    };
    refused(json!({}), "a job needs an image or a template").await;
    refused(json!({"image": "i", "template": {}}), "say a template, or image and resources, not both").await;
    refused(json!({"image": "i", "minMembers": 2}), "minMembers and maxMembers go together").await;
    refused(json!({"image": "i", "minMembers": 3, "maxMembers": 2}), "the least first").await;
    refused(json!({"image": "i", "members": 2, "minMembers": 1, "maxMembers": 2}), "not both").await;
    refused(json!({"image": "i", "members": 0}), "spec.members").await;
    refused(json!({"image": "i", "deadline": {}}), "say after or at").await;
    refused(json!({"image": "i", "deadline": {"after": "soon"}}), "spec.deadline.after").await;
    refused(json!({"image": "i", "members": 1, "roles": [{"name": "worker"}]}), "say roles, or members")
        .await;
    refused(json!({"roles": [{"name": "worker"}]}), "each role needs an image or a template").await;
    refused(json!({"image": "i", "topology": {}}), "say preferred or required").await;
    submit(&corner, "job", json!({"image": "i", "members": 8})).await;
    let change = async |spec: Value| {
        let patch = Patch::Merge(json!({"spec": spec}));
        jobs(&corner).patch("job", &PatchParams::default(), &patch).await.map_err(|error| error.to_string())
    };
    let said = change(json!({"image": "j"})).await.unwrap_err();
    assert!(said.contains("image cannot be changed"), "{said}");
    change(json!({"queue": "research", "deadline": {"after": "1h"}})).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_api_server_does_not_take_is_said() {
    let Some(corner) = corner("untaken", 1).await else { return };
    submit(&corner, "job", json!({"template": {"spec": {"containers": []}}})).await;
    corner
        .until("it says so", async |corner| {
            let message = status(corner, "job").await["message"].as_str()?.to_owned();
            message.contains("spec.containers: Required value").then_some(())
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_says_where_it_stands_and_when_it_will_start_and_end() {
    let Some(corner) = corner("foreseen", 1).await else { return };
    let spec = json!({"template": template(&corner, 4, &json!({})), "work": {"duration": "1h"}});
    submit(&corner, "first", spec.clone()).await;
    until_phase(&corner, "first", "Running").await;
    submit(&corner, "second", spec).await;
    let status = corner
        .until("it is foreseen", async |corner| {
            let status = status(corner, "second").await;
            (status["starts"].is_string() && status["ends"].is_string()).then_some(status)
        })
        .await;
    assert_eq!((&status["phase"], &status["position"]), (&json!("Waiting"), &json!("1 of 1")), "{status}");
    let (starts, ends) = (status["starts"].as_str().unwrap(), status["ends"].as_str().unwrap());
    let (early, late) = ends.split_once(" to ").unwrap();
    assert!(starts < early && early < late, "{starts}, {ends}");
    let message = status["message"].as_str().unwrap();
    assert!(message.contains("need 4 GPUs"), "{message}");
    corner.judge();
}

/// One member that can use eight cores and saves its work within a second, with two hours to go.
fn sharing(corner: &Corner) -> Value {
    let mut pod = template(corner, 0, &json!({}));
    pod["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "1"}, "limits": {"cpu": "8"}});
    json!({
        "template": pod, "checkpoint": {"takes": "1s"},
        "work": {"duration": "1h", "iterations": 3600},
    })
}

async fn annotation(corner: &Corner, pod: &str, key: &str) -> Option<String> {
    let pod = corner.pods().get_opt(pod).await.unwrap()?;
    pod.metadata.annotations?.get(&format!("metronome.dev/{key}")).cloned()
}

async fn annotate(corner: &Corner, pod: &str, key: &str, value: &str) {
    corner.patch(pod, json!({"metadata": {"annotations": {format!("metronome.dev/{key}"): value}}})).await;
}

async fn open_second_node(corner: &Corner, open: bool) {
    let nodes: Api<Node> = Api::all(corner.client.clone());
    let patch = Patch::Merge(json!({"spec": {"unschedulable": !open}}));
    let second = format!("{}-1", corner.namespace);
    nodes.patch(&second, &PatchParams::default(), &patch).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_saves_its_work_and_goes_on_where_there_is_more_room() {
    let Some(corner) = corner("moved", 2).await else { return };
    open_second_node(&corner, false).await;
    for job in ["a", "b"] {
        submit(&corner, job, sharing(&corner)).await;
    }
    let seats = corner.until_bound(2).await;
    assert_eq!(seats["a-worker-0"], seats["b-worker-0"]);
    tokio::time::sleep(Duration::from_secs(2)).await;
    for pod in ["a-worker-0", "b-worker-0"] {
        annotate(&corner, pod, "progress", r#"{"iteration": 1}"#).await;
    }
    open_second_node(&corner, true).await;
    let (moved, word) = corner
        .until("one is asked to save its work", async |corner| {
            for pod in ["a-worker-0", "b-worker-0"] {
                if let Some(word) = annotation(corner, pod, "checkpoint-request").await {
                    return Some((pod, word));
                }
            }
            None
        })
        .await;
    let before = corner.pods().get(moved).await.unwrap().uid();
    annotate(&corner, moved, "checkpointed", &word).await;
    corner
        .until("it goes on on the other node", async |corner| {
            let pod = corner.pods().get_opt(moved).await.unwrap()?;
            let elsewhere = pod.spec.clone()?.node_name? == format!("{}-1", corner.namespace);
            (pod.uid() != before && elsewhere).then_some(())
        })
        .await;
    let job = moved.trim_end_matches("-worker-0");
    let status = until_phase(&corner, job, "Running").await;
    assert_eq!(status["restarts"], json!(0), "it is not its fault: {status}");
    corner.judge();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_has_the_cores_that_its_deadline_needs() {
    let Some(corner) = corner("cores", 1).await else { return };
    let mut pod = template(&corner, 0, &json!({}));
    pod["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "2"}});
    let deadline = json!({"after": "2h", "binding": "Strict"});
    let spec = json!({
        "template": pod, "cpu": {"min": 2, "max": 8}, "work": {"duration": "3h"}, "deadline": deadline,
    });
    submit(&corner, "late", spec).await;
    corner
        .until("it has them", async |corner| {
            let pod = corner.pods().get_opt("late-worker-0").await.unwrap()?;
            let has = pod.status?.container_statuses?[0].resources.clone()?.requests?["cpu"].0.clone();
            (has == "8").then_some(())
        })
        .await;
    corner
        .until("it says that it will be in time", async |corner| {
            let status = status(corner, "late").await;
            let conditions = status["conditions"].as_array()?.clone();
            let on_track = conditions.into_iter().find(|one| one["type"] == "OnTrack")?;
            (on_track["status"] == "True" && on_track["reason"] == "Promised").then_some(())
        })
        .await;
    corner.judge();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_has_as_many_members_as_there_is_room_for_and_gives_them_back() {
    let Some(corner) = corner("elastic", 1).await else { return };
    let worker = template(&corner, 1, &json!({}));
    let spec = json!({
        "minMembers": 2, "maxMembers": 8, "template": worker, "checkpoint": {"takes": "1s"},
        "work": {"duration": "1h"},
    });
    submit(&corner, "bert", spec).await;
    corner.until_bound(4).await;
    assert_eq!(told_sizes(&corner, "bert").await, ["4"; 4]);
    let status = until_phase(&corner, "bert", "Running").await;
    assert_eq!((&status["roles"][0]["wanted"], &status["restarts"]), (&json!(4), &json!(0)), "{status}");
    submit(&corner, "other", json!({"members": 2, "template": worker, "work": {"duration": "1m"}})).await;
    for index in 0..4 {
        let pod = format!("bert-worker-{index}");
        let word = corner
            .until("it is asked to save its work", async |corner| {
                annotation(corner, &pod, "checkpoint-request").await
            })
            .await;
        annotate(&corner, &pod, "checkpointed", &word).await;
    }
    until_phase(&corner, "other", "Running").await;
    corner
        .until("it goes on with two", async |corner| {
            let pods = pods(corner).await;
            let placed =
                pods.iter().filter(|pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some()));
            (pods.len() == 4 && placed.count() == 4).then_some(())
        })
        .await;
    assert_eq!(told_sizes(&corner, "bert").await, ["2"; 2]);
    let status = until_phase(&corner, "bert", "Running").await;
    assert_eq!(status["restarts"], json!(0), "it is not its fault: {status}");
    corner.judge();
}

/// What the members of a job were told of how many they are.
async fn told_sizes(corner: &Corner, job: &str) -> Vec<String> {
    let pods = pods(corner).await;
    let of_it = pods.into_iter().filter(|pod| pod.name_any().starts_with(job));
    let told = of_it.map(|pod| {
        let env = pod.spec.unwrap().containers[0].env.clone().unwrap();
        env.into_iter().find(|one| one.name == "WORLD_SIZE").and_then(|one| one.value).unwrap()
    });
    told.collect()
}
