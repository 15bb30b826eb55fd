//! `cargo xtask test`: every stage with its time, then a summary that also says what was left out and why.

use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::needs::NEEDS;
use crate::{fence, python, shell};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// The inner loop: formatting, fence and unit tests only
    #[arg(long)]
    quick: bool,
    /// The version of Kubernetes to test against [default: METRONOME_KUBERNETES, or the newest]
    #[arg(long, value_name = "VERSION")]
    kubernetes: Option<String>,
}

struct Stage {
    name: &'static str,
    /// The tool of `NEEDS` without which it is left out.
    tool: Option<&'static str>,
    depth: Depth,
    run: fn(&Surroundings) -> Result<()>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    Quick,
    /// A part of a full stage.
    QuickOnly,
    Full,
}

const STAGES: &[Stage] = &[
    Stage { name: "format", tool: Some("rustfmt"), depth: Depth::Quick, run: format },
    Stage { name: "fence", tool: None, depth: Depth::Quick, run: |_| fence::run() },
    Stage { name: "lints", tool: Some("clippy"), depth: Depth::Full, run: lints },
    Stage { name: "unit tests", tool: None, depth: Depth::QuickOnly, run: unit_tests },
    Stage { name: "control plane", tool: None, depth: Depth::Full, run: control_plane },
    Stage { name: "tests", tool: None, depth: Depth::Full, run: tests },
    Stage { name: "examples in documentation", tool: None, depth: Depth::Full, run: doc_tests },
    Stage { name: "Python SDK", tool: Some("python3"), depth: Depth::Full, run: python_sdk },
];

/// What the tests find around them.
struct Surroundings {
    /// The folder of public traces, if there is one.
    data: Option<PathBuf>,
    /// The version of Kubernetes that was asked for, if one was.
    kubernetes: Option<String>,
}

/// A stage's own reason why it could not be: nothing is wrong with what it would have tested.
#[derive(Debug)]
struct NotHere(&'static str);

impl fmt::Display for NotHere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for NotHere {}

enum Verdict {
    Passed(Duration),
    Failed(Duration),
    LeftOut(String),
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let surroundings = Surroundings { data: data_folder()?, kubernetes: options.kubernetes.clone() };
    let missing = missing_tools(options);
    let mut verdicts = Vec::new();
    for stage in STAGES.iter().filter(|stage| options.quick || stage.depth != Depth::QuickOnly) {
        let reason = left_out(stage, options, &missing);
        verdicts.push((stage.name, reason.unwrap_or_else(|| perform(stage, &surroundings))));
    }
    let failed = verdicts.iter().filter(|(_, verdict)| matches!(verdict, Verdict::Failed(_))).count();
    summarise(&verdicts, &surroundings, &missing);
    match failed {
        0 => Ok(()),
        _ => bail!("{failed} of {} stages failed", verdicts.len()),
    }
}

/// The tools that are not there and could not be installed. A quick run asks only for what its stages use.
fn missing_tools(options: &Options) -> Vec<&'static str> {
    let quick = |tool| STAGES.iter().any(|stage| stage.tool == Some(tool) && stage.depth != Depth::Full);
    let wanted = NEEDS.iter().filter(|need| !options.quick || quick(need.tool));
    wanted.filter(|need| !need.is_met()).map(|need| need.tool).collect()
}

fn left_out(stage: &Stage, options: &Options, missing: &[&str]) -> Option<Verdict> {
    let reason = match (stage.tool, stage.depth) {
        (Some(tool), _) if missing.contains(&tool) => format!("{tool} is missing and could not be installed"),
        (_, Depth::Full) if options.quick => "--quick".to_owned(),
        _ => return None,
    };
    Some(Verdict::LeftOut(reason))
}

fn perform(stage: &Stage, surroundings: &Surroundings) -> Verdict {
    eprintln!("── {}", stage.name);
    let begin = Instant::now();
    let result = (stage.run)(surroundings);
    let took = begin.elapsed();
    match result {
        Ok(()) => Verdict::Passed(took),
        Err(error) if error.is::<NotHere>() => Verdict::LeftOut(error.to_string()),
        Err(error) => {
            eprintln!("{error:#}");
            Verdict::Failed(took)
        }
    }
}

