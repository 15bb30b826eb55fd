//! Scenarios and what came of them as text, so that a test shows its shape at a glance.
//!
//! ```text
//! nodes: 2 of 4 GPUs
//! 0s a: 4 x 1 for 60s
//! 5s b: 8 x 1 for 30s, high
//! ```

use std::fmt::Write;

use metronome_core::model::job::{Gang, JobSpec, Priority};
use metronome_core::model::units::{Duration, Instant};
use metronome_sim::outcome::{JobOutcome, Outcome};
use metronome_sim::scenario::Scenario;

use crate::build;

/// Reads a scenario. Tests are written by us: a mistake in one is a panic that names the line.
pub fn scenario(text: &str) -> Scenario {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let cluster = lines.next().expect("a first line that describes the nodes");
    let numbers: Vec<u64> = cluster.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [nodes, gpus] = numbers[..] else { panic!("`nodes: N of G GPUs`, not `{cluster}`") };
    build::scenario(build::racks(1, nodes as u32, gpus), lines.map(arrival))
}

fn arrival(line: &str) -> (u64, JobSpec) {
    parse_arrival(line)
        .unwrap_or_else(|| panic!("`0s name: MEMBERS x GPUS for 60s, high, stays`, not `{line}`"))
}

fn parse_arrival(line: &str) -> Option<(u64, JobSpec)> {
    let (head, rest) = line.split_once(':')?;
    let (at, name) = head.split_once(' ')?;
    let at: Duration = at.parse().ok()?;
    let mut parts = rest.split(',').map(str::trim);
    let (size, length) = parts.next()?.split_once(" for ")?;
    let (members, gpus) = size.split_once(" x ")?;
    let gang = Gang::rigid(members.trim().parse().ok()?).ok()?;
    let mut spec = JobSpec::workers(name.trim(), gang, build::gpus(gpus.trim().parse().ok()?));
    spec.work.alone = Some(length.trim().parse().ok()?);
    spec = build::preemptible(spec);
    for word in parts {
        match word {
            "high" => spec.priority = Priority::HIGH,
            "low" => spec.priority = Priority::LOW,
            "stays" => spec.capabilities = metronome_core::model::job::Capabilities::START_ONLY,
            _ => return None,
        }
    }
    Some((at.0 / Duration::SECOND.0, spec))
}

/// One line a job: when it ran and what became of it.
pub fn timeline(outcome: &Outcome) -> String {
    let mut text = String::new();
    for job in &outcome.jobs {
        let _ = writeln!(text, "{}", line(job));
    }
    text
}

fn line(job: &JobOutcome) -> String {
    let at = |instant: Option<Instant>| instant.map_or("-".into(), |at| format!("{}s", at.as_secs_f64()));
    let mut line = format!("{}: {} to {}, {:?}", job.name, at(job.start), at(job.end), job.fate);
    if job.preemptions > 0 {
        let _ = write!(line, ", preempted {}x", job.preemptions);
    }
    if job.moves > 0 {
        let _ = write!(line, ", moved {}x", job.moves);
    }
    line
}
