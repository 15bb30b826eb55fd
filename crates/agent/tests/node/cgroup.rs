//! A real process in a real cgroup; both are gone afterwards, also when a test fails.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use metronome_agent::freezer::Freezer;

pub(crate) struct Member {
    pub(crate) folder: PathBuf,
    pub(crate) process: Child,
}

impl Member {
    /// A process in a control group of its own, or `None` where this machine does not allow it: the test is then skipped.
    pub(crate) fn start(name: &str, command: &mut Command) -> Option<Self> {
        let root = Path::new("/sys/fs/cgroup/freezer");
        if !rustix::process::geteuid().is_root() || !root.exists() {
            metronome_skip::skip("it takes root and the freezer of cgroups of version 1");
            return None;
        }
        let folder = root.join(format!("mtr-{}-{name}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let member = Self { folder, process: command.spawn().unwrap() };
        fs::write(member.folder.join("cgroup.procs"), member.process.id().to_string()).unwrap();
        Some(member)
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if let Some(freezer) = Freezer::of(&self.folder) {
            let _ = freezer.thaw();
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
        let until = Instant::now() + Duration::from_secs(2);
        while fs::remove_dir(&self.folder).is_err() && self.folder.exists() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
