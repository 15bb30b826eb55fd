//! Everything that a scheduler ever does to a cluster, step by step.

use std::sync::Mutex;
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, ApiResource, DynamicObject, PostParams};
use metronome_kubernetes::objects::{FabricObject, TrainingJobObject};
use metronome_testcluster::Corner;
use serde_json::{Value, json};

/// Counts of one event are written no more often than every ten seconds.
const BETWEEN_COUNTS: Duration = Duration::from_secs(11);

/// What was done from when on.
#[derive(Default)]
pub(crate) struct Steps(Mutex<Vec<(Timestamp, &'static str)>>);

impl Steps {
    fn begin(&self, step: &'static str) {
        self.0.lock().unwrap().push((Timestamp::now(), step));
    }

    /// What was under way at some time.
    pub(crate) fn at(&self, time: Timestamp) -> &'static str {
        let steps = self.0.lock().unwrap();
        steps.iter().rev().find(|(since, _)| *since <= time).map_or("it starts", |(_, step)| step)
    }
}

pub(crate) async fn do_everything(corner: &Corner, elsewhere: &str, steps: &Steps) {
    steps.begin("a gang is bound over what an earlier leader meant");
    a_gang_is_bound_over_what_an_earlier_leader_meant(corner).await;
    steps.begin("one waits and is told so");
    one_waits_and_is_told_so(corner).await;
    steps.begin("one is told the same twice");
    one_is_told_the_same_twice(corner).await;
    steps.begin("a training job fails twice and is forgotten");
    a_training_job_fails_twice_and_is_forgotten(corner, elsewhere).await;
    steps.begin("one makes room for another");
    one_makes_room_for_another(corner).await;
    steps.begin("cores and weights are given");
    cores_and_weights_are_given(corner).await;
    steps.begin("volcanos group is told its phase");
    volcanos_group_is_told_its_phase(corner).await;
    steps.begin("a queue says what it holds");
    a_queue_says_what_it_holds(corner).await;
    steps.begin("a fabric is told that it does not count");
    a_fabric_is_told_that_it_does_not_count(corner).await;
    corner
        .until("nothing is recorded any more", async |corner| (corner.intents().await == 0).then_some(()))
        .await;
}

async fn clear(corner: &Corner, pods: &[&str]) {
    for pod in pods {
        corner.delete(pod).await;
    }
    corner
        .until("they are gone", async |corner| {
            let seats = corner.seats().await;
            (!pods.iter().any(|pod| seats.contains_key(*pod))).then_some(())
        })
        .await;
}

/// The name that every leader gives to the record of a labelled gang.
fn intent_name(gang: &str) -> String {
    let step = |hash: u128, byte: u8| {
        (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
    };
    let hash = gang.bytes().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, step);
    format!("metronome-gang-{hash:032x}")
}

async fn a_gang_is_bound_over_what_an_earlier_leader_meant(corner: &Corner) {
    let gang = format!("label/{}/g", corner.namespace);
    let meant = json!({"gang": gang, "generation": 1, "epoch": 0, "seats": []});
    let record = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": intent_name(&gang), "namespace": corner.namespace, "labels": {"metronome.dev/intent": ""},
        },
        "data": {"intent.json": meant.to_string()},
    });
    let mut pods = corner.gang("g", 2, 1);
    let last = pods.pop();
    corner.create(pods).await;
    corner.until_verdict("g-0", |_, said| said.contains("1 of the 2")).await;
    corner.plane.apply_yaml(&record.to_string()).await.unwrap();
    corner.create(last).await;
    corner.until_bound(2).await;
    clear(corner, &["g-0", "g-1"]).await;
}

async fn one_waits_and_is_told_so(corner: &Corner) {
    corner.create([corner.pod("too-large", 5)]).await;
    corner.until_verdict("too-large", |reason, _| reason == "Unschedulable").await;
    clear(corner, &["too-large"]).await;
}

/// What is told of a pod again after a while is counted on the event that there is.
async fn one_is_told_the_same_twice(corner: &Corner) {
    corner.create([corner.pod("talks", 1)]).await;
    corner.until_bound(1).await;
    for nonsense in ["nonsense 1", "nonsense 2"] {
        corner
            .patch("talks", json!({"metadata": {"annotations": {"metronome.dev/progress": nonsense}}}))
            .await;
        corner
            .until("it is told so", async |corner| {
                corner.told("talks").await.into_iter().find(|(reason, _)| reason == "ProgressIgnored")
            })
            .await;
        tokio::time::sleep(BETWEEN_COUNTS).await;
    }
    clear(corner, &["talks"]).await;
}

async fn a_training_job_fails_twice_and_is_forgotten(corner: &Corner, elsewhere: &str) {
    let mut worker = corner.pod("unnamed", 1);
    worker["metadata"] = json!({"annotations": {"sim.metronome.dev/fails-after": "200ms"}});
    let job = json!({
        "apiVersion": "metronome.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": "bert"},
        "spec": {
            "schedulerName": corner.namespace, "members": 2, "template": worker, "rendezvous": "MPI",
            "backoffLimit": 1, "ttlSecondsAfterFinished": 1,
        },
    });
    let job: DynamicObject = serde_json::from_value(job).unwrap();
    let resource = ApiResource::erase::<TrainingJobObject>(&());
    let jobs: Api<DynamicObject> = Api::namespaced_with(corner.client.clone(), elsewhere, &resource);
    jobs.create(&PostParams::default(), &job).await.unwrap();
    corner
        .until("the job has been deleted", async |_| {
            jobs.get_opt("bert").await.unwrap().is_none().then_some(())
        })
        .await;
}

