//! Volcano's scheduler with the configuration that its chart installs.
//!
//! But for jobs of its own it runs alone. Of its controllers it would need two things, which are done for it beforehand: queues that are open,
//! and a group for every pod, also for a single one. Groups state no `minResources`, so that all are admitted at once.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use metronome_testcluster::ControlPlane;
use metronome_testcluster::binaries::{self, Program};
use serde_json::json;

use super::{NO_LIMIT, SCHEDULER_NAME};
use crate::cast::Cast;

/// Of what it waits for before it schedules.
const DEFINITIONS: [&str; 4] = [
    "volcano/bases/scheduling.volcano.sh_podgroups.yaml",
    "volcano/bases/scheduling.volcano.sh_queues.yaml",
    "volcano/bases/nodeinfo.volcano.sh_numatopologies.yaml",
    "volcano/bases/topology.volcano.sh_hypernodes.yaml",
];
/// What its controllers wait for besides.
const OF_JOBS: [&str; 7] = [
    "volcano/bases/batch.volcano.sh_jobs.yaml",
    "volcano/bases/batch.volcano.sh_cronjobs.yaml",
    "volcano/bases/bus.volcano.sh_commands.yaml",
    "volcano/bases/config.volcano.sh_colocationconfigurations.yaml",
    "volcano/bases/shard.volcano.sh_nodeshards.yaml",
    "jobflow/bases/flow.volcano.sh_jobflows.yaml",
    "jobflow/bases/flow.volcano.sh_jobtemplates.yaml",
];
const QUEUES: &str = r#"
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: { name: root }
spec: { weight: 1, reclaimable: false }
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: { name: default }
spec: { weight: 1, reclaimable: true, parent: root }
"#;
const CONFIGURATION: &str = r#"
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: binpack
"#;

pub(super) fn program() -> Result<PathBuf> {
    Ok(binaries::provide(Program::VolcanoScheduler)?)
}

pub(super) async fn prepare(plane: &ControlPlane) -> Result<()> {
    define(plane, &DEFINITIONS).await?;
    plane.apply_yaml(QUEUES).await?;
    for queue in ["root", "default"] {
        open(plane.client().await?, queue).await?;
    }
    Ok(())
}

async fn define(plane: &ControlPlane, definitions: &[&str]) -> Result<()> {
    let folder = binaries::sources(Program::VolcanoScheduler)?.join("config/crd");
    for definition in definitions {
        plane.apply_file(&folder.join(definition)).await?;
    }
    Ok(())
}

/// All of its controllers, as its chart runs them.
pub(super) async fn with_controllers(cast: Cast, plane: &ControlPlane) -> Result<Cast> {
    define(plane, &OF_JOBS).await?;
    let mut command = Command::new(binaries::provide(Program::VolcanoControllers)?);
    command.args([
        format!("--kubeconfig={}", plane.kubeconfig_path().display()),
        format!("--scheduler-name={SCHEDULER_NAME}"),
        format!("--kube-api-qps={NO_LIMIT}"),
        format!("--kube-api-burst={NO_LIMIT}"),
        "--leader-elect=false".to_owned(),
        "--logtostderr".to_owned(),
    ]);
    let controllers = plane.accompany("volcano-controllers", command)?;
    Ok(cast.with("volcano-controllers", controllers))
}

async fn open(client: Client, queue: &str) -> Result<()> {
    let kind = GroupVersionKind::gvk("scheduling.volcano.sh", "v1beta1", "Queue");
    let api: Api<DynamicObject> = Api::all_with(client, &ApiResource::from_gvk(&kind));
    let status = Patch::Merge(json!({ "status": { "state": "Open" } }));
    api.patch_status(queue, &PatchParams::default(), &status)
        .await
        .with_context(|| format!("open {queue}"))?;
    Ok(())
}

pub(super) fn flags(plane: &ControlPlane) -> Result<Vec<String>> {
    let configuration = plane.folder().join("volcano.yaml");
    fs::write(&configuration, CONFIGURATION).context("configure Volcano")?;
    let flags = [
        format!("--kubeconfig={}", plane.kubeconfig_path().display()),
        format!("--scheduler-conf={}", configuration.display()),
        format!("--scheduler-name={SCHEDULER_NAME}"),
        format!("--kube-api-qps={NO_LIMIT}"),
        format!("--kube-api-burst={NO_LIMIT}"),
        "--leader-elect=false".to_owned(),
        "--enable-metrics=false".to_owned(),
        "--cache-dumper=false".to_owned(),
        "--logtostderr".to_owned(),
    ];
    Ok(flags.into())
}
