//! The commands and their arguments. The texts here are also the reference: see `commands/reference.rs`.

use clap::{Parser, Subcommand};

use crate::commands::{
    completions::Completions, demo::Demo, experiment::Experiment, explain::Explain, reference::Reference,
    replay::Replay, sim_compare::SimCompare, sim_import::SimImport, sim_policies::SimPolicies,
    sim_run::SimRun, what_if::WhatIf,
};
#[cfg(feature = "kubernetes")]
use crate::commands::{
    install::{Crd, Install},
    run::Run,
};

/// A scheduler for distributed training jobs on shared clusters
#[derive(Debug, Parser)]
#[command(name = "metronome", version, max_term_width = 100, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Demo(Demo),
    /// Simulate a cluster, its jobs and a policy in virtual time
    #[command(subcommand, arg_required_else_help = true)]
    Sim(Sim),
    #[cfg(feature = "kubernetes")]
    Run(Run),
    #[cfg(feature = "kubernetes")]
    Install(Box<Install>),
    #[cfg(feature = "kubernetes")]
    Crd(Crd),
    Explain(Explain),
    WhatIf(WhatIf),
    Replay(Replay),
    Completions(Completions),
    #[command(hide = true)]
    Experiment(Experiment),
    #[command(hide = true)]
    Reference(Reference),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Sim {
    Run(SimRun),
    Compare(SimCompare),
    Import(SimImport),
    Policies(SimPolicies),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definitions_are_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }
}
