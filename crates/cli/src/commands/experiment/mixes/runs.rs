//! Runs as they are kept: a file for each set of mixes, in which every run is a line that is written when it is over.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::definition::Set;
use crate::failure::Failure;
use crate::input;

/// A line of the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Line {
    Run(Run),
    Calibration(Calibration),
}

/// One run of a mix under one policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Run {
    pub(super) mix: String,
    pub(super) start: u64,
    /// `separate` for the run in which every job has links of its own.
    pub(super) policy: String,
    /// Fingerprints of the mix's definition and of the program `metronome`.
    pub(super) definition: String,
    pub(super) build: String,
    /// Why it is no result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) failed: Option<String>,
    pub(super) seconds: f64,
    /// The part of the machine's processor time that was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) busy: Option<f64>,
    pub(super) jobs: Vec<JobRun>,
}

/// One job of a run. Times are milliseconds since the first job of the run began to train.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct JobRun {
    pub(super) job: String,
    /// How long it waited before its first iteration.
    pub(super) delay_ms: f64,
    /// The beginning of the first iteration, then the end of each.
    pub(super) times: Vec<f64>,
    pub(super) facts: Option<Facts>,
    /// When the first profile was reported that decisions were made with.
    pub(super) first_used_at: Option<f64>,
    pub(super) first_used: Option<Value>,
    pub(super) learned: Option<Value>,
    /// Traffic directives with their times; none where the job shares its links fairly from then on.
    pub(super) directives: Vec<(f64, Option<Value>)>,
}

/// What the program says of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Facts {
    pub(super) torch: String,
    pub(super) members: u32,
    pub(super) nodes: u32,
    pub(super) threads: u32,
    pub(super) batch: u64,
    /// Of all gradients.
    pub(super) bytes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) r#loop: Option<Loop>,
}

/// An iteration as it was traced: what the simulator trains in its place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Loop {
    pub(super) compute_ms: f64,
    pub(super) finish_ms: f64,
    /// When each bucket is ready, and its bytes.
    pub(super) buckets: Vec<(f64, u64)>,
}

/// The batches with which the models of a mix compute for as long as its definition says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Calibration {
    pub(super) mix: String,
    pub(super) definition: String,
    /// By place of the job.
    pub(super) batches: BTreeMap<usize, u64>,
}

/// What is known of a set.
#[derive(Debug)]
pub(super) struct Known {
    file: PathBuf,
    pub(super) runs: Vec<Run>,
    calibrations: Vec<Calibration>,
}

impl Known {
    /// Reads what earlier commands have left. A line that a crash has cut is skipped; runs of an earlier definition are, too.
    pub(super) fn read(folder: &Path, set: &Set) -> Result<Self, Failure> {
        let file = folder.join("runs").join(format!("{}.jsonl", set.name));
        let text = match fs::read_to_string(&file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Failure::world(format!("read {}", file.display())).because(&error));
            }
            text => text.unwrap_or_default(),
        };
        let mut known = Self { file, runs: Vec::new(), calibrations: Vec::new() };
        let current = |mix: &str, definition: &str| {
            set.mixes.iter().any(|own| own.name == mix && set.fingerprint(own) == definition)
        };
        for line in text.lines().filter_map(|line| serde_json::from_str(line).ok()) {
            match line {
                Line::Run(run) if current(&run.mix, &run.definition) => known.runs.push(run),
                Line::Calibration(of) if current(&of.mix, &of.definition) => known.calibrations.push(of),
                Line::Run(_) | Line::Calibration(_) => {}
            }
        }
        Ok(known)
    }

    /// Writes it down before anything else happens: a crash loses at most the run under way.
    pub(super) fn add(&mut self, line: Line) -> Result<(), Failure> {
        let cannot = |error: &std::io::Error| input::cannot_write(&self.file, error);
        fs::create_dir_all(self.file.parent().unwrap_or(Path::new(""))).map_err(|error| cannot(&error))?;
        let mut file = OpenOptions::new()
            .create(true)
            .read(true)
            .append(true)
            .open(&self.file)
            .map_err(|error| cannot(&error))?;
        // What a crash has cut ends in the middle of a line.
        let end = if ends_a_line(&self.file) { "" } else { "\n" };
        let text = serde_json::to_string(&line).expect("figures are numbers, names are text");
        file.write_all(format!("{end}{text}\n").as_bytes())
            .and_then(|()| file.sync_data())
            .map_err(|error| cannot(&error))?;
        match line {
            Line::Run(run) => self.runs.push(run),
            Line::Calibration(calibration) => self.calibrations.push(calibration),
        }
        Ok(())
    }

    /// The result of a run; a failed one is none.
    pub(super) fn result(&self, mix: &str, start: u64, policy: &str) -> Option<&Run> {
        let same = |run: &&Run| run.mix == mix && run.start == start && run.policy == policy;
        self.runs.iter().rev().filter(same).find(|run| run.failed.is_none())
    }

    pub(super) fn batches(&self, mix: &str) -> Option<&BTreeMap<usize, u64>> {
        self.calibrations.iter().rev().find(|of| of.mix == mix).map(|of| &of.batches)
    }
}

