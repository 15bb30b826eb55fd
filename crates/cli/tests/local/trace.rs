//! `metronome local trace`: what is recorded is what counters say, and the drawing needs nothing beside itself.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use metronome_agent::counters::Counters;
use metronome_agent::members::{Interface, Roster, RosterFile};
use serde_json::Value;

use crate::ground::{Ground, PROGRAM};
use crate::jobs::job_that;

/// Every node has a member of each job: 2 members of 3 GPUs and 2 of 1.
const CLUSTER: &str = "
apiVersion: metronome.dev/v1alpha1
kind: Cluster
metadata: {name: pair}
spec:
  levels: [node]
  nodes: [{count: 2, cpu: 8, memory: 16Gi, gpus: 4}]
  links: {node: 100Gbps, withinNode: free}
";

const ITERATIONS: u64 = 40;

/// 100 Gbit/s for 50 ms, divided by 500: what the two members of a ring send each other in an iteration, without headers.
const BYTES_OF_AN_ITERATION: f64 = 100e9 / 8.0 * 0.050 / 500.0;

fn job(name: &str, gpus: u32) -> String {
    let says = format!(
        "  traffic: {{period: 100ms, phases: [{{offset: 50ms, length: 50ms, rate: 100Gbps}}]}}
  work: {{iterations: {ITERATIONS}}}"
    );
    job_that(name, 2, gpus, &says)
}

/// Counters of members on their hosts, read beside the recorder: the last that each has said.
#[derive(Default)]
struct Read {
    interfaces: BTreeMap<Interface, (String, String)>,
    last: BTreeMap<(String, String), u64>,
}

impl Read {
    fn look(&mut self, roster: Option<Roster>) {
        for member in roster.into_iter().flat_map(|roster| roster.members) {
            let Some(counters) = member.counters else { continue };
            self.interfaces.insert(counters, (member.job, member.member));
        }
        for (Interface { netns, interface, direction }, whose) in &self.interfaces {
            // A namespace that is gone has said its last.
            let Ok(mut counters) = Counters::open(netns) else { continue };
            counters.watch([(interface.clone(), *direction, 0)]);
            let _ = counters.read(|_, bytes| {
                self.last.insert(whose.clone(), bytes.watched);
            });
        }
    }
}

fn start(ground: &Ground, scenario: &str, html: &PathBuf, data: &PathBuf) -> Child {
    let err = fs::File::create(ground.folder.path().join("err")).unwrap();
    Command::new(PROGRAM)
        .args(["local", "trace", "--world", &ground.world, "--dir"])
        .arg(ground.root())
        .arg("-f")
        .arg(ground.scenario(scenario))
        .arg("-o")
        .arg(html)
        .arg("--data")
        .arg(data)
        .stdin(Stdio::null())
        .stdout(fs::File::create(ground.folder.path().join("out")).unwrap())
        .stderr(err)
        .spawn()
        .unwrap()
}

fn total(counter: &Value) -> f64 {
    let sent = counter["sent"].as_array().unwrap().iter().filter_map(Value::as_f64).sum::<f64>();
    counter["before"].as_f64().unwrap() + sent
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("no list: {value}"))
}

