//! The commands that talk to a Kubernetes cluster, or print manifests for one.

use clap::Subcommand;

use super::install::{self, Crd, Install};
use super::logs::{self, Logs};
use super::run::Run;
use super::wait::{self, Wait};
use crate::failure::Failure;
use crate::reply::Reply;

#[derive(Debug, Subcommand)]
pub(crate) enum ClusterCommand {
    Run(Run),
    Install(Box<Install>),
    Crd(Crd),
    Wait(Wait),
    Logs(Logs),
}

pub(crate) fn run(command: &ClusterCommand) -> Result<Reply, Failure> {
    match command {
        ClusterCommand::Run(args) => super::run::run(args),
        ClusterCommand::Install(args) => install::run(args),
        ClusterCommand::Crd(_) => Ok(install::definitions()),
        ClusterCommand::Wait(args) => wait::run(args),
        ClusterCommand::Logs(args) => logs::run(args),
    }
}
