//! The control plane comes up and does what the real one does, because it is.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Error;
use kube::api::{Api, DynamicObject, ListParams, ObjectMeta, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use metronome_testcluster::{Component, ControlPlane, Options, shared};

fn config_map(name: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        ..ConfigMap::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_can_be_created() {
    let Some(plane) = shared().await else { return };
    let namespace = plane.namespace("objects").await.unwrap();
    let api: Api<ConfigMap> = Api::namespaced(plane.client().await.unwrap(), &namespace);
    api.create(&PostParams::default(), &config_map("one")).await.unwrap();
    assert_eq!(api.list(&ListParams::default()).await.unwrap().items.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_is_the_version_that_was_asked_for() {
    let Some(plane) = shared().await else { return };
    let version = plane.client().await.unwrap().apiserver_version().await.unwrap();
    let wanted = std::env::var("METRONOME_KUBERNETES").unwrap_or_else(|_| "1.37.1".to_owned());
    assert_eq!(version.git_version, format!("v{wanted}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn upstream_groups_are_served() {
    let Some(plane) = shared().await else { return };
    let groups = plane.client().await.unwrap().list_api_groups().await.unwrap();
    let scheduling = groups.groups.iter().find(|group| group.name == "scheduling.k8s.io").unwrap();
    let versions: Vec<&str> = scheduling.versions.iter().map(|version| version.version.as_str()).collect();
    assert!(
        versions.iter().any(|version| version.contains("alpha") || version.contains("beta")),
        "{versions:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn users_may_do_what_rbac_says() {
    let Some(plane) = shared().await else { return };
    let namespace = plane.namespace("rbac").await.unwrap();
    let rules = format!(
        r#"
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{ name: reader, namespace: {namespace} }}
rules: [{{ apiGroups: [""], resources: [configmaps], verbs: [list] }}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{ name: reader, namespace: {namespace} }}
roleRef: {{ apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader }}
subjects: [{{ apiGroup: rbac.authorization.k8s.io, kind: Group, name: readers }}]
"#
    );
    plane.apply_yaml(&rules).await.unwrap();
    let client = plane.user_client("rose", &["writers", "readers"]).await.unwrap();
    let readable: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace);
    let secret: Api<Secret> = Api::namespaced(client, &namespace);
    readable.list(&ListParams::default()).await.unwrap();
    let refused = secret.list(&ListParams::default()).await.unwrap_err();
    assert!(matches!(&refused, Error::Api(status) if status.code == 403), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_custom_resource_can_be_used_once_its_definition_is_applied() {
    let Some(plane) = shared().await else { return };
    let text = r"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: tunes.testcluster.metronome.dev }
spec:
  group: testcluster.metronome.dev
  scope: Cluster
  names: { kind: Tune, plural: tunes }
  versions:
    - name: v1
      served: true
      storage: true
      schema: { openAPIV3Schema: { type: object, x-kubernetes-preserve-unknown-fields: true } }
---
apiVersion: testcluster.metronome.dev/v1
kind: Tune
metadata: { name: first }
";
    plane.apply_yaml(text).await.unwrap();
    let kind = GroupVersionKind::gvk("testcluster.metronome.dev", "v1", "Tune");
    let api: Api<DynamicObject> =
        Api::all_with(plane.client().await.unwrap(), &ApiResource::from_gvk_with_plural(&kind, "tunes"));
    api.get("first").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_api_server_has_its_old_address_and_data() {
    let Some(plane) = ControlPlane::start_or_skip(Options::from_env()).await else { return };
    let api: Api<ConfigMap> = Api::default_namespaced(plane.client().await.unwrap());
    api.create(&PostParams::default(), &config_map("kept")).await.unwrap();
    let before = plane.pid(Component::ApiServer).unwrap();
    plane.restart_api_server().await.unwrap();
    assert_ne!(plane.pid(Component::ApiServer).unwrap(), before);
    api.get("kept").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_api_server_does_not_answer() {
    let Some(plane) = ControlPlane::start_or_skip(Options::from_env()).await else { return };
    let api: Api<ConfigMap> = Api::default_namespaced(plane.client().await.unwrap());
    plane.stop(Component::ApiServer);
    api.list(&ListParams::default()).await.unwrap_err();
    plane.start_component(Component::ApiServer).await.unwrap();
    api.list(&ListParams::default()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_programs_use_and_say_can_be_seen() {
    let options = Options::from_env().controllers().scheduler("").without_flow_control();
    let Some(plane) = ControlPlane::start_or_skip(options).await else { return };
    for component in
        [Component::Etcd, Component::ApiServer, Component::ControllerManager, Component::Scheduler]
    {
        let usage = plane.usage(component).unwrap();
        assert!(usage.peak_rss_bytes > 10_000_000 && !usage.cpu.is_zero(), "{component}: {usage:?}");
    }
    let metrics = plane.get(Component::Scheduler, "/metrics").await.unwrap();
    assert!(metrics.contains("scheduler_schedule_attempts_total") || metrics.contains("scheduler_"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_does_not_start_shows_its_log() {
    let options = Options::from_env().api_server_flag("--no-such-flag");
    match ControlPlane::start(options).await {
        Err(error @ metronome_testcluster::Error::Ended { .. }) => {
            assert!(error.to_string().contains("no-such-flag"), "{error}");
        }
        Err(metronome_testcluster::Error::Binaries(_)) => {}
        other => panic!("{other:?}"),
    }
}
