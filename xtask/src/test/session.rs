//! What stages share: what the tests find around them, and what earlier stages leave for later ones.

use std::path::PathBuf;

use anyhow::Result;
use metronome_testprograms::{Kubernetes, Program};

use super::Options;
use super::executable::Executable;
use super::preparation::Preparation;
use crate::shell;

pub(crate) struct Session {
    /// More environment for tests.
    pub(crate) environment: Vec<(&'static str, String)>,
    /// Tools and programs of the tests, got beside the first stages.
    pub(crate) preparation: Option<Preparation>,
    /// What the build has left to run, if it went well.
    pub(crate) executables: Option<Vec<Executable>>,
}

impl Session {
    pub(crate) fn begin(options: &Options) -> Result<Self> {
        let kubernetes = options.kubernetes.as_deref().map(str::parse).transpose()?;
        let version = kubernetes.map_or_else(Kubernetes::chosen, Ok)?;
        let preparation = (!options.quick).then(|| Preparation::start(Program::of_tests(version)));
        let data = data_folder()?.map(|folder| ("METRONOME_DATA", folder.display().to_string()));
        let chosen = kubernetes.map(|version| ("METRONOME_KUBERNETES", version.to_string()));
        let environment = data.into_iter().chain(chosen).collect();
        Ok(Self { environment, preparation, executables: None })
    }
}

/// `METRONOME_DATA`, or `../shared/data` beside the repository. Tests run in the folders of their crates, so they
/// are given the whole path; experiments are given the same.
pub(crate) fn data_folder() -> Result<Option<PathBuf>> {
    let named = std::env::var_os("METRONOME_DATA").map(PathBuf::from);
    let folder = shell::root()?.join(named.unwrap_or_else(|| PathBuf::from("../shared/data")));
    Ok(folder.canonicalize().ok().filter(|folder| folder.is_dir()))
}
