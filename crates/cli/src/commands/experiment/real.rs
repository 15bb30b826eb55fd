//! Experiments with real processes on this machine, beside what the simulator says of the same files.
//!
//! Iteration times are wall-clock times, so two runs never give the same results to the digit: what is committed is one run.

use std::fmt::Write;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use metronome_core::model::units::Duration;
use metronome_local::rights::Rights;
use metronome_local::state::WorldFolder;
use metronome_sim::experiment::{Point, scatter, with_results};
use metronome_sim::scenario::{Scenario, Source};
use metronome_trainer::Notes;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Experiment, name};
use crate::commands::local_run::{self, Measured};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::local::Asked;
use crate::reply::Reply;
use crate::table;

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Real {
    #[serde(rename = "version")]
    _version: u32,
    /// Scenario files, each run under every policy.
    local: Vec<String>,
    scale: u64,
    /// How often each is run, with other starts and other noise: how bursts of jobs with equal periods meet is a matter of
    /// chance, and lasts.
    runs: u64,
    policies: Vec<String>,
    /// The one of them that has to gain something.
    ours: String,
    /// How far a mean iteration time may be from the simulated one, as a share.
    within: f64,
    /// The part of all means that has to be so near.
    part_within: f64,
    /// The most that iterations may take under ours, on average over jobs, relative to `fair`.
    against_fair: f64,
}

impl Real {
    /// None where a definition is about something else.
    pub(super) fn parse(text: &str) -> Option<Result<Self, serde_json::Error>> {
        let document: Value = serde_json::from_str(text).ok()?;
        document.get("local").is_some().then(|| serde_json::from_value(document))
    }
}

/// A mean iteration time of one job, in milliseconds.
struct Cell {
    scenario: String,
    policy: String,
    job: String,
    measured: f64,
    simulated: f64,
}

impl Cell {
    fn error(&self) -> f64 {
        self.measured / self.simulated - 1.0
    }
}

pub(super) fn run(args: &Experiment, real: &Real) -> Result<Reply, Failure> {
    check_rights()?;
    let mut cells = Vec::new();
    for file in &real.local {
        let scenario = Scenario::read(&args.folder.join(file))?;
        for policy in &real.policies {
            let runs = (1..=args.seeds.unwrap_or(real.runs)).map(|run| measure(real, &scenario, policy, run));
            cells.extend(means(runs.collect::<Result<_, _>>()?));
        }
    }
    let verdict = Verdict::of(real, &cells);
    write(&args.folder, real, &cells, &verdict)?;
    let reply = Reply::text(format!("{}\n{}", table::plain(&rows(&cells)), verdict.words()));
    Ok(if verdict.is_met() { reply } else { reply.ending(Exit::FellShort) })
}

pub(super) fn check_rights() -> Result<(), Failure> {
    let cannot = || {
        Failure::world("make hosts and links on this machine")
            .hint("it takes root, iproute2, and a kernel with network namespaces and HTB")
    };
    if Rights::look().network { Ok(()) } else { Err(cannot()) }
}

fn measure(real: &Real, scenario: &Scenario, policy: &str, run: u64) -> Result<Vec<Cell>, Failure> {
    let asked = Asked {
        world: "experiment".into(),
        root: WorldFolder::usual_root(),
        scale: real.scale,
        seed: run,
        notes: Notes::default(),
    };
    let scenario = &started_otherwise(scenario, run);
    let run = local_run::measure(scenario, policy, &asked, None, &AtomicBool::new(false))?;
    let Measured { outcome, measured, simulated, .. } = run;
    let times = measured.into_iter().zip(simulated);
    let cell = |(job, (measured, simulated)): (&metronome_local::world::JobOutcome, _)| {
        let (measured, simulated): (Option<f64>, Option<f64>) = (measured, simulated);
        let (scenario, policy) = (scenario.name.clone(), policy.to_owned());
        Some(Cell { scenario, policy, job: job.name.clone(), measured: measured?, simulated: simulated? })
    };
    Ok(outcome.jobs.iter().zip(times).filter_map(cell).collect())
}

/// About a third of the usual period.
const LATER: Duration = Duration::from_millis(40);

