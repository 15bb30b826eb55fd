//! kube-scheduler with its default profile and upstream's gangs.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use metronome_testcluster::binaries::{self, Program};
use metronome_testcluster::{ControlPlane, Kubernetes, Operator};
use serde_json::json;

use super::{NO_LIMIT, SCHEDULER_NAME};
use crate::cast::Cast;

pub(super) fn program() -> Result<PathBuf> {
    Ok(binaries::provide(Program::Scheduler(Kubernetes::default()))?)
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

/// JobSet's controller makes jobs, and of Kubernetes' own the one for jobs makes their pods.
pub(super) async fn with_controllers(cast: Cast, plane: &ControlPlane) -> Result<Cast> {
    let job_sets = plane.operate(Operator::JobSet).await?;
    let program = binaries::provide(Program::ControllerManager(Kubernetes::default()))?;
    let mut command = Command::new(program);
    command.args([
        format!("--kubeconfig={}", plane.kubeconfig_path().display()),
        format!("--kube-api-qps={NO_LIMIT}"),
        format!("--kube-api-burst={NO_LIMIT}"),
        "--controllers=job-controller".to_owned(),
        "--leader-elect=false".to_owned(),
        "--secure-port=0".to_owned(),
    ]);
    let jobs = plane.accompany("kube-controller-manager", command)?;
    Ok(cast.with("jobset", job_sets).with("kube-controller-manager", jobs))
}
