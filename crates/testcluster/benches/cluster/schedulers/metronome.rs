//! Metronome, as built beside this benchmark.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use metronome_testcluster::ControlPlane;

use super::{NO_LIMIT, SCHEDULER_NAME};
use crate::stage;

const NAMESPACE: &str = "metronome";
const DEFINITIONS: [&str; 2] = ["queue.yaml", "trainingjob.yaml"];

/// The named binary, or the one that was built with this benchmark.
pub(super) fn program(named: Option<&Path>) -> Result<PathBuf> {
    let program = named.map_or_else(beside, |named| Ok(named.to_owned()))?;
    let mut help = Command::new(&program);
    help.args(["run", "--help"]).stdout(Stdio::null()).stderr(Stdio::null());
    let can_run = help.status().is_ok_and(|status| status.success());
    ensure!(
        can_run,
        "find a `metronome run`\nhint: cargo build --release -p metronome-cli --features kubernetes"
    );
    Ok(program)
}

/// Benchmarks lie in `deps`, beside the binaries.
fn beside() -> Result<PathBuf> {
    let bench = std::env::current_exe().context("find this program")?;
    let folder = bench.parent().and_then(Path::parent).context("find the folder of binaries")?;
    Ok(folder.join("metronome"))
}

/// Its kinds, and where it keeps what it must remember.
pub(super) async fn prepare(plane: &ControlPlane) -> Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/crds");
    for definition in DEFINITIONS {
        plane.apply_file(&folder.join(definition)).await?;
    }
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
