//! The control plane comes up, does what an API server does, and leaves nothing behind.

use std::time::Instant;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ObjectMeta, PostParams};
use metronome_testcluster::{Component, ControlPlane, Options, shared};

#[tokio::test(flavor = "multi_thread")]
async fn objects_can_be_created() {
    let begin = Instant::now();
    let Some(plane) = shared().await else { return };
    eprintln!("ready in {:?}", begin.elapsed());
    let namespace = plane.namespace("objects").await.unwrap();
    let api: Api<ConfigMap> = Api::namespaced(plane.client().await.unwrap(), &namespace);
    let metadata = ObjectMeta { name: Some("one".to_owned()), ..ObjectMeta::default() };
    api.create(&PostParams::default(), &ConfigMap { metadata, ..ConfigMap::default() }).await.unwrap();
    assert_eq!(api.list(&Default::default()).await.unwrap().items.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_control_plane_starts() {
    let begin = Instant::now();
    let plane = ControlPlane::start(Options::from_env().controllers().scheduler(""))
        .await
        .unwrap_or_else(|e| panic!("{e} {e:?}"));
    eprintln!("all ready in {:?}", begin.elapsed());
    for c in [Component::Etcd, Component::ApiServer, Component::ControllerManager, Component::Scheduler] {
        eprintln!("{c} {:?}", plane.usage(c).unwrap());
    }
    eprintln!("{}", plane.get(Component::Scheduler, "/metrics").await.unwrap().len());
    let begin = Instant::now();
    plane.restart_api_server().await.unwrap();
    eprintln!("restarted in {:?}", begin.elapsed());
    drop(plane);
    eprintln!("dropped in {:?}", begin.elapsed());
}
