//! The stages: cheap ones that can fail early come first, and each says what it does.

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::build::{DEFAULT_BUILD, WHOLE_WORKSPACE, build};
use super::findings::Findings;
use super::session::Session;
use super::{Options, doc_tests, schedule};
use crate::needs::NEEDS;
use crate::{fence, python, shell};

pub(crate) struct Stage {
    pub(crate) name: &'static str,
    /// A description, printed before the stage begins.
    does: &'static str,
    depth: Depth,
    run: fn(&mut Session) -> Result<Findings>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    /// Part of every run.
    Always,
    /// Part of a quick run, in place of full stages.
    QuickOnly,
    Full,
}

const STAGES: &[Stage] = &[
    Stage { name: "format", does: "cargo fmt --check", depth: Depth::Always, run: format },
    Stage { name: "fence", does: "core does no IO, by text", depth: Depth::Always, run: fence },
    Stage { name: "Python SDK", does: "mypy and pytest in sdk/python", depth: Depth::Full, run: python_sdk },
    Stage { name: "lints", does: "cargo clippy on everything", depth: Depth::Full, run: lints },
    Stage { name: "unit tests", does: "the tests in src", depth: Depth::QuickOnly, run: unit_tests },
    // Before the full build: the binary of both is the same file.
    Stage {
        name: "default build",
        does: "sessions of the default build",
        depth: Depth::Full,
        run: default_build,
    },
    Stage { name: "build", does: "compile all tests", depth: Depth::Full, run: build_tests },
    Stage { name: "examples", does: "the examples in documentation", depth: Depth::Full, run: examples },
    Stage { name: "programs", does: "wait for tools and Go programs", depth: Depth::Full, run: programs },
    Stage { name: "tests", does: "run all tests", depth: Depth::Full, run: tests },
];

/// The stages of a run, in their order.
pub(crate) fn of(options: &Options) -> impl Iterator<Item = &'static Stage> {
    let other = if options.quick { Depth::Full } else { Depth::QuickOnly };
    STAGES.iter().filter(move |stage| stage.depth != other)
}

/// The reason why a stage could not run on this machine. It is a skip, not a failure.
#[derive(Debug)]
struct NotHere(String);

impl fmt::Display for NotHere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotHere {}

impl Stage {
    pub(crate) fn perform(&self, session: &mut Session) -> (Duration, Findings) {
        eprintln!("── {}: {}", self.name, self.does);
        let begin = Instant::now();
        let result = self.tools().and_then(|()| (self.run)(session));
        let findings = result.unwrap_or_else(|error| {
            eprintln!("{error:#}");
            match error.downcast::<NotHere>() {
                Ok(reason) => Findings::skipped(self.name, &reason.0),
                Err(error) => Findings::failed(self.name, format!("{error:#}")),
            }
        });
        let took = begin.elapsed();
        let verdict = if findings.failures.is_empty() { "done" } else { "FAILED" };
        eprintln!("── {}: {verdict} after {:.1} s", self.name, took.as_secs_f64());
        (took, findings)
    }

    /// Installs the tools that the stage uses. The tests have theirs from the preparation, and can do without some.
    fn tools(&self) -> Result<()> {
        let tools = NEEDS.iter().filter(|need| need.stage == self.name && self.name != "tests");
        for need in tools {
            if !need.is_met() {
                return Err(NotHere(format!("{} is missing and could not be installed", need.tool)).into());
            }
        }
        Ok(())
    }
}

fn format(_: &mut Session) -> Result<Findings> {
    shell::run(&["cargo", "fmt", "--all", "--check"])?;
    Ok(Findings::passed())
}

fn fence(_: &mut Session) -> Result<Findings> {
    fence::run()?;
    Ok(Findings::passed())
}

fn python_sdk(_: &mut Session) -> Result<Findings> {
    let tools = python::Tools::find().map_err(|error| {
        eprintln!("{error:#}");
        NotHere("pytest, mypy and numpy could not be installed".to_owned())
    })?;
    tools.test()
}

fn lints(_: &mut Session) -> Result<Findings> {
    let (clippy, strictly) = (["cargo", "clippy", "--quiet", "--all-targets"], ["--", "-D", "warnings"]);
    shell::run(&[&clippy[..], &WHOLE_WORKSPACE, &strictly].concat())?;
    Ok(Findings::passed())
}

fn unit_tests(session: &mut Session) -> Result<Findings> {
    let executables = build(&WHOLE_WORKSPACE, &["--lib", "--bins"])?;
    Ok(schedule::run(&executables, &session.environment))
}

fn default_build(session: &mut Session) -> Result<Findings> {
    let executables = build(&DEFAULT_BUILD, &["--test", "cmd"])?;
    Ok(schedule::run(&executables, &session.environment))
}

fn build_tests(session: &mut Session) -> Result<Findings> {
    let executables = build(&WHOLE_WORKSPACE, &["--lib", "--bins", "--tests"])?;
    eprintln!("{} test executables", executables.len());
    session.executables = Some(executables);
    Ok(Findings::passed())
}

fn examples(_: &mut Session) -> Result<Findings> {
    doc_tests::run()
}

/// Without Go, tests against an API server are skipped one by one, each with its reason; that is no failure of its own.
fn programs(session: &mut Session) -> Result<Findings> {
    let prepared = session.preparation.take().context("the preparation was begun")?.finish()?;
    eprintln!(
        "tools and programs were ready after {:.1} s, beside other stages",
        prepared.took.as_secs_f64()
    );
    for tool in prepared.missing_tools {
        eprintln!("{tool} is missing and could not be installed: tests that need it are skipped");
    }
    match prepared.programs {
        Err(error) if error.is_lack_of_tools() => Err(NotHere(format!("cannot {error}")).into()),
        Err(error) => Err(anyhow::anyhow!("cannot {error}")),
        Ok(()) => Ok(Findings::passed()),
    }
}

fn tests(session: &mut Session) -> Result<Findings> {
    let executables = session.executables.take().context("there is nothing to run: the build failed")?;
    Ok(schedule::run(&executables, &session.environment))
}

#[cfg(test)]
mod tests_of_stages {
    use super::*;

    #[test]
    fn every_need_is_of_a_stage() {
        for need in NEEDS {
            assert!(STAGES.iter().any(|stage| stage.name == need.stage), "{}", need.tool);
        }
    }

    #[test]
    fn a_quick_run_has_no_stage_that_takes_long() {
        let names = |quick| {
            let options = Options { quick, strict: false, kubernetes: None };
            of(&options).map(|stage| stage.name).collect::<Vec<_>>()
        };
        assert_eq!(names(true), ["format", "fence", "unit tests"]);
        assert!(names(false).ends_with(&["programs", "tests"]) && !names(false).contains(&"unit tests"));
    }
}
