//! The faulty network in front of a real API server.

use std::time::{Duration, Instant};

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Error;
use kube::api::{Api, ListParams, ObjectMeta, PostParams, WatchEvent, WatchParams};
use metronome_testcluster::proxy::{Chance, Fault, Rule, Verb};
use metronome_testcluster::{Proxy, shared};

/// A proxy, the configmaps of a new namespace through it, and the same without it.
async fn line(name: &str) -> Option<(Proxy, Api<ConfigMap>, Api<ConfigMap>)> {
    let plane = shared().await?;
    let proxy = Proxy::start(plane, 7).await.unwrap();
    let namespace = plane.namespace(name).await.unwrap();
    let through = Api::namespaced(proxy.client().await.unwrap(), &namespace);
    Some((proxy, through, Api::namespaced(plane.client().await.unwrap(), &namespace)))
}

async fn create(api: &Api<ConfigMap>, name: &str) -> Result<ConfigMap, Error> {
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    api.create(&PostParams::default(), &ConfigMap { metadata, ..ConfigMap::default() }).await
}

fn code<T: std::fmt::Debug>(result: Result<T, Error>) -> u16 {
    match result.unwrap_err() {
        Error::Api(status) => status.code,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_refused_as_often_as_asked() {
    let Some((proxy, through, direct)) = line("refused").await else { return };
    proxy.inject(Rule::new(Fault::Answer(409)).on([Verb::Create]).of("configmaps").times(2));
    assert_eq!(code(create(&through, "one").await), 409);
    assert_eq!(code(create(&through, "one").await), 409);
    create(&through, "one").await.unwrap();
    assert_eq!(direct.list(&ListParams::default()).await.unwrap().items.len(), 1);
    let tally = proxy.tally(Verb::Create, "configmaps");
    assert_eq!((tally.requests, tally.refused), (3, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_means_that_it_was_done() {
    let Some((proxy, through, direct)) = line("lost").await else { return };
    proxy.inject(Rule::new(Fault::LoseAnswer).on([Verb::Create]).times(1));
    create(&through, "dropped").await.unwrap_err();
    proxy.inject(Rule::new(Fault::HideAnswer).on([Verb::Create]).times(1));
    assert_eq!(code(create(&through, "hidden").await), 500);
    assert!(direct.get_opt("dropped").await.unwrap().is_some());
    assert!(direct.get_opt("hidden").await.unwrap().is_some());
    assert_eq!(proxy.total().lost, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_request_was_not_done() {
    let Some((proxy, through, direct)) = line("dropped").await else { return };
    proxy.inject(Rule::new(Fault::Drop).on([Verb::Create]));
    create(&through, "never").await.unwrap_err();
    assert!(direct.get_opt("never").await.unwrap().is_none());
    proxy.heal();
    create(&through, "now").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_come_late() {
    let Some((proxy, through, _)) = line("late").await else { return };
    let late = Duration::from_millis(300);
    proxy.inject(Rule::new(Fault::Delay(late..=2 * late)).with(Chance::ALWAYS));
    let begin = Instant::now();
    through.list(&ListParams::default()).await.unwrap();
    assert!(begin.elapsed() >= late);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_server_says_when_to_come_back() {
    let Some((proxy, _, _)) = line("busy").await else { return };
    proxy.inject(Rule::new(Fault::Busy { retry_after: Duration::from_secs(3) }));
    let client = proxy.client().await.unwrap();
    let request = http::Request::get("/api/v1/nodes").body(kube::client::Body::empty()).unwrap();
    let answer = client.send(request).await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.headers()["retry-after"].to_str().unwrap()), (429, "3"));
}

#[tokio::test(flavor = "multi_thread")]
async fn watches_are_streamed_and_cut() {
    let Some((proxy, through, direct)) = line("watch").await else { return };
    proxy.inject(Rule::new(Fault::CutWatch { after_events: 2..=2 }).of("configmaps").times(1));
    let version = direct.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    let watch = through.watch(&WatchParams::default(), &version).await.unwrap();
    for name in ["a", "b", "c"] {
        create(&direct, name).await.unwrap();
    }
    let seen: Vec<Result<WatchEvent<ConfigMap>, Error>> = watch.collect().await;
    assert_eq!(seen.iter().filter(|event| event.is_ok()).count(), 2, "{seen:?}");

    let mut watch = through.watch(&WatchParams::default(), &version).await.unwrap().boxed();
    for _ in 0..3 {
        assert!(matches!(watch.try_next().await.unwrap(), Some(WatchEvent::Added(_))));
    }
    proxy.cut_watches();
    // The client takes a connection that ends in the middle for the end of the watch, or for an error.
    assert!(!matches!(watch.try_next().await, Ok(Some(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partition_holds_everything_until_it_heals() {
    let Some((proxy, through, direct)) = line("partition").await else { return };
    let version = direct.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    let mut watch = through.watch(&WatchParams::default(), &version).await.unwrap().boxed();
    proxy.pause();
    create(&direct, "unseen").await.unwrap();
    let short = Duration::from_millis(500);
    tokio::time::timeout(short, watch.try_next()).await.unwrap_err();
    tokio::time::timeout(short, through.list(&ListParams::default())).await.unwrap_err();
    proxy.resume();
    assert!(watch.try_next().await.unwrap().is_some());
    through.list(&ListParams::default()).await.unwrap();
}