/// The same jobs; with every run each begins a little later after the one before it.
fn started_otherwise(scenario: &Scenario, run: u64) -> Scenario {
    let mut arrivals = scenario.arrivals(run);
    for (place, arrival) in arrivals.iter_mut().enumerate() {
        arrival.at = arrival.at + LATER.times((run - 1) * place as u64);
    }
    Scenario { sources: vec![Source::Listed(arrivals)], ..scenario.clone() }
}

/// Of runs of one scenario under one policy, the mean of each job.
fn means(runs: Vec<Vec<Cell>>) -> Vec<Cell> {
    let count = runs.len() as f64;
    let add = |mut sums: Vec<Cell>, run: Vec<Cell>| {
        for (sum, cell) in sums.iter_mut().zip(run) {
            sum.measured += cell.measured;
            sum.simulated += cell.simulated;
        }
        sums
    };
    let mut sums = runs.into_iter().reduce(add).unwrap_or_default();
    for sum in &mut sums {
        sum.measured /= count;
        sum.simulated /= count;
    }
    sums
}

/// What came out beside what was asked for.
struct Verdict {
    cells: usize,
    near: usize,
    within: f64,
    part_within: f64,
    /// Iteration times under each policy over those under `fair`, on average: measured and simulated.
    over_fair: Vec<(String, f64, f64)>,
    against_fair: f64,
    ours: String,
}

impl Verdict {
    fn of(real: &Real, cells: &[Cell]) -> Self {
        let near = cells.iter().filter(|cell| cell.error().abs() <= real.within).count();
        let policies = real.policies.iter().filter(|policy| *policy != "fair");
        let over_fair = policies.map(|policy| {
            let [measured, simulated] = over_fair(cells, policy);
            (policy.clone(), measured, simulated)
        });
        Self {
            cells: cells.len(),
            near,
            within: real.within,
            part_within: real.part_within,
            over_fair: over_fair.collect(),
            against_fair: real.against_fair,
            ours: real.ours.clone(),
        }
    }

    fn is_met(&self) -> bool {
        let ours = self.over_fair.iter().find(|(policy, ..)| *policy == self.ours);
        self.near as f64 >= self.part_within * self.cells as f64
            && ours.is_none_or(|(_, measured, _)| *measured <= self.against_fair)
    }

    fn words(&self) -> String {
        let mut text = format!(
            "{} of {} mean iteration times are within {:.0} % of the simulated ones (asked for: {:.0} %)\n",
            self.near,
            self.cells,
            self.within * 100.0,
            self.part_within * 100.0
        );
        for (policy, measured, simulated) in &self.over_fair {
            writeln!(text, "under {policy} iterations take {measured:.3} of what they take under fair (simulated: {simulated:.3})")
                .expect("a string takes everything");
        }
        text
    }
}

/// The mean over jobs of iteration times under a policy over those under `fair`: measured and simulated.
fn over_fair(cells: &[Cell], policy: &str) -> [f64; 2] {
    let own = cells.iter().filter(|cell| cell.policy == policy);
    let ratios: Vec<[f64; 2]> = own
        .filter_map(|cell| {
            let same = |other: &&Cell| {
                other.policy == "fair" && (&other.scenario, &other.job) == (&cell.scenario, &cell.job)
            };
            let fair = cells.iter().find(same)?;
            Some([cell.measured / fair.measured, cell.simulated / fair.simulated])
        })
        .collect();
    let count = ratios.len().max(1) as f64;
    [0, 1].map(|at| ratios.iter().map(|ratio| ratio[at]).sum::<f64>() / count)
}

fn rows(cells: &[Cell]) -> Vec<Vec<String>> {
    let head =
        ["scenario", "policy", "job", "measured ms", "simulated ms", "error"].map(str::to_owned).to_vec();
    let row = |cell: &Cell| {
        vec![
            cell.scenario.clone(),
            cell.policy.clone(),
            cell.job.clone(),
            format!("{:.1}", cell.measured),
            format!("{:.1}", cell.simulated),
            format!("{:+.1} %", cell.error() * 100.0),
        ]
    };
    [head].into_iter().chain(cells.iter().map(row)).collect()
}

