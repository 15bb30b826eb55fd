//! What can go wrong with a test cluster. A test unwraps it and the message shows the log.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use crate::binaries::Unavailable;
use crate::control_plane::Component;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("have the programs of a control plane")]
    Binaries(#[from] Unavailable),
    #[error("read or write {}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("run {what}")]
    Spawn { what: String, source: io::Error },
    #[error("make certificates")]
    Certificates(#[from] rcgen::Error),
    #[error("keep {component} up: it ended with {status}; its log ends with\n{log}")]
    Ended { component: Component, status: ExitStatus, log: String },
    #[error("wait longer than {} s for {component}; its log ends with\n{log}", waited.as_secs())]
    NotReady { component: Component, waited: Duration, log: String },
    #[error("have {what} ready: its log ends with\n{log}")]
    Companion { what: String, log: String },
    #[error("find {0}: it was not asked for in the options")]
    NotPart(Component),
    #[error("read a kubeconfig")]
    Kubeconfig(#[from] kube::config::KubeconfigError),
    #[error("{doing}")]
    Api { doing: String, source: Box<kube::Error> },
    #[error("reach the API server")]
    Client(#[source] Box<kube::Error>),
    #[error("read YAML: {0}")]
    Yaml(String),
}

impl From<kube::Error> for Error {
    fn from(error: kube::Error) -> Self {
        Self::Client(Box::new(error))
    }
}
