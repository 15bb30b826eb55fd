//! Volcano beside a control plane, for comparisons: its own programs, definitions and configuration, from its module.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use kube::Client;
use serde_json::Value;

use crate::binaries::{self, Program};
use crate::control_plane::{Companion, ControlPlane};
use crate::error::{Error, Result};

/// Its controllers wait for all of them, also where nobody uses job flows.
const DEFINITIONS: [&str; 2] = ["config/crd/volcano/bases", "config/crd/jobflow/bases"];
const CONFIGURATION: &str = "installer/helm/chart/volcano/config/volcano-scheduler.conf";
/// The scheduler makes it, the controllers open it.
const DEFAULT_QUEUE: &str = "/apis/scheduling.volcano.sh/v1beta1/queues/default";
const PATIENCE: Duration = Duration::from_secs(60);

/// How to run it; by default as its own chart does.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Instead of the chart's.
    pub scheduler_configuration: Option<String>,
    pub more_scheduler_flags: Vec<String>,
}

#[derive(Debug)]
pub struct Volcano {
    pub scheduler: Companion,
    pub controllers: Companion,
}

impl Volcano {
    /// Applies its definitions, starts it and waits until it works. Pods name it by `schedulerName: volcano`.
    pub async fn start(plane: &ControlPlane, options: &Options) -> Result<Self> {
        let sources = binaries::sources(Program::VolcanoScheduler)?;
        for definition in definitions(&sources)? {
            plane.apply_file(&definition).await?;
        }
        let configuration = configuration(plane, &sources, options)?;
        let mut scheduler = command(plane, Program::VolcanoScheduler)?;
        scheduler.arg(format!("--scheduler-conf={}", configuration.display()));
        scheduler
            .arg(format!("--cache-dump-dir={}", plane.folder().display()))
            .args(&options.more_scheduler_flags);
        let controllers =
            plane.accompany("vc-controller-manager", command(plane, Program::VolcanoControllers)?)?;
        let scheduler = plane.accompany("vc-scheduler", scheduler)?;
        let volcano = Self { scheduler, controllers };
        volcano.until_ready(&plane.client().await?).await?;
        Ok(volcano)
    }

    async fn until_ready(&self, client: &Client) -> Result<()> {
        let ready = async {
            while !queue_is_open(client).await {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        let late =
            |_| Error::Companion { name: "vc-scheduler", waited: PATIENCE, log: self.scheduler.log_tail() };
        tokio::time::timeout(PATIENCE, ready).await.map_err(late)
    }
}

async fn queue_is_open(client: &Client) -> bool {
    let request = http::Request::get(DEFAULT_QUEUE).body(Vec::new()).expect("a path is a request");
    let queue = client.request::<Value>(request).await;
    queue.is_ok_and(|queue| queue["status"]["state"] == "Open")
}

/// In order of name.
fn definitions(sources: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for folder in DEFINITIONS.map(|folder| sources.join(folder)) {
        let failed = |source| Error::File { path: folder.clone(), source };
        for entry in fs::read_dir(&folder).map_err(failed)? {
            paths.push(entry.map_err(failed)?.path());
        }
    }
    paths.sort();
    Ok(paths)
}

fn configuration(plane: &ControlPlane, sources: &Path, options: &Options) -> Result<PathBuf> {
    let Some(text) = &options.scheduler_configuration else { return Ok(sources.join(CONFIGURATION)) };
    let path = plane.folder().join("volcano-scheduler.conf");
    fs::write(&path, text).map_err(|source| Error::File { path: path.clone(), source })?;
    Ok(path)
}

fn command(plane: &ControlPlane, program: Program) -> Result<Command> {
    let mut command = Command::new(binaries::provide(program)?.path);
    command.arg(format!("--kubeconfig={}", plane.kubeconfig_path().display())).arg("--leader-elect=false");
    Ok(command)
}
