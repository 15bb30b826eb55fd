//! Nothing is left behind, however a test process ends.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use metronome_testcluster::{Component, ControlPlane, Options};

/// What a control plane must take with it.
#[derive(Debug)]
struct Traces {
    folder: PathBuf,
    pids: Vec<u32>,
}

impl Traces {
    fn of(plane: &ControlPlane) -> Self {
        let pids = [Component::Etcd, Component::ApiServer].map(|component| plane.pid(component).unwrap());
        Self { folder: plane.folder().to_owned(), pids: pids.to_vec() }
    }

    fn is_there(&self) -> bool {
        self.folder.exists() || self.pids.iter().any(|pid| runs(*pid))
    }

    fn vanish(&self) -> bool {
        let begin = Instant::now();
        while self.is_there() && begin.elapsed() < Duration::from_secs(20) {
            thread::sleep(Duration::from_millis(50));
        }
        !self.is_there()
    }
}

/// A process that has ended but that nobody has asked after does not run.
fn runs(pid: u32) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat"));
    stat.is_ok_and(|stat| !stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('Z')))
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_a_control_plane_removes_it() {
    let Some(plane) = ControlPlane::start_or_skip(Options::from_env()).await else { return };
    let traces = Traces::of(&plane);
    assert!(traces.is_there());
    drop(plane);
    assert!(!traces.is_there(), "{traces:?}");
}

/// Not a test, but what another one kills: says what it has started and waits for its end.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "run by `a_killed_process_leaves_nothing_behind`"]
async fn victim() {
    let Some(plane) = ControlPlane::start_or_skip(Options::from_env()).await else { return };
    let Traces { folder, pids } = Traces::of(&plane);
    println!("\nstarted {} {} {}", folder.display(), pids[0], pids[1]);
    std::future::pending::<()>().await;
}

/// The victim's own words; `None` if it had nothing to start.
fn traces_of_victim(output: impl std::io::Read) -> Option<Traces> {
    let mut lines = BufReader::new(output).lines().map(Result::unwrap);
    let line = lines.find_map(|line| line.strip_prefix("started ").map(str::to_owned))?;
    let mut words = line.split(' ');
    let folder = words.next()?.into();
    Some(Traces { folder, pids: words.map(|pid| pid.parse().unwrap()).collect() })
}

#[test]
fn a_killed_process_leaves_nothing_behind() {
    let mut victim = Command::new(std::env::current_exe().unwrap());
    victim.args(["--ignored", "--exact", "victim", "--nocapture"]).stdout(Stdio::piped());
    let mut victim = victim.spawn().unwrap();
    let traces = traces_of_victim(victim.stdout.take().unwrap());
    assert!(traces.as_ref().is_none_or(Traces::is_there));
    victim.kill().unwrap();
    victim.wait().unwrap();
    assert!(traces.as_ref().is_none_or(Traces::vanish), "{traces:?}");
}
