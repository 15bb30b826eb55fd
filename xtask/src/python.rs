//! The tests of `sdk/python`: types and behaviour, with tools at the versions of its `tests/requirements.txt`, installed from the
//! package registry into an environment of their own. That is kept in the cache, so that later runs need no network.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::shell;

const SDK: &str = "sdk/python";

/// Succeeds where the tests can run: what is older, or comes without what makes environments, is no Python for us.
pub(crate) const CHECK: &[&str] =
    &["python3", "-c", "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 9))"];
pub(crate) const INSTALL: &[&str] =
    &["sh", "-c", "apt-get update && apt-get install --yes --no-install-recommends python3 python3-venv"];

/// The Python of an environment with the tools.
pub(crate) struct Tools(String);

impl Tools {
    /// As they are in the cache, or installed there.
    pub(crate) fn find() -> Result<Self> {
        let requirements = shell::root()?.join(SDK).join("tests/requirements.txt");
        let folder = cache_folder()?.join(name(&fs::read_to_string(&requirements)?, &version()?));
        let tools = Self(folder.join("bin/python").display().to_string());
        // Written last: an installation that was cut off is begun anew.
        let ready = folder.join("ready");
        if !ready.is_file() {
            tools.install(&folder, &requirements)?;
            fs::write(&ready, "")?;
        }
        Ok(tools)
    }

    fn install(&self, folder: &Path, requirements: &Path) -> Result<()> {
        let (folder, requirements) = (folder.display().to_string(), requirements.display().to_string());
        shell::run(&["python3", "-m", "venv", "--clear", &folder])?;
        shell::run(&[&self.0, "-m", "pip", "install", "--quiet", "--requirement", &requirements])
    }

    pub(crate) fn test(&self) -> Result<()> {
        let environment = [("PYTHONDONTWRITEBYTECODE", "1".to_owned())];
        shell::run_in(SDK, &[&self.0, "-m", "mypy"], &environment)?;
        shell::run_in(SDK, &[&self.0, "-m", "pytest", "--quiet"], &environment)
    }
}

fn version() -> Result<String> {
    let said = shell::output(&["python3", "-c", "import sys; print(sys.version, sys.prefix)"])?;
    Ok(said.trim().to_owned())
}

/// Other tools, or another Python, are another environment.
fn name(requirements: &str, version: &str) -> String {
    format!("python-{:016x}", fingerprint(format!("{version}\n{requirements}").as_bytes()))
}

/// FNV-1a, which no new compiler changes.
fn fingerprint(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Where the programs of other tests are kept, too.
fn cache_folder() -> Result<PathBuf> {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = named("METRONOME_CACHE")
        .or_else(|| named("XDG_CACHE_HOME").map(|folder| folder.join("metronome")))
        .or_else(|| named("HOME").map(|folder| folder.join(".cache/metronome")));
    folder.context("cannot find a folder for programs\nhint: set METRONOME_CACHE")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_tools_are_another_environment() {
        let ours = name("pytest==9.2.0", "3.11.7 /usr");
        assert_eq!(ours, name("pytest==9.2.0", "3.11.7 /usr"));
        assert_ne!(ours, name("pytest==9.2.1", "3.11.7 /usr"));
        assert_ne!(ours, name("pytest==9.2.0", "3.13.0 /usr"));
    }

    /// Whoever installs the tools again next year gets the same ones.
    #[test]
    fn every_tool_has_its_version() {
        let text = include_str!("../../sdk/python/tests/requirements.txt");
        let tools: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert!(tools.iter().all(|tool| tool.contains("==")), "{tools:?}");
        for tool in ["pytest", "mypy", "numpy", "hatchling"] {
            assert!(tools.iter().any(|line| line.starts_with(tool)), "{tool}");
        }
    }
}
