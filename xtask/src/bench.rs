//! `cargo xtask bench`: measurements on this machine.

use anyhow::Result;

use crate::shell;

#[derive(clap::Args)]
pub(crate) struct Options {
    what: What,
    /// Options of the benchmark itself; `cluster --help` tells
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    options: Vec<String>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum What {
    /// Decisions: nodes × running × queued
    Core,
    /// Simulation: events a second, whole traces
    Sim,
    /// Real processes over shaped links on this machine, as root: policies side by side, measured and simulated
    Local,
    /// Schedulers side by side on a real API server, some hours; one scenario under half an hour
    Cluster,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let benches: &[(&str, &str)] = match options.what {
        What::Core => &[("metronome-testkit", "core")],
        What::Sim => &[("metronome-testkit", "network"), ("metronome-testkit", "sim")],
        What::Local => return measure_local(&options.options),
        What::Cluster => {
            // It measures the binary, which it finds beside itself.
            let program = ["--package", "metronome-cli", "--features", "kubernetes"];
            shell::run(&[&["cargo", "build", "--quiet", "--release"], &program[..]].concat())?;
            &[("metronome-testcluster", "cluster")]
        }
    };
    benches.iter().try_for_each(|(package, bench)| measure(package, bench, &options.options))
}

/// A pair of jobs and the mix of twelve, as in `experiments/real-tcp`, without a word written there.
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
