//! Simulated kubelets against a real API server.

use std::time::{Duration, Instant};

use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use metronome_testcluster::{Kubelets, SimNode, shared};
use serde_json::{Value, json};

fn pod(name: &str, node: &str, cpu: &str) -> Pod {
    let pod: Value = json!({
        "metadata": { "name": name },
        "spec": {
            "nodeName": node,
            "containers": [{ "name": "main", "image": "none", "resources": { "requests": { "cpu": cpu } } }],
        },
    });
    serde_json::from_value(pod).unwrap()
}

async fn create(api: &Api<Pod>, pods: impl IntoIterator<Item = Pod>) {
    let params = PostParams::default();
    let created = stream::iter(pods)
        .for_each_concurrent(16, async |pod| drop(api.create(&params, &pod).await.unwrap()));
    created.await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_pods_run_and_are_deleted() {
    let Some(plane) = shared().await else { return };
    let client = plane.client().await.unwrap();
    let kubelets = Kubelets::start(client.clone(), SimNode::many("hundred", 10)).await.unwrap();
    let api: Api<Pod> = Api::namespaced(client, &plane.namespace("hundred").await.unwrap());
    let begin = Instant::now();
    create(&api, (0..100).map(|n| pod(&format!("pod-{n}"), &format!("hundred-{}", n % 10), "1"))).await;
    kubelets.until(|counts| counts.running == 100).await;
    eprintln!("running after {:?}", begin.elapsed());
    let one = api.get("pod-7").await.unwrap().status.unwrap();
    eprintln!("{}", serde_json::to_string_pretty(&one).unwrap());
    api.delete_collection(&DeleteParams::default(), &ListParams::default()).await.unwrap();
    kubelets.until(|counts| counts.removed == 100).await;
    eprintln!("gone after {:?}", begin.elapsed());
    assert_eq!(kubelets.counts().rejected, 0);
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(api.list(&ListParams::default()).await.unwrap().items.is_empty());
}
