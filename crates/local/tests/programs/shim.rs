//! The executable of this crate's own tests. `metronome` has the same as a hidden subcommand.

use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    ExitCode::from(metronome_local::shim::main(&words))
}
