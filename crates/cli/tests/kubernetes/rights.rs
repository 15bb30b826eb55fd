//! The rights that are granted are enough, and none is there that could be left out: the scheduler runs as the chart's
//! service account does and does all it ever does. Each right is then taken away, and all that the API server's own
//! record has of it is put to the API server's authoriser again.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::path::PathBuf;
use std::time::Duration;

use futures::FutureExt;
use metronome_kubernetes::manifests::UNSEEN;
use metronome_testcluster::{ControlPlane, Corner};
use serde_json::{Value, json};

use crate::audit::{Asked, Audit};
use crate::everything::{Steps, do_everything};
use crate::helm::{Helm, objects, printed};
use crate::lessened::{Lessened, Needed};
use crate::replica::Replica;

/// Kinds of others, which a cluster may have. Volcano's keeps its status in the object, as it does there.
const KINDS: [(&str, &str, &str, &str, &str); 10] = [
    ("scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup", "Namespaced"),
    ("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup", "Namespaced"),
    ("scheduling.volcano.sh", "v1beta1", "queues", "Queue", "Cluster"),
    ("topology.volcano.sh", "v1alpha1", "hypernodes", "HyperNode", "Cluster"),
    ("jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet", "Namespaced"),
    ("kubeflow.org", "v1", "pytorchjobs", "PyTorchJob", "Namespaced"),
    ("kubeflow.org", "v1", "tfjobs", "TFJob", "Namespaced"),
    ("kubeflow.org", "v2beta1", "mpijobs", "MPIJob", "Namespaced"),
    ("ray.io", "v1", "rayclusters", "RayCluster", "Namespaced"),
    ("trainer.kubeflow.org", "v1alpha1", "trainjobs", "TrainJob", "Namespaced"),
];

const CLASSES: &str = "
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: low}
value: 100
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1000
";

async fn define_kinds_of_others(plane: &ControlPlane) {
    for (group, version, plural, kind, scope) in KINDS {
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {
                "name": format!("{plural}.{group}"),
                "annotations": {"api-approved.kubernetes.io": "unapproved"},
            },
            "spec": {
                "group": group, "scope": scope,
                "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind},
                "versions": [{
                    "name": version, "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
                }],
            },
        });
        plane.apply_yaml(&definition.to_string()).await.unwrap();
    }
}

fn account(namespace: &str) -> String {
    format!("system:serviceaccount:{namespace}:metronome")
}

fn kubeconfig(plane: &ControlPlane, namespace: &str) -> PathBuf {
    let groups = ["system:serviceaccounts", "system:authenticated"];
    plane.user_kubeconfig(&account(namespace), &groups).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rights_are_enough_and_none_can_be_taken_away() {
    let audit = Audit::new();
    let Some(helm) = Helm::get() else { return };
    let Some(plane) = ControlPlane::start_or_skip(audit.options()).await else { return };
    let plane: &'static ControlPlane = Box::leak(Box::new(plane));
    define_kinds_of_others(plane).await;
    plane.apply_yaml(CLASSES).await.unwrap();
    let corner = Corner::new(plane, "rights", 1).await;
    let installed = helm.template(&corner.namespace, &[]).unwrap();
    plane.apply_yaml(&installed).await.unwrap();
    let _replica = Replica::start(&kubeconfig(plane, &corner.namespace), &corner.namespace, "only");
    let (elsewhere, steps) = (plane.namespace("elsewhere").await.unwrap(), Steps::default());
    let done = AssertUnwindSafe(do_everything(&corner, &elsewhere, &steps)).catch_unwind().await;
    let asked = audit.of(&account(&corner.namespace));
    // Whoever lacks a right may also wait in vain for what it would have done: the right is what people want to hear of.
    let forbidden: BTreeSet<&Asked> = asked.iter().filter(|one| one.is_forbidden()).collect();
    assert_eq!(forbidden, BTreeSet::new(), "rights are missing");
    if let Err(panic) = done {
        resume_unwind(panic);
    }
    each_right_is_needed(&corner, &objects(&installed), &Needed::of(asked, &steps)).await;
}

/// Takes one right after another away and has the API server's own authoriser judge again all that was done: something
/// that a step consists of must then be forbidden, and nothing but what the right is for.
async fn each_right_is_needed(corner: &Corner, installed: &[Value], needed: &Needed) {
    let all = Lessened::all(installed, &corner.namespace);
    assert!(all.len() > 50, "roles were read: {}", all.len());
    let mut idle = Vec::new();
    for lessened in all.iter().filter(|one| !cannot_be_seen(one)) {
        lessened.install(corner).await;
    }
    for lessened in all.iter().filter(|one| !cannot_be_seen(one)) {
        let denied = lessened.denied(corner, needed).await;
        for (asked, _) in &denied {
            assert!(lessened.is_about(asked), "without {lessened} this is forbidden, too: {asked:?}");
        }
        match denied.first() {
            Some((_, step)) => eprintln!("without {lessened}: not \"{step}\""),
            None => idle.push(lessened.to_string()),
        }
    }
    assert_eq!(idle, [""; 0], "these rights can be taken away, and nothing breaks");
}

fn cannot_be_seen(lessened: &Lessened) -> bool {
    UNSEEN.iter().any(|(group, resource, _)| lessened.is_on(group, resource))
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_only_observes_needs_no_right_to_write() {
    let audit = Audit::new();
    let Some(plane) = ControlPlane::start_or_skip(audit.options()).await else { return };
    let plane: &'static ControlPlane = Box::leak(Box::new(plane));
    let corner = Corner::new(plane, "observes", 1).await;
    plane.apply_yaml(&printed(&corner.namespace, &["--observe"])).await.unwrap();
    let replica = Replica::observe(&kubeconfig(plane, &corner.namespace), &corner.namespace);
    corner.create([corner.pod("p", 1), corner.pod("too-large", 5)]).await;
    corner
        .until("it has looked at the pods", async |_| {
            let server = format!("http://{}", replica.address()?);
            let job = format!("{}/too-large", corner.namespace);
            let told = std::process::Command::new(env!("CARGO_BIN_EXE_metronome"))
                .args(["explain", &job, "--server", &server])
                .output()
                .unwrap();
            told.status.success().then_some(())
        })
        .await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let asked = audit.of(&account(&corner.namespace));
    assert!(!asked.is_empty());
    assert!(!asked.iter().any(Asked::is_forbidden), "{asked:?}");
    let writes: Vec<&Asked> =
        asked.iter().filter(|asked| !["list", "watch"].contains(&&*asked.verb)).collect();
    assert!(writes.is_empty(), "{writes:?}");
    assert!(corner.seats().await.is_empty());
}
