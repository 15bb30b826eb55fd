//! Which test executables run beside others.
//!
//! Tests against an API server mostly wait for it. Beside them run, with low priority, tests that only compute and
//! measure no time. All others have the machine to themselves: they measure it.

use std::thread;

use super::executable::{Executable, Priority};
use super::findings::Findings;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lane {
    /// Waits for an API server.
    Cluster,
    /// Only computes, by virtual time.
    Compute,
    Alone,
}

/// Packages whose tests only compute.
const COMPUTE: [&str; 7] = [
    "metronome-core",
    "metronome-sim",
    "metronome-skip",
    "metronome-testkit",
    "metronome-testprograms",
    "metronome-words",
    "xtask",
];

fn lane(executable: &Executable) -> Lane {
    match (executable.package(), executable.target()) {
        // A browser has time limits of its own.
        ("metronome-sim", Some("browser")) => Lane::Alone,
        ("metronome-testcluster", _) | ("metronome-kubernetes", _) => Lane::Cluster,
        ("metronome-cli", Some("kubernetes")) => Lane::Cluster,
        (package, _) if COMPUTE.contains(&package) => Lane::Compute,
        _ => Lane::Alone,
    }
}

/// Runs all of them; none is left out because another fails.
pub(crate) fn run(executables: &[Executable], environment: &[(&str, String)]) -> Findings {
    let of = |wanted: Lane| executables.iter().filter(move |executable| lane(executable) == wanted);
    let mut findings = thread::scope(|scope| {
        let compute = scope.spawn(|| run_each(of(Lane::Compute), environment, Priority::Low));
        let mut findings = run_each(of(Lane::Cluster), environment, Priority::Normal);
        findings.add(compute.join().expect("running an executable does not panic"));
        findings
    });
    findings.add(run_each(of(Lane::Alone), environment, Priority::Normal));
    findings
}

fn run_each<'a>(
    executables: impl Iterator<Item = &'a Executable>,
    environment: &[(&str, String)],
    priority: Priority,
) -> Findings {
    let mut findings = Findings::default();
    for executable in executables {
        findings.add(executable.run(environment, priority));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_that_measure_time_run_alone() {
        let lane_of = |name: &str| lane(&Executable::named(name));
        assert_eq!(lane_of("metronome-cli::local"), Lane::Alone);
        assert_eq!(lane_of("metronome-local::substrate"), Lane::Alone);
        assert_eq!(lane_of("metronome-agent"), Lane::Alone);
        assert_eq!(lane_of("metronome-trainer::training"), Lane::Alone);
        assert_eq!(lane_of("metronome-new::unknown"), Lane::Alone);
        assert_eq!(lane_of("metronome-cli::kubernetes"), Lane::Cluster);
        assert_eq!(lane_of("metronome-kubernetes::io"), Lane::Cluster);
        assert_eq!(lane_of("metronome-testkit::histories"), Lane::Compute);
    }
}