fn write(folder: &Path, real: &Real, cells: &[Cell], verdict: &Verdict) -> Result<(), Failure> {
    let point = |cell: &Cell| Point {
        policy: cell.policy.clone(),
        predicted: cell.simulated,
        measured: cell.measured,
    };
    let points: Vec<Point> = cells.iter().map(point).collect();
    let picture = scatter(
        "Mean iteration times, in milliseconds",
        ["simulated", "measured on real TCP"],
        real.within,
        &points,
    );
    let document = json!({
        "version": 1,
        "experiment": name(folder),
        "scale": real.scale,
        "cells": cells.iter().map(|cell| json!({
            "scenario": cell.scenario,
            "policy": cell.policy,
            "job": cell.job,
            "measuredMs": rounded(cell.measured),
            "simulatedMs": rounded(cell.simulated),
        })).collect::<Vec<_>>(),
        "near": verdict.near,
        "overFair": verdict.over_fair.iter().map(|(policy, measured, simulated)| json!({
            "policy": policy,
            "measured": rounded(*measured),
            "simulated": rounded(*simulated),
        })).collect::<Vec<_>>(),
    });
    let results =
        serde_json::to_string_pretty(&document).expect("figures are numbers, names are text") + "\n";
    put(folder, "results.json", &results)?;
    put(folder, "simulated-measured.svg", &picture)?;
    let readme = folder.join("README.md");
    let before = std::fs::read_to_string(&readme).unwrap_or_default();
    let table = markdown(&rows(cells), "|---|---|---|---:|---:|---:|");
    let text = format!("{}\n\n{table}", verdict.words().trim_end().replace('\n', "  \n"));
    match with_results(&before, &text) {
        Some(after) => put(folder, "README.md", &after),
        None => Ok(()),
    }
}

pub(super) fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

/// A table whose second line says how its columns are aligned.
pub(super) fn markdown(rows: &[Vec<String>], aligned: &str) -> String {
    let line = |row: &Vec<String>| format!("| {} |\n", row.join(" | "));
    let mut text = line(&rows[0]);
    text += aligned;
    text.push('\n');
    rows[1..].iter().for_each(|row| text += &line(row));
    text.trim_end().to_owned()
}

fn put(folder: &Path, file: &str, text: &str) -> Result<(), Failure> {
    let path = folder.join(file);
    std::fs::write(&path, text).map_err(|error| crate::input::cannot_write(&path, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(policy: &str, job: &str, measured: f64, simulated: f64) -> Cell {
        Cell { scenario: "s".into(), policy: policy.into(), job: job.into(), measured, simulated }
    }

    #[test]
    fn means_are_judged_by_how_near_they_are_and_by_what_is_gained() {
        let text = r#"{"version": 1, "local": [], "scale": 500, "runs": 3, "policies": ["fair", "metronome"], "ours": "metronome",
            "within": 0.05, "partWithin": 0.7, "againstFair": 0.9}"#;
        let real = Real::parse(text).unwrap().unwrap();
        let cells = [
            cell("fair", "a", 104.0, 100.0),
            cell("fair", "b", 110.0, 100.0),
            cell("metronome", "a", 83.2, 80.0),
            cell("metronome", "b", 88.0, 90.0),
        ];
        let verdict = Verdict::of(&real, &cells);
        assert_eq!((verdict.near, verdict.cells), (3, 4));
        let (_, measured, simulated) = &verdict.over_fair[0];
        assert!((measured - 0.8).abs() < 1e-9 && (simulated - 0.85).abs() < 1e-9);
        assert!(verdict.is_met());
        assert!(!Verdict { part_within: 0.8, ..Verdict::of(&real, &cells) }.is_met());
        assert!(!Verdict { against_fair: 0.79, ..Verdict::of(&real, &cells) }.is_met());
    }

    #[test]
    fn runs_are_averaged_job_by_job() {
        let run =
            |first: f64, second: f64| vec![cell("fair", "a", first, 10.0), cell("fair", "b", second, 30.0)];
        let cells = means(vec![run(10.0, 20.0), run(14.0, 40.0)]);
        let figures: Vec<[f64; 2]> = cells.iter().map(|cell| [cell.measured, cell.simulated]).collect();
        assert_eq!(figures, [[12.0, 10.0], [30.0, 30.0]]);
    }

    #[test]
    fn other_definitions_are_left_to_others() {
        assert!(Real::parse(r#"{"version": 1, "scenarios": []}"#).is_none());
        assert!(Real::parse(r#"{"version": 1, "local": 3}"#).unwrap().is_err());
    }
}
