//! The process between the scheduler and a member: it starts the member, keeps what it writes, passes on what it is
//! asked, and records how it ended.
//!
//! It has two stages, both this executable. `watch` stays outside of the member's group and namespace, so nothing that
//! is done to the member happens to it. `enter` joins them, takes the member's host name and becomes its command.

mod enter;
mod host;
mod log;
mod watch;

use std::path::Path;

/// What a shim's process does, told by the words after those of the [`Launcher`](crate::process::Launcher); its exit
/// code.
pub fn main(words: &[String]) -> u8 {
    let done = match words {
        [stage, folder, start_id] if stage == "watch" => watch::watch(Path::new(folder), start_id),
        [stage, folder, watcher] if stage == "enter" => enter::enter(Path::new(folder), watcher),
        _ => Err("a shim is told `watch FOLDER START`".to_owned()),
    };
    match done {
        Ok(()) => 0,
        Err(why) => {
            // Into `shim.log`, or into the log of the member.
            eprintln!("metronome shim: {why}");
            enter::NOT_STARTED
        }
    }
}
