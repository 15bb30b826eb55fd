//! The one binary `metronome`: arguments, output, wiring. What it prints is made in `commands`; here it is written
//! out, once.

mod args;
mod commands;
mod exit;
mod failure;
mod input;
mod journal;
mod names;
mod output_file;
mod policies;
mod progress;
mod reply;
mod runs;
#[cfg(test)]
mod schema;
mod server;
mod table;

use clap::Parser;

fn main() -> std::process::ExitCode {
    let done = commands::run(args::Cli::parse().command).and_then(reply::Reply::write);
    match done {
        Ok(exit) => exit.into(),
        Err(failure) => failure.tell().into(),
    }
}
