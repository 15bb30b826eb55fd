//! `cargo xtask bench core --against COMMIT`: this tree compared with a commit.
//!
//! The commit is checked out as a git worktree below `target/bench`, with a target folder of its own, and each side is
//! measured by its own benchmarks. In every round each benchmark runs on both sides, one right after the other; which side
//! is first changes from round to round.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use super::ratios::{MAX_RATIO, Ratio, median};
use crate::shell;

/// Of each kind of benchmark one that takes a few seconds: ten rounds of all on both sides take some ten minutes on two
/// cores.
const BENCHMARKS: [&str; 5] = [
    "metronome-1000x500",
    "metronome-3000x1500",
    "metronome-1000x500-links",
    "reports-10000-gpus",
    "reports-10000-cores",
];

/// A single figure of a run says little: the worst of a thousand cycles.
const LEFT_OUT: [&str; 1] = ["max_ms"];

/// By benchmark and figure: what each round measured, before and after.
type Figures = BTreeMap<(String, String), Vec<(f64, f64)>>;

pub(super) fn compare(commit: &str, rounds: u32, benchmarks: &[String]) -> Result<()> {
    let commit = shell::output(&["git", "rev-parse", "--verify", &format!("{commit}^{{commit}}")])?;
    let commit = commit.trim();
    let before = check_out(commit).and_then(|source| build(&source, Some("target/bench/before/target")))?;
    let after = build(&shell::root()?, None)?;
    let all = || BENCHMARKS.map(str::to_owned).to_vec();
    let benchmarks = if benchmarks.is_empty() { all() } else { benchmarks.to_vec() };
    let mut figures = Figures::new();
    for round in 1..=rounds {
        eprintln!("round {round} of {rounds}");
        for benchmark in &benchmarks {
            let (before, after) =
                in_turn(round, || measure(&before, benchmark), || measure(&after, benchmark))?;
            note(&mut figures, benchmark, &before, &after);
        }
    }
    let (table, slower) = judged(&figures)?;
    println!(
        "{commit} and this tree, {rounds} rounds: medians, and ratios after / before with their 95 % intervals"
    );
    println!("(order statistics over the ratios of rounds)\n{table}");
    ensure!(slower == 0, "{slower} figures are worse: the whole interval lies above {MAX_RATIO}");
    Ok(())
}

/// Both sides, the commit first in odd rounds.
fn in_turn<T>(round: u32, before: impl Fn() -> Result<T>, after: impl Fn() -> Result<T>) -> Result<(T, T)> {
    if round % 2 == 1 {
        let before = before()?;
        Ok((before, after()?))
    } else {
        let after = after()?;
        Ok((before()?, after))
    }
}

/// The folder with the sources of a commit.
fn check_out(commit: &str) -> Result<PathBuf> {
    let source = shell::root()?.join("target/bench/before/source");
    let folder = source.to_string_lossy();
    if source.join(".git").exists() {
        shell::run(&["git", "-C", &folder, "checkout", "--quiet", "--detach", commit])?;
    } else {
        // A folder that was removed by hand may still be known to git.
        shell::run(&["git", "worktree", "prune"])?;
        shell::run(&["git", "worktree", "add", "--quiet", "--detach", &folder, commit])?;
    }
    Ok(source)
}

/// Builds the benchmarks in a folder and returns their program.
fn build(source: &Path, target: Option<&str>) -> Result<PathBuf> {
    let manifest = source.join("Cargo.toml");
    let manifest = manifest.to_string_lossy();
    let target = target.map(|target| Ok::<_, anyhow::Error>(shell::root()?.join(target))).transpose()?;
    let target = target.map(|target| target.to_string_lossy().into_owned());
    let bench = ["--package", "metronome-testkit", "--bench", "core", "--no-run", "--message-format", "json"];
    let mut line = vec!["cargo", "bench", "--quiet", "--manifest-path", &manifest];
    line.extend(bench);
    line.extend(target.iter().flat_map(|target| ["--target-dir", target.as_str()]));
    let messages = shell::output(&line)?;
    program(&messages).with_context(|| format!("no program was built in {}", source.display()))
}

/// The last program that cargo says it has built.
fn program(messages: &str) -> Option<PathBuf> {
    let executable = |line: &str| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        message["executable"].as_str().map(PathBuf::from)
    };
    messages.lines().filter_map(executable).next_back()
}

/// Runs one benchmark and returns its figures.
fn measure(program: &Path, benchmark: &str) -> Result<BTreeMap<String, f64>> {
    let output = shell::output(&[&program.to_string_lossy(), benchmark])?;
    let figures = figures(&output);
    if figures.is_empty() {
        bail!("{} knows no benchmark `{benchmark}`", program.display());
    }
    Ok(figures)
}

