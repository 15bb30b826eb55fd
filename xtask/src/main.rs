//! What a developer does to this repository: test it, write its generated files, measure it.

mod bench;
mod codegen;
mod experiment;
mod fence;
mod kills;
mod needs;
mod python;
mod screenshot;
mod shell;
mod test;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Test, generate, measure")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Install what the tests need and run them all; list failures, skips and the slowest tests
    Test(test::Options),
    /// Write the generated pages of docs/reference
    Codegen(codegen::Options),
    /// Measure on this machine
    Bench(bench::Options),
    /// Run an experiment again, rewrite its results and judge its bars
    Experiment(experiment::Options),
    /// Kill the processes of a local world at random, again and again
    Kills(kills::Options),
    /// Take docs/images/demo.png of the demo's report, in a real browser
    Screenshot,
    /// Test sdk/python alone
    Sdk,
    /// Check by text that `core` decides from its arguments alone, and that its modules import in no circle
    Fence,
}

fn main() -> ExitCode {
    let ended = |done: anyhow::Result<()>| done.map(|()| ExitCode::SUCCESS);
    let done = match Cli::parse().command {
        Command::Test(options) => ended(test::run(&options)),
        Command::Codegen(options) => ended(codegen::run(&options)),
        Command::Bench(options) => ended(bench::run(&options)),
        Command::Experiment(options) => experiment::run(&options),
        Command::Kills(options) => ended(kills::run(&options)),
        Command::Screenshot => ended(screenshot::run()),
        Command::Sdk => ended(python::run()),
        Command::Fence => ended(fence::run()),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
