//! The parts of a control plane.

use std::fmt;

use kube::Client;

use crate::binaries::{Kubernetes, Program};
use crate::error::Result;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Component {
    Etcd,
    ApiServer,
    ControllerManager,
    Scheduler,
}

impl Component {
    pub(super) fn program(self, kubernetes: Kubernetes) -> Program {
        match self {
            Self::Etcd => Program::Etcd,
            Self::ApiServer => Program::ApiServer(kubernetes),
            Self::ControllerManager => Program::ControllerManager(kubernetes),
            Self::Scheduler => Program::Scheduler(kubernetes),
        }
    }

    pub(super) fn name(self) -> &'static str {
        self.program(Kubernetes::default()).command()
    }

    /// Whether it talks to the API server, which must be there first.
    pub(super) fn is_client(self) -> bool {
        matches!(self, Self::ControllerManager | Self::Scheduler)
    }

    /// Whether it does its work, seen through the client that `Site::probing_client` gives.
    pub(super) async fn is_ready(self, client: &Client) -> bool {
        match self {
            Self::Etcd => get(client, "/health").await.is_ok(),
            Self::ApiServer => get(client, "/readyz").await.is_ok(),
            // It calls itself healthy long before its controllers run, and does not survive an API server that goes
            // away meanwhile. The default service account is the work of one of them.
            Self::ControllerManager => {
                get(client, "/api/v1/namespaces/default/serviceaccounts/default").await.is_ok()
            }
            Self::Scheduler => get(client, "/healthz").await.is_ok(),
        }
    }
}

/// What a server answers, where it answers with success.
pub(super) async fn get(client: &Client, path: &str) -> Result<String> {
    let request = http::Request::get(path).body(Vec::new()).expect("a path is a request");
    Ok(client.request_text(request).await?)
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
