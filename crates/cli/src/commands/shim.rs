//! `metronome shim`: the process between a world on this machine and a member of a job. Nobody calls it by hand.

use clap::Args;

use crate::failure::Failure;
use crate::reply::Reply;

/// Start a member and record how it ends
#[derive(Debug, Args)]
pub(crate) struct Shim {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

pub(crate) fn run(args: &Shim) -> Result<Reply, Failure> {
    std::process::exit(metronome_local::shim::main(&args.words).into());
}
