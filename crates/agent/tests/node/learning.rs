//! The whole agent beside a job that sends in bursts.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::agent::{Agent, eventually};
use crate::namespaces::{Pair, may_make_namespaces};

fn observed(agent: &Agent, after: u64) -> Value {
    let request = format!("GET /v1/observed?after={after} HTTP/1.0\r\nAuthorization: Bearer secret\r\n\r\n");
    let answer = agent.ask(&request);
    serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap_or_default()).unwrap_or_default()
}

#[test]
fn the_agent_learns_what_a_job_sends_and_leaves_nothing_behind() {
    if !may_make_namespaces() {
        return;
    }
    let pair = Pair::new("learn", 1, 100_000_000);
    let sink = pair.sink();
    // 500 kB in 40 ms at the rate of the link, 80 ms of compute after it was handed over.
    let mut starts: Vec<Instant> = Vec::new();
    let (tell, told) = std::sync::mpsc::channel();
    let sender = pair.sender(1, move || {
        let _ = tell.send(Instant::now());
        (500_000, Duration::from_millis(80))
    });
    let member_dir = tempfile::tempdir().unwrap();
    let turn = json!({"generation": 1, "anchor": "2026-11-16T12:00:00Z", "periodNs": 0, "turnNs": 0, "class": 1,
        "holdNs": 0, "validUntil": "2100-01-01T00:00:00Z"});
    let members = json!({
        "members": [{"job": "default/bert", "member": "worker-0", "token": "t", "dir": member_dir.path(),
            "counters": {"netns": pair.paths()[0], "interface": "up", "direction": "sent"}, "freezer": null, "leads": true,
            "turn": turn, "gate": "sdk", "address": "10.78.0.1"}],
        "ports": [{"netns": pair.paths()[0], "device": "up", "rate_bps": 100_000_000, "crossed_by": ["default/bert", "default/other"]}]
    });
    let agent = Agent::start(&members, |_| {});
    let traffic = eventually("a profile", || {
        let all = observed(&agent, 0);
        let found = all["observed"].as_array()?.iter().rev().find(|seen| seen["traffic"].is_object())?;
        Some(found["traffic"].clone())
    });
    starts.extend(told.try_iter());
    let truth = starts.last().unwrap().duration_since(starts[0]).as_secs_f64() / (starts.len() - 1) as f64;
    let period = traffic["period_ns"].as_f64().unwrap() / 1e9;
    println!("period {:.2} ms, in truth {:.2} ms: {traffic}", period * 1e3, truth * 1e3);
    assert!((period / truth - 1.0).abs() < 0.02, "{period} {truth}");
    assert_eq!((&traffic["job"], &traffic["while"]), (&json!("default/bert"), &json!("contending")));
    let number = |phase: &Value, name: &str| phase[name].as_f64().unwrap();
    let phases = traffic["phases"].as_array().unwrap().iter();
    let bytes: f64 = phases.map(|phase| number(phase, "length_ns") * number(phase, "rate_bps") / 8e9).sum();
    assert!((490_000.0..530_000.0).contains(&bytes), "{bytes} with headers");
    let body = r#"{"job": "default/bert", "member": "worker-0", "iteration": 12}"#;
    let length = body.len();
    let post = format!(
        "POST /v1/progress HTTP/1.0\r\nAuthorization: Bearer t\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    assert!(agent.ask(&post).contains(" 202 "));
    let written: Value =
        serde_json::from_str(&std::fs::read_to_string(member_dir.path().join("turn.json")).unwrap()).unwrap();
    assert_eq!(written, turn);
    assert!(pair.tc("class show dev up").contains("1:10"), "a leaf for class 1");
    let metrics = agent.metrics();
    assert!(metrics.contains("metronome_agent_leaves 1\n"), "{metrics}");
    agent.leave();
    assert_eq!(pair.tc("class show dev up").lines().count(), 2);
    assert_eq!(pair.tc("filter show dev up"), "");
    assert!(!member_dir.path().join("turn.json").exists());
    drop((sender, sink));
}
