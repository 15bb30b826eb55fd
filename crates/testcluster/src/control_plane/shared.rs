//! One control plane for all tests of a process.

use std::path::PathBuf;
use std::time::Duration;

use metronome_skip::skip;
use tokio::sync::OnceCell;

use super::{ControlPlane, Options};
use crate::binaries::{self, Program};
use crate::error::Error;

/// A control plane that the first test starts and all others use; put it into a `static`. The end of the process
/// ends it.
#[derive(Debug)]
pub struct Shared {
    options: fn() -> Options,
    /// The reason why it cannot be had is kept, so that every test that asks is recorded as skipped.
    cell: OnceCell<Result<ControlPlane, String>>,
}

impl Shared {
    pub const fn new(options: fn() -> Options) -> Self {
        Self { options, cell: OnceCell::const_new() }
    }

    /// The control plane, or `None` where its programs cannot be had: the test is then skipped.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn get(&self) -> Option<&ControlPlane> {
        let plane = self.cell.get_or_init(|| ControlPlane::start_or_reason((self.options)())).await;
        plane.as_ref().map_err(skip).ok()
    }
}

impl ControlPlane {
    /// A control plane of the caller's own, or `None` as [`Shared::get`] says.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn start_or_skip(options: Options) -> Option<Self> {
        Self::start_or_reason(options).await.map_err(skip).ok()
    }

    async fn start_or_reason(options: Options) -> Result<Self, String> {
        match Self::start(options).await {
            Ok(plane) => Ok(plane),
            Err(Error::Binaries(missing)) if missing.is_lack_of_tools() => Err(format!("cannot {missing}")),
            Err(error) => panic!("cannot {error} ({:?})", std::error::Error::source(&error)),
        }
    }
}

/// The path of a program, or `None` where this machine lacks a tool to build it: the test is then skipped.
///
/// # Panics
/// If the build fails.
pub fn provide_or_skip(program: Program) -> Option<PathBuf> {
    match binaries::provide(program) {
        Ok(path) => Some(path),
        Err(missing) if missing.is_lack_of_tools() => {
            skip(format_args!("cannot {missing}"));
            None
        }
        Err(error) => panic!("cannot {error}"),
    }
}

/// The API server of this process, in the version that `METRONOME_KUBERNETES` names, with no controllers and no
/// scheduler beside it. Each test works in a namespace of its own.
pub async fn shared() -> Option<&'static ControlPlane> {
    static PLAIN: Shared = Shared::new(Options::from_env);
    PLAIN.get().await
}

/// The same with Kubernetes' own controllers, which make the pods of jobs and delete what belongs to nobody. Simulated
/// kubelets send no heartbeats, and nobody misses them.
pub async fn shared_with_controllers() -> Option<&'static ControlPlane> {
    const NODE_GRACE: Duration = Duration::from_secs(3600);
    static CONTROLLED: Shared = Shared::new(|| Options::from_env().controllers_with_node_grace(NODE_GRACE));
    CONTROLLED.get().await
}
