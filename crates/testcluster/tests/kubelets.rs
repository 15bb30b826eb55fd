//! Simulated kubelets against a real API server.

use std::time::Duration;

use futures::{StreamExt, stream};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Node, Pod, PodStatus};
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use kube::runtime::wait::{await_condition, conditions};
use metronome_testcluster::kubelets::{FAILS_AFTER, Pace, RUNS_FOR};
use metronome_testcluster::{ControlPlane, Kubelets, Options, SimNode, shared};
use serde_json::{Value, json};

fn pod(name: &str, node: &str, cpu: &str) -> Value {
    json!({
        "metadata": { "name": name },
        "spec": {
            "nodeName": node,
            "containers": [{ "name": "main", "image": "none", "resources": { "requests": { "cpu": cpu } } }],
        },
    })
}

async fn create(api: &Api<Pod>, pods: impl IntoIterator<Item = Value>) {
    let params = PostParams::default();
    let created = stream::iter(pods).for_each_concurrent(16, async |pod| {
        api.create(&params, &serde_json::from_value(pod).unwrap()).await.unwrap();
    });
    created.await;
}

/// Waits until a pod's status is as wanted.
async fn until(api: &Api<Pod>, name: &str, wanted: impl Fn(&PodStatus) -> bool) {
    let condition = |pod: Option<&Pod>| pod.and_then(|pod| pod.status.as_ref()).is_some_and(&wanted);
    let waited = tokio::time::timeout(Duration::from_secs(30), await_condition(api.clone(), name, condition));
    waited.await.unwrap_or_else(|_| panic!("{name} is not as wanted")).unwrap();
}

