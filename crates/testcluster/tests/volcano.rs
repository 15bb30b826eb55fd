//! Volcano works on our control plane, so that comparisons are with the real thing.

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, PostParams};
use metronome_testcluster::{ControlPlane, Kubelets, Options, SimNode, Volcano, volcano};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "builds Volcano, which only benchmarks need"]
async fn volcano_binds_a_gang() {
    let Some(plane) = ControlPlane::start_or_skip(Options::from_env()).await else { return };
    let _volcano = Volcano::start(&plane, &volcano::Options::default()).await.unwrap();
    let client = plane.client().await.unwrap();
    let kubelets = Kubelets::start(client.clone(), SimNode::many("node", 3)).await.unwrap();
    let group = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\n\
                 metadata: { name: gang, namespace: default }\nspec: { minMember: 3, queue: default }\n";
    plane.apply_yaml(group).await.unwrap();
    let api: Api<Pod> = Api::default_namespaced(client);
    for number in 0..3 {
        let pod = json!({
            "metadata": {
                "name": format!("member-{number}"),
                "annotations": { "scheduling.k8s.io/group-name": "gang" },
            },
            "spec": {
                "schedulerName": "volcano",
                "containers": [{
                    "name": "main", "image": "none", "resources": { "requests": { "cpu": "20" } },
                }],
            },
        });
        api.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
    }
    kubelets.until(|counts| counts.running == 3).await;
    assert_eq!(kubelets.counts().rejected, 0);
}
