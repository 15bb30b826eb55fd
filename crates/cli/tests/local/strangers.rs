//! Programs that know nothing of turns, and are held to theirs by freezing.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use metronome_local::rights::Rights;
use serde_json::Value;

use crate::ground::{Ground, PROGRAM, iterations, kill, signal};

/// None where members cannot be frozen.
fn ground() -> Option<Ground> {
    let may_freeze = Rights::look().freezer;
    if !may_freeze {
        metronome_skip::skip("it takes cgroups that freeze");
    }
    Ground::new().filter(|_| may_freeze)
}

/// Two jobs that meet on both links. They bring a command of their own, so nobody expects them to wait by themselves.
fn strangers(period_ms: u64, iterations: u64) -> String {
    let job = |name: &str, resources: &str| {
        format!(
            "---
apiVersion: metronome.dev/v1alpha1
kind: TrainingJob
metadata: {{name: {name}}}
spec:
  members: 2
  resources: {{cpu: 1, {resources}}}
  command: [{PROGRAM}, trainer]
  traffic: {{period: {period_ms}ms, phases: [{{offset: 0ms, length: 60ms, rate: 90Gbps}}]}}
  work: {{iterations: {iterations}}}
"
        )
    };
    format!(
        "
apiVersion: metronome.dev/v1alpha1
kind: Cluster
metadata: {{name: two}}
spec:
  levels: [node]
  nodes: [{{count: 2, cpu: 8, memory: 16Gi, gpus: 8}}]
  links: {{node: 100Gbps, withinNode: free}}
{}{}",
        job("one", "memory: 1Gi, nvidia.com/gpu: 5"),
        job("other", "memory: 9Gi, nvidia.com/gpu: 1")
    )
}

/// What the agent is told of the member of each job that leads it.
fn leading(ground: &Ground) -> Vec<Value> {
    let text = fs::read(ground.agent_folder().join("members.json")).unwrap_or_default();
    let roster: Value = serde_json::from_slice(&text).unwrap_or_default();
    let members = roster["members"].as_array().cloned().unwrap_or_default();
    members.into_iter().filter(|member| member["leads"] == true).collect()
}

/// How often the agent has frozen somebody so far.
fn holds(ground: &Ground) -> Option<u64> {
    let mut stream = UnixStream::connect(ground.agent_folder().join("socket")).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    answer.lines().find_map(|line| line.strip_prefix("metronome_agent_holds_total ")?.parse().ok())
}

/// When each iteration began, in nanoseconds since 1970.
fn began(record: &Path) -> Vec<i128> {
    let table = fs::read_to_string(record).unwrap_or_default();
    table.lines().skip(1).filter_map(|line| line.split(',').nth(1)?.parse().ok()).collect()
}

/// How far iterations begin from their place, in milliseconds.
fn off(word: &Value, began: &[i128]) -> Vec<f64> {
    let anchor: Timestamp = word["anchor"].as_str().unwrap().parse().unwrap();
    let number = |name: &str| i128::from(word[name].as_u64().unwrap());
    let (first, period) = (anchor.as_nanosecond() + number("turnNs"), number("periodNs"));
    let after = began.iter().map(|at| (at - first).rem_euclid(period));
    after.map(|after| after.min(period - after) as f64 / 1e6).collect()
}

/// In cgroups of either version.
fn is_frozen(folder: &Path) -> bool {
    let says = |file: &str, frozen: &str| {
        fs::read_to_string(folder.join(file)).is_ok_and(|state| state.trim() == frozen)
    };
    says("freezer.state", "FROZEN") || says("cgroup.freeze", "1")
}

/// What was seen of one run.
struct Seen {
    holds: u64,
    words: BTreeMap<String, Value>,
}

