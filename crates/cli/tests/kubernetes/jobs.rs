//! `TrainingJob`s whose scheduler and controller are killed again and again.

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{ConfigMap, Service};
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, PostParams};
use metronome_kubernetes::objects::{TrainingJobObject, training_job_definition};
use metronome_testcluster::{Corner, shared_with_controllers};
use serde_json::{Value, json};

use crate::replica::Replica;

const KILLS: u32 = 50;

/// Jobs of one to five members; every fourth has a server beside them, another fourth may have more members, and every
/// sixth fails once too often.
struct Workload {
    jobs: Vec<(String, Value)>,
    /// How many pods run in all, each once, but for those of jobs that may have more.
    runs: u64,
}

/// Whether a job may have more members than it needs.
fn is_elastic(at: u32) -> bool {
    at % 4 == 2
}

impl Workload {
    fn new(corner: &Corner) -> Self {
        let mut workload = Self { jobs: Vec::new(), runs: 0 };
        for at in 0..24_u32 {
            let members = 1 + at % 5;
            let (fails, serves) = (at % 6 == 5, at % 4 == 3);
            let ends = if fails { "fails-after" } else { "runs-for" };
            let time = format!("{}ms", 500 + 250 * (at % 7));
            let mut worker = corner.pod("unnamed", 1);
            worker["metadata"] = json!({"annotations": {format!("sim.metronome.dev/{ends}"): time}});
            let mut workers = json!({"name": "worker", "template": worker});
            if is_elastic(at) {
                workers["minMembers"] = json!(members);
                workers["maxMembers"] = json!(members + 3);
            } else {
                workers["members"] = json!(members);
            }
            let mut roles = vec![workers];
            if serves {
                let mut server = corner.pod("unnamed", 0);
                server["metadata"] = json!({});
                roles.push(json!({"name": "ps", "template": server}));
            }
            let attempts = if fails { 2 } else { 1 };
            if !is_elastic(at) {
                workload.runs += u64::from(attempts * (members + u32::from(serves)));
            }
            let mut spec = json!({"schedulerName": corner.namespace, "roles": roles, "backoffLimit": 1});
            if at % 8 == 2 {
                spec["rendezvous"] = json!("Elastic");
            }
            workload.jobs.push((format!("job-{at}"), spec));
        }
        workload
    }
}

fn jobs(corner: &Corner) -> Api<DynamicObject> {
    let api = ApiResource::erase::<TrainingJobObject>(&());
    Api::namespaced_with(corner.client.clone(), &corner.namespace, &api)
}

async fn submit(corner: &Corner, name: &str, spec: &Value) {
    let job = json!({
        "apiVersion": "metronome.dev/v1alpha1", "kind": "TrainingJob",
        "metadata": {"name": name}, "spec": spec,
    });
    let job: DynamicObject = serde_json::from_value(job).unwrap();
    jobs(corner).create(&PostParams::default(), &job).await.unwrap();
}

/// What has become of a job.
struct Fate {
    name: String,
    phase: String,
    attempt: u64,
    /// How many of its workers are done.
    done: u64,
}

async fn fates(corner: &Corner) -> Vec<Fate> {
    let all = jobs(corner).list(&ListParams::default()).await.unwrap().items;
    let one = |job: DynamicObject| {
        let status = &job.data["status"];
        Fate {
            name: job.metadata.name.unwrap(),
            phase: status["phase"].as_str().unwrap_or_default().to_owned(),
            attempt: status["attempt"].as_u64().unwrap_or_default(),
            done: status["roles"][0]["succeeded"].as_u64().unwrap_or_default(),
        }
    };
    all.into_iter().map(one).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_job_is_done_once_however_often_its_controller_is_killed() {
    let Some(plane) = shared_with_controllers().await else { return };
    plane.apply_yaml(&training_job_definition()).await.unwrap();
    let corner = Corner::new(plane, "jobs", 4).await;
    let workload = Workload::new(&corner);
    let kubeconfig = plane.kubeconfig_path();
    let start = |kill: u32| Replica::start(&kubeconfig, &corner.namespace, &format!("r{kill}"));
    let (mut replica, begin) = (start(0), Instant::now());
    let mut to_submit = workload.jobs.iter();
    for kill in 1..=KILLS {
        // Jobs come while their controller is being killed, at moments that differ from one to the next.
        if kill % 2 == 0
            && let Some((name, spec)) = to_submit.next()
        {
            submit(&corner, name, spec).await;
        }
        tokio::time::sleep(Duration::from_millis(u64::from(kill * 397 % 1300))).await;
        replica.kill();
        replica = start(kill);
    }
    let is_left = |fate: &Fate| fate.phase != "Succeeded" && fate.phase != "Failed";
    for (name, spec) in to_submit {
        submit(&corner, name, spec).await;
    }
    let ended = corner
        .until("every job has ended", async |corner| {
            let fates = fates(corner).await;
            (fates.len() == workload.jobs.len() && !fates.iter().any(is_left)).then_some(fates)
        })
        .await;
    eprintln!("{KILLS} kills and {} jobs in {:?}", workload.jobs.len(), begin.elapsed());
    let mut runs = workload.runs;
    for (at, (name, spec)) in (0..).zip(&workload.jobs) {
        let Fate { phase, attempt, done, .. } = ended.iter().find(|fate| fate.name == *name).unwrap();
        if is_elastic(at) {
            let least = spec["roles"][0]["minMembers"].as_u64().unwrap();
            assert!(phase == "Succeeded" && (least..=least + 3).contains(done), "{name}: {phase}, {done}");
            runs += done;
            continue;
        }
        let expected = if at % 6 == 5 { ("Failed", 1) } else { ("Succeeded", 0) };
        assert_eq!((phase.as_str(), *attempt), expected, "{name}");
    }
    assert_eq!(corner.kubelets.counts().started, runs, "no member was lost or ran twice");
    for (name, _) in &workload.jobs {
        jobs(&corner).delete(name, &DeleteParams::default()).await.unwrap();
    }
    corner.until("nothing is left", async |corner| is_empty(corner).await.then_some(())).await;
    corner.judge();
}

async fn is_empty(corner: &Corner) -> bool {
    let services: Api<Service> = Api::namespaced(corner.client.clone(), &corner.namespace);
    let maps: Api<ConfigMap> = Api::namespaced(corner.client.clone(), &corner.namespace);
    let all = ListParams::default();
    let pods = corner.pods().list(&all).await.unwrap().items.len();
    let services = services.list(&all).await.unwrap().items.len();
    let intents = maps.list(&all.labels("metronome.dev/intent")).await.unwrap().items.len();
    pods + services + intents == 0
}
