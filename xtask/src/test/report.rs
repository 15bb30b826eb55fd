//! The end of a run: times, slowest tests, failures, skips, and whether all of it is good enough.

use std::cmp::Reverse;
use std::time::Duration;

use anyhow::{Result, bail};

use super::findings::Findings;

/// How many of the slowest tests are listed.
const SLOWEST: usize = 10;

#[derive(Default)]
pub(crate) struct Report {
    stages: Vec<(&'static str, Duration, StageVerdict)>,
    found: Findings,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum StageVerdict {
    Passed,
    Failed,
    Skipped,
}

/// What a skip means for the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strictness {
    /// It is listed.
    Lenient,
    /// It fails the run, for this reason.
    Strict(&'static str),
}

impl Strictness {
    /// From the option and the value of the environment variable `CI`.
    pub(crate) fn chosen(is_asked_for: bool, ci: Option<&str>) -> Self {
        match ci {
            _ if is_asked_for => Self::Strict("--strict"),
            Some(value) if !value.is_empty() && value != "false" => Self::Strict("CI is set"),
            _ => Self::Lenient,
        }
    }
}

impl Report {
    pub(crate) fn add(&mut self, stage: &'static str, (took, found): (Duration, Findings)) {
        let verdict = match (found.failures.len(), found.passed, found.skips.len()) {
            (0, 0, 1..) => StageVerdict::Skipped,
            (0, ..) => StageVerdict::Passed,
            _ => StageVerdict::Failed,
        };
        self.stages.push((stage, took, verdict));
        self.found.add(found);
    }

    /// The counts stand alone on the last line, on standard output, for programs to read.
    pub(crate) fn print(&self, took: Duration) {
        self.print_failures();
        self.print_list("slowest tests", &self.slowest());
        let skips: Vec<String> = self.found.skips.iter().map(ToString::to_string).collect();
        self.print_list("skipped", &skips);
        eprintln!("── summary");
        for (name, took, verdict) in &self.stages {
            let verdict = match verdict {
                StageVerdict::Passed => "passed",
                StageVerdict::Failed => "FAILED",
                StageVerdict::Skipped => "skipped",
            };
            eprintln!("{verdict:<8} {name:<12} {:>8.1} s", took.as_secs_f64());
        }
        eprintln!("{:<21} {:>8.1} s", "in all", took.as_secs_f64());
        println!("{}", self.counts());
    }

    fn print_failures(&self) {
        for failure in &self.found.failures {
            eprintln!("── FAILED: {}\n{}", failure.test, failure.output.trim_end());
        }
        let names: Vec<String> = self.found.failures.iter().map(|failure| failure.test.clone()).collect();
        self.print_list("failed", &names);
    }

    fn print_list(&self, title: &str, lines: &[String]) {
        if !lines.is_empty() {
            eprintln!("── {title}");
            lines.iter().for_each(|line| eprintln!("{line}"));
        }
    }

    fn slowest(&self) -> Vec<String> {
        let mut times: Vec<&(Duration, String)> = self.found.times.iter().collect();
        times.sort_by_key(|(took, name)| (Reverse(*took), name));
        times.truncate(SLOWEST);
        times.iter().map(|(took, name)| format!("{:>8.1} s  {name}", took.as_secs_f64())).collect()
    }

    fn counts(&self) -> String {
        let (failed, skipped) = (self.found.failures.len(), self.found.skips.len());
        format!("{} passed, {failed} failed, {skipped} skipped", self.found.passed)
    }

    pub(crate) fn verdict(&self, strictness: Strictness) -> Result<()> {
        match (self.found.failures.len(), self.found.skips.len(), strictness) {
            (1.., ..) => bail!("{}", self.counts()),
            (0, skipped @ 1.., Strictness::Strict(why)) => {
                bail!("{skipped} skipped, and a skip fails the run ({why})")
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use metronome_skip::Skip;

    use super::*;

    fn report(findings: Findings) -> Report {
        let mut report = Report::default();
        report.add("tests", (Duration::from_secs(2), findings));
        report
    }

    fn with_a_skip() -> Report {
        report(Findings { passed: 3, skips: vec![Skip::new("a", "no Go")], ..Findings::default() })
    }

    #[test]
    fn a_skip_fails_a_strict_run_only() {
        assert!(with_a_skip().verdict(Strictness::Lenient).is_ok());
        let refused = with_a_skip().verdict(Strictness::Strict("CI is set")).unwrap_err();
        assert_eq!(refused.to_string(), "1 skipped, and a skip fails the run (CI is set)");
        assert!(report(Findings::passed()).verdict(Strictness::Strict("--strict")).is_ok());
    }

    #[test]
    fn a_stage_that_was_skipped_counts_as_one_skip() {
        let report = report(Findings::skipped("Python SDK", "python3 is missing"));
        assert_eq!(report.counts(), "0 passed, 0 failed, 1 skipped");
        assert!(report.verdict(Strictness::Strict("--strict")).is_err());
    }

    #[test]
    fn a_failure_fails_every_run() {
        let report = report(Findings::failed("a", "no"));
        assert_eq!(report.counts(), "0 passed, 1 failed, 0 skipped");
        assert!(report.verdict(Strictness::Lenient).is_err());
    }

    #[test]
    fn a_run_is_strict_if_asked_or_under_continuous_integration() {
        assert_eq!(Strictness::chosen(true, None), Strictness::Strict("--strict"));
        for (ci, is_strict) in [(None, false), (Some(""), false), (Some("false"), false), (Some("1"), true)] {
            assert_eq!(Strictness::chosen(false, ci) != Strictness::Lenient, is_strict, "{ci:?}");
        }
    }

    #[test]
    fn the_slowest_tests_are_listed_longest_first() {
        let times = (0..12_u64).map(|at| (Duration::from_secs(at), format!("t{at}"))).collect();
        let slowest = report(Findings { times, ..Findings::default() }).slowest();
        assert_eq!(slowest.len(), SLOWEST);
        assert!(slowest[0].ends_with("11.0 s  t11"), "{slowest:?}");
    }
}
