//! Cores that are given while a process runs, and jobs that are moved for what they learn.

use crate::ground::{Ground, Ran, iterations};

/// A job that would be late on one core, and another that has the second core at first.
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
  work: {duration: 4s}
---
apiVersion: metronome.dev/v1alpha1
kind: TrainingJob
metadata: {name: due, annotations: {metronome.dev/submit-after: 1s}}
spec:
  cpu: {min: 1, max: 2, asks: 1}
  work: {duration: 20s}
  checkpoint: {every: 1s, takes: 1ms, restart: 10ms}
  deadline: {after: 17s}
";

/// What became of the job that is due: seconds from submission to its end, changes of size, starts.
type Took = (f64, u64, u64);

fn took(ran: &Ran, run: usize) -> Took {
    let jobs = ran.document["runs"][run]["jobs"].as_array().unwrap();
    let due = jobs.iter().find(|job| job["name"] == "due").unwrap();
    let seconds = |name: &str| due[name].as_f64().unwrap() / 1e9;
    let count = |name: &str| due[name].as_u64().unwrap();
    (seconds("ended") - seconds("submitted"), count("resizes"), count("starts"))
}

#[test]
fn a_job_that_would_be_late_grows_in_place_and_is_in_time() {
    /// The work is 20 s of a core. Where somebody who has one all the time takes longer, others have the machine.
    const ON_ITS_OWN_CORE: f64 = 22.0;
    let Some(ground) = Ground::new() else { return };
    for attempt in 1..=3 {
        let ran = ground.run(DEADLINE, &["--policies", "metronome,kubernetes"]);
        ran.assert_all_completed();
        let done = iterations(&ground.of_job("due").join("iterations.csv"));
        assert!(done.windows(2).all(|pair| pair[1] == pair[0] + 1), "nothing was done twice: {done:?}");
        let (ours, without) = (took(&ran, 0), took(&ran, 1));
        eprintln!(
            "seconds, changes of size, starts: {ours:?} with cores that are given, {without:?} without"
        );
        assert!(without.0 > 17.0 && without.1 == 0 && ours.2 == 1, "{ours:?} {without:?} {}", ran.said);
        if ours.0 <= 17.0 && ours.1 >= 1 {
            break;
        }
        if without.0 > ON_ITS_OWN_CORE {
            eprintln!("left out: on this machine nobody could be in time now");
            break;
        }
        assert!(attempt < 3, "{ours:?} {without:?} {}", ran.said);
    }
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
