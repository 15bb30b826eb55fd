//! `cargo xtask bench sim`: public traces end to end. Each case runs in a process of its own, so that its peak
//! memory is its own; prints one JSON line a case, then a table.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use metronome_core::model::policy::Policy;
use metronome_sim::import::{self, ImportOptions};
use metronome_sim::outcome::{Fate, Outcome};
use metronome_sim::scenario::Scenario;
use metronome_sim::world::{self, RunOptions};
use metronome_testkit::measure::{data_folder, peak_memory_mib};

const POLICIES: [&str; 5] = ["fifo-skip", "srtf", "tiresias", "volcano", "metronome"];
const CLUSTERS: [(u32, u32); 2] = [(1, 512), (64, 8)];
/// Parts of the trace, to see how cost grows.
const SHARES: [usize; 3] = [8_000, 25_000, 82_247];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    match arguments.as_slice() {
        [one, nodes, gpus, limit, policy] if one == "one" => {
            run_one(number(nodes), number(gpus), limit.parse().expect("a limit"), policy);
        }
        _ => run_all(),
    }
}

fn number(text: &str) -> NonZeroU32 {
    text.parse().expect("a positive number")
}

fn run_all() {
    if trace().is_none() {
        println!("skipped: the Philly trace is not in {}", data_folder().display());
        return;
    }
    let mut lines = Vec::new();
    for (nodes, gpus) in CLUSTERS {
        for policy in POLICIES {
            lines.push(run_apart(nodes, gpus, SHARES[2], policy));
        }
    }
    for share in SHARES {
        lines.push(run_apart(64, 8, share, "fifo-skip"));
    }
    println!(
        "\n{:<10} {:<10} {:>7} {:>12} {:>12} {:>8} {:>12} {:>9} {:>8}",
        "cluster", "policy", "jobs", "mean JCT s", "makespan s", "run s", "events/s", "p99 ms", "MiB"
    );
    for line in &lines {
        let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
        let figure = |key: &str| line[key].as_f64().unwrap_or(f64::NAN);
        println!(
            "{:<10} {:<10} {:>7} {:>12.1} {:>12.0} {:>8.2} {:>12.0} {:>9.3} {:>8.0}",
            text("cluster"),
            text("policy"),
            figure("jobs"),
            figure("jct_mean_s"),
            figure("makespan_s"),
            figure("run_s"),
            figure("events_per_s"),
            figure("decision_p99_ms"),
            figure("peak_mib"),
        );
    }
}

fn run_apart(nodes: u32, gpus: u32, limit: usize, policy: &str) -> serde_json::Value {
    let program = std::env::current_exe().expect("this program has a path");
    let arguments = ["one", &nodes.to_string(), &gpus.to_string(), &limit.to_string(), policy];
    let output = Command::new(program).args(arguments).output().expect("this program runs again");
    let line = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    println!("{line}");
    serde_json::from_str(&line).expect("a line of JSON")
}

fn trace() -> Option<PathBuf> {
    Some(data_folder().join("philly/philly.csv.gz")).filter(|path| path.exists())
}

fn run_one(nodes: NonZeroU32, gpus_per_node: NonZeroU32, limit: usize, name: &str) {
    let started = Instant::now();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let scenario = imported(nodes, gpus_per_node, limit, folder.path());
    let read_s = started.elapsed().as_secs_f64();
    let running = Instant::now();
    let policy = Policy::named(name).expect("a policy of that name");
    let outcome = world::run(&scenario, RunOptions::new(policy), &|_| {});
    let run_s = running.elapsed().as_secs_f64();
    println!("{}", line(&outcome, &format!("{nodes}x{gpus_per_node}"), read_s, run_s));
}

fn imported(nodes: NonZeroU32, gpus_per_node: NonZeroU32, limit: usize, folder: &Path) -> Scenario {
    let options = ImportOptions { nodes, gpus_per_node, limit: Some(limit) };
    let imported = import::philly(&trace().expect("the trace is there"), options).expect("the trace is read");
    let path = folder.join("philly.yaml");
    import::write(&imported, &path).expect("the scenario is written");
    Scenario::read(&path).expect("the scenario is read back")
}

fn line(outcome: &Outcome, cluster: &str, read_s: f64, run_s: f64) -> serde_json::Value {
    let completed: Vec<_> = outcome.jobs.iter().filter(|job| job.fate == Fate::Completed).collect();
    let jct = |job: &&metronome_sim::outcome::JobOutcome| {
        job.end.expect("it completed").since(job.submit).as_secs_f64()
    };
    let mut decisions = outcome.decision_nanos.clone();
    decisions.sort_unstable();
    let p99 = decisions.get(decisions.len() * 99 / 100).copied().unwrap_or(0);
    let last = completed.iter().filter_map(|job| job.end).max().unwrap_or_default();
    serde_json::json!({
        "bench": "sim", "cluster": cluster, "policy": outcome.policy, "jobs": outcome.jobs.len(),
        "completed": completed.len(),
        "jct_mean_s": completed.iter().map(jct).sum::<f64>() / completed.len().max(1) as f64,
        "makespan_s": last.as_secs_f64(),
        "read_s": read_s, "run_s": run_s, "events": outcome.events, "events_per_s": outcome.events as f64 / run_s,
        "decisions": decisions.len(), "decision_p99_ms": p99 as f64 / 1e6, "peak_mib": peak_memory_mib(),
    })
}
