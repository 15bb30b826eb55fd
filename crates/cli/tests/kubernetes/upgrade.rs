//! The chart in a cluster with jobs: installed, changed and removed by the real Helm, without harm to the jobs.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::ResourceExt;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, PostParams};
use kube::{Client, Discovery};
use metronome_kubernetes::objects::TrainingJobObject;
use metronome_testcluster::corner::PATIENCE;
use metronome_testcluster::{ControlPlane, Kubelets, Options, SimNode};
use serde_json::{Value, json};

use crate::helm::{Helm, chart, objects};
use crate::replica::Replica;

const NAMESPACE: &str = "metronome";
/// The chart as it was before the version that is in `deploy`.
const BEFORE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/kubernetes/charts/metronome-0.1.0.tgz");

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

/// A cluster in which the chart is installed and a team has a namespace.
struct Site {
    plane: ControlPlane,
    client: Client,
    helm: Helm,
    team: String,
}

impl Site {
    /// A process with the rights that the chart gives, as its Deployment would run it.
    fn replica(&self, identity: &str) -> Replica {
        let account = format!("system:serviceaccount:{NAMESPACE}:metronome");
        let groups = ["system:serviceaccounts", "system:authenticated"];
        Replica::start(&self.plane.user_kubeconfig(&account, &groups).unwrap(), NAMESPACE, identity)
    }

    async fn submit(&self, name: &str) {
        let resource = ApiResource::erase::<TrainingJobObject>(&());
        let jobs: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), &self.team, &resource);
        let job = json!({
            "apiVersion": "metronome.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": name},
            "spec": {"members": 2, "image": "none", "resources": {"cpu": "1"}},
        });
        jobs.create(&PostParams::default(), &serde_json::from_value(job).unwrap()).await.unwrap();
    }

    /// The pods of a job that run, each by its name and with what tells it from another of the same name.
    async fn running(&self, job: &str) -> BTreeMap<String, String> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &self.team);
        let of_job = ListParams::default().labels(&format!("metronome.dev/training-job={job}"));
        let all = pods.list(&of_job).await.unwrap().items.into_iter();
        let runs =
            |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running");
        all.filter(runs).map(|pod| (pod.name_any(), pod.uid().unwrap())).collect()
    }

    async fn until_running(&self, job: &str) -> BTreeMap<String, String> {
        until(&format!("{job} runs"), async || {
            let running = self.running(job).await;
            (running.len() == 2).then_some(running)
        })
        .await
    }

    async fn until_led_by(&self, replica: &Replica) {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), NAMESPACE);
        until(&format!("{} leads", replica.identity()), async || {
            let leads = leases.get_opt("metronome").await.unwrap()?.spec?.holder_identity?;
            (leads == replica.identity()).then_some(())
        })
        .await;
    }

    /// What the API server knows of training jobs.
    async fn definition(&self) -> Value {
        let definitions: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        let definition = definitions.get("trainingjobs.metronome.dev").await.unwrap();
        json!(definition.spec.versions[0].schema)
    }
}

async fn until<T>(what: &str, look: impl AsyncFn() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(seen) = look().await {
            return seen;
        }
        assert!(begin.elapsed() < PATIENCE, "waited in vain until {what}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// The same of a chart that is not installed.
fn rendered_definition(helm: &Helm) -> Value {
    let all = objects(&helm.template(NAMESPACE, &[]).unwrap());
    let definition =
        all.into_iter().find(|object| object["metadata"]["name"] == "trainingjobs.metronome.dev");
    let definition: CustomResourceDefinition = serde_json::from_value(definition.unwrap()).unwrap();
    json!(definition.spec.versions[0].schema)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_runs_on_while_the_chart_before_this_one_is_upgraded_to_it() {
    let Some(program) = Helm::get() else { return };
    let Some(plane) = ControlPlane::start_or_skip(Options::from_env()).await else { return };
    let client = plane.client().await.unwrap();
    let _kubelets = Kubelets::start(client.clone(), SimNode::many("node", 2)).await.unwrap();
    helm(&program, &plane, &["install", "metronome", BEFORE, "--create-namespace"]);
    let team = plane.namespace("team").await.unwrap();
    let site = Site { plane, client, helm: program, team };
    let old = site.replica("old");
    site.until_led_by(&old).await;
    site.submit("before").await;
    let members = site.until_running("before").await;

    helm(&site.helm, &site.plane, &["upgrade", "metronome", chart()]);
    assert_eq!(site.definition().await, rendered_definition(&site.helm), "definitions are upgraded, too");
    // As a Deployment replaces its pods: the next one is there before the last one ends.
    let new = site.replica("new");
    old.kill();
    site.until_led_by(&new).await;
    site.submit("after").await;
    site.until_running("after").await;
    assert_eq!(site.running("before").await, members, "it runs on, in the same pods");

    new.kill();
    helm(&site.helm, &site.plane, &["uninstall", "metronome"]);
    assert_eq!(site.running("before").await, members, "it runs on without a scheduler");
}
