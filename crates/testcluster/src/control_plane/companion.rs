//! Other programs beside the control plane, with the same guarantee that they end with it: another scheduler to
//! compare with, or the program under test itself.

use std::path::PathBuf;
use std::process::{Command, ExitStatus};

use super::process::{self, Process};
use super::{ControlPlane, Usage, spawning};
use crate::error::Result;

/// A program that runs beside a control plane. It is killed when this is dropped.
#[derive(Debug)]
pub struct Companion {
    process: Process,
    log: PathBuf,
}

impl ControlPlane {
    /// Runs a program whose output goes into a log called `name`.
    pub fn accompany(&self, name: &str, command: Command) -> Result<Companion> {
        let log = self.folder().join(format!("{name}.log"));
        let process = Process::start(command, &log, self.guard.group()).map_err(spawning(name))?;
        Ok(Companion { process, log })
    }
}

impl Companion {
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    pub fn usage(&self) -> Result<Usage> {
        Usage::of(self.pid())
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.process.ended()
    }

    /// The last it said.
    pub fn log_tail(&self) -> String {
        process::tail(&self.log)
    }
}
