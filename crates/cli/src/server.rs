//! Questions to a running scheduler.

use clap::Args;
use metronome_core::engine::State;
use serde_json::Value;

use crate::cluster_args::ClusterArgs;
use crate::failure::Failure;

/// How to reach a scheduler through the API server of its cluster.
#[derive(Debug, Args)]
pub(crate) struct Behind {
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Namespace that the scheduler runs in
    #[arg(long, value_name = "NAME", default_value = "metronome")]
    scheduler_namespace: String,
}

/// Which scheduler is asked.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Asked<'a> {
    /// The one that listens there.
    At(&'a str),
    Behind(&'a Behind),
}

/// What it has to say about a job.
pub(crate) fn explain(asked: Asked<'_>, job: &str, namespace: Option<&str>) -> Result<Value, Failure> {
    ask::explain(asked, job, namespace)
}

/// All that it knows.
pub(crate) fn state(asked: Asked<'_>) -> Result<State, Failure> {
    ask::state(asked)
}

#[cfg(not(feature = "kubernetes"))]
mod ask {
    use super::{Asked, Failure, State, Value};
    use crate::full_build;

    pub(super) fn explain(asked: Asked<'_>, _: &str, _: Option<&str>) -> Result<Value, Failure> {
        Err(cannot(asked))
    }

    pub(super) fn state(asked: Asked<'_>) -> Result<State, Failure> {
        Err(cannot(asked))
    }

    fn cannot(asked: Asked<'_>) -> Failure {
        match asked {
            Asked::At(server) => full_build::is_needed_to(&format!("ask the scheduler at {server}")),
            Asked::Behind(behind) => {
                let whom = format!("ask the scheduler in the namespace {}", behind.scheduler_namespace);
                full_build::is_needed_to(&whom).hint(format!(
                    "give --journal to ask a recorded run; to ask a cluster, install the full build: {}",
                    full_build::INSTALL_COMMAND
                ))
            }
        }
    }
}

#[cfg(feature = "kubernetes")]
mod ask {
    use kube::Client;
    use metronome_kubernetes::ask::Scheduler;

    use super::{Asked, Failure, State, Value};
    use crate::cluster::{place, wait_for};

    pub(super) fn explain(asked: Asked<'_>, job: &str, namespace: Option<&str>) -> Result<Value, Failure> {
        wait_for(async {
            let (scheduler, usual) = open(asked).await?;
            // Who is asked directly knows of no kubeconfig, and is told the name as it is.
            let job = match usual {
                Some(usual) => place(job, namespace, &usual)?.join("/"),
                None => job.to_owned(),
            };
            scheduler.explain(&job).await.map_err(|error| Failure::from_world(&error))
        })
    }

    pub(super) fn state(asked: Asked<'_>) -> Result<State, Failure> {
        wait_for(async {
            let (scheduler, _) = open(asked).await?;
            scheduler.state().await.map_err(|error| Failure::from_world(&error))
        })
    }

    const WHOM: &str =
        "to ask a cluster, give --kubeconfig or set KUBECONFIG; else give --server or --journal";

    /// The scheduler, and the namespace that people mean who name none.
    async fn open(asked: Asked<'_>) -> Result<(Scheduler, Option<String>), Failure> {
        let behind = match asked {
            Asked::At(server) => return Ok((Scheduler::At(server.to_owned()), None)),
            Asked::Behind(behind) => behind,
        };
        let config = behind.cluster.config().await.map_err(|failure| failure.hint(WHOM))?;
        let usual = config.default_namespace.clone();
        let client = Client::try_from(config);
        let client = client.map_err(|error| Failure::world("talk to the API server").because(&error))?;
        let namespace = behind.scheduler_namespace.clone();
        Ok((Scheduler::Behind { client, namespace }, Some(usual)))
    }
}
