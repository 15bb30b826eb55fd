//! `cargo xtask bench`: measurements on this machine.

mod against;
mod clean_build;
mod ratios;

use anyhow::Result;
use clap::Parser;

use crate::shell;

#[derive(clap::Args)]
pub(crate) struct Options {
    what: What,
    /// Options of the benchmark itself: `core -- --help` and `cluster --help` list them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    options: Vec<String>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum What {
    /// Decisions: nodes × running × queued; `--against COMMIT` compares this tree with a commit
    Core,
    /// Simulation: events a second, whole traces
    Sim,
    /// Real processes over shaped links on this machine, as root: policies side by side, measured and simulated
    Local,
    /// Schedulers side by side on a real API server, some hours; one scenario under half an hour
    Cluster,
}

#[derive(Parser)]
#[command(
    name = "cargo xtask bench core --",
    about = "Measure decisions, and how long the core takes to build"
)]
struct CoreOptions {
    /// Run the benchmarks of this tree and of that commit by turns, and compare them
    #[arg(long, value_name = "COMMIT")]
    against: Option<String>,
    /// How often each benchmark runs on each side
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(i64::from(ratios::MIN_ROUNDS)..))]
    rounds: u32,
    /// Names of benchmarks, as in `metronome-10000x5000-links` [default: all; a few of each kind with `--against`]
    benchmarks: Vec<String>,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let benches: &[(&str, &str)] = match options.what {
        What::Core => return measure_core(&options.options),
        What::Sim => &[("metronome-testkit", "network"), ("metronome-testkit", "sim")],
        What::Local => return measure_local(&options.options),
        What::Cluster => {
            // The benchmark measures the binary, which it finds beside itself.
            let program = ["--package", "metronome-cli", "--features", "kubernetes"];
            shell::run(&[&["cargo", "build", "--quiet", "--release"], &program[..]].concat())?;
            &[("metronome-testcluster", "cluster")]
        }
    };
    benches.iter().try_for_each(|(package, bench)| measure(package, bench, &options.options))
}

fn measure_core(options: &[String]) -> Result<()> {
    let given = options.iter().map(String::as_str).filter(|option| *option != "--");
    let CoreOptions { against, rounds, benchmarks } =
        CoreOptions::parse_from(["cargo xtask bench core --"].into_iter().chain(given));
    clean_build::measure()?;
    match against {
        Some(commit) => against::compare(&commit, rounds, &benchmarks),
        None => measure("metronome-testkit", "core", &benchmarks),
    }
}

/// A pair of jobs and the mix of twelve, as in `experiments/real-tcp`, without writing results there.
fn measure_local(options: &[String]) -> Result<()> {
    let program = ["cargo", "run", "--quiet", "--release", "--package", "metronome-cli", "--"];
    let run = ["local", "run", "--policies", "fair,shift,classes,chosen", "--file"];
    for file in ["experiments/real-tcp/vgg11-vgg11.yaml", "experiments/real-tcp/twelve-jobs.yaml"] {
        let line = program.into_iter().chain(run).chain([file]).chain(options.iter().map(String::as_str));
        shell::run(&line.collect::<Vec<_>>())?;
    }
    Ok(())
}

fn measure(package: &str, bench: &str, options: &[String]) -> Result<()> {
    let mut line = vec!["cargo", "bench", "--package", package, "--bench", bench, "--"];
    line.extend(options.iter().map(String::as_str));
    shell::run(&line)
}
