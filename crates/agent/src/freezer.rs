//! Holding a process that does not wait by itself: its cgroup is frozen for a while. A member that is frozen is thawed again
//! whatever happens: at its moment, when we leave, and by the next agent when we did not come to it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A cgroup that can be frozen, of either version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Freezer {
    file: PathBuf,
    frozen: &'static str,
    thawed: &'static str,
}

impl Freezer {
    /// None where the folder is no such cgroup.
    pub fn of(folder: &Path) -> Option<Self> {
        let first = (folder.join("freezer.state"), "FROZEN", "THAWED");
        let second = (folder.join("cgroup.freeze"), "1", "0");
        [first, second].into_iter().find(|(file, ..)| file.exists()).map(|(file, frozen, thawed)| Self {
            file,
            frozen,
            thawed,
        })
    }

    pub fn thaw(&self) -> io::Result<()> {
        fs::write(&self.file, self.thawed)
    }

    /// Whether it is frozen, or being frozen.
    pub fn is_frozen(&self) -> io::Result<bool> {
        Ok(fs::read_to_string(&self.file)?.trim() != self.thawed)
    }

    /// Freezes from now on for so long, on a thread that does nothing else.
    pub fn hold(&self, span: Duration) -> Hold {
        let until = Instant::now() + span;
        let cgroup = self.clone();
        let thread = std::thread::spawn(move || {
            let guard = Thawed(&cgroup);
            let frozen = fs::write(&cgroup.file, cgroup.frozen);
            if frozen.is_ok() {
                std::thread::sleep(until.saturating_duration_since(Instant::now()));
            }
            drop(guard);
        });
        Hold(Some(thread))
    }
}

/// Thaws when it goes, also by a panic. A cgroup that is gone needs nothing.
struct Thawed<'a>(&'a Freezer);

impl Drop for Thawed<'_> {
    fn drop(&mut self) {
        let _ = self.0.thaw();
    }
}

/// A member being held. Whoever drops it waits until it is thawed.
#[derive(Debug)]
pub struct Hold(Option<JoinHandle<()>>);

impl Hold {
    pub fn is_over(&self) -> bool {
        self.0.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            // A panic there has thawed, too.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_frozen_for_as_long_as_asked_and_thawed_in_both_versions() {
        for (file, frozen, thawed) in [("freezer.state", "FROZEN", "THAWED"), ("cgroup.freeze", "1", "0")] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join(file);
            fs::write(&path, thawed).unwrap();
            let hold = Freezer::of(folder.path()).unwrap().hold(Duration::from_millis(80));
            std::thread::sleep(Duration::from_millis(30));
            assert_eq!(fs::read_to_string(&path).unwrap(), frozen);
            assert!(!hold.is_over());
            drop(hold);
            assert_eq!(fs::read_to_string(&path).unwrap(), thawed);
        }
    }

    #[test]
    fn a_folder_that_is_no_cgroup_cannot_be_frozen() {
        assert_eq!(Freezer::of(tempfile::tempdir().unwrap().path()), None);
    }
}
