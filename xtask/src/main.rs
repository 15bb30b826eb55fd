//! What a developer does to this repository: test it, write its generated files, measure it.

mod bench;
mod codegen;
mod fence;
mod needs;
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
    /// Install what the tests need and run them all
    Test(test::Options),
    /// Write the generated pages of docs/reference
    Codegen(codegen::Options),
    /// Measure on this machine
    Bench(bench::Options),
    /// Check by text that `core` decides from its arguments alone
    Fence,
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Test(options) => test::run(&options),
        Command::Codegen(options) => codegen::run(&options),
        Command::Bench(options) => bench::run(&options),
        Command::Fence => fence::run(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
