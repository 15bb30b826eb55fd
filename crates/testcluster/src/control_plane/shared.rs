//! One control plane for all tests of a process.

use std::time::Duration;

use tokio::sync::OnceCell;

use super::{ControlPlane, Options};
use crate::binaries::Unavailable;
use crate::error::Error;

/// A control plane that the first test starts and all others use; put it into a `static`. The end of the process
/// ends it.
#[derive(Debug)]
pub struct Shared {
    options: fn() -> Options,
    cell: OnceCell<Option<ControlPlane>>,
}

impl Shared {
    pub const fn new(options: fn() -> Options) -> Self {
        Self { options, cell: OnceCell::const_new() }
    }

    /// The control plane, or `None` where its programs cannot be had: then the test is left out, which is said on
    /// standard error.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn get(&self) -> Option<&ControlPlane> {
        self.cell.get_or_init(|| ControlPlane::start_or_skip((self.options)())).await.as_ref()
    }
}

impl ControlPlane {
    /// A control plane of the caller's own, or `None` as [`Shared::get`] says.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn start_or_skip(options: Options) -> Option<Self> {
        match Self::start(options).await {
            Ok(plane) => Some(plane),
            Err(Error::Binaries(missing @ Unavailable::NoGo(_))) => {
                eprintln!("skipped: cannot {missing}");
                None
            }
            Err(error) => panic!("cannot {error} ({:?})", std::error::Error::source(&error)),
        }
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
