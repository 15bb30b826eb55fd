//! What `metronome explain` says for every reason in the vocabulary. An engine is brought to where it gives the reason,
//! and the program is asked about its journal. `TRYCMD=overwrite cargo test -p metronome-cli` records the answers anew;
//! read the difference before committing it.

mod scenes;
mod stage;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use metronome_core::model::report::Reason;

use stage::Stage;

/// How an engine is brought to give a reason.
type Scene = fn() -> Stage;

macro_rules! vocabulary {
    ($($reason:ident => $scene:expr,)*) => {
        const SCENES: &[(&str, Option<Scene>)] = &[$((stringify!($reason), $scene),)*];

        /// Exhaustive: whoever adds a reason is asked for its scene, and so for its answer.
        fn listed(reason: &Reason) -> &'static str {
            match reason {
                $(Reason::$reason { .. } => stringify!($reason),)*
            }
        }
    };
}

vocabulary! {
    Gated => Some(scenes::gated),
    ExceedsQuota => Some(scenes::exceeds_quota),
    NoMatchingNode => Some(scenes::no_matching_node),
    WaitingForQuota => Some(scenes::waiting_for_quota),
    InsufficientResources => Some(scenes::insufficient_resources),
    TopologyUnsatisfied => Some(scenes::topology_unsatisfied),
    AffinityUnsatisfied => Some(scenes::affinity_unsatisfied),
    AntiAffinityUnsatisfied => Some(scenes::anti_affinity_unsatisfied),
    SpreadUnsatisfied => Some(scenes::spread_unsatisfied),
    WaitingForVictims => Some(scenes::waiting_for_victims),
    BandwidthContended => Some(scenes::bandwidth_contended),
    BookedFrom => Some(scenes::booked_from),
    DeadlineInfeasible => Some(scenes::deadline_infeasible),
    ReservedUntil => Some(scenes::reserved_until),
    BehindHigherPriority => Some(scenes::behind_higher_priority),
    StartFailed => Some(scenes::start_failed),
    NodeLost => Some(scenes::node_lost),
    Stalled => Some(scenes::stalled),
    TrainingFailed => Some(scenes::training_failed),
    TooManyJobs => Some(scenes::too_many_jobs),
    // No engine gives it: a plan that breaks a rule is a bug, and none is known.
    SchedulerError => None,
}

/// Reasons that are said in two ways: the other one.
const SECOND_SCENES: &[(&str, Scene)] = &[
    ("BandwidthContended-reserved", scenes::bandwidth_reserved),
    ("WaitingForVictims-moved", scenes::waiting_for_those_who_move),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn explain(stage: &Stage) -> String {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal.jsonl");
    fs::write(&journal, stage.journal()).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_metronome"))
        .args(["explain", stage.asked(), "--journal"])
        .arg(&journal)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_reason_is_explained_as_recorded() {
    let overwrites = std::env::var("TRYCMD").is_ok_and(|value| value == "overwrite");
    let scenes = SCENES.iter().filter_map(|(name, scene)| Some((*name, (*scene)?)));
    for (name, scene) in scenes.chain(SECOND_SCENES.iter().copied()) {
        let stage = scene();
        assert_eq!(Some(listed(&stage.reason())), name.split('-').next());
        let file = root().join(format!("crates/cli/tests/reasons/golden/{name}.txt"));
        let said = explain(&stage);
        if overwrites {
            fs::write(&file, &said).unwrap();
        }
        let recorded = fs::read_to_string(&file).unwrap_or_default();
        assert_eq!(said, recorded, "{}", file.display());
    }
}

#[test]
fn every_reason_is_in_the_schema() {
    let schema = fs::read_to_string(root().join("docs/reference/explain.schema.json")).unwrap();
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    let names = schema["properties"]["reason"]["properties"]["name"]["enum"].as_array().unwrap();
    let mut names: Vec<&str> = names.iter().filter_map(|name| name.as_str()).collect();
    let mut listed: Vec<&str> = SCENES.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    listed.sort_unstable();
    assert_eq!(names, listed);
}

#[test]
fn every_reason_has_its_place_in_the_guide() {
    let guide = fs::read_to_string(root().join("docs/guide/troubleshooting.md")).unwrap();
    for (name, _) in SCENES {
        let begin = format!("\n## `{name}`\n");
        let section = guide.split(&begin).nth(1).unwrap_or_else(|| panic!("{name} has no section"));
        let section = section.split("\n## ").next().unwrap();
        for part in ["\n> ", "- *Look at* ", "- *Do:* "] {
            assert!(section.contains(part), "{name} lacks {part:?}");
        }
    }
}
