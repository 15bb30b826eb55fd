//! What was measured, beside what the simulator says of the same file.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use metronome_core::model::policy::Policy;
use metronome_core::model::units::Instant;
use metronome_local::world::{Fate, Outcome};
use metronome_sim::outcome::JobOutcome;
use metronome_sim::scenario::{Arrival, Scenario, Source};
use metronome_sim::world::{self, RunOptions};
use serde_json::{Value, json};

use crate::local::kept_by_the_kernel;

/// Runs of one scenario.
pub(crate) struct Comparison {
    scenario: String,
    scale: u64,
    seed: u64,
    pub(crate) runs: Vec<Measured>,
}

/// One run.
pub(crate) struct Measured {
    policy: String,
    pub(crate) outcome: Outcome,
    /// Mean iteration times in milliseconds, by job.
    pub(crate) measured: Vec<Option<f64>>,
    pub(crate) simulated: Vec<Option<f64>>,
    /// The table of each job's iterations.
    pub(crate) records: Vec<PathBuf>,
}

impl Measured {
    pub(crate) fn read(
        name: &str,
        outcome: Outcome,
        records: Vec<PathBuf>,
        scenario: &Scenario,
        policy: Policy,
        seed: u64,
    ) -> Self {
        let spans: Vec<Option<Span>> = records.iter().map(|record| Span::read(record)).collect();
        let measured = spans.iter().map(|span| span.as_ref().map(Span::mean)).collect();
        let began: Vec<Option<f64>> = spans.iter().map(|span| span.as_ref().map(|span| span.began)).collect();
        let simulated = simulated(scenario, policy, seed, &began);
        Self { policy: name.to_owned(), outcome, measured, simulated, records }
    }
}

/// From the beginning of the first iteration to the end of the last, in nanoseconds, and how many there were.
struct Span {
    began: f64,
    ended: f64,
    iterations: usize,
}

impl Span {
    fn read(record: &Path) -> Option<Self> {
        let table = fs::read_to_string(record).ok()?;
        let row = |line: &str| -> Option<[f64; 2]> {
            let mut columns = line.split(',').map(|column| column.parse::<f64>().ok());
            let began = columns.nth(1)??;
            Some([began, began + columns.nth(3)??])
        };
        let rows: Vec<[f64; 2]> = table.lines().skip(1).filter_map(row).collect();
        let (first, last) = (rows.first()?, rows.last()?);
        Some(Self { began: first[0], ended: last[1], iterations: rows.len() })
    }

    /// In milliseconds.
    fn mean(&self) -> f64 {
        (self.ended - self.began) / self.iterations as f64 / 1e6
    }
}

/// The same of a simulation in which every job begins when it did in fact, and its compute varies as it did: how bursts
/// meet depends on both.
fn simulated(scenario: &Scenario, policy: Policy, seed: u64, began: &[Option<f64>]) -> Vec<Option<f64>> {
    let mut arrivals = scenario.arrivals(seed);
    let first = began.iter().flatten().copied().fold(f64::INFINITY, f64::min);
    for (arrival, began) in arrivals.iter_mut().zip(began) {
        if let Some(began) = began {
            arrival.at = Instant((began - first) as u64);
        }
    }
    // Jobs are told apart by their place, which has to stay theirs.
    if !arrivals.is_sorted_by_key(|arrival| arrival.at) {
        return simulated_once(scenario, policy, seed);
    }
    let same = Scenario { sources: vec![Source::Listed(arrivals)], ..scenario.clone() };
    simulated_once(&same, policy, seed)
}

fn simulated_once(scenario: &Scenario, policy: Policy, seed: u64) -> Vec<Option<f64>> {
    let arrivals = scenario.arrivals(seed);
    let options = RunOptions { seed, ..RunOptions::new(policy) };
    let outcome = world::run(&kept_by_the_kernel(scenario), options, &|_| {});
    let mean = |(job, arrival): (&JobOutcome, &Arrival)| {
        let iterations = arrival.training.as_ref()?.iterations;
        Some(job.ran.as_secs_f64() * 1e3 / iterations as f64)
    };
    outcome.jobs.iter().zip(&arrivals).map(mean).collect()
}

/// The failure, the last lines of the log, and the path of the log.
pub(super) fn failure_text(what: &str, log: Option<&Path>, last_lines: &[String]) -> String {
    let lines: String = last_lines.iter().map(|line| format!("  | {line}\n")).collect();
    let log = match (log, last_lines) {
        (Some(log), []) => format!("  its log is empty: {}\n", log.display()),
        (Some(log), _) => format!("  its log: {}\n", log.display()),
        (None, _) => String::new(),
    };
    format!("{what}\n{lines}{log}")
}

