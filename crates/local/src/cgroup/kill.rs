//! The end of everybody in a group.

use nix::sys::signal::{Signal, kill};

use super::{Group, LEAVING, put};
use crate::error::{LocalError, Result};
use crate::patience::Patience;

/// A frozen group cannot fork, so who is in it when it is frozen is all there is to end. Where groups cannot be frozen
/// it is done again until nobody is left.
pub(super) fn kill_all(group: &Group) -> Result<()> {
    if !group.exists() {
        return Ok(());
    }
    let patience = Patience::new(LEAVING);
    while !group.processes().is_empty() {
        if patience.is_over() {
            let left = group.processes().len();
            let what = format!("{left} processes of a group");
            return Err(LocalError::Stays { what, why: "they do not end though they were killed".into() });
        }
        // A group of which only a part is left cannot be frozen; its processes are killed round by round.
        let _ = group.freeze();
        for pid in group.processes() {
            // Gone already is what we want; anything else shows in the next round.
            let _ = kill(pid, Signal::SIGKILL);
        }
        all_at_once(group);
        let _ = group.thaw();
        patience.pause();
    }
    Ok(())
}

/// Version 2 has a word for it, on kernels from 5.14.
fn all_at_once(group: &Group) {
    for path in &group.paths {
        let word = path.join("cgroup.kill");
        if word.exists() {
            // The signals one by one are sent in any case.
            let _ = put(&word, "1");
        }
    }
}
