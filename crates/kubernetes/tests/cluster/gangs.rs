//! Gangs, however they are declared.

use std::collections::BTreeSet;

use kube::api::{Api, ApiResource, DynamicObject, PostParams};
use serde_json::{Value, json};

use crate::scheduler::Scheduled;
use metronome_testcluster::{Corner, Kubernetes, shared};

/// An object of a kind that this program has no type for.
async fn create(corner: &Corner, api_version: &str, kind: &str, plural: &str, object: Value) {
    let (group, version) = api_version.split_once('/').unwrap();
    let resource = ApiResource {
        group: group.into(),
        version: version.into(),
        api_version: api_version.into(),
        kind: kind.into(),
        plural: plural.into(),
    };
    let api: Api<DynamicObject> = Api::namespaced_with(corner.client.clone(), &corner.namespace, &resource);
    let mut object = object;
    object["apiVersion"] = json!(api_version);
    object["kind"] = json!(kind);
    api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gang_starts_whole_or_not_at_all() {
    let Some(plane) = shared().await else { return };
    let corner = Scheduled::new(plane, "whole", 2).await;
    let mut gang = corner.gang("g", 4, 1);
    let last = gang.pop().unwrap();
    corner.create(gang).await;
    let (reason, message) = corner.until_verdict("g-0", |_, _| true).await;
    assert_eq!(reason, "Unschedulable");
    assert!(message.contains("3 of the 4"), "{message}");
    assert!(corner.seats().await.is_empty());
    corner.create([last]).await;
    corner.until_bound(4).await;
    corner.create(corner.gang("large", 5, 1)).await;
    corner.until_verdict("large-0", |_, message| message.contains("5 members")).await;
    assert_eq!(corner.seats().await.len(), 4, "half of it would fit");
    corner.until("its intent is forgotten", async |corner| (corner.intents().await == 0).then_some(())).await;
    corner.judge();
}

#[tokio::test(flavor = "multi_thread")]
async fn two_gangs_that_each_fit_alone_do_not_block_each_other() {
    let Some(plane) = shared().await else { return };
    let mut corner = Scheduled::not_yet(plane, "two", 2).await;
    corner.create([corner.gang("a", 6, 1), corner.gang("b", 6, 1)].concat()).await;
    corner.start().await;
    let seats = corner.until_bound(6).await;
    let gangs: BTreeSet<&str> = seats.keys().map(|name| &name[..1]).collect();
    assert_eq!(gangs.len(), 1, "{seats:?}");
    let first = gangs.into_iter().next().unwrap();
    let second = if first == "a" { "b" } else { "a" };
    for index in 0..6 {
        corner.delete(&format!("{first}-{index}")).await;
    }
    corner
        .until("the other one runs", async |corner| {
            (corner.seats().await.keys().filter(|name| name.starts_with(second)).count() == 6).then_some(())
        })
        .await;
    corner.judge();
}

#[tokio::test(flavor = "multi_thread")]
async fn upstream_pod_groups_are_gangs() {
    let Some(plane) = shared().await else { return };
    if Kubernetes::chosen().unwrap().version() != "1.37.1" {
        return metronome_skip::skip("PodGroups of this version are another API");
    }
    let corner = Scheduled::new(plane, "upstream", 1).await;
    let policy = json!({"gang": {"minCount": 3}});
    let group = json!({"metadata": {"name": "g"}, "spec": {"schedulingPolicy": policy}});
    create(&corner, "scheduling.k8s.io/v1beta1", "PodGroup", "podgroups", group).await;
    let member = |index: u32| {
        let mut pod = corner.pod(&format!("g-{index}"), 1);
        pod["spec"]["schedulingGroup"] = json!({"podGroupName": "g"});
        pod
    };
    corner.create([member(0), member(1)]).await;
    corner.until_verdict("g-0", |_, message| message.contains("2 of the 3")).await;
    corner.create([member(2)]).await;
    corner.until_bound(3).await;
    corner.judge();
}

/// A custom resource that takes any shape, as the real ones nearly do.
fn crd(group: &str, version: &str) -> String {
    format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: podgroups.{group}, \
         annotations: {{api-approved.kubernetes.io: unapproved}}}}\nspec:\n  group: {group}\n  scope: Namespaced\n  \
         names: {{plural: podgroups, singular: podgroup, kind: PodGroup}}\n  versions:\n  - name: {version}\n    \
         served: true\n    storage: true\n    subresources: {{status: {{}}}}\n    schema: {{openAPIV3Schema: {{type: \
         object, x-kubernetes-preserve-unknown-fields: true}}}}\n"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_of_the_scheduler_plugins_and_of_volcano_are_gangs() {
    let Some(plane) = shared().await else { return };
    for (group, version) in [("scheduling.x-k8s.io", "v1alpha1"), ("scheduling.volcano.sh", "v1beta1")] {
        plane.apply_yaml(&crd(group, version)).await.unwrap();
    }
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    let corner = Scheduled::new(plane, "crds", 2).await;
    let plugins = json!({"metadata": {"name": "p"}, "spec": {"minMember": 2}});
    create(&corner, "scheduling.x-k8s.io/v1alpha1", "PodGroup", "podgroups", plugins).await;
    let volcano = json!({"metadata": {"name": "v"}, "spec": {"minMember": 2}});
    create(&corner, "scheduling.volcano.sh/v1beta1", "PodGroup", "podgroups", volcano).await;
    let broken = json!({"metadata": {"name": "broken"}, "spec": {"minMember": "many"}});
    create(&corner, "scheduling.volcano.sh/v1beta1", "PodGroup", "podgroups", broken).await;
    let of_plugins = |index: u32| {
        let mut pod = corner.pod(&format!("p-{index}"), 1);
        pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] = json!("p");
        pod
    };
    let of_volcano = |name: &str, group: &str| {
        let mut pod = corner.pod(name, 1);
        pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] = json!(group);
        pod
    };
    corner.create([of_plugins(0), of_volcano("v-0", "v"), of_volcano("broken-0", "broken")]).await;
    corner.until_verdict("p-0", |_, message| message.contains("1 of the 2")).await;
    corner.until_verdict("v-0", |_, message| message.contains("1 of the 2")).await;
    let (reason, message) = corner.until_verdict("broken-0", |_, _| true).await;
    assert_eq!(reason, "SchedulerError");
    assert!(message.contains("minMember"), "{message}");
    corner.create([of_plugins(1), of_volcano("v-1", "v")]).await;
    let seats = corner.until_bound(4).await;
    assert!(!seats.contains_key("broken-0"));
    corner
        .until("Volcano's phase is written back", async |corner| {
            let resource = ApiResource {
                group: "scheduling.volcano.sh".into(),
                version: "v1beta1".into(),
                api_version: "scheduling.volcano.sh/v1beta1".into(),
                kind: "PodGroup".into(),
                plural: "podgroups".into(),
            };
            let api: Api<DynamicObject> =
                Api::namespaced_with(corner.client.clone(), &corner.namespace, &resource);
            (api.get("v").await.unwrap().data["status"]["phase"] == "Running").then_some(())
        })
        .await;
    corner.judge();
}
