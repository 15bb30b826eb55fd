//! Which test executables run beside others.
//!
//! Tests against an API server mostly wait for it. Beside them run, with low priority, tests that only compute and
//! measure no time. All others have the machine to themselves: they measure it.

use std::thread;

use super::executable::{Executable, Priority};
use super::findings::Findings;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TrafficPolicy {
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

fn lane(executable: &Executable) -> TrafficPolicy {
    match (executable.package(), executable.target()) {
        // A browser has time limits of its own.
        ("metronome-sim", Some("browser")) => TrafficPolicy::Alone,
        ("metronome-testcluster", _) | ("metronome-kubernetes", _) => TrafficPolicy::Cluster,
        ("metronome-cli", Some("kubernetes")) => TrafficPolicy::Cluster,
        (package, _) if COMPUTE.contains(&package) => TrafficPolicy::Compute,
        _ => TrafficPolicy::Alone,
    }
}

/// Runs all of them; none is left out because another fails.
pub(crate) fn run(executables: &[Executable], environment: &[(&str, String)]) -> Findings {
    let of = |wanted: TrafficPolicy| executables.iter().filter(move |executable| lane(executable) == wanted);
    let mut findings = thread::scope(|scope| {
        let compute = scope.spawn(|| run_each(of(TrafficPolicy::Compute), environment, Priority::Low));
        let mut findings = run_each(of(TrafficPolicy::Cluster), environment, Priority::Normal);
        findings.add(compute.join().expect("running an executable does not panic"));
        findings
    });
    findings.add(run_each(of(TrafficPolicy::Alone), environment, Priority::Normal));
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
        let traffic_policy_of = |name: &str| lane(&Executable::named(name));
        assert_eq!(traffic_policy_of("metronome-cli::local"), TrafficPolicy::Alone);
        assert_eq!(traffic_policy_of("metronome-local::substrate"), TrafficPolicy::Alone);
        assert_eq!(traffic_policy_of("metronome-agent"), TrafficPolicy::Alone);
        assert_eq!(traffic_policy_of("metronome-trainer::training"), TrafficPolicy::Alone);
        assert_eq!(traffic_policy_of("metronome-new::unknown"), TrafficPolicy::Alone);
        assert_eq!(traffic_policy_of("metronome-cli::kubernetes"), TrafficPolicy::Cluster);
        assert_eq!(traffic_policy_of("metronome-kubernetes::io"), TrafficPolicy::Cluster);
        assert_eq!(traffic_policy_of("metronome-testkit::histories"), TrafficPolicy::Compute);
    }
}
