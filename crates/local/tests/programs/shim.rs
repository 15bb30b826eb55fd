//! The executable of this crate's own tests. `metronome` has the shim as a hidden subcommand; the rest are schedulers
//! that do one thing and may be killed at it.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use metronome_local::process::{Launcher, Member, Spec};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.split_first() {
        Some((word, rest)) if word == "shim" => ExitCode::from(metronome_local::shim::main(rest)),
        Some((word, rest)) if word == "start" => start(Path::new(&rest[0])),
        _ => ExitCode::FAILURE,
    }
}

fn launcher() -> Launcher {
    Launcher {
        program: std::env::current_exe().expect("a program has a name"),
        arguments: vec!["shim".into()],
    }
}

/// Starts what `to-start.json` says and does nothing more.
fn start(folder: &Path) -> ExitCode {
    let spec: Spec = metronome_local::state::read(&folder.join("to-start.json")).unwrap().unwrap();
    let _member = Member::start(&launcher(), folder, &spec, None).unwrap();
    std::thread::sleep(Duration::from_secs(60));
    ExitCode::SUCCESS
}