impl Comparison {
    pub(crate) fn of(scenario: &Scenario, scale: u64, seed: u64) -> Self {
        Self { scenario: scenario.name.clone(), scale, seed, runs: Vec::new() }
    }

    /// A row for each job, with iteration times under each policy.
    pub(crate) fn text(&self) -> String {
        let mut text = format!(
            "{}: iteration times in milliseconds, measured (simulated); rates and bytes divided by {}\n\n",
            self.scenario, self.scale
        );
        let names = self.runs.first().map(|run| &run.outcome.jobs).into_iter().flatten();
        let widest = names.clone().map(|job| job.name.len()).chain([4]).max().unwrap_or(4);
        write!(text, "{:widest$}", "job").expect("a string takes everything");
        for run in &self.runs {
            write!(text, "  {:>20}", run.policy).expect("a string takes everything");
        }
        text.push('\n');
        for (index, job) in names.enumerate() {
            write!(text, "{:widest$}", job.name).expect("a string takes everything");
            for run in &self.runs {
                write!(text, "  {:>20}", run.cell(index)).expect("a string takes everything");
            }
            text.push('\n');
        }
        text + &self.without_iterations() + &self.not_completed()
    }

    /// Programs of users record no iterations.
    fn without_iterations(&self) -> String {
        let mut text = String::new();
        for run in &self.runs {
            let jobs = run.outcome.jobs.iter().zip(&run.measured);
            for (job, _) in jobs.filter(|(job, measured)| job.fate == Fate::Completed && measured.is_none()) {
                let (Some(started), Some(ended)) = (job.started, job.ended) else { continue };
                let seconds = ended.as_secs_f64() - started.as_secs_f64();
                writeln!(
                    text,
                    "{} under {} completed in {seconds:.1} s and recorded no iterations",
                    job.name, run.policy
                )
                .expect("a string takes everything");
            }
        }
        if text.is_empty() { text } else { format!("\n{text}") }
    }

    fn not_completed(&self) -> String {
        let mut text = String::new();
        for run in &self.runs {
            for job in run.outcome.jobs.iter().filter(|job| job.fate != Fate::Completed) {
                let why = job.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
                let what = format!("{} under {} {}{why}", job.name, run.policy, job.fate.word());
                // The run under the next policy has removed the logs of this one.
                let log = job.log.as_deref().filter(|log| log.exists());
                text += &failure_text(&what, log, &job.last_lines);
            }
        }
        if text.is_empty() { text } else { format!("\n{text}") }
    }

    pub(crate) fn document(&self) -> Value {
        let run = |run: &Measured| {
            let jobs = run.outcome.jobs.iter().enumerate().map(|(index, job)| {
                let mut document = serde_json::to_value(job).expect("an outcome is plain data");
                if !job.log.as_ref().is_some_and(|log| log.exists()) {
                    document["log"] = Value::Null;
                }
                document["iterationMs"] =
                    json!({"measured": run.measured[index], "simulated": run.simulated[index]});
                document
            });
            let jobs: Vec<Value> = jobs.collect();
            json!({"policy": run.policy, "agentRestarts": run.outcome.agent_restarts, "jobs": jobs})
        };
        json!({
            "version": 1,
            "scenario": self.scenario,
            "scale": self.scale,
            "seed": self.seed,
            "runs": self.runs.iter().map(run).collect::<Vec<_>>(),
        })
    }
}

impl Measured {
    fn cell(&self, index: usize) -> String {
        match (self.measured[index], self.simulated[index]) {
            (Some(measured), Some(simulated)) => format!("{measured:.1} ({simulated:.1})"),
            (Some(measured), None) => format!("{measured:.1}"),
            (None, _) => "–".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_told_with_its_last_lines_and_its_log() {
        let lines = ["Traceback (most recent call last):", "ValueError: no data"].map(str::to_owned);
        assert_eq!(
            failure_text("ddp: worker-1 ended with 1", Some(Path::new("/w/worker-1.attempt-1.log")), &lines),
            "ddp: worker-1 ended with 1
  | Traceback (most recent call last):
  | ValueError: no data
  its log: /w/worker-1.attempt-1.log
"
        );
        assert_eq!(failure_text("ddp failed", None, &[]), "ddp failed\n");
        assert!(
            failure_text("ddp failed", Some(Path::new("/w/log")), &[])
                .ends_with("its log is empty: /w/log\n")
        );
    }
}
