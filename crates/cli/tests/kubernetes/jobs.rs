//! `TrainingJob`s whose scheduler and controller are killed again and again.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{ConfigMap, Service};
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, PostParams};
use metronome_kubernetes::objects::{TrainingJobObject, training_job_definition};
use metronome_testcluster::{Corner, shared_with_controllers};
use serde_json::{Value, json};

use crate::replica::Replica;
use crate::runs::{Run, Runs};

const KILLS: u32 = 50;

/// Jobs of one to five members; every fourth has a server beside them, another fourth may have more members, and every
/// sixth fails once too often.
struct Workload {
    jobs: Vec<(String, Value)>,
}

/// Whether a job may have more members than it needs.
fn is_elastic(at: u32) -> bool {
    at % 4 == 2
}

/// Whether its members fail, whenever they run.
fn fails(at: u32) -> bool {
    at % 6 == 5
}

impl Workload {
    fn new(corner: &Corner) -> Self {
        let mut workload = Self { jobs: Vec::new() };
        for at in 0..24_u32 {
            let members = 1 + at % 5;
            let serves = at % 4 == 3;
            let ends = if fails(at) { "fails-after" } else { "runs-for" };
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
    let runs = Runs::watch(&corner);
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
    let started = corner.kubelets.counts().started as usize;
    let runs = corner
        .until("every start was seen", async |_| Some(runs.all()).filter(|runs| runs.len() >= started))
        .await;
    for (at, (name, spec)) in (0..).zip(&workload.jobs) {
        let fate = ended.iter().find(|fate| fate.name == *name).unwrap();
        let runs: Vec<&Run> = runs.iter().filter(|run| run.job == *name).collect();
        judge(at, spec, fate, &runs);
    }
    for (name, _) in &workload.jobs {
        jobs(&corner).delete(name, &DeleteParams::default()).await.unwrap();
    }
    corner.until("nothing is left", async |corner| is_empty(corner).await.then_some(())).await;
    corner.judge();
}

/// No member was lost or ran twice. How many began to run is not said: an attempt that fails while its members are being
/// bound ends before some of them, and so does a job that is done before its server is bound.
fn judge(at: u32, spec: &Value, fate: &Fate, runs: &[&Run]) {
    let Fate { name, phase, attempt, done } = fate;
    let workers = &spec["roles"][0];
    let number = |field: &str| workers[field].as_u64();
    let least = number("members").or(number("minMembers")).unwrap();
    let most = number("maxMembers").unwrap_or(least);
    let expected = if fails(at) { "Failed" } else { "Succeeded" };
    assert_eq!(phase, expected, "{name}");
    let mut once = BTreeSet::new();
    for run in runs {
        assert!(
            once.insert((run.attempt, &run.pod)),
            "{name}: {} ran twice at one attempt: {runs:?}",
            run.pod
        );
    }
    let at_attempt = |attempt: u64| {
        let workers = runs.iter().filter(move |run| run.role == "worker" && run.attempt == attempt);
        workers.map(|run| run.is_done)
    };
    if fails(at) {
        assert_eq!(*attempt, 1, "{name}: it is started again once");
        for attempt in 0..=1 {
            assert!(at_attempt(attempt).count() >= 1, "{name}: nobody failed at {attempt}: {runs:?}");
        }
        return;
    }
    // Another size is another attempt.
    assert!(*attempt == 0 || is_elastic(at), "{name}: there is no reason to start it again");
    assert!((least..=most).contains(done), "{name}: {done}");
    assert_eq!(at_attempt(*attempt).filter(|is_done| *is_done).count() as u64, *done, "{name}: {runs:?}");
    assert_eq!(at_attempt(*attempt).count() as u64, *done, "{name}: all that ran are done: {runs:?}");
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
