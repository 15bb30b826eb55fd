//! Reading what a user names, files or standard input, with errors that say what is wrong with the name itself.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use metronome_sim::scenario::Scenario;

use crate::failure::Failure;

/// Where a scenario comes from.
#[derive(Debug, clap::Args)]
pub(crate) struct ScenarioFile {
    /// Scenario to simulate; `-` reads standard input
    #[arg(short, long, value_name = "FILE")]
    file: PathBuf,
}

impl ScenarioFile {
    pub(crate) fn read(&self) -> Result<Scenario, Failure> {
        if self.file == Path::new("-") {
            return Ok(Scenario::read_from(std::io::stdin().lock(), "standard input", Path::new("."))?);
        }
        Ok(Scenario::read(&self.file)?)
    }
}

/// Opens a file to read from, in the words that scenarios use too.
pub(crate) fn open(path: &Path) -> Result<File, Failure> {
    let cannot = |why: String| Failure::input(format!("read {}: {why}", path.display()));
    let file = File::open(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => cannot("there is no such file".into()),
        _ => cannot(error.to_string()),
    })?;
    match file.metadata() {
        Ok(found) if found.is_dir() => Err(cannot("it is a folder".into())),
        _ => Ok(file),
    }
}

/// Opens a file to write into, before the work whose result it shall take.
pub(crate) fn create(path: &Path) -> Result<File, Failure> {
    File::create(path).map_err(|error| cannot_write(path, &error))
}

pub(crate) fn cannot_write(path: &Path, error: &dyn std::error::Error) -> Failure {
    Failure::world(format!("write {}", path.display())).because(error)
}
