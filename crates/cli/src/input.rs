//! Reading what a user names, files or standard input, with errors that say what is wrong with the name itself.

use std::fs::File;
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
        must_be_readable(&self.file)?;
        Ok(Scenario::read(&self.file)?)
    }
}

/// Refuses a path that is missing or a folder, in one wording for all commands.
pub(crate) fn must_be_readable(path: &Path) -> Result<(), Failure> {
    let cannot = || Failure::input(format!("read `{}`", path.display()));
    let found = std::fs::metadata(path).map_err(|error| cannot().because(&error))?;
    if found.is_dir() {
        let failure = cannot().because(&std::io::Error::other("it is a folder"));
        return Err(failure.hint("name a file inside it"));
    }
    Ok(())
}

/// Opens a file to write into, before the work whose result it shall take.
pub(crate) fn create(path: &Path) -> Result<File, Failure> {
    File::create(path).map_err(|error| cannot_write(path, &error))
}

pub(crate) fn cannot_write(path: &Path, error: &dyn std::error::Error) -> Failure {
    Failure::world(format!("write `{}`", path.display())).because(error)
}
