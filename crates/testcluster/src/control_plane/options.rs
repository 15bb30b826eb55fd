//! What a control plane consists of.

use std::time::Duration;

use crate::binaries::Kubernetes;

/// What to start. The default is an API server with RBAC and upstream PodGroups, and nothing that acts by itself.
#[derive(Debug, Clone, Default)]
pub struct Options {
    pub(super) kubernetes: Kubernetes,
    pub(super) controllers: Option<Controllers>,
    pub(super) scheduler: Option<SchedulerConfig>,
    pub(super) flow_control: FlowControl,
    pub(super) api_server_flags: Vec<String>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Controllers {
    /// How long a node may be silent; upstream's default where `None`.
    pub(super) node_grace: Option<Duration>,
}

/// A `KubeSchedulerConfiguration` as YAML; empty for the defaults.
#[derive(Debug, Clone)]
pub(super) struct SchedulerConfig(pub(super) String);

/// Whether the API server shares itself out among its clients, or takes all that comes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum FlowControl {
    #[default]
    On,
    Off,
}

impl Options {
    /// The default, in the version that `METRONOME_KUBERNETES` names.
    ///
    /// # Panics
    /// If it names a version that we do not know.
    pub fn from_env() -> Self {
        let kubernetes = Kubernetes::chosen().unwrap_or_else(|error| panic!("cannot {error}"));
        Self { kubernetes, ..Self::default() }
    }

    #[must_use]
    pub fn version(self, kubernetes: Kubernetes) -> Self {
        Self { kubernetes, ..self }
    }

    /// With kube-controller-manager: jobs make pods, namespaces are emptied, silent nodes are tainted.
    #[must_use]
    pub fn controllers(self) -> Self {
        Self { controllers: Some(Controllers::default()), ..self }
    }

    /// With kube-controller-manager, which takes a node to be lost after this long without a sign of it.
    #[must_use]
    pub fn controllers_with_node_grace(self, grace: Duration) -> Self {
        Self { controllers: Some(Controllers { node_grace: Some(grace) }), ..self }
    }

    /// With kube-scheduler as a `KubeSchedulerConfiguration` says; an empty text stands for its defaults.
    /// Which API server it talks to is filled in.
    #[must_use]
    pub fn scheduler(self, configuration: impl Into<String>) -> Self {
        Self { scheduler: Some(SchedulerConfig(configuration.into())), ..self }
    }

    /// Without API priority and fairness and without limits on requests in flight: for benchmarks.
    #[must_use]
    pub fn without_flow_control(self) -> Self {
        Self { flow_control: FlowControl::Off, ..self }
    }

    /// One more flag for kube-apiserver, after ours.
    #[must_use]
    pub fn api_server_flag(mut self, flag: impl Into<String>) -> Self {
        self.api_server_flags.push(flag.into());
        self
    }
}
