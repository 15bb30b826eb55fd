//! The options that name an API server. They are the same in every build.

use std::path::PathBuf;

use clap::Args;

/// Which API server, and as whom.
#[derive(Debug, Args)]
pub(crate) struct ClusterArgs {
    /// How to reach the API server; in a cluster, or by KUBECONFIG, if not given
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig to use
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
}
