//! Metronome, as built beside this benchmark.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use metronome_testcluster::ControlPlane;

use super::{NO_LIMIT, SCHEDULER_NAME};
use crate::stage;

const NAMESPACE: &str = "metronome";

/// The binary of the same profile: benchmarks lie in `deps`, beside it.
pub(super) fn program() -> Result<PathBuf> {
    let bench = std::env::current_exe().context("find this program")?;
    let folder = bench.parent().and_then(|deps| deps.parent()).context("find the folder of binaries")?;
    let program = folder.join("metronome");
    let asked =
        Command::new(&program).args(["run", "--help"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let can_run = asked.is_ok_and(|status| status.success());
    ensure!(can_run, "find a `metronome run`\nhint: cargo build --release -p metronome-cli");
    Ok(program)
}

/// Where it keeps what it must remember.
pub(super) async fn prepare(plane: &ControlPlane) -> Result<()> {
    Ok(plane.apply_yaml(&stage::namespace(NAMESPACE)).await?)
}

/// It cannot run without a lease. One that was killed still holds it for a while; under the same name it takes it back
/// at once.
pub(super) fn flags(plane: &ControlPlane) -> Vec<String> {
    let flag = |name: &str, value: &str| [format!("--{name}"), value.to_owned()];
    let flags = [
        flag("kubeconfig", &plane.kubeconfig_path().display().to_string()),
        flag("scheduler-name", SCHEDULER_NAME),
        flag("namespace", NAMESPACE),
        flag("identity", "bench"),
        flag("api-qps", &NO_LIMIT.to_string()),
        flag("listen", "127.0.0.1:0"),
    ];
    std::iter::once("run".to_owned()).chain(flags.into_iter().flatten()).collect()
}