fn phase(wanted: &str) -> impl Fn(&PodStatus) -> bool + '_ {
    move |status| status.phase.as_deref() == Some(wanted)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_pods_run_and_are_deleted() {
    let Some(plane) = shared().await else { return };
    let client = plane.client().await.unwrap();
    let kubelets = Kubelets::start(client.clone(), SimNode::many("hundred", 10)).await.unwrap();
    let api: Api<Pod> = Api::namespaced(client, &plane.namespace("hundred").await.unwrap());
    create(&api, (0..100).map(|n| pod(&format!("pod-{n}"), &format!("hundred-{}", n % 10), "1"))).await;
    kubelets.until(|counts| counts.running == 100).await;
    api.delete_collection(&DeleteParams::default(), &ListParams::default()).await.unwrap();
    kubelets.until(|counts| counts.removed == 100).await;
    assert!(api.list(&ListParams::default()).await.unwrap().items.is_empty());
    assert_eq!(kubelets.counts().rejected, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_overfull_node_rejects_as_a_kubelet_does() {
    let Some(plane) = shared().await else { return };
    let client = plane.client().await.unwrap();
    let node =
        SimNode::new("small").capacity("cpu", "4").capacity("nvidia.com/gpu", "1").allocatable("cpu", "3");
    let kubelets = Kubelets::start(client.clone(), [node]).await.unwrap();
    let api: Api<Pod> = Api::namespaced(client, &plane.namespace("overfull").await.unwrap());
    create(&api, [pod("first", "small", "2")]).await;
    until(&api, "first", phase("Running")).await;
    create(&api, [pod("second", "small", "2")]).await;
    until(&api, "second", |status| status.reason.as_deref() == Some("OutOfcpu")).await;
    create(&api, [pod("third", "small", "1")]).await;
    until(&api, "third", phase("Running")).await;
    let rejected: Vec<String> = kubelets.rejections().into_iter().map(|rejection| rejection.pod).collect();
    assert_eq!(rejected, ["second"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_end_as_their_annotations_say() {
    let Some(plane) = shared().await else { return };
    let client = plane.client().await.unwrap();
    let _kubelets = Kubelets::start(client.clone(), SimNode::many("ends", 1)).await.unwrap();
    let api: Api<Pod> = Api::namespaced(client, &plane.namespace("ends").await.unwrap());
    for (name, annotation) in [("well", RUNS_FOR), ("badly", FAILS_AFTER)] {
        let mut pod = pod(name, "ends-0", "1");
        pod["metadata"]["annotations"] = json!({ annotation: "100ms" });
        create(&api, [pod]).await;
    }
    until(&api, "well", phase("Succeeded")).await;
    until(&api, "badly", phase("Failed")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_node_does_nothing_until_it_recovers() {
    let Some(plane) = shared().await else { return };
    let client = plane.client().await.unwrap();
    let kubelets = Kubelets::start(client.clone(), SimNode::many("silent", 2)).await.unwrap();
    let api: Api<Pod> = Api::namespaced(client.clone(), &plane.namespace("silent").await.unwrap());
    kubelets.silence("silent-0");
    create(&api, [pod("held", "silent-0", "1"), pod("goes", "silent-1", "1")]).await;
    let counts = kubelets.until(|counts| counts.running > 0).await;
    assert_eq!(counts.running, 1);
    assert!(phase("Running")(&api.get_status("goes").await.unwrap().status.unwrap()));
    kubelets.recover("silent-0").await.unwrap();
    until(&api, "held", phase("Running")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_come_and_go() {
    let Some(plane) = shared().await else { return };
    let client = plane.client().await.unwrap();
    let kubelets = Kubelets::start(client.clone(), SimNode::many("goes", 1)).await.unwrap();
    let api: Api<Node> = Api::all(client);
    let ready = async || {
        let node = api.get("goes-0").await.unwrap();
        let conditions = node.status.unwrap().conditions.unwrap();
        let ready = conditions.iter().find(|condition| condition.type_ == "Ready").unwrap().status.clone();
        (ready, node.spec.unwrap().taints.unwrap_or_default().len())
    };
    assert_eq!(ready().await, ("True".to_owned(), 0));
    kubelets.lose_readiness("goes-0").await.unwrap();
    assert_eq!(ready().await, ("False".to_owned(), 2));
    kubelets.remove("goes-0").await.unwrap();
    assert!(api.get_opt("goes-0").await.unwrap().is_none());
    kubelets.recover("goes-0").await.unwrap();
    assert_eq!(ready().await, ("True".to_owned(), 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn kubelets_outlive_a_restart_of_the_api_server() {
    let Some(plane) = ControlPlane::start_or_skip(Options::from_env()).await else { return };
    let client = plane.client().await.unwrap();
    let kubelets = Kubelets::start(client.clone(), SimNode::many("node", 2)).await.unwrap();
    let api: Api<Pod> = Api::default_namespaced(client);
    create(&api, [pod("before", "node-0", "1")]).await;
    kubelets.until(|counts| counts.running == 1).await;
    plane.restart_api_server().await.unwrap();
    create(&api, [pod("after", "node-1", "1")]).await;
    kubelets.until(|counts| counts.running == 2).await;
    assert_eq!(kubelets.counts().started, 2);
}

/// Everything together: upstream's controllers make pods of a job, upstream's scheduler binds them, ours run them.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_runs_to_its_end_under_upstream_controllers_and_scheduler() {
    let options = Options::from_env().controllers_with_node_grace(Duration::from_secs(4)).scheduler("");
    let Some(plane) = ControlPlane::start_or_skip(options).await else { return };
    let client = plane.client().await.unwrap();
    let pace = Pace { heartbeat: Some(Duration::from_secs(1)), ..Pace::default() };
    let kubelets = Kubelets::start_at(pace, client.clone(), SimNode::many("node", 3)).await.unwrap();
    let job = json!({
        "metadata": { "name": "short" },
        "spec": {
            "parallelism": 6,
            "completions": 6,
            "template": {
                "metadata": { "annotations": { RUNS_FOR: "200ms" } },
                "spec": { "restartPolicy": "Never", "containers": [{ "name": "main", "image": "none" }] },
            },
        },
    });
    let api: Api<Job> = Api::default_namespaced(client.clone());
    api.create(&PostParams::default(), &serde_json::from_value(job).unwrap()).await.unwrap();
    let completed = await_condition(api, "short", conditions::is_job_completed());
    tokio::time::timeout(Duration::from_secs(60), completed).await.expect("the job ends").unwrap();
    assert_eq!(kubelets.counts().started, 6);

    // The node controller sees the heartbeats, and their end.
    kubelets.silence("node-1");
    let tainted = |node: Option<&Node>| {
        let taints = node.and_then(|node| node.spec.as_ref()?.taints.as_ref());
        taints.is_some_and(|taints| taints.iter().any(|taint| taint.key == "node.kubernetes.io/unreachable"))
    };
    let noticed = await_condition(Api::<Node>::all(client), "node-1", tainted);
    tokio::time::timeout(Duration::from_secs(60), noticed).await.expect("silence is noticed").unwrap();
}
