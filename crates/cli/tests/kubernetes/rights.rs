//! The rights that are granted are enough, and none is there that is not used: the scheduler runs as the chart's
//! service account does, does all it ever does, and the API server's own record is compared with the tables.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::path::PathBuf;
use std::time::Duration;

use futures::FutureExt;
use kube::api::{Api, ApiResource, DynamicObject, PostParams};
use metronome_kubernetes::manifests::{IN_THE_CLUSTER, IN_THE_OWN_NAMESPACE, Right, UNSEEN};
use metronome_kubernetes::objects::TrainingJobObject;
use metronome_testcluster::{ControlPlane, Corner};
use serde_json::{Value, json};

use crate::audit::{Asked, Audit};
use crate::helm::{Helm, printed};
use crate::replica::Replica;

/// Kinds of others, which a cluster may have. Volcano's keeps its status in the object, as it does there.
const KINDS: [(&str, &str, &str, &str, &str); 9] = [
    ("scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup", "Namespaced"),
    ("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup", "Namespaced"),
    ("scheduling.volcano.sh", "v1beta1", "queues", "Queue", "Cluster"),
    ("jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet", "Namespaced"),
    ("kubeflow.org", "v1", "pytorchjobs", "PyTorchJob", "Namespaced"),
    ("kubeflow.org", "v1", "tfjobs", "TFJob", "Namespaced"),
    ("kubeflow.org", "v2beta1", "mpijobs", "MPIJob", "Namespaced"),
    ("ray.io", "v1", "rayclusters", "RayCluster", "Namespaced"),
    ("trainer.kubeflow.org", "v1alpha1", "trainjobs", "TrainJob", "Namespaced"),
];

/// Counts of one event are written no more often than every ten seconds.
const BETWEEN_COUNTS: Duration = Duration::from_secs(11);

const CLASSES: &str = "
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: low}
value: 100
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1000
";

async fn define_kinds_of_others(plane: &ControlPlane) {
    for (group, version, plural, kind, scope) in KINDS {
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {
                "name": format!("{plural}.{group}"),
                "annotations": {"api-approved.kubernetes.io": "unapproved"},
            },
            "spec": {
                "group": group, "scope": scope,
                "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind},
                "versions": [{
                    "name": version, "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
                }],
            },
        });
        plane.apply_yaml(&definition.to_string()).await.unwrap();
    }
}

fn account(namespace: &str) -> String {
    format!("system:serviceaccount:{namespace}:metronome")
}

fn kubeconfig(plane: &ControlPlane, namespace: &str) -> PathBuf {
    let groups = ["system:serviceaccounts", "system:authenticated"];
    plane.user_kubeconfig(&account(namespace), &groups).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rights_are_enough_and_each_is_used() {
    let audit = Audit::new();
    let Some(helm) = Helm::get() else { return };
    let Some(plane) = ControlPlane::start_or_skip(audit.options()).await else { return };
    let plane: &'static ControlPlane = Box::leak(Box::new(plane));
    define_kinds_of_others(plane).await;
    plane.apply_yaml(CLASSES).await.unwrap();
    let corner = Corner::new(plane, "rights", 1).await;
    plane.apply_yaml(&helm.template(&corner.namespace, &[]).unwrap()).await.unwrap();
    let _replica = Replica::start(&kubeconfig(plane, &corner.namespace), &corner.namespace, "only");
    let elsewhere = plane.namespace("elsewhere").await.unwrap();
    let done = AssertUnwindSafe(do_everything(&corner, &elsewhere)).catch_unwind().await;
    let (asked, forbidden) = audit.of(&account(&corner.namespace));
    // Whoever lacks a right may also wait in vain for what it would have done: the right is what people want to hear of.
    assert_eq!(forbidden, BTreeSet::new(), "rights are missing");
    if let Err(panic) = done {
        resume_unwind(panic);
    }
    let unused = unused(&asked, &corner.namespace);
    assert_eq!(unused, BTreeSet::new(), "rights are granted and not used");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_only_observes_needs_no_right_to_write() {
    let audit = Audit::new();
    let Some(plane) = ControlPlane::start_or_skip(audit.options()).await else { return };
    let plane: &'static ControlPlane = Box::leak(Box::new(plane));
    let corner = Corner::new(plane, "observes", 1).await;
    plane.apply_yaml(&printed(&corner.namespace, &["--observe"])).await.unwrap();
    let replica = Replica::observe(&kubeconfig(plane, &corner.namespace), &corner.namespace);
    corner.create([corner.pod("p", 1), corner.pod("too-large", 5)]).await;
    corner
        .until("it has looked at the pods", async |_| {
            let server = format!("http://{}", replica.address()?);
            let job = format!("{}/too-large", corner.namespace);
            let told = std::process::Command::new(env!("CARGO_BIN_EXE_metronome"))
                .args(["explain", &job, "--server", &server])
                .output()
                .unwrap();
            told.status.success().then_some(())
        })
        .await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let (asked, forbidden) = audit.of(&account(&corner.namespace));
    assert_eq!(forbidden, BTreeSet::new());
    assert!(!asked.is_empty());
    let writes: Vec<&Asked> =
        asked.iter().filter(|asked| !["list", "watch"].contains(&&*asked.verb)).collect();
    assert!(writes.is_empty(), "{writes:?}");
    assert!(corner.seats().await.is_empty());
}

/// What is granted and was not asked for, but for what cannot be seen here. A request that both tables allow speaks for
/// the narrower one.
fn unused(asked: &BTreeSet<Asked>, own: &str) -> BTreeSet<(String, String, String)> {
    let allows = |rights: &[Right], asked: &Asked| {
        let granted = |right: &Right| right.verbs.contains(&&*asked.verb);
        let same = |right: &&Right| right.group == asked.group && right.resource == asked.resource;
        rights.iter().filter(same).any(granted)
    };
    let is_own = |asked: &Asked| asked.namespace == own && allows(IN_THE_OWN_NAMESPACE, asked);
    let (narrow, wide): (Vec<&Asked>, Vec<&Asked>) = asked.iter().partition(|asked| is_own(asked));
    let mut unused = BTreeSet::new();
    for (rights, uses) in [(IN_THE_CLUSTER, wide), (IN_THE_OWN_NAMESPACE, narrow)] {
        for right in rights {
            let is_seen = |verb: &&&str| {
                uses.iter().any(|asked| {
                    (&*asked.group, &*asked.resource, &*asked.verb) == (right.group, right.resource, **verb)
                })
            };
            let cannot_be = UNSEEN
                .iter()
                .any(|(group, resource, _)| (*group, *resource) == (right.group, right.resource));
            let missing = right.verbs.iter().filter(|verb| !cannot_be && !is_seen(verb));
            unused.extend(
                missing.map(|verb| ((*verb).to_owned(), right.group.to_owned(), right.resource.to_owned())),
            );
        }
    }
    unused
}

async fn do_everything(corner: &Corner, elsewhere: &str) {
    a_gang_is_bound_over_what_an_earlier_leader_meant(corner).await;
    one_waits_and_is_told_so(corner).await;
    one_is_told_the_same_twice(corner).await;
    a_training_job_fails_twice_and_is_forgotten(corner, elsewhere).await;
    one_makes_room_for_another(corner).await;
    cores_and_weights_are_given(corner).await;
    volcanos_group_is_told_its_phase(corner).await;
    a_queue_says_what_it_holds(corner).await;
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