fn ends_a_line(file: &Path) -> bool {
    fs::read(file).map_or(true, |bytes| bytes.last().is_none_or(|last| *last == b'\n'))
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::definition::tests::mixes;
    use super::*;

    pub(in super::super) fn run(mix: &str, start: u64, policy: &str) -> Run {
        let mixes = mixes();
        let set = &mixes.sets[0];
        let own = set.mixes.iter().find(|own| own.name == mix).unwrap();
        Run {
            mix: mix.into(),
            start,
            policy: policy.into(),
            definition: set.fingerprint(own),
            build: "b".into(),
            failed: None,
            seconds: 1.0,
            busy: None,
            jobs: Vec::new(),
        }
    }

    #[test]
    fn runs_are_kept_over_a_crash_and_a_cut_line_is_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let mixes = mixes();
        let set = &mixes.sets[0];
        let mut known = Known::read(folder.path(), set).unwrap();
        known.add(Line::Run(run("twins", 1, "fair"))).unwrap();
        let file = folder.path().join("runs/small.jsonl");
        let whole = fs::read_to_string(&file).unwrap();
        fs::write(&file, format!("{whole}{}", &whole[..40])).unwrap();
        let mut known = Known::read(folder.path(), set).unwrap();
        assert_eq!(known.runs.len(), 1);
        let failed = Run { failed: Some("it took too long".into()), ..run("twins", 1, "shift") };
        known.add(Line::Run(failed)).unwrap();
        known.add(Line::Run(run("crowd", 2, "fair"))).unwrap();
        let known = Known::read(folder.path(), set).unwrap();
        assert_eq!(known.runs.len(), 3);
        assert!(known.result("twins", 1, "fair").is_some() && known.result("crowd", 2, "fair").is_some());
        assert!(known.result("twins", 1, "shift").is_none(), "a failed run is no result");
    }

    #[test]
    fn runs_of_an_earlier_definition_do_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let mixes = mixes();
        let set = &mixes.sets[0];
        let mut known = Known::read(folder.path(), set).unwrap();
        known.add(Line::Run(Run { definition: "old".into(), ..run("twins", 1, "fair") })).unwrap();
        let of = |definition: String, batch| {
            Line::Calibration(Calibration {
                mix: "crowd".into(),
                definition,
                batches: BTreeMap::from([(0, batch)]),
            })
        };
        known.add(of(set.fingerprint(&set.mixes[1]), 24)).unwrap();
        known.add(of("old".into(), 48)).unwrap();
        let known = Known::read(folder.path(), set).unwrap();
        assert!(known.runs.is_empty());
        assert_eq!(known.batches("crowd"), Some(&BTreeMap::from([(0, 24)])));
    }
}
