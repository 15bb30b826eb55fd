//! Experiments about what the agent learns of jobs on this machine, beside what their trainers did in fact.
//!
//! What is measured are times on a clock, so runs may be done one by one: results of those that are not run again stay.

mod truth;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use metronome_agent::profile::Sending;
use metronome_core::model::profile::{Phase, Traffic};
use metronome_core::model::units::{Bandwidth, Duration};
use metronome_local::state::WorldFolder;
use metronome_local::world::JobOutcome;
use metronome_sim::scenario::Scenario;
use metronome_trainer::Notes;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::real::{check_rights, markdown, rounded};
use super::{Experiment, Written, name};
use crate::commands::local_run;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::local::Asked;
use crate::reply::Reply;
use crate::table;
use truth::Truth;

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Profiles {
    #[serde(rename = "version")]
    _version: u32,
    profiles: Vec<Case>,
    scale: u64,
    /// How far a period that was learned may be from the true one, as a share of it.
    period_within: f64,
    /// How far all but two percent of the bytes may lie from where they were sent, as a share of the period.
    bytes_within: f64,
}

/// One run: a scenario file in which some texts are taken for others.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    file: String,
    with: BTreeMap<String, String>,
}

/// Jobs share links as they like: nothing is to keep them apart while they contend.
const POLICY: &str = "fair";

impl Profiles {
    /// None where a definition is about something else.
    pub(super) fn parse(text: &str) -> Option<Result<Self, serde_json::Error>> {
        let document: Value = serde_json::from_str(text).ok()?;
        document.get("profiles").is_some().then(|| serde_json::from_value(document))
    }

    fn is_met(&self, row: &Row) -> bool {
        row.learned.as_ref().is_some_and(|learned| {
            row.period_error().is_some_and(|error| error.abs() <= self.period_within)
                && learned.displaced <= self.bytes_within
        })
    }

    fn words(&self, rows: &[Row]) -> String {
        let met = rows.iter().filter(|row| self.is_met(row)).count();
        let missing =
            self.profiles.iter().filter(|case| rows.iter().all(|row| row.case != case.name)).count();
        let not_run = if missing > 0 { format!("{missing} runs are missing\n") } else { String::new() };
        format!(
            "{met} of {} profiles are learned: periods within {} % and bytes within {} % of the period\n{not_run}",
            rows.len(),
            self.period_within * 100.0,
            self.bytes_within * 100.0
        )
    }

    fn are_all_met(&self, rows: &[Row]) -> bool {
        let of = |case: &Case| rows.iter().filter(|row| row.case == case.name).count();
        rows.iter().all(|row| self.is_met(row)) && self.profiles.iter().all(|case| of(case) > 0)
    }
}

/// One job of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    case: String,
    job: String,
    /// The mean time of an iteration, in milliseconds, while it was learned; of all, where nothing was.
    period_ms: f64,
    learned: Option<Learned>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Learned {
    period_ms: f64,
    /// How far bytes lie from where they were sent, over the period.
    displaced: f64,
    phases: usize,
    iterations: u64,
    confidence: f64,
}

impl Row {
    fn period_error(&self) -> Option<f64> {
        self.learned.as_ref().map(|learned| learned.period_ms / self.period_ms - 1.0)
    }
}

pub(super) fn run(args: &Experiment, profiles: &Profiles) -> Result<Reply, Failure> {
    check_rights()?;
    let asked = asked_for(&profiles.profiles, &args.only)?;
    let mut rows = rows_there_are(&args.folder);
    for case in asked {
        let scenario = Scenario::read_varied(&args.folder.join(&case.file), &case.with)?;
        rows.retain(|row| row.case != case.name);
        rows.extend(measure(profiles, case, &scenario, args.seeds.unwrap_or(1))?);
    }
    let rows = in_order(&profiles.profiles, &rows);
    write(&args.folder, profiles, &rows)?;
    let reply = Reply::text(format!("{}\n{}", table::plain(&cells(&rows)), profiles.words(&rows)));
    Ok(if profiles.are_all_met(&rows) { reply } else { reply.ending(Exit::FellShort) })
}

