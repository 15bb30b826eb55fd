//! Links by a `Fabric`, turns that are published to pods, and published anew when what a job sends has drifted.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, DynamicObject};
use metronome_kubernetes::objects::{
    FabricObject, TrainingJobObject, fabric_definition, training_job_definition,
};
use metronome_testcluster::control_plane::Shared;
use metronome_testcluster::{ControlPlane, Corner, Options};
use serde_json::{Value, json};

use crate::scheduler::Scheduled;

/// A fabric belongs to a whole cluster, so this test has one of its own.
async fn with_fabrics() -> Option<&'static ControlPlane> {
    static PLANE: Shared = Shared::new(Options::from_env);
    let plane = PLANE.get().await?;
    plane.apply_yaml(&fabric_definition()).await.unwrap();
    plane.apply_yaml(&training_job_definition()).await.unwrap();
    Some(plane)
}

fn fabrics(corner: &Corner) -> Api<DynamicObject> {
    Api::all_with(corner.client.clone(), &ApiResource::erase::<FabricObject>(&()))
}

fn jobs(corner: &Corner) -> Api<DynamicObject> {
    let api = ApiResource::erase::<TrainingJobObject>(&());
    Api::namespaced_with(corner.client.clone(), &corner.namespace, &api)
}

fn levels(levels: &[(&str, &str)]) -> Value {
    let levels: Vec<Value> =
        levels.iter().map(|(label, rate)| json!({"label": label, "rate": rate})).collect();
    json!({"spec": {"levels": levels}})
}

async fn declare(corner: &Corner, name: &str, fabric: Value) -> Result<(), String> {
    let mut fabric = fabric;
    fabric["apiVersion"] = json!("metronome.dev/v1alpha1");
    fabric["kind"] = json!("Fabric");
    fabric["metadata"] = json!({"name": name});
    let fabric: DynamicObject = serde_json::from_value(fabric).unwrap();
    let made = fabrics(corner).create(&PostParams::default(), &fabric).await;
    made.map(drop).map_err(|error| error.to_string())
}

/// Whether a fabric is accepted, the reason and why.
async fn until_judged(corner: &Corner, name: &str, reason: &str) -> (String, String) {
    corner
        .until(&format!("{name} is {reason}"), async |corner| {
            let fabric = fabrics(corner).get(name).await.unwrap();
            let condition = fabric.data["status"]["conditions"][0].clone();
            let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
            (text("reason") == reason).then(|| (text("status"), text("message")))
        })
        .await
}

/// Each node in a rack of its own.
async fn rack(corner: &Corner) {
    let nodes: Api<Node> = Api::all(corner.client.clone());
    for at in 0..2 {
        let label = json!({"metadata": {"labels": {"metronome.dev/rack": format!("r{at}")}}});
        let name = format!("{}-{at}", corner.namespace);
        nodes.patch(&name, &PatchParams::default(), &Patch::Merge(label)).await.unwrap();
    }
}

/// Nearly half of the time, in milliseconds, all that an uplink carries: two such jobs fill it if they take turns.
fn traffic(period: u32) -> Value {
    let length = period / 2 - 2;
    let (offset, length) = (format!("{}ms", period - length), format!("{length}ms"));
    json!({"period": format!("{period}ms"), "phases": [{"offset": offset, "length": length, "rate": "10Gbps"}]})
}

/// Two members, on two nodes.
async fn submit(corner: &Corner, name: &str) {
    let mut template = corner.pod("unnamed", 1);
    template["metadata"] = json!({});
    template["spec"].as_object_mut().unwrap().remove("schedulerName");
    template["spec"]["affinity"] = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{
        "labelSelector": {"matchLabels": {"metronome.dev/training-job": name}},
        "topologyKey": "kubernetes.io/hostname",
    }]}});
    let job: DynamicObject = serde_json::from_value(json!({
        "apiVersion": "metronome.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": name},
        "spec": {
            "schedulerName": corner.namespace, "members": 2, "template": template, "traffic": traffic(100),
        },
    }))
    .unwrap();
    jobs(corner).create(&PostParams::default(), &job).await.unwrap();
}

