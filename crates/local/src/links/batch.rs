//! `ip`, `tc` and `bridge`, told many things at a time in the namespace where they are to be done.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::error::{LocalError, Result};
use crate::names::Namespace;
use crate::state::Tie;

/// Lines for each program, in the order in which they run: devices first, then what hangs on them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Batch {
    pub(crate) ip: Vec<String>,
    pub(crate) tc: Vec<String>,
    pub(crate) bridge: Vec<String>,
    /// Settings under `/proc/sys/net` and their values; made before everything else.
    pub(crate) settings: Vec<(&'static str, String)>,
}

impl Batch {
    /// Does all of it in this process's own namespace.
    pub(crate) fn run_here(&self, tie: &Tie, what: &str) -> Result<()> {
        for (name, value) in &self.settings {
            set(name, value)?;
        }
        tell("ip", &self.ip, tie, what)?;
        tell("tc", &self.tc, tie, what)?;
        tell("bridge", &self.bridge, tie, what)
    }

    /// Does all of it in a namespace.
    pub(crate) fn run_in(&self, namespace: &Namespace, tie: &Tie, what: &str) -> Result<()> {
        namespace.within(|| self.run_here(tie, what))?
    }
}

/// Kernels that do not know a setting go without it.
fn set(name: &str, value: &str) -> Result<()> {
    let path = std::path::Path::new("/proc/sys/net").join(name);
    if !path.exists() {
        return Ok(());
    }
    std::fs::write(&path, value).map_err(|error| LocalError::file(&path, error))
}

fn tell(program: &'static str, lines: &[String], tie: &Tie, what: &str) -> Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    let failed = |source| LocalError::Spawn { program: program.to_owned(), source };
    let mut child = Command::new(program)
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        // It says nothing there. Whoever cleans up after us waits until it is closed.
        .stdout(tie.share().map_err(failed)?)
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let mut text = lines.join("\n");
    text.push('\n');
    let mut input = child.stdin.take().expect("it was asked for");
    // Its complaints are short; they fit into the pipe while it is still being told.
    let told = input.write_all(text.as_bytes());
    drop(input);
    let output = child.wait_with_output().map_err(failed)?;
    if output.status.success() && told.is_ok() {
        return Ok(());
    }
    let said = complaint(&String::from_utf8_lossy(&output.stderr), lines);
    Err(LocalError::Refused { what: what.to_owned(), program, said })
}

/// What it said, and of which line.
fn complaint(said: &str, lines: &[String]) -> String {
    let first = said.lines().find(|line| !line.starts_with("Warning")).unwrap_or("nothing").trim();
    let at =
        said.lines().find_map(|line| line.strip_prefix("Command failed -:")?.trim().parse::<usize>().ok());
    match at.and_then(|at| lines.get(at.checked_sub(1)?)) {
        Some(line) => format!("{first} (at `{line}`)"),
        None => first.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complaint_names_the_line() {
        let lines = ["link add x".to_owned(), "link set y up".to_owned()];
        let said = "Warning: quantum is big.\nCannot find device \"y\"\nCommand failed -:2\n";
        assert_eq!(complaint(said, &lines), "Cannot find device \"y\" (at `link set y up`)");
        assert_eq!(complaint("", &lines), "nothing");
    }
}
