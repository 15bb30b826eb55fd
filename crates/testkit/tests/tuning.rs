//! Decision records and the tuning table state the same numbers, and every accepted value is one that decisions can use.
//!
//! A record in `docs/design` lists the entries that it sets in a table with the head `| tuning entry | value |`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use metronome_core::model::policy::Policy;
use metronome_core::tuning::{Entry, Origin, Tuning};
use metronome_sim::scenario::Scenario;
use metronome_sim::world::{self, RunOptions};

const HEAD: &str = "| tuning entry | value |";

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// `0008: predictionTolerance = 0.005`, as both sides are compared.
fn statement(number: u16, name: &str, value: &str) -> String {
    format!("{number:04}: {name} = {value}")
}

/// What a record states: the rows of its tables of tuning entries.
fn stated(number: u16, record: &str) -> Vec<String> {
    let mut statements = Vec::new();
    let mut lines = record.lines();
    while lines.any(|line| line == HEAD) {
        assert_eq!(lines.next(), Some("|---|---|"), "decision {number:04}");
        for row in lines.by_ref().take_while(|line| line.starts_with('|')) {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            let ["", name, value, ""] = cells[..] else { panic!("decision {number:04}: `{row}`") };
            statements.push(statement(number, name.trim_matches('`'), value));
        }
    }
    statements
}

fn records() -> Vec<(u16, String)> {
    let files = fs::read_dir(repository().join("docs/design")).unwrap().map(|entry| entry.unwrap().path());
    let number = |path: &Path| path.file_name()?.to_str()?.split_once('-')?.0.parse().ok();
    files.filter_map(|path| Some((number(&path)?, fs::read_to_string(&path).unwrap()))).collect()
}

#[test]
fn decision_records_and_the_tuning_table_state_the_same_values() {
    let stated: Vec<String> = records().iter().flat_map(|(number, record)| stated(*number, record)).collect();
    let entries = Tuning::DEFAULT.entries();
    let set_by_decisions: BTreeSet<String> = entries
        .iter()
        .filter_map(|entry| match entry.origin {
            Origin::Decision(number) => Some(statement(number, &entry.name, &entry.default)),
            _ => None,
        })
        .collect();
    assert_eq!(stated.len(), stated.iter().collect::<BTreeSet<_>>().len(), "an entry is stated once");
    let stated: BTreeSet<String> = stated.into_iter().collect();
    let missing: Vec<&String> = set_by_decisions.difference(&stated).collect();
    let unknown: Vec<&String> = stated.difference(&set_by_decisions).collect();
    assert!(missing.is_empty(), "entries that their decision record does not state: {missing:#?}");
    assert!(unknown.is_empty(), "statements of records that the table contradicts: {unknown:#?}");
}

#[test]
fn a_table_of_tuning_entries_is_read_row_by_row() {
    let record = "# 0008\n\n| tuning entry | value |\n|---|---|\n| `one` | 0.5 |\n| `two` | 30m |\n\ntext\n";
    assert_eq!(stated(8, record), ["0008: one = 0.5", "0008: two = 30m"]);
    assert!(stated(8, "| entry | value |\n|---|---|\n| `one` | 0.5 |\n").is_empty());
}

#[test]
fn every_experiment_that_an_entry_names_exists() {
    for entry in Tuning::DEFAULT.entries() {
        if let Origin::Experiment(name) = entry.origin {
            assert!(repository().join("experiments").join(name).is_dir(), "{}: {name}", entry.name);
        }
    }
}

/// Simulates an example under `metronome` with one entry at a value.
fn simulate(example: &Scenario, entry: &Entry, value: &str) {
    let mut tuning = Tuning::DEFAULT;
    tuning.set(&entry.name, value).unwrap();
    // A weight alone breaks the sum of weights: then the table is refused, and there is nothing to simulate.
    let Ok(policy) = Policy::named("metronome").unwrap().tuned(tuning) else { return };
    let outcome = world::run(example, RunOptions::new(policy), &|_| {});
    assert_eq!(outcome.last_alarm, None, "{} = {value}", entry.name);
}

#[test]
fn every_entry_at_either_end_of_its_range_gives_decisions_that_the_checker_accepts() {
    let examples = ["shared-uplink", "small-lab"].map(|name| {
        Scenario::read(&repository().join(format!("examples/{name}.yaml"))).expect("an example is sound")
    });
    for entry in Tuning::DEFAULT.entries() {
        for example in &examples {
            simulate(example, &entry, &entry.least);
            simulate(example, &entry, &entry.most);
        }
    }
}

#[test]
fn an_overridden_entry_changes_a_decision_and_is_recorded_with_the_policy() {
    let example = Scenario::read(&repository().join("examples/two-jobs.yaml")).unwrap();
    let under = |policy: Policy| world::run(&example, RunOptions::new(policy), &|_| {}).lane_changes;
    let mut tuning = Tuning::DEFAULT;
    tuning.set("predictionTolerance", "1").unwrap();
    let tolerant = Policy::named("metronome").unwrap().tuned(tuning).unwrap();
    let written = serde_json::to_string(&tolerant).unwrap();
    assert!(written.ends_with(r#""tuning":{"predictionTolerance":"1"}}"#), "{written}");
    assert_eq!(serde_json::from_str::<Policy>(&written).unwrap(), tolerant);
    assert_eq!(under(tolerant), 0, "a loss of less than an iteration is a tie");
    assert!(under(Policy::named("metronome").unwrap()) > 0);
}
