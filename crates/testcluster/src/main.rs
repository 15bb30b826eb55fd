//! Has the programs of a cluster ready before the tests need them, and says what it took.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use metronome_testcluster::Kubernetes;
use metronome_testcluster::binaries::{self, Program, Unavailable};

/// Without Go nothing is wrong; there is just less to test.
const NO_GO: u8 = 3;

/// Build the control plane that tests run against, where it is missing
#[derive(Parser)]
struct Options {
    /// The version of Kubernetes [default: METRONOME_KUBERNETES, or the newest]
    #[arg(long)]
    kubernetes: Option<Kubernetes>,
    /// Also Volcano, against which benchmarks compare
    #[arg(long)]
    volcano: bool,
    /// Also JobSet, Kubeflow's Trainer and its MPI operator, whose objects are scheduled in tests
    #[arg(long)]
    operators: bool,
    /// Also Helm, promtool and kubectl, with which the chart, its alerts and the guide are tried
    #[arg(long)]
    helm: bool,
}

fn main() -> ExitCode {
    match provide(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: cannot {error:#}");
            let no_go = matches!(error.downcast_ref(), Some(Unavailable::NoGo(_)));
            if no_go { ExitCode::from(NO_GO) } else { ExitCode::FAILURE }
        }
    }
}

fn provide(options: &Options) -> anyhow::Result<()> {
    let begin = Instant::now();
    let kubernetes = options.kubernetes.map_or_else(Kubernetes::chosen, Ok)?;
    let volcano = options.volcano.then_some([Program::VolcanoScheduler, Program::VolcanoControllers]);
    let operators = options.operators.then_some([Program::JobSet, Program::Trainer, Program::MpiOperator]);
    let clients = options.helm.then_some([Program::Helm, Program::Promtool, Program::Kubectl]);
    let mut built = Vec::new();
    let plane = Program::control_plane(kubernetes).into_iter();
    let others = operators.into_iter().chain(clients).flatten();
    for program in plane.chain(volcano.into_iter().flatten()).chain(others) {
        built.extend(binaries::provide(program)?.built_in);
    }
    eprintln!("{}", summary(kubernetes, &built, begin.elapsed()));
    Ok(())
}

fn summary(kubernetes: Kubernetes, built: &[Duration], took: Duration) -> String {
    let how = match built.len() {
        0 => "warm: nothing to build".to_owned(),
        count => format!("cold: {count} programs built"),
    };
    format!("Kubernetes {kubernetes} is ready after {:.1} s ({how})", took.as_secs_f64())
}
