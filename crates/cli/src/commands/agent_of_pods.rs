//! `metronome agent --kubernetes`: the part of the agent that knows of pods

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args;

use metronome_core::model::units::Bandwidth;

use crate::cluster_args::ClusterArgs;
use crate::failure::Failure;
use crate::reply::Reply;

/// What only a cluster has.
#[derive(Debug, Args)]
pub(crate) struct OfPods {
    /// Say who is here by the pods of a cluster, and write what was observed on them; measure and enforce nothing
    #[arg(long, requires = "node", conflicts_with_all = ["listen", "step", "mark"])]
    pub(crate) kubernetes: bool,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Name of the node that this is
    #[arg(long, value_name = "NAME", requires = "kubernetes")]
    node: Option<String>,
    /// Pods with this `schedulerName` are looked after
    #[arg(long, value_name = "NAME", default_value = "metronome", requires = "kubernetes")]
    scheduler_name: String,
    /// Where the node's control groups are
    #[arg(long, value_name = "FOLDER", default_value = "/sys/fs/cgroup", requires = "kubernetes")]
    cgroups: PathBuf,
    /// Where the node's kubelet keeps the volumes of pods
    #[arg(long, value_name = "FOLDER", default_value = "/var/lib/kubelet/pods", requires = "kubernetes")]
    pods: PathBuf,
    /// Where to serve health and metrics
    #[arg(long, value_name = "ADDRESS", requires = "kubernetes")]
    health: Option<SocketAddr>,
    /// The node's interface to other nodes, if classes are to be enforced there
    #[arg(long, value_name = "NAME", requires = "uplink_rate")]
    uplink: Option<String>,
    /// What that carries, such as 100Gbps
    #[arg(long, value_name = "RATE", requires = "uplink")]
    uplink_rate: Option<Bandwidth>,
}

#[cfg(not(feature = "kubernetes"))]
pub(crate) fn run(_: &OfPods, _: &Path) -> Result<Reply, Failure> {
    Err(crate::full_build::is_needed_to("run the agent with `--kubernetes`"))
}

#[cfg(feature = "kubernetes")]
pub(crate) fn run(args: &OfPods, folder: &Path) -> Result<Reply, Failure> {
    use super::run::until_told_to_stop;
    use metronome_kubernetes::agent::{self, Options, Roots};

    let options = Options {
        node: args.node.clone().unwrap_or_default(),
        scheduler: args.scheduler_name.clone(),
        folder: folder.to_owned(),
        roots: Roots { cgroups: args.cgroups.clone(), pods: args.pods.clone(), ..Roots::default() },
        uplink: args.uplink.clone().zip(args.uplink_rate),
        listen: args.health,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::world("start a thread").because(&error))?;
    runtime.block_on(async {
        let config = args.cluster.config().await?;
        agent::run(config, options, until_told_to_stop()?).await.map_err(|error| Failure::from_world(&error))
    })?;
    Ok(Reply::nothing())
}