fn summarise(verdicts: &[(&str, Verdict)], surroundings: &Surroundings, missing: &[&str]) {
    eprintln!("── summary");
    for (name, verdict) in verdicts {
        match verdict {
            Verdict::Passed(took) => eprintln!("passed    {name:<28} {:>7.1} s", took.as_secs_f64()),
            Verdict::Failed(took) => eprintln!("FAILED    {name:<28} {:>7.1} s", took.as_secs_f64()),
            Verdict::LeftOut(reason) => eprintln!("left out  {name:<28} ({reason})"),
        }
    }
    for need in NEEDS.iter().filter(|need| missing.contains(&need.tool)) {
        if !verdicts.iter().any(|(name, _)| *name == need.serves) {
            eprintln!("left out  {:<28} ({} is missing and could not be installed)", need.serves, need.tool);
        }
    }
    if surroundings.data.is_none() {
        eprintln!("left out  tests on public traces        (no folder of traces: set METRONOME_DATA)");
    }
}

/// `METRONOME_DATA`, or `../shared/data` beside the repository. Tests run in the folders of their crates, so they
/// are given the whole path; experiments are given the same.
pub(crate) fn data_folder() -> Result<Option<PathBuf>> {
    let named = std::env::var_os("METRONOME_DATA").map(PathBuf::from);
    let folder = shell::root()?.join(named.unwrap_or_else(|| PathBuf::from("../shared/data")));
    Ok(folder.canonicalize().ok().filter(|folder| folder.is_dir()))
}

fn format(_: &Surroundings) -> Result<()> {
    shell::run(&["cargo", "fmt", "--all", "--check"])
}

fn lints(_: &Surroundings) -> Result<()> {
    shell::run(&["cargo", "clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"])
}

fn unit_tests(surroundings: &Surroundings) -> Result<()> {
    cargo_test(&["--lib", "--bins"], surroundings)
}

/// Built before the tests, so that none of them takes minutes. The profile is that of the tests, so that what both
/// need is compiled once.
fn control_plane(surroundings: &Surroundings) -> Result<()> {
    /// With which it says that there is no Go.
    const NO_GO: u8 = 3;
    let mut line = vec!["cargo", "run", "--quiet", "--profile", "test", "-p", "metronome-testcluster", "--"];
    line.extend(["--operators", "--helm"]);
    line.extend(surroundings.kubernetes.iter().flat_map(|version| ["--kubernetes", version]));
    match shell::code(&line)? {
        0 => Ok(()),
        NO_GO => Err(NotHere("no Go to build it: no test ran against a real API server").into()),
        code => bail!("`{}` ended with {code}", line.join(" ")),
    }
}

fn tests(surroundings: &Surroundings) -> Result<()> {
    cargo_test(&["--lib", "--bins", "--tests"], surroundings)
}

fn doc_tests(surroundings: &Surroundings) -> Result<()> {
    cargo_test(&["--doc"], surroundings)
}

fn python_sdk(_: &Surroundings) -> Result<()> {
    let tools = python::Tools::find().map_err(|error| {
        eprintln!("{error:#}");
        NotHere("pytest, mypy and numpy could not be installed: types and behaviour of sdk/python were not tested")
    })?;
    tools.test()
}

fn cargo_test(kinds: &[&str], surroundings: &Surroundings) -> Result<()> {
    let line = [&["cargo", "test", "--quiet", "--workspace", "--no-fail-fast"], kinds].concat();
    let data = surroundings.data.as_ref().map(|folder| ("METRONOME_DATA", folder.display().to_string()));
    let kubernetes = surroundings.kubernetes.clone().map(|version| ("METRONOME_KUBERNETES", version));
    let environment: Vec<(&str, String)> = data.into_iter().chain(kubernetes).collect();
    shell::run_with(&line, &environment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_of_a_stage_is_a_known_need() {
        for tool in STAGES.iter().filter_map(|stage| stage.tool) {
            assert!(NEEDS.iter().any(|need| need.tool == tool), "{tool}");
        }
    }

    #[test]
    fn whatever_is_left_out_is_said_with_its_reason() {
        let reason = |name: &str, quick, missing: &[&str]| {
            let stage = STAGES.iter().find(|stage| stage.name == name).unwrap();
            match left_out(stage, &Options { quick, kubernetes: None }, missing) {
                Some(Verdict::LeftOut(reason)) => reason,
                _ => String::new(),
            }
        };
        assert_eq!(reason("lints", true, &[]), "--quick");
        assert_eq!(reason("lints", false, &["clippy"]), "clippy is missing and could not be installed");
        assert_eq!(reason("control plane", true, &[]), "--quick");
        assert_eq!(
            reason("Python SDK", false, &["python3"]),
            "python3 is missing and could not be installed"
        );
        assert_eq!(reason("fence", true, &["clippy"]), "");
    }
}
