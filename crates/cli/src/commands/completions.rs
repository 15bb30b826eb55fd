//! `metronome completions`

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::args::Cli;
use crate::reply::Reply;

/// Print a script that teaches a shell to complete metronome's commands
#[derive(Debug, Args)]
pub(crate) struct Completions {
    shell: Shell,
}

pub(crate) fn run(args: &Completions) -> Reply {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "metronome", &mut script);
    Reply::text(String::from_utf8(script).expect("scripts are made of our own names"))
}
