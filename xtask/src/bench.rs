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
    /// Schedulers side by side on a real API server, some hours; one scenario under half an hour
    Cluster,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let benches: &[(&str, &str)] = match options.what {
        What::Core => &[("metronome-testkit", "core")],
        What::Sim => &[("metronome-testkit", "network"), ("metronome-testkit", "sim")],
        What::Cluster => {
            // It measures the binary, which it finds beside itself.
            shell::run(&["cargo", "build", "--quiet", "--release", "--package", "metronome-cli"])?;
            &[("metronome-testcluster", "cluster")]
        }
    };
    benches.iter().try_for_each(|(package, bench)| measure(package, bench, &options.options))
}

fn measure(package: &str, bench: &str, options: &[String]) -> Result<()> {
    let mut line = vec!["cargo", "bench", "--package", package, "--bench", bench, "--"];
    line.extend(options.iter().map(String::as_str));
    shell::run(&line)
}
