//! kube-scheduler with its default profile and upstream's gangs.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use metronome_testcluster::binaries::{self, Program};
use metronome_testcluster::{ControlPlane, Kubernetes};
use serde_json::json;

use super::{NO_LIMIT, SCHEDULER_NAME};

pub(super) fn program() -> Result<PathBuf> {
    Ok(binaries::provide(Program::Scheduler(Kubernetes::default()))?.path)
}

pub(super) fn flags(plane: &ControlPlane) -> Result<Vec<String>> {
    let configuration = plane.folder().join("kube-scheduler.json");
    let document = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": { "kubeconfig": plane.kubeconfig_path(), "qps": NO_LIMIT, "burst": NO_LIMIT },
        "leaderElection": { "leaderElect": false },
        "profiles": [{ "schedulerName": SCHEDULER_NAME }],
    });
    fs::write(&configuration, document.to_string()).context("configure kube-scheduler")?;
    let flags = [
        format!("--config={}", configuration.display()),
        // It serves metrics to nobody here, and its port would have to be free.
        "--secure-port=0".to_owned(),
        "--feature-gates=GenericWorkload=true".to_owned(),
    ];
    Ok(flags.into())
}
