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

    /// Everything that tests run against a version of Kubernetes.
    pub fn of_tests(kubernetes: Kubernetes) -> Vec<Self> {
        let operators = [Self::JobSet, Self::Trainer, Self::MpiOperator];
        let clients = [Self::Helm, Self::Kubectl, Self::Promtool];
        Self::control_plane(kubernetes).into_iter().chain(operators).chain(clients).collect()
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

    /// The name that `go build` gives the file: the last part of the package's path that is no version.
    pub(crate) fn built_as(self) -> &'static str {
        match self {
            Self::Etcd => "server",
            Self::VolcanoScheduler => "scheduler",
            Self::VolcanoControllers => "controller-manager",
            _ => self.command(),
        }
    }

    pub(crate) fn package(self) -> &'static str {
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
            Self::Promtool => "prometheus",
        }
    }

    /// The module that the package lies in.
    pub(crate) fn source_module(self) -> &'static str {
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

    /// Without debug information. Programs of Kubernetes are told their version.
    pub(crate) fn link_flags(self) -> String {
        let stripped = "-s -w".to_owned();
        match self.source() {
            Source::Go(Module::Cluster) => stripped + " " + &Kubernetes::default().stamp(),
            Source::Go(Module::Kubernetes(version)) => stripped + " " + &version.stamp(),
            _ => stripped,
        }
    }

    /// The newest control plane and all programs beside it share one module, so that each package of Kubernetes is
    /// compiled once. Rules of alerts need no particular version of Prometheus, and compiling it takes minutes.
    pub(crate) fn source(self) -> Source {
        match self {
            Self::ApiServer(version) | Self::ControllerManager(version) | Self::Scheduler(version)
                if version != Kubernetes::default() =>
            {
                Source::Go(Module::Kubernetes(version))
            }
            Self::VolcanoScheduler | Self::VolcanoControllers => Source::Go(Module::Volcano),
            Self::Promtool => Source::Debian("prometheus"),
            _ => Source::Go(Module::Cluster),
        }
    }

    /// The folder of the Go module that pins everything the program is made of.
    pub fn module(self) -> PathBuf {
        let name = match self.source() {
            Source::Go(module) => module.to_string(),
            Source::Debian(package) => package.to_owned(),
        };
        Path::new(env!("CARGO_MANIFEST_DIR")).join("go").join(name)
    }

    fn kubernetes(self) -> Option<Kubernetes> {
        match self {
            Self::ApiServer(version) | Self::ControllerManager(version) | Self::Scheduler(version) => {
                Some(version)
            }
            _ => None,
        }
    }
}

/// What programs are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// A Go module of ours that pins all versions.
    Go(Module),
    /// A Debian package.
    Debian(&'static str),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Go(module) => write!(f, "go build in the module {module}"),
            Self::Debian(package) => write!(f, "apt-get download {package}"),
        }
    }
}

/// A folder of `go/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Module {
    Cluster,
    Kubernetes(Kubernetes),
    Volcano,
}

impl fmt::Display for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cluster => f.write_str("cluster"),
            Self::Kubernetes(version) => write!(f, "kubernetes-{version}"),
            Self::Volcano => f.write_str("volcano"),
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::read;

    #[test]
    fn every_go_program_is_a_tool_of_its_module() {
        let planes = Kubernetes::ALL.into_iter().flat_map(Program::control_plane);
        let others = [
            Program::VolcanoScheduler,
            Program::VolcanoControllers,
            Program::JobSet,
            Program::Trainer,
            Program::MpiOperator,
            Program::Helm,
            Program::Kubectl,
        ];
        for program in planes.chain(others) {
            let go_mod = read(&program.module().join("go.mod")).unwrap();
            assert!(go_mod.contains(program.package()), "{program} is no tool of its go.mod");
        }
    }

    #[test]
    fn programs_of_one_module_are_linked_with_the_same_flags() {
        let flags = Program::Etcd.link_flags();
        assert_eq!(flags, Program::ApiServer(Kubernetes::V1_37).link_flags());
        assert_eq!(flags, Program::Helm.link_flags());
        assert_ne!(flags, Program::ApiServer(Kubernetes::V1_35).link_flags());
    }
}
