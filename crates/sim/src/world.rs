//! STAND-IN, to be replaced as a whole at the merge: the signatures that `compare` and the command line are written
//! against. Reading always fails, and running yields an outcome in which nothing happened.

use std::io::Read;
use std::path::Path;

use metronome_core::policy::Policy;
use metronome_core::units::{GpuTime, Gpus, Instant};

use crate::outcome::Outcome;
use crate::scenario::Scenario;

#[derive(Debug)]
pub struct RunOptions {
    pub policy: Policy,
    pub seed: u64,
    pub journal: Option<Box<dyn Journal + Send>>,
}

/// Stands for `metronome_core::journal::Journal`.
pub trait Journal: std::fmt::Debug {}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Jobs that are over.
    pub over: usize,
    pub jobs: usize,
    pub now: Instant,
}

#[allow(clippy::needless_pass_by_value)]
pub fn run(scenario: &Scenario, options: RunOptions, tick: &(dyn Fn(Step) + Sync)) -> Outcome {
    tick(Step { over: 0, jobs: scenario.jobs.len(), now: Instant::START });
    Outcome {
        policy: options.policy.name,
        seed: options.seed,
        jobs: Vec::new(),
        ended: Instant::START,
        gpu_capacity: Gpus::ZERO,
        gpu_busy: GpuTime::default(),
        events: 0,
        decision_nanos: Vec::new(),
    }
}

/// Stands for `metronome_sim::scenario::InputError`.
#[derive(Debug, thiserror::Error)]
#[error("read {file}: {message}")]
pub struct InputError {
    file: String,
    message: String,
}

impl InputError {
    pub fn hint(&self) -> Option<&str> {
        None
    }

    fn of(path: &Path) -> Self {
        let message = match std::fs::metadata(path) {
            Err(_) => "there is no such file",
            Ok(found) if found.is_dir() => "it is a folder",
            Ok(_) => "this build has no reader",
        };
        Self { file: path.display().to_string(), message: message.into() }
    }
}

impl Scenario {
    pub fn read(path: &Path) -> Result<Self, InputError> {
        Err(InputError::of(path))
    }

    pub fn read_from(_reader: impl Read, name: &str, _base: &Path) -> Result<Self, InputError> {
        Err(InputError { file: name.to_owned(), message: "this build has no reader".into() })
    }
}

/// Stands for `metronome_sim::import`.
pub mod import {
    use super::{InputError, Path};
    use std::num::NonZeroU32;
    use std::path::PathBuf;

    #[derive(Clone, Copy, Debug)]
    pub struct ImportOptions {
        pub nodes: NonZeroU32,
        pub gpus_per_node: NonZeroU32,
        pub limit: Option<usize>,
    }

    #[derive(Debug)]
    pub struct Imported {
        pub report: String,
    }

    #[derive(Debug, thiserror::Error)]
    #[error("write")]
    pub struct WriteError;

    pub fn tiresias(path: &Path, _options: &ImportOptions) -> Result<Imported, InputError> {
        Err(InputError::of(path))
    }

    pub fn philly(path: &Path, _options: &ImportOptions) -> Result<Imported, InputError> {
        Err(InputError::of(path))
    }

    pub fn write(_imported: &Imported, _out: &Path) -> Result<PathBuf, WriteError> {
        Err(WriteError)
    }
}