/// All, where none is named.
fn asked_for<'a>(all: &'a [Case], only: &[String]) -> Result<Vec<&'a Case>, Failure> {
    if only.is_empty() {
        return Ok(all.iter().collect());
    }
    let find = |name: &String| {
        let unknown = || {
            let known: Vec<&str> = all.iter().map(|case| case.name.as_str()).collect();
            Failure::input(format!("run `{name}`: there is no such run"))
                .hint(format!("there are {}", known.join(", ")))
        };
        all.iter().find(|case| case.name == *name).ok_or_else(unknown)
    };
    only.iter().map(find).collect()
}

/// What earlier runs have left; nothing, if that cannot be read.
fn rows_there_are(folder: &Path) -> Vec<Row> {
    let results = std::fs::read_to_string(folder.join("results.json")).unwrap_or_default();
    serde_json::from_str(&results).map_or_else(|_| Vec::new(), |results: Results| results.profiles)
}

fn in_order(cases: &[Case], rows: &[Row]) -> Vec<Row> {
    cases.iter().flat_map(|case| rows.iter().filter(|row| row.case == case.name).cloned()).collect()
}

fn measure(profiles: &Profiles, case: &Case, scenario: &Scenario, seed: u64) -> Result<Vec<Row>, Failure> {
    let asked = Asked {
        world: "profiles".into(),
        root: WorldFolder::usual_root(),
        scale: profiles.scale,
        seed,
        notes: Notes::Bytes,
    };
    let run = local_run::measure(scenario, POLICY, &asked, None, &AtomicBool::new(false))?;
    let during = if run.outcome.jobs.len() > 1 { "contending" } else { "alone" };
    let jobs = run.outcome.jobs.iter().zip(&run.records);
    jobs.map(|(job, record)| Ok(row(case, job, during, &Truth::read(record)?))).collect()
}

fn row(case: &Case, job: &JobOutcome, during: &str, truth: &Truth) -> Row {
    // What was learned after the other had left says nothing of the time beside it.
    let said = job.learned.as_ref().filter(|said| said["while"] == during);
    let seen = said.and_then(|said| Some([said["from_ns"].as_u64()?, said["until_ns"].as_u64()?]));
    let stretch = truth.between(seen.unwrap_or([0, u64::MAX]));
    let learned = said.zip(stretch.as_ref()).and_then(|(said, stretch)| {
        let traffic = traffic(said)?;
        Some(Learned {
            period_ms: rounded(traffic.period().0 as f64 / 1e6),
            displaced: rounded(stretch.sending.displacement(&Sending::of(&traffic))),
            phases: traffic.phases().len(),
            iterations: said["iterations"].as_u64()?,
            confidence: rounded(said["confidence"].as_f64()?),
        })
    });
    let period_ms = stretch.map_or(0.0, |stretch| rounded(stretch.period / 1e6));
    Row { case: case.name.clone(), job: job.name.clone(), period_ms, learned }
}

/// As the agent says it.
fn traffic(said: &Value) -> Option<Traffic> {
    let phase = |phase: &Value| {
        Some(Phase {
            offset: Duration(phase["offset_ns"].as_u64()?),
            length: Duration(phase["length_ns"].as_u64()?),
            rate: Bandwidth(phase["rate_bps"].as_u64()?),
        })
    };
    let phases: Option<Vec<Phase>> = said["phases"].as_array()?.iter().map(phase).collect();
    Traffic::new(Duration(said["period_ns"].as_u64()?), phases?).ok()
}

fn cells(rows: &[Row]) -> Vec<Vec<String>> {
    let head = ["run", "job", "period ms", "learned ms", "error", "bytes off", "iterations", "confidence"];
    let row = |row: &Row| {
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
        let learned = |of: fn(&Learned) -> String| or_none(row.learned.as_ref().map(of));
        vec![
            row.case.clone(),
            row.job.clone(),
            format!("{:.2}", row.period_ms),
            learned(|learned| format!("{:.2}", learned.period_ms)),
            or_none(row.period_error().map(|error| format!("{:+.2} %", error * 100.0))),
            learned(|learned| format!("{:.1} %", learned.displaced * 100.0)),
            learned(|learned| learned.iterations.to_string()),
            learned(|learned| format!("{:.2}", learned.confidence)),
        ]
    };
    [head.map(str::to_owned).to_vec()].into_iter().chain(rows.iter().map(row)).collect()
}

