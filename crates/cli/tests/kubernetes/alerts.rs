//! The alerts of the chart, by Prometheus' own tool: each fires when it is to and is silent when it is not, and all of
//! them look at metrics that there are.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use metronome_testcluster::binaries::Program;
use metronome_testcluster::proxy::{Fault, Rule};
use metronome_testcluster::{Corner, Proxy, provide_or_skip, shared};
use serde_json::{Value, json};

use crate::helm::{Helm, objects};
use crate::replica::Replica;

/// What somebody sees of two replicas, a value every quarter of a minute, and after how long an alert is looked at.
struct Case {
    alert: &'static str,
    series: &'static [(&'static str, &'static str)],
    after: &'static str,
    fires: bool,
    /// What the alert says beside what its rule does, where it is about one of several.
    of: &'static [(&'static str, &'static str)],
}

const fn fires(
    alert: &'static str,
    after: &'static str,
    series: &'static [(&'static str, &'static str)],
) -> Case {
    Case { alert, series, after, fires: true, of: &[] }
}

const fn is_silent(
    alert: &'static str,
    after: &'static str,
    series: &'static [(&'static str, &'static str)],
) -> Case {
    Case { alert, series, after, fires: false, of: &[] }
}

impl Case {
    const fn of(self, of: &'static [(&'static str, &'static str)]) -> Self {
        Self { of, ..self }
    }
}

const CASES: [Case; 19] = [
    fires("MetronomeAbsent", "6m", &[]),
    fires("MetronomeAbsent", "6m", &[("up{job='metronome',pod='a'}", "0x40")]),
    is_silent("MetronomeAbsent", "4m", &[("up{job='metronome',pod='a'}", "0x40")]),
    is_silent(
        "MetronomeAbsent",
        "6m",
        &[("up{job='metronome',pod='a'}", "0x40"), ("up{job='metronome',pod='b'}", "1x40")],
    ),
    fires(
        "MetronomeNoLeader",
        "3m",
        &[("metronome_leader{pod='a'}", "0x20"), ("metronome_leader{pod='b'}", "0x20")],
    ),
    is_silent(
        "MetronomeNoLeader",
        "3m",
        &[("metronome_leader{pod='a'}", "0x20"), ("metronome_leader{pod='b'}", "1x20")],
    ),
    // The lead is handed on within seconds.
    is_silent("MetronomeNoLeader", "3m", &[("metronome_leader{pod='a'}", "1x8 0 0 1x10")]),
    fires("MetronomePlanRejected", "1m", &[("metronome_alarms{pod='a'}", "0 1x20")]),
    is_silent("MetronomePlanRejected", "1m", &[("metronome_alarms{pod='a'}", "0x20")]),
    fires(
        "MetronomeGangStuck",
        "13m",
        &[("metronome_oldest_intent_seconds{pod='a'}", "0+15x60"), ("metronome_leader{pod='a'}", "1x60")],
    ),
    // Gangs come and go, and none is there for long.
    is_silent(
        "MetronomeGangStuck",
        "13m",
        &[("metronome_oldest_intent_seconds{pod='a'}", "0x20 5x60"), ("metronome_leader{pod='a'}", "1x60")],
    ),
    // Whoever no longer leads has last seen one that was stuck.
    is_silent(
        "MetronomeGangStuck",
        "13m",
        &[("metronome_oldest_intent_seconds{pod='a'}", "900x60"), ("metronome_leader{pod='a'}", "0x60")],
    ),
    fires(
        "MetronomeBindingOff",
        "62m",
        &[("metronome_binding_enabled{pod='a'}", "0x300"), ("metronome_leader{pod='a'}", "1x300")],
    ),
    is_silent(
        "MetronomeBindingOff",
        "62m",
        &[("metronome_binding_enabled{pod='a'}", "0x100 1x200"), ("metronome_leader{pod='a'}", "1x300")],
    ),
    fires("MetronomeAgentAbsent", "12m", &[]),
    fires(
        "MetronomeAgentAbsent",
        "12m",
        &[("up{job='metronome-agent',pod='a'}", "1x60"), ("up{job='metronome-agent',pod='b'}", "0x60")],
    )
    .of(&[("job", "metronome-agent"), ("pod", "b")]),
    is_silent("MetronomeAgentAbsent", "12m", &[("up{job='metronome-agent',pod='a'}", "1x60")]),
    // An agent is replaced when it is upgraded.
    is_silent("MetronomeAgentAbsent", "12m", &[("up{job='metronome-agent',pod='a'}", "1x20 0x8 1x40")]),
    // Those who do not lead know nothing of it.
    is_silent(
        "MetronomeBindingOff",
        "62m",
        &[("metronome_binding_enabled{pod='a'}", "0x300"), ("metronome_leader{pod='a'}", "0x300")],
    ),
];

/// The groups of rules, as the chart has them.
fn groups(helm: &Helm) -> Value {
    let rendered = helm.template("metronome", &["monitoring.enabled=true", "agent.enabled=true"]).unwrap();
    let rules = objects(&rendered).into_iter().find(|object| object["kind"] == "PrometheusRule").unwrap();
    rules["spec"]["groups"].clone()
}

fn rules(groups: &Value) -> Vec<Value> {
    let groups = groups.as_array().unwrap().iter();
    groups.flat_map(|group| group["rules"].as_array().unwrap().clone()).collect()
}

