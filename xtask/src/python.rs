//! The tests of `sdk/python`: types and behaviour, with tools at the versions of its `tests/requirements.txt`, installed from the
//! package registry into an environment of their own. That is kept in the cache, so that later runs need no network.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, anyhow, ensure};
use metronome_skip::Skip;
use metronome_testprograms::{cache_folder, fingerprint};

use crate::shell;
use crate::test::Findings;

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
        let cache = cache_folder().map_err(|error| anyhow!("cannot {error}"))?;
        let folder = cache.join(name(&fs::read_to_string(&requirements)?, &version()?));
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

    pub(crate) fn test(&self) -> Result<Findings> {
        let environment = [("PYTHONDONTWRITEBYTECODE", "1".to_owned())];
        shell::run_in(SDK, &[&self.0, "-m", "mypy"], &environment)?;
        let line = [&self.0, "-m", "pytest", "--quiet", "-rs", "-vv", "--durations=10"];
        let (is_good, output) = shell::status_and_output(&line, SDK, &environment)?;
        let mut found = findings(&output);
        if !is_good {
            eprintln!("{output}");
            found.add(Findings::failed(SDK, output));
        }
        Ok(found)
    }
}

/// `cargo xtask sdk`.
pub(crate) fn run() -> Result<()> {
    let found = Tools::find()?.test()?;
    found.skips.iter().for_each(|skip| eprintln!("skipped: {skip}"));
    ensure!(found.failures.is_empty(), "tests of {SDK} failed");
    println!("{} passed, {} skipped", found.passed, found.skips.len());
    Ok(())
}

/// From what pytest says: the slowest tests as `1.20s call     tests/test_job.py::test_a`, skips as
/// `SKIPPED [2] tests/test_job.py:10: reason`, counts as `3 failed, 96 passed, 2 skipped in 8.20s`.
fn findings(output: &str) -> Findings {
    let mut found = Findings::default();
    for line in output.lines() {
        if let Some((count, place, reason)) = skip(line) {
            found.skips.extend(std::iter::repeat_n(Skip::new(place, reason), count));
        } else if let Some(time) = time(line) {
            found.times.push(time);
        } else if let Some(passed) = passed(line) {
            found.passed = passed;
        }
    }
    found
}

fn skip(line: &str) -> Option<(usize, &str, &str)> {
    let (count, rest) = line.strip_prefix("SKIPPED [")?.split_once("] ")?;
    let (place, reason) = rest.split_once(": ")?;
    Some((count.parse().ok()?, place, reason))
}

fn time(line: &str) -> Option<(Duration, String)> {
    let mut words = line.split_whitespace();
    let (seconds, when, test) = (words.next()?, words.next()?, words.next()?);
    let seconds: f64 = seconds.strip_suffix('s')?.parse().ok()?;
    (when == "call").then(|| (Duration::from_secs_f64(seconds), format!("{SDK} {test}")))
}

fn passed(line: &str) -> Option<usize> {
    let (counts, _) = line.trim_matches(['=', ' ']).rsplit_once(" in ")?;
    counts.split(", ").find_map(|count| count.strip_suffix(" passed"))?.parse().ok()
}

fn version() -> Result<String> {
    let said = shell::output(&["python3", "-c", "import sys; print(sys.version, sys.prefix)"])?;
    Ok(said.trim().to_owned())
}

/// Other tools, or another Python, are another environment.
fn name(requirements: &str, version: &str) -> String {
    format!("python-{:016x}", fingerprint(format!("{version}\n{requirements}").as_bytes()))
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

    #[test]
    fn skips_times_and_counts_are_read_from_what_pytest_says() {
        let found = findings(
            "tests/test_job.py::test_a PASSED\n\
             ============ slowest 10 durations =============\n\
             1.20s call     tests/test_job.py::test_a\n\
             0.90s setup    tests/test_job.py::test_a\n\
             SKIPPED [2] tests/test_gate.py:10: could not import 'torch': no\n\
             ======== 1 failed, 96 passed, 2 skipped in 8.20s ========\n",
        );
        assert_eq!(found.passed, 96);
        let skipped = Skip::new("tests/test_gate.py:10", "could not import 'torch': no");
        assert_eq!(found.skips, [skipped.clone(), skipped]);
        assert_eq!(
            found.times,
            [(Duration::from_millis(1200), "sdk/python tests/test_job.py::test_a".into())]
        );
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