/// What each pod carries of its turn.
async fn turns(corner: &Corner) -> BTreeMap<String, Value> {
    let pods = corner.pods().list(&ListParams::default()).await.unwrap();
    let turn = |pod: Pod| {
        let text = pod.annotations().get("metronome.dev/turn")?.clone();
        Some((pod.name_any(), serde_json::from_str(&text).expect("JSON")))
    };
    pods.items.into_iter().filter_map(turn).collect()
}

async fn until_turns(
    corner: &Corner,
    what: &str,
    so: impl Fn(&BTreeMap<String, Value>) -> bool,
) -> BTreeMap<String, Value> {
    corner.until(what, async |corner| Some(turns(corner).await).filter(&so)).await
}

fn generation(turn: &Value) -> u64 {
    turn["generation"].as_u64().expect("a number")
}

async fn until_interleaved(corner: &Corner, name: &str, reason: &str) -> Value {
    corner
        .until(&format!("{name} is {reason}"), async |corner| {
            let job = jobs(corner).get(name).await.unwrap();
            let conditions = job.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
            conditions.into_iter().find(|one| one["type"] == "Interleaved" && one["reason"] == reason)
        })
        .await
}

const RACK: &str = "metronome.dev/rack";
const NODE: &str = "kubernetes.io/hostname";

#[tokio::test(flavor = "multi_thread")]
async fn turns_are_published_and_published_anew_on_drift() {
    let Some(plane) = with_fabrics().await else { return };
    let corner = Scheduled::new(plane, "turns", 2).await;
    rack(&corner).await;

    let nonsense = [
        (levels(&[]), "a fabric has at least one level"),
        (levels(&[(RACK, "10Gbps")]), "the innermost level is the node"),
        (levels(&[(RACK, "10Gbps"), (RACK, "1Gbps"), (NODE, "1Gbps")]), "each level has a label of its own"),
        (levels(&[(NODE, "fast")]), "spec.levels[0].rate"),
    ];
    for (fabric, sentence) in nonsense {
        let refusal = declare(&corner, "default", fabric).await.unwrap_err();
        assert!(refusal.contains(sentence), "{refusal}");
    }

    submit(&corner, "a").await;
    submit(&corner, "b").await;
    corner.until_bound(4).await;
    until_interleaved(&corner, "a", "NoFabric").await;

    declare(&corner, "other", levels(&[(NODE, "1Gbps")])).await.unwrap();
    declare(&corner, "default", levels(&[(RACK, "10Gbps"), (NODE, "100Gbps")])).await.unwrap();
    let (status, message) = until_judged(&corner, "other", "NotDefault").await;
    assert_eq!(status, "False", "{message}");
    assert_eq!(until_judged(&corner, "default", "InForce").await.0, "True");
    let first = until_turns(&corner, "all pods have a turn", |turns| turns.len() == 4).await;
    assert_eq!(first["a-worker-0"], first["a-worker-1"], "one turn for a whole job");
    assert_eq!(first["b-worker-0"], first["b-worker-1"]);
    assert_ne!(first["a-worker-0"], first["b-worker-0"]);
    let interleaved = until_interleaved(&corner, "a", "TakesTurns").await;
    assert_eq!(interleaved["status"], "True", "{interleaved}");

    let measured = json!({"metadata": {"annotations": {"metronome.dev/traffic": traffic(150).to_string()}}});
    corner.patch("a-worker-0", measured).await;
    let is_other = |pod: &str, turn: &Value| {
        generation(turn) > generation(&first[pod])
            && ["periodNs", "turnNs", "class"].iter().any(|field| turn[field] != first[pod][field])
    };
    let anew = until_turns(&corner, "turns are published anew", |turns| {
        turns.len() == 4 && turns.iter().all(|(pod, turn)| is_other(pod, turn))
    })
    .await;
    assert_eq!(anew["a-worker-0"], anew["a-worker-1"], "one turn for a whole job");

    let nothing = json!({"spec": {"levels": [{"label": NODE, "rate": "0.0Gbps"}]}});
    fabrics(&corner).patch("default", &PatchParams::default(), &Patch::Merge(nothing)).await.unwrap();
    let (status, message) = until_judged(&corner, "default", "Refused").await;
    assert!(status == "False" && message.contains("nothing could be sent"), "{message}");
    assert_eq!(turns(&corner).await.len(), 4, "what makes no sense changes nothing");
    corner.judge();
}