/// The times in the JSON line that a benchmark prints.
fn figures(output: &str) -> BTreeMap<String, f64> {
    let rows = output.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let is_time = |key: &str| key.ends_with("_ms") || key.ends_with("_of_a_core") || key.starts_with("us_");
    let mut figures = BTreeMap::new();
    for row in rows {
        let keys = row.as_object().into_iter().flatten();
        let times = keys.filter(|(key, _)| is_time(key) && !LEFT_OUT.contains(&key.as_str()));
        figures.extend(times.filter_map(|(key, value)| Some((key.clone(), value.as_f64()?))));
    }
    figures
}

/// Adds a round: figures that both sides have.
fn note(all: &mut Figures, benchmark: &str, before: &BTreeMap<String, f64>, after: &BTreeMap<String, f64>) {
    for (figure, before) in before {
        if let Some(after) = after.get(figure) {
            all.entry((benchmark.to_owned(), figure.clone())).or_default().push((*before, *after));
        }
    }
}

/// A table with a line for each figure, and how many figures are too great.
fn judged(figures: &Figures) -> Result<(String, usize)> {
    let mut table = format!(
        "{:<28} {:<22} {:>10} {:>10} {:>7}  95 % interval\n",
        "benchmark", "figure", "before", "after", "ratio"
    );
    let mut slower = 0;
    for ((benchmark, figure), rounds) in figures {
        let ratio =
            Ratio::of(rounds).with_context(|| format!("{benchmark} was measured too seldom: {figure}"))?;
        let side = |side: fn(&(f64, f64)) -> f64| {
            let mut sorted: Vec<f64> = rounds.iter().map(side).collect();
            sorted.sort_unstable_by(f64::total_cmp);
            median(&sorted).unwrap_or(f64::NAN)
        };
        let (before, after) = (side(|(before, _)| *before), side(|(_, after)| *after));
        let verdict = if ratio.is_too_great() { "  worse" } else { "" };
        let Ratio { median, low, high } = ratio;
        let _ = writeln!(
            table,
            "{benchmark:<28} {figure:<22} {before:>10.4} {after:>10.4} {median:>7.3}  {low:.3} to {high:.3}{verdict}"
        );
        slower += usize::from(ratio.is_too_great());
    }
    Ok((table, slower))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_from_the_line_of_a_benchmark() {
        let output = "{\"bench\":\"core\",\"nodes\":1000,\"p50_ms\":0.5,\"max_ms\":9.0,\"victims512_ms\":null,\"us_a_report\":2}\n\npolicy  p50\n";
        let found: Vec<(String, f64)> = figures(output).into_iter().collect();
        assert_eq!(found, [("p50_ms".to_owned(), 0.5), ("us_a_report".to_owned(), 2.0)]);
    }

    #[test]
    fn sides_change_places_from_round_to_round() {
        let order = std::cell::RefCell::new(String::new());
        let side = |name: char| {
            order.borrow_mut().push(name);
            Ok(name)
        };
        for round in 1..=4 {
            assert_eq!(in_turn(round, || side('b'), || side('a')).unwrap(), ('b', 'a'));
        }
        assert_eq!(*order.borrow(), "baabbaab");
    }

    #[test]
    fn a_figure_that_is_worse_in_nine_of_ten_rounds_fails() {
        let mut all = Figures::new();
        for round in 0..10 {
            let figures =
                |worse: f64, same: f64| BTreeMap::from([("p50_ms".into(), worse), ("p99_ms".into(), same)]);
            let after = if round == 0 { 1.0 } else { 1.2 };
            note(&mut all, "metronome-1000x500", &figures(1.0, 2.0), &figures(after, 2.0));
        }
        let (table, slower) = judged(&all).unwrap();
        assert_eq!(slower, 1, "{table}");
        let worse: Vec<&str> = table.lines().filter(|line| line.ends_with("worse")).collect();
        assert!(matches!(worse[..], [line] if line.contains("p50_ms") && line.contains("1.200")), "{table}");
    }

    #[test]
    fn the_program_is_the_one_that_cargo_built_last() {
        let messages = "{\"reason\":\"compiler-artifact\",\"executable\":null}\n{\"executable\":\"/t/core-1\"}\n{\"reason\":\"build-finished\"}\n";
        assert_eq!(program(messages), Some(PathBuf::from("/t/core-1")));
        assert_eq!(program("{\"reason\":\"build-finished\"}"), None);
    }
}