fn watch(ground: &Ground, scenario: &str) -> Seen {
    let mut scheduler = ground.start(&ground.scenario(scenario), &["--policies", "shift"]);
    let (mut seen, begin) = (Seen { holds: 0, words: BTreeMap::new() }, Instant::now());
    while scheduler.try_wait().unwrap().is_none() {
        for member in leading(ground).into_iter().filter(|member| member["turn"].is_object()) {
            assert_eq!(member["gate"], "freeze");
            let job = member["job"].as_str().unwrap().trim_start_matches("default/").to_owned();
            seen.words.insert(job, member["turn"].clone());
        }
        assert!(begin.elapsed() < Duration::from_secs(120), "it goes on and on: {}", ground.said());
        seen.holds = seen.holds.max(holds(ground).unwrap_or(0));
        std::thread::sleep(Duration::from_millis(20));
    }
    ground.finish(&mut scheduler).assert_all_completed();
    seen
}

#[test]
fn a_program_that_knows_of_nothing_begins_at_its_turn_once_it_was_held() {
    const PERIOD_MS: u64 = 250;
    // A tenth of the period: wide enough for a machine that does something else, and narrower than where it begins by chance.
    const THERE_MS: f64 = 25.0;
    let Some(ground) = ground() else { return };
    // Whoever begins at its turn by chance is not held: then once more.
    let began_elsewhere = (0..5).find_map(|_| {
        let seen = watch(&ground, &strangers(PERIOD_MS, 30));
        let off = seen.words.iter().map(|(job, word)| {
            let off = off(word, &began(&ground.of_job(job).join("iterations.csv")));
            eprintln!("{job}, {} holds of both; off by {off:.0?} ms", seen.holds);
            (job.clone(), off)
        });
        let elsewhere: Vec<_> = off.filter(|(_, off)| off[0] > THERE_MS).collect();
        (!elsewhere.is_empty()).then_some((seen.holds, elsewhere))
    });
    let (holds, jobs) = began_elsewhere.expect("they begin at their turns every time");
    assert!(holds as usize >= jobs.len(), "{holds}");
    for (job, off) in jobs {
        let is_there = |three: &[f64]| three.iter().all(|off| *off <= THERE_MS);
        let reached = off[..15].windows(3).position(is_there);
        assert!(reached.is_some(), "{job} does not come to its turn: {off:?}");
        assert_eq!(iterations(&ground.of_job(&job).join("iterations.csv")), (0..30).collect::<Vec<u64>>());
    }
    ground.assert_clean();
}

#[test]
fn nobody_stays_frozen_when_the_agent_is_killed_meanwhile() {
    let Some(ground) = ground() else { return };
    let scenario = ground.scenario(&strangers(800, 12));
    let mut scheduler = ground.start(&scenario, &["--policies", "shift"]);
    let begin = Instant::now();
    let frozen = loop {
        let agents = ground.agents();
        let folders: Vec<PathBuf> = leading(&ground)
            .iter()
            .filter_map(|member| member["freezer"].as_str().map(PathBuf::from))
            .collect();
        if let Some(frozen) = folders.into_iter().find(|folder| is_frozen(folder)) {
            // Nobody is to start another agent for now.
            signal(scheduler.id() as i32, "STOP");
            agents.into_iter().for_each(kill);
            if is_frozen(&frozen) {
                break frozen;
            }
            // Its hold was over in the very moment.
            signal(scheduler.id() as i32, "CONT");
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "nobody was held: {}", ground.said());
        std::thread::sleep(Duration::from_millis(2));
    };
    std::thread::sleep(Duration::from_secs(1));
    let was_frozen = is_frozen(&frozen);
    signal(scheduler.id() as i32, "CONT");
    assert!(was_frozen, "for longer than any hold");
    let begin = Instant::now();
    while is_frozen(&frozen) {
        assert!(begin.elapsed() < Duration::from_secs(30), "it stays frozen: {}", ground.said());
        std::thread::sleep(Duration::from_millis(5));
    }
    eprintln!("thawed {:?} after the scheduler went on", begin.elapsed());
    let ran = ground.finish(&mut scheduler);
    ran.assert_all_completed();
    assert!(ran.document["runs"][0]["agentRestarts"].as_u64() >= Some(1), "{}", ran.document);
    for job in ["one", "other"] {
        assert_eq!(iterations(&ground.of_job(job).join("iterations.csv")), (0..12).collect::<Vec<u64>>());
        assert_eq!(ran.job(job)["starts"], 1, "{job} has not noticed");
    }
    ground.assert_clean();
}
