//! The one binary `metronome`: arguments, output, wiring. What it prints is made in `commands`; here it is written
//! out, once.

mod args;
#[cfg(feature = "kubernetes")]
mod cluster;
mod cluster_args;
mod commands;
mod exit;
mod failure;
mod full_build;
mod input;
mod journal;
mod local;
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
mod trace;

fn main() -> std::process::ExitCode {
    let said = match args::Cli::of_this_process().command {
        Some(command) => commands::run(command),
        None => Ok(commands::start::run(args::program_name())),
    };
    match said.and_then(reply::Reply::write) {
        Ok(exit) => exit.into(),
        Err(failure) => failure.tell().into(),
    }
}
