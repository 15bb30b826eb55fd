//! The experiment with PyTorch: every run is kept, and the same command goes on with the missing ones.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::ground::{Ground, PROGRAM};
use crate::pytorch::{PYTHON, ground};

/// Two sleeping jobs, and two whose program does not know an option.
const DEFINITION: &str = r#"{"version": 1, "program": "train.py", "ours": "metronome",
    "bars": {"contended": 1.1, "sameModel": 0.5, "differentModels": 0.25, "mostSlowdown": 1.02, "simulatedWithin": 0.05},
    "sets": [{"name": "small", "linkGbps": 100, "scale": 500, "policies": ["fair", "metronome"], "starts": 1,
        "limitSeconds": 90, "mixes": [
        {"name": "twins", "models": "same", "shares": "nodes", "jobs": [
            {"model": "sleep", "iterations": 8, "aloneMs": 60, "options": ["--compute-ms", "50", "--megabytes", "0.5"]},
            {"model": "sleep", "iterations": 8, "aloneMs": 60, "options": ["--compute-ms", "50", "--megabytes", "0.5"]}]},
        {"name": "broken", "models": "same", "shares": "racks", "jobs": [
            {"model": "sleep", "iterations": 8, "aloneMs": 60, "options": ["--nonsense"]},
            {"model": "sleep", "iterations": 8, "aloneMs": 60, "options": ["--nonsense"]}]}]}]}"#;

fn experiment(ground: &Ground) {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/pytorch");
    for entry in fs::read_dir(programs).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.extension().is_some_and(|end| end == "py") {
            fs::copy(&entry, ground.folder.path().join(entry.file_name().unwrap())).unwrap();
        }
    }
    fs::write(ground.folder.path().join("experiment.json"), DEFINITION).unwrap();
}

fn start(ground: &Ground) -> Child {
    let out = fs::File::create(ground.folder.path().join("out")).unwrap();
    let said = fs::File::options().create(true).append(true).open(ground.folder.path().join("err")).unwrap();
    Command::new(PROGRAM)
        .arg("experiment")
        .arg(ground.folder.path())
        .args(["--set", "small", "--python", PYTHON])
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(said)
        .spawn()
        .unwrap()
}

/// Mix, policy and failure of every run, in the order in which they ended.
fn runs(ground: &Ground) -> Vec<[String; 3]> {
    let text = fs::read_to_string(ground.folder.path().join("runs/small.jsonl")).unwrap_or_default();
    let run = |line: &str| {
        let line: Value = serde_json::from_str(line).ok()?;
        let of = |field: &str| line["run"][field].as_str().unwrap_or_default().to_owned();
        Some([of("mix"), of("policy"), of("failed")])
    };
    text.lines().filter_map(run).collect()
}

#[test]
fn an_interrupted_experiment_goes_on_where_it_was_and_failed_runs_are_no_results() {
    let Some(ground) = ground() else { return };
    experiment(&ground);
    let mut interrupted = start(&ground);
    ground.wait_until(|| !runs(&ground).is_empty());
    let told = Command::new("kill").args(["-INT", &interrupted.id().to_string()]).status().unwrap();
    assert!(told.success());
    assert_eq!(ground.finish(&mut interrupted).code, Some(1), "{}", ground.said());
    let kept = runs(&ground);
    assert_eq!(kept[0], ["twins", "separate", ""], "{}", ground.said());
    assert!(kept.len() <= 2, "it ends at once: {kept:?}");

    assert_eq!(ground.finish(&mut start(&ground)).code, Some(1), "{}", ground.said());
    let all = runs(&ground);
    assert_eq!(all[..kept.len()], kept);
    let of = |mix: &str| all.iter().filter(|run| run[0] == mix).cloned().collect::<Vec<_>>();
    assert_eq!(of("twins"), [["twins", "separate", ""], ["twins", "fair", ""], ["twins", "metronome", ""]]);
    let broken = of("broken");
    assert_eq!(broken.len(), 3);
    assert!(broken.iter().all(|[_, _, failed]| failed.ends_with("ended with 2")), "{broken:?}");

    let results = fs::read_to_string(ground.folder.path().join("results.json")).unwrap();
    let results: Value = serde_json::from_str(&results).unwrap();
    let mixes = results["sets"][0]["mixes"].as_array().unwrap();
    assert_eq!((mixes.len(), results["sets"][0]["missing"].as_u64()), (1, Some(3)));
    for job in mixes[0]["jobs"].as_array().unwrap() {
        // Half a megabyte takes 20 ms at 25 MB/s, and is sent when all is computed.
        let (measured, simulated) = (job["meanMs"].as_f64().unwrap(), job["simulatedMs"].as_f64().unwrap());
        assert!((60.0..120.0).contains(&measured) && (60.0..120.0).contains(&simulated), "{job}");
    }
}
