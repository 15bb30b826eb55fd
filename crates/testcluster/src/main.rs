//! Builds the programs of a cluster before tests or benchmarks need them.

use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use metronome_testcluster::Kubernetes;
use metronome_testcluster::binaries::{self, Program};

/// Build the programs that tests and benchmarks run against, where they are missing
#[derive(Parser)]
struct Options {
    /// The version of Kubernetes [default: METRONOME_KUBERNETES, or the newest]
    #[arg(long)]
    kubernetes: Option<Kubernetes>,
    /// Also Volcano, against which benchmarks compare
    #[arg(long)]
    volcano: bool,
}

fn main() -> ExitCode {
    match provide(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: cannot {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn provide(options: &Options) -> anyhow::Result<()> {
    let begin = Instant::now();
    let kubernetes = options.kubernetes.map_or_else(Kubernetes::chosen, Ok)?;
    let volcano = options.volcano.then_some([Program::VolcanoScheduler, Program::VolcanoControllers]);
    let mut programs = Program::of_tests(kubernetes);
    programs.extend(volcano.into_iter().flatten());
    let built = binaries::provide_all(&programs)?;
    let count: usize = built.iter().map(|built| built.programs.len()).sum();
    eprintln!(
        "Kubernetes {kubernetes}: {} programs are ready after {:.1} s, {count} of them built",
        programs.len(),
        begin.elapsed().as_secs_f64()
    );
    Ok(())
}
