//! Cores that are given while a process runs, and jobs that are moved for what they learn.

use std::fs;
use std::path::PathBuf;

use metronome_local::cgroup::{Hierarchies, Mounted, Version};

use crate::ground::{Ground, Ran, iterations};

/// `due` starts on one core, because `other` has the second one, and would be late if it stayed there: 16 s of work, due
/// after 15.5 s. A machine may be four times slower than asked for until `other` ends, and `due` can still be in time on
/// both cores: so the scheduler always gives it the second core.
const DEADLINE: &str = "
apiVersion: metronome.dev/v1alpha1
kind: Cluster
metadata: {name: one}
spec: {nodes: [{count: 1, cpu: 2, memory: 8Gi}]}
---
apiVersion: metronome.dev/v1alpha1
kind: TrainingJob
metadata: {name: other}
spec:
  cpu: {min: 1, max: 1, asks: 1}
  work: {duration: 2s}
---
apiVersion: metronome.dev/v1alpha1
kind: TrainingJob
metadata: {name: due, annotations: {metronome.dev/submit-after: 500ms}}
spec:
  cpu: {min: 1, max: 2, asks: 1}
  work: {duration: 16s}
  checkpoint: {every: 1s, takes: 1ms, restart: 10ms}
  deadline: {after: 15500ms}
";

/// Time from submission to completion with the second core, as a part of the time without it. `due` has one core for
/// 1.5 s and two for the other 14.5 s of work: (1.5 + 14.5 / 2) / 16 = 0.55. The rest is for the time in which the
/// scheduler sees that `other` has ended and changes the quota.
const MAX_TIME_RATIO: f64 = 0.8;

/// The outcome of the job `due` in one run.
#[derive(Debug)]
struct DueOutcome {
    seconds: f64,
    resizes: u64,
    starts: u64,
}

impl DueOutcome {
    fn of(ran: &Ran, run: usize) -> Self {
        let jobs = ran.document["runs"][run]["jobs"].as_array().unwrap();
        let due = jobs.iter().find(|job| job["name"] == "due").unwrap();
        let count = |name: &str| due[name].as_u64().unwrap();
        let seconds = |name: &str| due[name].as_f64().unwrap() / 1e9;
        let seconds = seconds("ended") - seconds("submitted");
        Self { seconds, resizes: count("resizes"), starts: count("starts") }
    }
}

/// Gives the control groups of all worlds precedence over every other process of this machine. Without it, a compiler
/// beside the test takes a larger part of two busy cores than of one, and the ratio of two runs depends on it.
struct Precedence {
    /// Keeps the group above the worlds between two runs.
    held: PathBuf,
}

impl Precedence {
    fn take() -> Self {
        let hierarchies = Hierarchies::find();
        let Mounted { version, path, .. } = hierarchies.cpu().expect("this machine limits cores");
        let worlds = path.join("metronome");
        let held = worlds.join("precedence");
        fs::create_dir_all(&held).unwrap();
        match version {
            Version::One => fs::write(worlds.join("cpu.shares"), "262144").unwrap(),
            Version::Two => {
                fs::write(path.join("cgroup.subtree_control"), "+cpu").unwrap();
                fs::write(worlds.join("cpu.weight"), "10000").unwrap();
            }
        }
        Self { held }
    }
}

impl Drop for Precedence {
    /// The group above goes with the last one in it.
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.held);
        let _ = self.held.parent().map(fs::remove_dir);
    }
}

/// Both runs are of the same minute and have the same precedence, so what slows down the machine slows down both.
#[test]
fn a_job_that_would_be_late_grows_in_place_and_ends_sooner() {
    let Some(ground) = Ground::new() else { return };
    let _precedence = Precedence::take();
    let ran = ground.run(DEADLINE, &["--policies", "kubernetes,metronome"]);
    ran.assert_all_completed();
    let done = iterations(&ground.of_job("due").join("iterations.csv"));
    assert!(done.windows(2).all(|pair| pair[1] == pair[0] + 1), "nothing was done twice: {done:?}");
    let (fixed, grown) = (DueOutcome::of(&ran, 0), DueOutcome::of(&ran, 1));
    let ratio = grown.seconds / fixed.seconds;
    eprintln!("{ratio:.2} of the time: {grown:?} with a second core, {fixed:?} without");
    assert!(grown.resizes >= 1 && grown.starts == 1, "{grown:?} {}", ran.said);
    assert!(fixed.resizes == 0 && fixed.starts == 1, "{fixed:?} {}", ran.said);
    assert!(ratio <= MAX_TIME_RATIO, "{ratio:.2}: {grown:?} {fixed:?} {}", ran.said);
    ground.assert_clean();
}

/// One node is away at first, so all jobs are on the other and share its core. When it is back, somebody is to go there:
/// how much each has left is known by what it reports.
const LEARNERS: &str = "
apiVersion: metronome.dev/v1alpha1
kind: Cluster
metadata: {name: two}
spec: {nodes: [{count: 2, cpu: 1, memory: 8Gi}]}
---
apiVersion: metronome.dev/v1alpha1
kind: Workload
metadata: {name: learn}
spec:
  jobs: 3
  arrivals: {within: 500ms}
  checkpoint: {every: 1s, takes: 1ms, restart: 10ms}
  learners: {asks: [100m], uses: [1], work: [{share: 1, takes: {median: 12s}}]}
  faults: [{node: node-1, at: 0s, for: 2s}]
";

#[test]
fn whoever_has_much_left_moves_to_where_there_are_cores_and_goes_on_from_what_it_saved() {
    let Some(ground) = Ground::new() else { return };
    let ran = ground.run(LEARNERS, &["--policies", "metronome"]);
    ran.assert_all_completed();
    let names = [0, 1, 2].map(|index| format!("learn-{index}"));
    let moved: u64 = names.iter().filter_map(|name| ran.job(name)["moves"].as_u64()).sum();
    assert!(moved > 0, "{} {}", ran.document, ran.said);
    for name in &names {
        let (moves, starts) =
            (ran.job(name)["moves"].as_u64().unwrap(), ran.job(name)["starts"].as_u64().unwrap());
        let nodes: Vec<&str> =
            ran.said.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(" runs on ")).collect();
        assert_eq!((nodes.len() as u64, starts), (1 + moves, 1 + moves), "{name}: {}", ran.said);
        assert!(nodes.windows(2).all(|pair| pair[0] != pair[1]), "{name}: {nodes:?}");
        assert_eq!(ran.job(name)["restarts"], 0, "{name}: {}", ran.said);
        // Half a second of a core each. It is asked to leave, ends its iteration, saves it, and begins the next elsewhere.
        let done = iterations(&ground.of_job(name).join("iterations.csv"));
        assert_eq!(done, (0..24).collect::<Vec<u64>>(), "{name} did nothing twice");
    }
    ground.assert_clean();
}
