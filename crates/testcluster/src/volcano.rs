//! Volcano beside a control plane, for comparisons: its own programs, definitions and configuration, from its module.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use kube::Client;

use crate::binaries::{self, Program};
use crate::control_plane::{Companion, ControlPlane};
use crate::error::{Error, Result};

const DEFINITIONS: &str = "config/crd/volcano/bases";
const CONFIGURATION: &str = "installer/helm/chart/volcano/config/volcano-scheduler.conf";
/// What it makes itself as soon as it works.
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
            while !answers(client, DEFAULT_QUEUE).await {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        let late =
            |_| Error::Companion { name: "vc-scheduler", waited: PATIENCE, log: self.scheduler.log_tail() };
        tokio::time::timeout(PATIENCE, ready).await.map_err(late)
    }
}

async fn answers(client: &Client, path: &str) -> bool {
    let request = http::Request::get(path).body(Vec::new()).expect("a path is a request");
    client.request_text(request).await.is_ok()
}

/// In order of name.
fn definitions(sources: &Path) -> Result<Vec<PathBuf>> {
    let folder = sources.join(DEFINITIONS);
    let failed = |source| Error::File { path: folder.clone(), source };
    let entries: std::io::Result<Vec<_>> = fs::read_dir(&folder).map_err(failed)?.collect();
    let mut paths: Vec<PathBuf> = entries.map_err(failed)?.into_iter().map(|entry| entry.path()).collect();
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
