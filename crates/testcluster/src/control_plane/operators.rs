//! Controllers of others, which make pods out of objects of their own. Their definitions come from the modules that they
//! are built from.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use super::{Companion, ControlPlane, PATIENCE, PAUSE};
use crate::binaries::{self, Program, Unavailable};
use crate::error::{Error, Result};

/// A controller that is no part of Kubernetes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    JobSet,
    /// Kubeflow's. It makes sets of jobs and, where a runtime says so, groups of the scheduler plugins.
    Trainer,
}

/// Whether the operator for MPI writes a group of the scheduler plugins for each job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MpiGroups {
    Written,
    None,
}

/// What an operator consists of.
struct Parts {
    program: PathBuf,
    definitions: Vec<PathBuf>,
    webhooks: Option<PathBuf>,
}

const JOB_SETS: &str = "config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml";
const JOB_SET_WEBHOOKS: &str = "config/components/webhook/manifests.yaml";
const TRAINER: [&str; 3] = ["trainjobs", "trainingruntimes", "clustertrainingruntimes"];
const MPI: &str = "mpi-operator";
const MPI_JOBS: &str = "manifests/base/kubeflow.org_mpijobs.yaml";
const PLUGINS_MODULE: &str = "sigs.k8s.io/scheduler-plugins";
const PLUGINS_GROUPS: &str = "config/crd/bases/scheduling.x-k8s.io_podgroups.yaml";

impl ControlPlane {
    /// Builds an operator where it is missing and runs it; its objects can then be made.
    pub async fn operate(&self, operator: Operator) -> Result<Companion> {
        let parts = tokio::task::spawn_blocking(move || operator.parts()).await;
        let parts = parts.expect("building does not panic")?;
        for definition in &parts.definitions {
            self.apply_file(definition).await?;
        }
        let port = free_port().map_err(super::spawning(operator.name()))?;
        let command = self.command(operator, &parts.program, port)?;
        let mut companion = self.accompany(operator.name(), command)?;
        until_listening(operator.name(), &mut companion, port).await?;
        if let Some(webhooks) = &parts.webhooks {
            self.apply_webhooks(webhooks, operator.name(), port).await?;
        }
        Ok(companion)
    }

    /// Runs Kubeflow's operator for MPI in one namespace, which is called as the scheduler is that it gives pods to.
    pub async fn operate_mpi(&self, namespace: &str, groups: MpiGroups) -> Result<Companion> {
        let built = tokio::task::spawn_blocking(|| {
            let program = binaries::provide(Program::MpiOperator)?;
            let plugins = binaries::sources_of(PLUGINS_MODULE, Program::MpiOperator)?.join(PLUGINS_GROUPS);
            Ok::<_, Unavailable>((
                program,
                [binaries::sources(Program::MpiOperator)?.join(MPI_JOBS), plugins],
            ))
        });
        let (program, definitions) = built.await.expect("building does not panic")?;
        for definition in &definitions {
            self.apply_file(definition).await?;
        }
        let port = free_port().map_err(super::spawning(MPI))?;
        let mut command = Command::new(program);
        command.arg(format!("--kubeConfig={}", self.kubeconfig_path().display()));
        command.arg(format!("--namespace={namespace}")).arg(format!("--lock-namespace={namespace}"));
        command.arg(format!("--monitoring-port={port}"));
        if groups == MpiGroups::Written {
            command.arg(format!("--gang-scheduling={namespace}"));
        }
        let mut companion = self.accompany(MPI, command)?;
        until_listening(MPI, &mut companion, port).await?;
        Ok(companion)
    }

    /// Both look for the certificate of their webhooks below the folder for temporary files.
    fn command(&self, operator: Operator, program: &Path, port: u16) -> Result<Command> {
        let folder = self.folder().join(operator.name());
        self.write_certificate(&folder.join("k8s-webhook-server/serving-certs"))?;
        let configuration = folder.join("configuration.yaml");
        fs::write(&configuration, operator.configuration(port))
            .map_err(|source| Error::File { path: configuration.clone(), source })?;
        let mut command = Command::new(program);
        command.arg(format!("--config={}", configuration.display()));
        command.env("KUBECONFIG", self.kubeconfig_path()).env("TMPDIR", folder);
        Ok(command)
    }
}

impl Operator {
    fn name(self) -> &'static str {
        match self {
            Self::JobSet => "jobset",
            Self::Trainer => "trainer",
        }
    }

    fn parts(self) -> Result<Parts, Unavailable> {
        match self {
            Self::JobSet => {
                let sources = binaries::sources(Program::JobSet)?;
                Ok(Parts {
                    program: binaries::provide(Program::JobSet)?,
                    definitions: vec![sources.join(JOB_SETS)],
                    // They fill in what the controller takes for granted.
                    webhooks: Some(sources.join(JOB_SET_WEBHOOKS)),
                })
            }
            Self::Trainer => {
                let sources = binaries::sources(Program::Trainer)?.join("manifests/base/crds");
                let of_trainer = |kind| sources.join(format!("trainer.kubeflow.org_{kind}.yaml"));
                let plugins = binaries::sources_of(PLUGINS_MODULE, Program::Trainer)?.join(PLUGINS_GROUPS);
                Ok(Parts {
                    program: binaries::provide(Program::Trainer)?,
                    definitions: TRAINER.into_iter().map(of_trainer).chain([plugins]).collect(),
                    // They refuse what makes no sense, and nothing else.
                    webhooks: None,
                })
            }
        }
    }

    /// Alone, silent but for its webhooks, with a certificate that it is given, and no limit that anybody meets.
    fn configuration(self, port: u16) -> String {
        let (group, certificates) = match self {
            Self::JobSet => ("config.jobset.x-k8s.io", "internalCertManagement"),
            Self::Trainer => ("config.trainer.kubeflow.org", "certManagement"),
        };
        format!(
            "apiVersion: {group}/v1alpha1\nkind: Configuration\nleaderElection: {{leaderElect: false}}\n\
             {certificates}: {{enable: false}}\nmetrics: {{bindAddress: \"0\"}}\n\
             clientConnection: {{qps: 100000, burst: 100000}}\n\
             health: {{healthProbeBindAddress: \"0\"}}\nwebhook: {{host: 127.0.0.1, port: {port}}}\n"
        )
    }
}

fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

async fn until_listening(name: &str, companion: &mut Companion, port: u16) -> Result<()> {
    let begin = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        if companion.ended().is_some() || begin.elapsed() > PATIENCE {
            return Err(Error::Companion { what: name.to_owned(), log: companion.log_tail() });
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}
