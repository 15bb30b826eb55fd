//! Which process is meant: its number alone is given to another one day.

use std::fs;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

/// A process of this machine since it was last started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Identity {
    pub pid: i32,
    /// When it began, in ticks since the machine was started.
    pub began: u64,
    pub boot: String,
}

impl Identity {
    /// Of a process that there is.
    pub fn of(pid: i32) -> Option<Self> {
        let (_, began) = stat(pid)?;
        Some(Self { pid, began, boot: boot()? })
    }

    pub fn own() -> Option<Self> {
        Self::of(std::process::id().cast_signed())
    }

    /// Whether this very process still runs. One that has ended and not been waited for does not.
    pub fn is_alive(&self) -> bool {
        let same =
            stat(self.pid).is_some_and(|(state, began)| began == self.began && !b"ZX".contains(&state));
        same && boot().is_some_and(|boot| boot == self.boot)
    }
}

/// The state and the beginning of a process. Its name may contain anything, brackets too.
fn stat(pid: i32) -> Option<(u8, u64)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after_name) = text.rsplit_once(") ")?;
    let mut words = after_name.split(' ');
    let state = *words.next()?.as_bytes().first()?;
    // The 22nd field; the state is the third.
    let began = words.nth(18)?.parse().ok()?;
    Some((state, began))
}

/// It does not change while we run.
fn boot() -> Option<String> {
    static BOOT: OnceLock<Option<String>> = OnceLock::new();
    let read = || Some(fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().to_owned());
    BOOT.get_or_init(read).clone()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_process_is_known_by_when_it_began() {
        let own = Identity::own().unwrap();
        assert!(own.is_alive());
        assert!(!Identity { began: own.began + 1, ..own.clone() }.is_alive());
        assert!(!Identity { boot: "another".into(), ..own }.is_alive());
    }

    #[test]
    fn who_has_ended_is_not_alive_though_nobody_has_waited() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let identity = Identity::of(child.id().cast_signed()).unwrap();
        assert!(identity.is_alive());
        child.kill().unwrap();
        let waited = (0..1000).find(|_| {
            std::thread::sleep(std::time::Duration::from_millis(2));
            !identity.is_alive()
        });
        assert!(waited.is_some());
        child.wait().unwrap();
        assert!(!identity.is_alive());
    }
}