/// What is committed of the answer.
#[derive(Serialize, Deserialize)]
struct Results {
    version: u32,
    experiment: String,
    scale: u64,
    profiles: Vec<Row>,
    met: usize,
}

fn write(folder: &Path, profiles: &Profiles, rows: &[Row]) -> Result<(), Failure> {
    let results = Results {
        version: 1,
        experiment: name(folder),
        scale: profiles.scale,
        profiles: rows.to_vec(),
        met: rows.iter().filter(|row| profiles.is_met(row)).count(),
    };
    let words = profiles.words(rows).trim_end().replace('\n', "  \n");
    let table = markdown(&cells(rows), "|---|---|---:|---:|---:|---:|---:|---:|");
    let written = Written {
        results: serde_json::to_string_pretty(&results).expect("figures are numbers, names are text") + "\n",
        charts: Vec::new(),
        markdown: format!("{words}\n\n{table}"),
    };
    written.put_into(folder)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const DEFINITION: &str = r#"{"version": 1, "scale": 500, "periodWithin": 0.01, "bytesWithin": 0.05, "profiles": [
        {"name": "a", "file": "alone.yaml", "with": {}}, {"name": "b", "file": "alone.yaml", "with": {}}]}"#;

    fn profiles() -> Profiles {
        Profiles::parse(DEFINITION).unwrap().unwrap()
    }

    fn learned(case: &str, period_ms: f64, displaced: f64) -> Row {
        let learned = Learned { period_ms, displaced, phases: 1, iterations: 50, confidence: 0.9 };
        Row { case: case.into(), job: "job".into(), period_ms: 100.0, learned: Some(learned) }
    }

    #[test]
    fn a_profile_counts_when_its_period_and_its_bytes_are_near() {
        let profiles = profiles();
        assert!(profiles.is_met(&learned("a", 100.9, 0.05)));
        assert!(!profiles.is_met(&learned("a", 98.9, 0.01)));
        assert!(!profiles.is_met(&learned("a", 100.0, 0.052)));
        assert!(!profiles.is_met(&Row { learned: None, ..learned("a", 100.0, 0.0) }));
    }

    #[test]
    fn what_is_not_run_again_stays_and_what_was_never_run_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let profiles = profiles();
        write(folder.path(), &profiles, &[learned("b", 100.0, 0.01)]).unwrap();
        let mut rows = rows_there_are(folder.path());
        assert_eq!(rows, [learned("b", 100.0, 0.01)]);
        assert!(profiles.words(&rows).ends_with("1 runs are missing\n") && !profiles.are_all_met(&rows));
        rows.push(learned("a", 100.0, 0.01));
        let rows = in_order(&profiles.profiles, &rows);
        assert_eq!(rows[0].case, "a");
        assert!(profiles.are_all_met(&rows));
    }

    #[test]
    fn a_run_that_there_is_not_is_wrong_use() {
        let profiles = profiles();
        assert_eq!(asked_for(&profiles.profiles, &[]).unwrap().len(), 2);
        assert_eq!(asked_for(&profiles.profiles, &["b".into()]).unwrap()[0].name, "b");
        assert_eq!(asked_for(&profiles.profiles, &["c".into()]).unwrap_err().tell(), Exit::WrongUse);
    }

    #[test]
    fn thirteen_models_are_learned_alone_and_beside_another() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/learned-profiles");
        let text = std::fs::read_to_string(folder.join("experiment.json")).unwrap();
        let (mut alone, mut beside) = (BTreeSet::new(), BTreeSet::new());
        for case in Profiles::parse(&text).unwrap().unwrap().profiles {
            let scenario = Scenario::read_varied(&folder.join(&case.file), &case.with).unwrap();
            let names = scenario.arrivals(1).into_iter().map(|arrival| arrival.spec.name.to_string());
            if scenario.job_count() == 1 { alone.extend(names) } else { beside.extend(names) }
        }
        assert_eq!((alone.len(), &alone), (13, &beside));
    }

    #[test]
    fn other_definitions_are_left_to_others() {
        assert!(Profiles::parse(r#"{"version": 1, "local": []}"#).is_none());
        assert!(Profiles::parse(r#"{"version": 1, "profiles": 3}"#).unwrap().is_err());
    }
}