#[test]
fn a_trace_has_the_bytes_of_the_counters_and_a_drawing_that_needs_nothing_else() {
    let Some(ground) = Ground::new() else { return };
    let [html, data] = ["trace.html", "trace.json"].map(|name| ground.folder.path().join(name));
    let scenario = format!("{CLUSTER}{}{}", job("first", 3), job("second", 1));
    let mut child = start(&ground, &scenario, &html, &data);
    let (mut roster, mut read) =
        (RosterFile::new(ground.agent_folder().join("members.json")), Read::default());
    let status = loop {
        read.look(roster.changed().ok().flatten());
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    assert!(status.success(), "{}", ground.said());
    let printed = fs::read_to_string(ground.folder.path().join("out")).unwrap();
    assert_eq!(printed, format!("{}\n{}\n", html.display(), data.display()));
    let trace: Value = serde_json::from_str(&fs::read_to_string(&data).unwrap()).unwrap();
    members_have_sent_what_their_counters_said(&trace, &read);
    links_carried_what_members_sent(&trace);
    classes_and_directives_are_told(&trace);
    eprintln!("the recorder: {}", trace["sampling"]);
    let page = fs::read_to_string(&html).unwrap();
    for outside in ["<script", "src=", "href=", "http://", "https://", "@import"] {
        assert!(!page.contains(outside), "{outside}");
    }
    for shown in [
        "The whole run",
        "Near the end of sharing",
        "class=\"rate\"",
        "class=\"part first\"",
        ">first</text>",
    ] {
        assert!(page.contains(shown), "{shown}");
    }
    ground.assert_clean();
}

fn members_have_sent_what_their_counters_said(trace: &Value, read: &Read) {
    assert_eq!(read.last.len(), 4, "{:?}", read.last);
    for ((job, member), said) in &read.last {
        let job = list(&trace["jobs"])
            .iter()
            .find(|one| format!("default/{}", one["name"].as_str().unwrap()) == *job);
        let found = list(&job.unwrap()["members"]).iter().find(|one| one["name"] == **member);
        let recorded = total(&found.unwrap()["bytes"]);
        // Either of the two may have had the last look.
        let off = (recorded - *said as f64).abs() / *said as f64;
        assert!(off < 0.02, "{member}: {recorded} recorded, {said} counted");
        let expected = ITERATIONS as f64 * BYTES_OF_AN_ITERATION;
        assert!((0.99..1.10).contains(&(recorded / expected)), "{member}: {recorded} of {expected}");
    }
}

/// On the way up from a node: the members on it, and nobody else.
fn links_carried_what_members_sent(trace: &Value) {
    let ups = list(&trace["links"]).iter().filter(|link| link["name"].as_str().unwrap().ends_with(" up"));
    assert_eq!(ups.clone().count(), 2, "{}", trace["links"]);
    for link in ups {
        let parts: Vec<f64> = list(&link["parts"]).iter().map(|part| total(&part["bytes"])).collect();
        let carried = total(&link["bytes"]);
        let sum: f64 = parts.iter().sum();
        assert!((0.97..1.01).contains(&(sum / carried)), "{}: {parts:?} of {carried}", link["name"]);
        let expected = 2.0 * ITERATIONS as f64 * BYTES_OF_AN_ITERATION;
        assert!((0.99..1.10).contains(&(carried / expected)), "{}: {carried} of {expected}", link["name"]);
    }
}

fn classes_and_directives_are_told(trace: &Value) {
    for job in list(&trace["jobs"]) {
        let given = list(&job["directives"]).iter().find(|one| !one["directive"].is_null());
        let given = given.unwrap_or_else(|| panic!("{} has no directive", job["name"]));
        assert!(
            !given["inWords"].as_str().unwrap().is_empty() && !given["reason"].as_str().unwrap().is_empty()
        );
        let figures = &job["iterations"];
        assert_eq!(
            (figures["source"].as_str(), figures["count"].as_u64()),
            (Some("record"), Some(ITERATIONS))
        );
        let mean = figures["afterMs"].as_f64().or(figures["beforeMs"].as_f64());
        assert!(mean.is_some_and(|ms| (80.0..250.0).contains(&ms)), "{figures}");
    }
    for job in list(&trace["jobs"]) {
        let links = list(&trace["links"]).iter().flat_map(|link| list(&link["parts"]));
        let own = links.filter(|part| part["job"] == job["name"]);
        let priorities: Vec<u64> = own
            .flat_map(|part| list(&part["standings"]))
            .filter_map(|standing| standing["prio"].as_u64())
            .collect();
        let directives = list(&job["directives"]).iter().filter(|one| one["directive"].is_object());
        // A class that is 0 is left out.
        let mut classes = directives.map(|one| one["directive"]["class"].as_u64().unwrap_or(0));
        assert!(classes.any(|class| priorities.contains(&class)), "{}: {priorities:?}", job["directives"]);
    }
}
