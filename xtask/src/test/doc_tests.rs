//! The examples in documentation.

use anyhow::Result;
use metronome_skip::Skip;

use super::build::WHOLE_WORKSPACE;
use super::findings::Findings;
use crate::shell;

pub(crate) fn run() -> Result<Findings> {
    let line = [&["cargo", "test", "--doc", "--no-fail-fast"], &WHOLE_WORKSPACE[..]].concat();
    let (is_good, output) = shell::status_and_output(&line, ".", &[])?;
    let mut findings = findings(&output);
    if !is_good {
        eprintln!("{output}");
        findings.add(Findings::failed("examples", output));
    }
    Ok(findings)
}

/// From lines such as `test crates/core/src/id.rs - id (line 12) ... ok`.
fn findings(output: &str) -> Findings {
    let mut findings = Findings::default();
    for line in output.lines() {
        let Some((test, result)) = line.strip_prefix("test ").and_then(|line| line.rsplit_once(" ... "))
        else {
            continue;
        };
        match result {
            "ok" => findings.passed += 1,
            "ignored" => findings.skips.push(Skip::new(test, "the example is marked `ignore`")),
            // The whole output is shown.
            _ => {}
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_that_are_not_run_are_skips() {
        let found = findings(
            "running 3 tests\n\
             test crates/core/src/id.rs - id (line 3) ... ok\n\
             test crates/testcluster/src/../README.md - (line 11) - compile ... ok\n\
             test crates/core/src/id.rs - id (line 9) ... ignored\n\n\
             test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out\n",
        );
        assert_eq!((found.passed, found.skips.len()), (2, 1));
        assert_eq!(found.skips[0].test, "crates/core/src/id.rs - id (line 9)");
    }
}
