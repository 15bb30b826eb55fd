//! A crowd of training jobs that can never be made, and one among them that can.

use std::time::{Duration, Instant};

use futures::{StreamExt, stream};
use kube::api::{Api, DynamicObject, ListParams, PostParams};
use kube::core::ApiResource;
use metronome_kubernetes::objects::{TrainingJobObject, training_job_definition};
use metronome_testcluster::corner::PATIENCE;
use metronome_testcluster::proxy::Verb;
use metronome_testcluster::{Corner, Proxy, shared_with_controllers};
use serde_json::{Value, json};

use crate::scheduler::Scheduled;

const CROWD: u64 = 999;
const MEMBERS: u64 = 4;
/// A job says that it was taken in, and that it is refused; one more for whoever is looked at in between.
const WORDS: u64 = 3;

fn jobs(corner: &Corner) -> Api<DynamicObject> {
    let api = ApiResource::erase::<TrainingJobObject>(&());
    Api::namespaced_with(corner.client.clone(), &corner.namespace, &api)
}

/// What its schema lets through: pods without containers, a class that there is not, and servers that serve nobody.
fn hopeless(number: u64) -> Value {
    match number % 3 {
        0 => json!({"members": MEMBERS, "template": {"spec": {"containers": []}}}),
        1 => json!({"members": MEMBERS, "image": "none", "priorityClassName": "nowhere"}),
        _ => json!({"image": "none", "roles": [{"name": "ps", "members": MEMBERS}]}),
    }
}

async fn submit(corner: &Corner, name: &str, mut spec: Value) {
    spec["schedulerName"] = json!(corner.namespace);
    let job = json!({
        "apiVersion": "metronome.dev/v1alpha1", "kind": "TrainingJob",
        "metadata": {"name": name}, "spec": spec,
    });
    let job: DynamicObject = serde_json::from_value(job).unwrap();
    jobs(corner).create(&PostParams::default(), &job).await.unwrap();
}

/// How many are told that they are refused.
async fn told(corner: &Corner) -> usize {
    let all = jobs(corner).list(&ListParams::default()).await.unwrap().items;
    let is_told = |job: &&DynamicObject| {
        let conditions = job.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|one| {
            one["type"] == "Admitted" && (one["reason"] == "PodRefused" || one["reason"] == "Refused")
        })
    };
    all.iter().filter(is_told).count()
}

/// However slow the machine: as long as it goes on.
async fn until_all_are_told(corner: &Corner) {
    let (mut so_far, mut since) = (0, Instant::now());
    while so_far < CROWD as usize {
        assert!(since.elapsed() < PATIENCE, "only {so_far} of {CROWD} are told why");
        tokio::time::sleep(Duration::from_secs(1)).await;
        let now = told(corner).await;
        if now > so_far {
            (so_far, since) = (now, Instant::now());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_jobs_that_cannot_be_made_hold_up_nobody() {
    let Some(plane) = shared_with_controllers().await else { return };
    plane.apply_yaml(&training_job_definition()).await.unwrap();
    let mut corner = Scheduled::not_yet(plane, "crowd", 1).await;
    let proxy = Proxy::start(plane, 1).await.unwrap();
    corner.start_through(proxy.kubeconfig_path(), |_| {}).await;
    let (begin, place) = (Instant::now(), &*corner);
    stream::iter(0..CROWD)
        .for_each_concurrent(32, async |number| {
            submit(place, &format!("bad-{number}"), hopeless(number)).await
        })
        .await;
    until_all_are_told(&corner).await;

    let tried = || proxy.tally(Verb::Create, "pods").requests;
    let before = tried();
    submit(&corner, "good", json!({"members": 2, "image": "none"})).await;
    corner.until_bound(2).await;
    let meanwhile = tried() - before;
    assert!(meanwhile <= 2 + CROWD, "each of them was tried more than once meanwhile: {meanwhile}");

    // Each was tried with all its members, and after a second, two, four and so on with one.
    let again = u64::from(begin.elapsed().as_secs().max(1).ilog2()) + 2;
    let (tried, most) = (tried(), 2 + CROWD * 2 / 3 * (MEMBERS + again));
    assert!(tried <= most, "pods were asked for {tried} times, {most} at most");
    let said = proxy.tally(Verb::Patch, "trainingjobs/status").requests;
    assert!(said <= (CROWD + 1) * WORDS, "statuses were written {said} times");
    let services = proxy.tally(Verb::Create, "services").requests;
    assert!(services <= CROWD * 2 / 3 + 1, "services were asked for {services} times");
    corner.judge();
}
