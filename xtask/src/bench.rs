//! `cargo xtask bench`: measurements on this machine.

use anyhow::Result;

use crate::shell;

#[derive(clap::Args)]
pub(crate) struct Options {
    what: What,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum What {
    /// Decisions: nodes × running × queued
    Core,
    /// Simulation: events a second, whole traces
    Sim,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let benches: &[&str] = match options.what {
        What::Core => &["core"],
        What::Sim => &["network", "sim"],
    };
    benches.iter().try_for_each(|bench| {
        shell::run(&["cargo", "bench", "--package", "metronome-testkit", "--bench", bench])
    })
}
