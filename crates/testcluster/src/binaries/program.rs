//! Which programs there are, and what each is built from.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A version of Kubernetes that tests run against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Kubernetes {
    V1_35,
    #[default]
    V1_37,
}

#[derive(Debug, thiserror::Error)]
#[error("test against Kubernetes {0}: the versions are 1.37.1 and 1.35.8")]
pub struct UnknownVersion(String);

impl Kubernetes {
    pub const ALL: [Self; 2] = [Self::V1_35, Self::V1_37];

    /// The version that `METRONOME_KUBERNETES` names, or the newest.
    pub fn chosen() -> Result<Self, UnknownVersion> {
        std::env::var("METRONOME_KUBERNETES").map_or_else(|_| Ok(Self::default()), |name| name.parse())
    }

    pub fn version(self) -> &'static str {
        match self {
            Self::V1_35 => "1.35.8",
            Self::V1_37 => "1.37.1",
        }
    }

    fn minor(self) -> &'static str {
        match self {
            Self::V1_35 => "35",
            Self::V1_37 => "37",
        }
    }

    /// Unstamped programs think they are version 0.0.0 and refuse to start beside one another.
    fn stamp(self) -> String {
        let stamp_of = |package: &str| {
            let (version, minor) = (self.version(), self.minor());
            format!(
                "-X {package}.gitVersion=v{version} -X {package}.gitMajor=1 -X {package}.gitMinor={minor}"
            )
        };
        ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"].map(stamp_of).join(" ")
    }
}

impl fmt::Display for Kubernetes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.version())
    }
}

impl FromStr for Kubernetes {
    type Err = UnknownVersion;

    fn from_str(name: &str) -> Result<Self, UnknownVersion> {
        let known = Self::ALL.into_iter().find(|version| version.version() == name);
        known.ok_or_else(|| UnknownVersion(name.to_owned()))
    }
}

/// A program that runs beside the tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Program {
    Etcd,
    ApiServer(Kubernetes),
    ControllerManager(Kubernetes),
    Scheduler(Kubernetes),
    VolcanoScheduler,
    VolcanoControllers,
    JobSet,
    Trainer,
    MpiOperator,
    Helm,
    Kubectl,
    Promtool,
}

impl Program {
    /// All programs of one control plane.
    pub fn control_plane(kubernetes: Kubernetes) -> [Self; 4] {
        [
            Self::Etcd,
            Self::ApiServer(kubernetes),
            Self::ControllerManager(kubernetes),
            Self::Scheduler(kubernetes),
        ]
    }

    /// The name of the file.
    pub fn command(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer(_) => "kube-apiserver",
            Self::ControllerManager(_) => "kube-controller-manager",
            Self::Scheduler(_) => "kube-scheduler",
            Self::VolcanoScheduler => "vc-scheduler",
            Self::VolcanoControllers => "vc-controller-manager",
            Self::JobSet => "jobset",
            Self::Trainer => "trainer-controller-manager",
            Self::MpiOperator => "mpi-operator",
            Self::Helm => "helm",
            Self::Kubectl => "kubectl",
            Self::Promtool => "promtool",
        }
    }

    pub(super) fn package(self) -> &'static str {
        match self {
            Self::Etcd => "go.etcd.io/etcd/server/v3",
            Self::ApiServer(_) => "k8s.io/kubernetes/cmd/kube-apiserver",
            Self::ControllerManager(_) => "k8s.io/kubernetes/cmd/kube-controller-manager",
            Self::Scheduler(_) => "k8s.io/kubernetes/cmd/kube-scheduler",
            Self::VolcanoScheduler => "volcano.sh/volcano/cmd/scheduler",
            Self::VolcanoControllers => "volcano.sh/volcano/cmd/controller-manager",
            Self::JobSet => "sigs.k8s.io/jobset",
            Self::Trainer => "github.com/kubeflow/trainer/v2/cmd/trainer-controller-manager",
            Self::MpiOperator => "github.com/kubeflow/mpi-operator/cmd/mpi-operator",
            Self::Helm => "helm.sh/helm/v4/cmd/helm",
            Self::Kubectl => "k8s.io/kubernetes/cmd/kubectl",
            Self::Promtool => "github.com/prometheus/prometheus/cmd/promtool",
        }
    }

    /// The module that the package lies in.
    pub(super) fn source_module(self) -> &'static str {
        match self {
            Self::Etcd => "go.etcd.io/etcd/server/v3",
            Self::ApiServer(_) | Self::ControllerManager(_) | Self::Scheduler(_) | Self::Kubectl => {
                "k8s.io/kubernetes"
            }
            Self::VolcanoScheduler | Self::VolcanoControllers => "volcano.sh/volcano",
            Self::JobSet => "sigs.k8s.io/jobset",
            Self::Trainer => "github.com/kubeflow/trainer/v2",
            Self::MpiOperator => "github.com/kubeflow/mpi-operator",
            Self::Helm => "helm.sh/helm/v4",
            Self::Promtool => "github.com/prometheus/prometheus",
        }
    }

    pub(super) fn link_flags(self) -> String {
        let stripped = "-s -w".to_owned();
        let stamped = if self == Self::Kubectl { Some(Kubernetes::V1_37) } else { self.kubernetes() };
        match stamped {
            Some(kubernetes) => stripped + " " + &kubernetes.stamp(),
            None => stripped,
        }
    }

    /// What is left out of it: rules are tested without the clients of two dozen clouds.
    pub(super) fn tags(self) -> &'static str {
        match self {
            Self::Promtool => "remove_all_sd",
            _ => "",
        }
    }

    fn kubernetes(self) -> Option<Kubernetes> {
        match self {
            Self::ApiServer(version) | Self::ControllerManager(version) | Self::Scheduler(version) => {
                Some(version)
            }
            _ => None,
        }
    }

    /// One module for all that is built of the same parts. The client of Kubernetes has one of its own, so that the
    /// others need not be built anew for it.
    pub(super) fn module_name(self) -> String {
        match self {
            Self::Etcd => "etcd".to_owned(),
            Self::ApiServer(version) | Self::ControllerManager(version) | Self::Scheduler(version) => {
                format!("kubernetes-{version}")
            }
            Self::VolcanoScheduler | Self::VolcanoControllers => "volcano".to_owned(),
            Self::JobSet => "jobset".to_owned(),
            Self::Trainer => "trainer".to_owned(),
            Self::MpiOperator => "mpi-operator".to_owned(),
            Self::Helm => "helm".to_owned(),
            Self::Promtool => "prometheus".to_owned(),
            Self::Kubectl => "kubectl".to_owned(),
        }
    }

    /// The folder of the Go module that pins everything the program is made of.
    pub fn module(self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("go").join(self.module_name())
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kubernetes() {
            Some(version) => write!(f, "{} {version}", self.command()),
            None => f.write_str(self.command()),
        }
    }
}
