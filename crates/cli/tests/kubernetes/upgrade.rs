//! The chart in a cluster with jobs: installed, changed and removed by the real Helm, without harm to the jobs.

use std::time::{Duration, Instant};

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, PostParams};
use kube::{Client, Discovery};
use metronome_kubernetes::objects::TrainingJobObject;
use metronome_testcluster::corner::PATIENCE;
use metronome_testcluster::{ControlPlane, Options};
use serde_json::json;

use crate::helm::{Helm, chart};

const NAMESPACE: &str = "metronome";

fn helm(helm: &Helm, plane: &ControlPlane, arguments: &[&str]) {
    let kubeconfig = plane.kubeconfig_path().display().to_string();
    let output = helm.run(&[arguments, &["--kubeconfig", &kubeconfig, "--namespace", NAMESPACE]].concat());
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

async fn args(client: &Client) -> Vec<String> {
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), NAMESPACE);
    let spec = deployments.get("metronome").await.unwrap().spec;
    spec.template.spec.unwrap().containers[0].args.clone().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_stay_through_installation_upgrade_and_removal() {
    let Some(program) = Helm::get() else { return };
    let Some(plane) = ControlPlane::start_or_skip(Options::from_env()).await else { return };
    let client = plane.client().await.unwrap();
    helm(&program, &plane, &["install", "metronome", chart(), "--create-namespace", "--set", "observe=true"]);
    assert!(args(&client).await.contains(&"--observe".to_owned()));
    let team = plane.namespace("team").await.unwrap();
    let resource = ApiResource::erase::<TrainingJobObject>(&());
    let jobs: Api<DynamicObject> = Api::namespaced_with(client.clone(), &team, &resource);
    let job = json!({
        "apiVersion": "metronome.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": "bert"},
        "spec": {"members": 2, "image": "none"},
    });
    jobs.create(&PostParams::default(), &serde_json::from_value(job).unwrap()).await.unwrap();
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": team}});
    plane.apply_yaml(&account.to_string()).await.unwrap();
    let pods: Api<Pod> = Api::namespaced(client.clone(), &team);
    let pod = json!({
        "metadata": {"name": "runs"},
        "spec": {"schedulerName": "metronome", "containers": [{"name": "main", "image": "none"}]},
    });
    pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
    helm(&program, &plane, &["upgrade", "metronome", chart(), "--set", "guard.enabled=true"]);
    assert!(args(&client).await.contains(&"--scheduler-name=metronome".to_owned()));
    helm(&program, &plane, &["uninstall", "metronome"]);
    assert_eq!(left_of_ours(&client).await, [""; 0], "all but the definitions is gone");
    assert!(jobs.get("bert").await.unwrap().metadata.deletion_timestamp.is_none());
    assert!(pods.get("runs").await.unwrap().metadata.deletion_timestamp.is_none());
    // What was kept is taken up again.
    helm(&program, &plane, &["install", "metronome", chart()]);
    assert!(jobs.get_opt("bert").await.unwrap().is_some());
}

/// All objects of whatever kind that carry our label, by name.
async fn left_of_ours(client: &Client) -> Vec<String> {
    let ours = ListParams::default().labels("app.kubernetes.io/name=metronome");
    let known = Discovery::new(client.clone()).run().await.unwrap();
    let kinds = known.groups().flat_map(kube::discovery::ApiGroup::recommended_resources);
    let mut left = Vec::new();
    for (resource, _) in kinds.filter(|(_, capabilities)| capabilities.supports_operation("list")) {
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        let found = list_in_the_end(&api, &ours).await;
        left.extend(found.into_iter().filter_map(|object| object.metadata.name));
    }
    left.sort();
    left
}

/// Kinds whose definition was just applied again cannot be listed for a moment.
async fn list_in_the_end(api: &Api<DynamicObject>, which: &ListParams) -> Vec<DynamicObject> {
    let begin = Instant::now();
    loop {
        match api.list(which).await {
            Err(kube::Error::Api(status)) if status.code == 429 && begin.elapsed() < PATIENCE => {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            listed => return listed.unwrap().items,
        }
    }
}
