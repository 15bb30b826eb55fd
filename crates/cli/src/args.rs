//! The commands and their arguments. The texts here are also the reference: see `commands/reference.rs`.

use std::ffi::OsString;
use std::path::Path;

use clap::{Command as Definition, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::commands::{
    agent::Agent, cluster::ClusterCommand, completions::Completions, demo::Demo, experiment::Experiment,
    explain::Explain, local_clean::LocalClean, local_logs::LocalLogs, local_run::LocalRun,
    local_trace::LocalTrace, profile::Profile, reference::Reference, replay::Replay, shim::Shim,
    sim_compare::SimCompare, sim_import::SimImport, sim_policies::SimPolicies, sim_run::SimRun,
    trainer::Trainer, what_if::WhatIf,
};

/// A scheduler for distributed training jobs on shared clusters
#[derive(Debug, Parser)]
#[command(name = "metronome", version, max_term_width = 100)]
#[cfg_attr(not(feature = "kubernetes"), command(after_help = crate::full_build::help_note()))]
pub(crate) struct Cli {
    /// Without one, the program says what to try first.
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

const PROGRAM: &str = "metronome";

/// What the program is called as a plugin of kubectl, and how people then call it.
const PLUGIN: (&str, &str) = ("kubectl-metronome", "kubectl metronome");

impl Cli {
    /// Ends the process where the arguments make no sense, or ask for help.
    pub(crate) fn of_this_process() -> Self {
        let arguments: Vec<OsString> = std::env::args_os().collect();
        let matches = Self::called(arguments.first()).get_matches_from(arguments);
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }

    /// The commands under the name by which the program was called.
    fn called(program: Option<&OsString>) -> Definition {
        Self::command().bin_name(name_of(program))
    }
}

/// The name by which the user called this process.
pub(crate) fn program_name() -> &'static str {
    name_of(std::env::args_os().next().as_ref())
}

fn name_of(program: Option<&OsString>) -> &'static str {
    let file = program.and_then(|program| Path::new(program).file_stem());
    match file.is_some_and(|file| file == PLUGIN.0) {
        true => PLUGIN.1,
        false => PROGRAM,
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Demo(Demo),
    /// Simulate a cluster, its jobs and a policy in virtual time
    #[command(subcommand, arg_required_else_help = true)]
    Sim(Sim),
    /// Run jobs for real on this machine
    #[command(subcommand, arg_required_else_help = true)]
    Local(Local),
    Trainer(Trainer),
    #[command(flatten)]
    Cluster(ClusterCommand),
    Explain(Explain),
    WhatIf(WhatIf),
    Replay(Replay),
    Profile(Profile),
    Agent(Agent),
    Completions(Completions),
    #[command(hide = true)]
    Experiment(Experiment),
    #[command(hide = true)]
    Reference(Reference),
    #[command(hide = true)]
    Shim(Shim),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Local {
    Run(LocalRun),
    Trace(LocalTrace),
    Logs(LocalLogs),
    Clean(LocalClean),
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
        Cli::command().debug_assert();
    }

    #[test]
    fn as_a_plugin_it_is_called_as_people_call_it() {
        let usage = |program: &str| {
            let mut command = Cli::called(Some(&OsString::from(program)));
            let error = command.try_get_matches_from_mut([program, "replay"]).unwrap_err();
            error.to_string()
        };
        assert!(usage("/usr/local/bin/kubectl-metronome").contains("Usage: kubectl metronome replay"));
        assert!(usage("metronome").contains("Usage: metronome replay"));
    }
}
