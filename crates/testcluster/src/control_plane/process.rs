//! One program of the control plane: started into the guard's group, logging to a file.

use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

/// How much of a log is shown with an error.
const TAIL_LINES: usize = 25;

/// What is needed to start a program, also a second time.
#[derive(Debug, Clone)]
pub(super) struct Recipe {
    pub(super) program: PathBuf,
    pub(super) flags: Vec<String>,
    pub(super) log: PathBuf,
}

#[derive(Debug)]
pub(super) struct Process {
    child: Child,
}

impl Recipe {
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.flags);
        command
    }
}

impl Process {
    pub(super) fn start(mut command: Command, log: &Path, group: i32) -> io::Result<Self> {
        let log = File::options().create(true).append(true).open(log)?;
        command.process_group(group).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        Ok(Self { child: command.spawn()? })
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it has.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("our own child can be asked after")
    }
}

/// A crash, not a farewell: tests want to know what survives one.
impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only where it has ended and been waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The last lines of a log, to be shown with an error.
pub(super) fn tail(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}
