//! A leader that was frozen, with another in its place, does nothing more when it wakes.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use futures::future::join_all;
use kube::api::ListParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use metronome_kubernetes::Limit;
use metronome_kubernetes::act;
use metronome_kubernetes::deed::Kind;
use metronome_kubernetes::request::connect;
use tokio::sync::mpsc;

use crate::leads::{Replica, settings};
use crate::stage::{Actor, PATIENCE, Stage, reference, seat, until};

/// A leader in a process of its own, which can be frozen whole.
struct Frozen(Child);

impl Frozen {
    fn start(role: &str, kubeconfig: &Path, namespace: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--ignored", "--exact", role, "--nocapture"]).stdout(Stdio::piped());
        child.env("TEST_KUBECONFIG", kubeconfig).env("TEST_NAMESPACE", namespace);
        Self(child.spawn().unwrap())
    }

    fn signal(&self, name: &str) {
        let id = self.0.id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
    }

    /// What it says about the lead each time it looks: whether it holds it, and how long it had not looked.
    fn looks(&mut self) -> mpsc::UnboundedReceiver<(bool, Duration)> {
        let (heard, looked) = mpsc::unbounded_channel();
        let lines = BufReader::new(self.0.stdout.take().unwrap()).lines().map_while(Result::ok);
        let looks = lines.filter_map(|line| {
            let (held, gap) = line.split("look ").nth(1)?.split_once(' ')?;
            Some((held == "true", Duration::from_millis(gap.parse().ok()?)))
        });
        std::thread::spawn(move || looks.for_each(|look| heard.send(look).unwrap_or(())));
        looked
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// The part of the child: nothing where the test runner runs it by itself.
async fn child() -> Option<(Client, String)> {
    let kubeconfig = Kubeconfig::read_from(std::env::var("TEST_KUBECONFIG").ok()?).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    Some((connect(config).unwrap(), std::env::var("TEST_NAMESPACE").ok()?))
}

/// Not a test, but what another one freezes: says every time it looks whether it holds the lead.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "run by `who_was_frozen_knows_at_the_next_look`"]
async fn one_who_looks() {
    let Some((client, namespace)) = child().await else { return };
    let replica = Replica::start(client, settings(&namespace, "frozen"));
    let lead = replica.lead.clone();
    // A thread that looks at nothing but the lead: no timer of the runtime runs before its first look.
    let looks = move || {
        let mut before = Instant::now();
        loop {
            let now = Instant::now();
            println!("look {} {}", lead.is_held(), now.duration_since(before).as_millis());
            before = now;
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    tokio::task::spawn_blocking(looks).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn who_was_frozen_knows_at_the_next_look() {
    let Some(stage) = Stage::set("frozen").await else { return };
    let mut frozen =
        Frozen::start("freezes::one_who_looks", &stage.plane.kubeconfig_path(), &stage.namespace);
    let mut looks = frozen.looks();
    let leads = async { while !looks.recv().await.expect("it lives").0 {} };
    tokio::time::timeout(PATIENCE, leads).await.expect("it leads");
    frozen.signal("-STOP");
    let second = Replica::start(stage.client.clone(), settings(&stage.namespace, "second"));
    second.leads().await;
    frozen.signal("-CONT");
    loop {
        let (held, gap) = looks.recv().await.expect("it lives");
        if gap > Duration::from_secs(2) {
            return assert!(!held, "it woke after {gap:?} and believed that it led");
        }
    }
}

/// Not a test, but what another one freezes: binds all pods there are, a few a second.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "run by `who_was_frozen_binds_nothing_more`"]
async fn one_who_binds() {
    let Some((client, namespace)) = child().await else { return };
    let replica = Replica::start(client.clone(), settings(&namespace, "frozen"));
    replica.leads().await;
    let slowly = Limit { per_second: 20.0, burst: 1 };
    let settings = act::Settings { limit: slowly, ..act::Settings::new(&namespace, "frozen") };
    let mut actor = Actor::start(client.clone(), replica.lead.clone(), settings);
    let pods = kube::Api::namespaced(client, &namespace).list(&ListParams::default()).await.unwrap();
    for pod in &pods {
        actor.ask(Kind::Bind { members: vec![seat(&reference(pod), "node-a")], intent: None }).await;
    }
    std::future::pending::<()>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_was_frozen_binds_nothing_more() {
    let Some(stage) = Stage::set("freeze").await else { return };
    let names: Vec<_> = (0..200).map(|number| format!("pod-{number}")).collect();
    join_all(names.iter().map(|name| stage.pod(name))).await;
    let frozen = Frozen::start("freezes::one_who_binds", &stage.plane.kubeconfig_path(), &stage.namespace);
    until("some are bound", async || bound(&stage).await > 5).await;
    frozen.signal("-STOP");
    let second = Replica::start(stage.client.clone(), settings(&stage.namespace, "second"));
    second.leads().await;
    let before = bound(&stage).await;
    frozen.signal("-CONT");
    tokio::time::sleep(Duration::from_secs(3)).await;
    let more = bound(&stage).await - before;
    assert!(before < 200, "it was frozen in the midst of it");
    assert!(more <= 1, "{more} were bound after another led; one may have been on its way");
}

async fn bound(stage: &Stage) -> usize {
    let pods = stage.pods().list(&ListParams::default()).await.unwrap();
    pods.iter().filter(|pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some())).count()
}
