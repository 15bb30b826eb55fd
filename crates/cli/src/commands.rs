//! One file for each command: its arguments and what it does with them. A command returns what it has to say.

pub(crate) mod agent;
mod agent_of_pods;
#[cfg(feature = "kubernetes")]
pub(crate) mod cluster;
pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod experiment;
pub(crate) mod explain;
#[cfg(feature = "kubernetes")]
mod install;
#[cfg(any(test, not(feature = "kubernetes")))]
pub(crate) mod left_out;
pub(crate) mod local_clean;
pub(crate) mod local_logs;
pub(crate) mod local_run;
pub(crate) mod local_trace;
#[cfg(feature = "kubernetes")]
mod logs;
pub(crate) mod profile;
pub(crate) mod reference;
pub(crate) mod replay;
#[cfg(feature = "kubernetes")]
mod run;
pub(crate) mod shim;
pub(crate) mod sim_compare;
pub(crate) mod sim_import;
pub(crate) mod sim_policies;
pub(crate) mod sim_run;
pub(crate) mod start;
pub(crate) mod trainer;
#[cfg(feature = "kubernetes")]
mod wait;
pub(crate) mod what_if;

#[cfg(not(feature = "kubernetes"))]
pub(crate) use left_out as cluster;

use crate::args::{Command, Local, Sim};
use crate::failure::Failure;
use crate::reply::Reply;

pub(crate) fn run(command: Command) -> Result<Reply, Failure> {
    match command {
        Command::Demo(args) => demo::run(&args),
        Command::Sim(Sim::Run(args)) => sim_run::run(&args),
        Command::Sim(Sim::Compare(args)) => sim_compare::run(&args),
        Command::Sim(Sim::Import(args)) => sim_import::run(&args),
        Command::Sim(Sim::Policies(args)) => Ok(sim_policies::run(&args)),
        Command::Local(Local::Run(args)) => local_run::run(&args),
        Command::Local(Local::Trace(args)) => local_trace::run(&args),
        Command::Local(Local::Logs(args)) => local_logs::run(&args),
        Command::Local(Local::Clean(args)) => local_clean::run(&args),
        Command::Trainer(args) => trainer::run(&args),
        Command::Shim(args) => shim::run(&args),
        Command::Cluster(command) => cluster::run(&command),
        Command::Explain(args) => explain::run(&args),
        Command::WhatIf(args) => what_if::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Profile(args) => profile::run(&args),
        Command::Agent(args) => agent::run(&args),
        Command::Completions(args) => Ok(completions::run(&args)),
        Command::Experiment(args) => experiment::run(&args),
        Command::Reference(args) => reference::run(&args),
    }
}
