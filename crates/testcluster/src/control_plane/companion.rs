//! A program beside the control plane that is no part of it: a scheduler that is tested or measured.

use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use super::process::{self, Process, Recipe};
use super::usage::Usage;
use super::{ControlPlane, spawning};
use crate::error::{Error, Result};

/// A program that runs. It is killed when this is dropped, and with its control plane at the latest.
#[derive(Debug)]
pub struct Companion {
    process: Process,
    log: PathBuf,
}

impl ControlPlane {
    /// Starts a program, which logs to a file named after it. It is up to its flags to talk to the API server.
    pub fn accompany(&self, name: &str, program: &Path, flags: Vec<String>) -> Result<Companion> {
        let log = self.folder().join(format!("{name}.log"));
        let recipe = Recipe { program: program.to_owned(), flags, log };
        let process = Process::start(&recipe, self.guard.group()).map_err(spawning(name))?;
        Ok(Companion { process, log: recipe.log })
    }
}

impl Companion {
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// What it has used since it started.
    pub fn usage(&self) -> Result<Usage> {
        let path = PathBuf::from(format!("/proc/{}", self.pid()));
        Usage::of(self.pid()).map_err(|source| Error::File { path, source })
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.process.ended()
    }

    /// The last lines that it wrote.
    pub fn log_tail(&self) -> String {
        process::tail(&self.log)
    }
}