impl Case {
    fn test(&self, rules: &[Value]) -> Value {
        let rule = rules.iter().find(|rule| rule["alert"] == self.alert).unwrap();
        let mut expected = json!({"exp_labels": rule["labels"], "exp_annotations": rule["annotations"]});
        for (name, value) in self.of {
            expected["exp_labels"][name] = json!(value);
        }
        let series: Vec<Value> = self
            .series
            .iter()
            .map(|(name, values)| json!({"series": name.replace('\'', "\""), "values": values}))
            .collect();
        json!({
            "name": format!("{} after {}", self.alert, self.after),
            "interval": "15s",
            "input_series": series,
            "alert_rule_test": [{
                "alertname": self.alert, "eval_time": self.after,
                "exp_alerts": if self.fires { vec![expected] } else { Vec::new() },
            }],
        })
    }
}

#[test]
fn every_alert_fires_when_it_is_to_and_is_silent_otherwise() {
    let Some(helm) = Helm::get() else { return };
    let Some(promtool) = provide_or_skip(Program::Promtool) else { return };
    let groups = groups(&helm);
    let rules = rules(&groups);
    for rule in &rules {
        let cases = || CASES.iter().filter(|case| rule["alert"] == case.alert);
        assert!(cases().any(|case| case.fires) && cases().any(|case| !case.fires), "{rule} is not tried");
    }
    let folder = tempfile::tempdir().unwrap();
    let tests: Vec<Value> = CASES.iter().map(|case| case.test(&rules)).collect();
    let document = json!({"rule_files": ["rules.yaml"], "evaluation_interval": "15s", "tests": tests});
    std::fs::write(folder.path().join("rules.yaml"), json!({"groups": groups}).to_string()).unwrap();
    std::fs::write(folder.path().join("tests.yaml"), document.to_string()).unwrap();
    let judged = Command::new(promtool)
        .args(["test", "rules", "tests.yaml"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&judged.stdout) + String::from_utf8_lossy(&judged.stderr);
    assert!(judged.status.success(), "{said}");
}

#[test]
fn every_alert_has_its_section_in_the_runbook() {
    let Some(helm) = Helm::get() else { return };
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    for rule in rules(&groups(&helm)) {
        let link = rule["annotations"]["runbook"].as_str().unwrap();
        let (page, section) = link.split_once('#').unwrap();
        let text = std::fs::read_to_string(root.join(page)).unwrap();
        let headings: BTreeSet<String> =
            text.lines().filter_map(|line| line.strip_prefix("## ")).map(str::to_lowercase).collect();
        assert!(headings.contains(section), "{link} leads nowhere");
    }
}

/// What a rule looks at of ours, by name.
fn metrics_in(expression: &str) -> BTreeSet<String> {
    let words = expression.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.filter(|word| word.starts_with("metronome_")).map(str::to_owned).collect()
}

fn scraped(replica: &Replica) -> Option<String> {
    let mut stream = TcpStream::connect(replica.address()?).ok()?;
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

fn value(scraped: &str, metric: &str) -> Option<f64> {
    let line = scraped.lines().find(|line| line.split([' ', '{']).next() == Some(metric))?;
    line.rsplit(' ').next()?.parse().ok()
}

/// The API server has no time for binds, so that a gang is about to be bound for a while.
#[tokio::test(flavor = "multi_thread")]
async fn what_alerts_look_at_is_what_a_leader_says() {
    let Some(helm) = Helm::get() else { return };
    let Some(plane) = shared().await else { return };
    let corner = Corner::new(plane, "alerts", 1).await;
    let proxy = Proxy::start(plane, 1).await.unwrap();
    proxy.inject(Rule::new(Fault::Busy { retry_after: Duration::from_secs(1) }).of("pods/binding"));
    let replica = Replica::start(proxy.kubeconfig_path(), &corner.namespace, "only");
    corner.create(corner.gang("g", 2, 1)).await;
    let scraped = corner
        .until("a gang is stuck for some seconds", async |_| {
            let scraped = scraped(&replica)?;
            (value(&scraped, "metronome_oldest_intent_seconds")? >= 3.0).then_some(scraped)
        })
        .await;
    for rule in rules(&groups(&helm)) {
        for metric in metrics_in(rule["expr"].as_str().unwrap()) {
            assert!(value(&scraped, &metric).is_some(), "{rule} looks at {metric}, which is not there");
        }
    }
    assert_eq!(value(&scraped, "metronome_leader"), Some(1.0));
    assert_eq!(value(&scraped, "metronome_binding_enabled"), Some(1.0));
    assert_eq!(value(&scraped, "metronome_alarms"), Some(0.0));
}

/// By default the operator names the job of a target after its service.
#[test]
fn the_job_of_the_alerts_is_the_service_that_is_scraped() {
    let Some(helm) = Helm::get() else { return };
    let rendered = objects(&helm.template("metronome", &["monitoring.enabled=true"]).unwrap());
    let of_kind = |kind: &str| rendered.iter().find(|object| object["kind"] == kind).unwrap();
    let (monitor, service) = (of_kind("ServiceMonitor"), of_kind("Service"));
    assert_eq!(service["metadata"]["name"], "metronome");
    let wanted = monitor["spec"]["selector"]["matchLabels"].as_object().unwrap();
    assert!(wanted.iter().all(|(name, value)| service["metadata"]["labels"][name] == *value));
    let ports = service["spec"]["ports"].as_array().unwrap();
    assert!(ports.iter().any(|port| port["name"] == monitor["spec"]["endpoints"][0]["port"]));
}