fn of_class(mut pod: Value, class: &str) -> Value {
    pod["spec"]["priorityClassName"] = json!(class);
    pod
}

async fn one_makes_room_for_another(corner: &Corner) {
    corner.create([of_class(corner.pod("low", 4), "low")]).await;
    corner.until("the first is bound", async |corner| corner.seats().await.get("low").cloned()).await;
    corner.create([of_class(corner.pod("high", 4), "high")]).await;
    corner.until("the other has its place", async |corner| corner.seats().await.get("high").cloned()).await;
    clear(corner, &["high"]).await;
}

fn sharing(corner: &Corner, name: &str, said: &[(&str, &str)], limits: &Value) -> Value {
    let mut pod = corner.pod(name, 0);
    pod["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "2"}, "limits": limits});
    for (key, value) in said {
        pod["metadata"]["annotations"][format!("metronome.dev/{key}")] = json!(value);
    }
    pod
}

async fn annotation(corner: &Corner, pod: &str, key: &str) -> Option<String> {
    corner.pods().get(pod).await.unwrap().metadata.annotations?.get(key).cloned()
}

async fn cores_and_weights_are_given(corner: &Corner) {
    let late = [("deadline", "2h"), ("duration", "3h"), ("cpu", "2-8"), ("deadline-binding", "Strict")];
    corner.create([sharing(corner, "late", &late, &json!({}))]).await;
    corner
        .until("it has more cores", async |corner| {
            let pod = corner.pods().get("late").await.unwrap();
            let cores = pod.spec?.containers[0].resources.clone()?.requests?["cpu"].0.clone();
            (cores != "2").then_some(())
        })
        .await;
    clear(corner, &["late"]).await;
    let allowed = |time| [("throttle", "allowed"), ("duration", time)];
    let all = json!({"cpu": "8"});
    corner.create([sharing(corner, "short", &allowed("10m"), &all)]).await;
    corner.create([sharing(corner, "long", &allowed("10h"), &all)]).await;
    corner
        .until("the short one has more weight", async |corner| {
            annotation(corner, "short", "metronome.dev/cpu-weight").await
        })
        .await;
    clear(corner, &["short", "long"]).await;
}

async fn a_fabric_is_told_that_it_does_not_count(corner: &Corner) {
    let fabric = json!({
        "apiVersion": "metronome.dev/v1alpha1", "kind": "Fabric", "metadata": {"name": "other"},
        "spec": {"levels": [{"label": "kubernetes.io/hostname", "rate": "100Gbps"}]},
    });
    corner.plane.apply_yaml(&fabric.to_string()).await.unwrap();
    let fabrics: Api<DynamicObject> =
        Api::all_with(corner.client.clone(), &ApiResource::erase::<FabricObject>(&()));
    corner
        .until("it is told so", async |_| {
            let status = &fabrics.get("other").await.unwrap().data["status"];
            (status["conditions"][0]["reason"] == "NotDefault").then_some(())
        })
        .await;
}

async fn volcanos_group_is_told_its_phase(corner: &Corner) {
    let group = json!({
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
        "metadata": {"name": "v", "namespace": corner.namespace}, "spec": {"minMember": 2},
    });
    corner.plane.apply_yaml(&group.to_string()).await.unwrap();
    let member = |name: &str| {
        let mut pod = corner.pod(name, 1);
        pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] = json!("v");
        pod
    };
    corner.create([member("v-0"), member("v-1")]).await;
    let resource = ApiResource {
        group: "scheduling.volcano.sh".into(),
        version: "v1beta1".into(),
        api_version: "scheduling.volcano.sh/v1beta1".into(),
        kind: "PodGroup".into(),
        plural: "podgroups".into(),
    };
    let groups: Api<DynamicObject> =
        Api::namespaced_with(corner.client.clone(), &corner.namespace, &resource);
    corner
        .until("its phase is written", async |_| {
            (groups.get("v").await.unwrap().data["status"]["phase"] == "Running").then_some(())
        })
        .await;
    clear(corner, &["v-0", "v-1"]).await;
}

async fn a_queue_says_what_it_holds(corner: &Corner) {
    let queue = json!({"apiVersion": "metronome.dev/v1alpha1", "kind": "Queue", "metadata": {"name": "lab"}, "spec": {}});
    corner.plane.apply_yaml(&queue.to_string()).await.unwrap();
    let mut pod = corner.pod("in-the-lab", 1);
    pod["metadata"]["annotations"]["metronome.dev/queue"] = json!("lab");
    corner.create([pod]).await;
    let resource = ApiResource {
        group: "metronome.dev".into(),
        version: "v1alpha1".into(),
        api_version: "metronome.dev/v1alpha1".into(),
        kind: "Queue".into(),
        plural: "queues".into(),
    };
    let queues: Api<DynamicObject> = Api::all_with(corner.client.clone(), &resource);
    corner
        .until("the queue says so", async |_| {
            (queues.get("lab").await.unwrap().data["status"]["running"] == 1).then_some(())
        })
        .await;
}
