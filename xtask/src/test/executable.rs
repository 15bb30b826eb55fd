//! One test executable, run as cargo runs it.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

use anyhow::{Context, Result};
use metronome_skip::{RECORD, Skip};

use super::findings::{Failure, Findings};
use super::libtest::Record;
use crate::shell;

/// Options with which a test executable tells what it does, event by event. They are unstable; the environment variable
/// `RUSTC_BOOTSTRAP` lets a stable one take them.
const EVENTS: [&str; 4] = ["-Zunstable-options", "--format", "json", "--report-time"];

/// How many lines of standard error a failure shows.
const TAIL_LINES: usize = 40;

#[derive(Debug, Clone)]
pub(crate) struct Executable {
    /// As `metronome-cli::kubernetes`.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    /// Where its package lies, and where it runs.
    pub(crate) folder: PathBuf,
    /// What cargo adds to the environment.
    pub(crate) environment: Vec<(String, String)>,
}

/// The scheduling priority of a test executable.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Priority {
    Normal,
    Low,
}

impl Executable {
    /// Runs all tests, shows failures at once, and says how it went in one line.
    pub(crate) fn run(&self, environment: &[(&str, String)], priority: Priority) -> Findings {
        let begin = Instant::now();
        let findings = self.run_to_end(environment, priority).unwrap_or_else(|error| {
            eprintln!("{}: {error:#}", self.name);
            Findings::failed(&self.name, format!("{error:#}"))
        });
        let counts = format!("{} passed, {} failed", findings.passed, findings.failures.len());
        let skipped = format!("{} skipped", findings.skips.len());
        eprintln!("{:<36} {counts}, {skipped} in {:.1} s", self.name, begin.elapsed().as_secs_f64());
        findings
    }

    fn run_to_end(&self, environment: &[(&str, String)], priority: Priority) -> Result<Findings> {
        let (skips, errors) = (self.file("skips")?, self.file("stderr")?);
        let mut command = self.command(priority);
        command.envs(environment.iter().map(|(name, value)| (*name, value.as_str())));
        command.env(RECORD, &skips).stdout(Stdio::piped()).stderr(File::create(&errors)?);
        let mut child = command.spawn().with_context(|| format!("cannot run {}", self.path.display()))?;
        let output = child.stdout.take().context("the output is piped")?;
        let mut record = Record::default();
        for line in BufReader::new(output).split(b'\n') {
            if let Some((test, output)) = record.read(&String::from_utf8_lossy(&line?)) {
                eprintln!("FAILED {} {test}\n{output}", self.name);
            }
        }
        let status = child.wait()?;
        let recorded = Skip::read_all(&fs::read_to_string(&skips).unwrap_or_default());
        let said = record.noise.clone() + &fs::read_to_string(&errors).unwrap_or_default();
        Ok(self.findings(record, &recorded, status, &said))
    }

    fn command(&self, priority: Priority) -> Command {
        let mut command = match priority {
            Priority::Normal => Command::new(&self.path),
            Priority::Low => {
                let mut nice = Command::new("nice");
                nice.args(["-n", "10"]).arg(&self.path);
                nice
            }
        };
        command.args(EVENTS).current_dir(&self.folder).env("RUSTC_BOOTSTRAP", "1");
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// A file beside the executables for this run, which is not there yet.
    fn file(&self, extension: &str) -> Result<PathBuf> {
        let folder = shell::root()?.join("target/xtask");
        fs::create_dir_all(&folder)?;
        let path = folder.join(format!("{}.{extension}", self.name.replace(['/', ':'], "-")));
        if path.exists() {
            fs::remove_file(&path)?;
        }
        Ok(path)
    }

    fn findings(&self, record: Record, recorded: &[Skip], status: ExitStatus, said: &str) -> Findings {
        let full = |test: &str| format!("{} {test}", self.name);
        let (skipped, passed): (Vec<_>, Vec<_>) =
            record.passed.into_iter().partition(|(name, _)| recorded.iter().any(|skip| skip.test == *name));
        let ignored = record.ignored.iter().map(|(name, reason)| Skip::new(&full(name), reason_or(reason)));
        // A skip of another thread than the test's own is listed, too.
        let skips = recorded.iter().map(|skip| Skip::new(&full(&skip.test), &skip.reason));
        let failed = record.failed.into_iter();
        let mut failures: Vec<Failure> =
            failed.map(|(name, output)| Failure { test: full(&name), output }).collect();
        if !record.is_complete || (failures.is_empty() && !status.success()) {
            let running: Vec<&str> = record.running.iter().map(String::as_str).collect();
            let running = running.join(", ");
            let output = format!("it ended with {status} while these ran: {running}\n{}", tail(said));
            eprintln!("FAILED {}: {output}", self.name);
            failures.push(Failure { test: self.name.clone(), output });
        }
        Findings {
            passed: passed.len(),
            failures,
            skips: skips.chain(ignored).collect(),
            times: passed.into_iter().chain(skipped).map(|(name, took)| (took, full(&name))).collect(),
        }
    }

    pub(crate) fn package(&self) -> &str {
        self.name.split("::").next().unwrap_or_default()
    }

    pub(crate) fn target(&self) -> Option<&str> {
        self.name.split_once("::").map(|(_, target)| target)
    }
}

fn reason_or(reason: &str) -> &str {
    if reason.is_empty() { "#[ignore]" } else { reason }
}

fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}

#[cfg(test)]
impl Executable {
    pub(crate) fn named(name: &str) -> Self {
        let (path, folder) = (PathBuf::new(), PathBuf::from("/"));
        Self { name: name.to_owned(), path, folder, environment: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::time::Duration;

    use super::*;

    fn passed(names: &[&str]) -> Record {
        let passed = names.iter().map(|name| ((*name).to_owned(), Duration::ZERO)).collect();
        Record { passed, is_complete: true, ..Record::default() }
    }

    #[test]
    fn a_test_that_was_skipped_has_not_passed() {
        let executable = Executable::named("cli::local");
        let skips = [Skip::new("b", "no root")];
        let findings = executable.findings(passed(&["a", "b"]), &skips, ExitStatus::from_raw(0), "");
        assert_eq!(findings.passed, 1);
        assert_eq!(findings.skips, [Skip::new("cli::local b", "no root")]);
        assert!(findings.failures.is_empty());
    }

    #[test]
    fn an_executable_that_dies_is_a_failure_with_what_it_said() {
        let executable = Executable::named("cli::local");
        let mut record = passed(&["a"]);
        record.is_complete = false;
        record.running.insert("b".to_owned());
        let findings = executable.findings(record, &[], ExitStatus::from_raw(6), "double free\n");
        let output = &findings.failures[0].output;
        assert!(output.contains("while these ran: b") && output.contains("double free"), "{output}");
    }

    #[test]
    fn an_ignored_test_is_a_skip() {
        let executable = Executable::named("core");
        let ignored = vec![("a".to_owned(), String::new())];
        let record = Record { ignored, ..passed(&[]) };
        let findings = executable.findings(record, &[], ExitStatus::from_raw(0), "");
        assert_eq!(findings.skips, [Skip::new("core a", "#[ignore]")]);
    }
}
