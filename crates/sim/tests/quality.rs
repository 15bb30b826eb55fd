//! When jobs are worth so much of what they are worth in the end.

use std::path::Path;

use metronome_core::model::policy::Policy;
use metronome_core::model::units::Instant;
use metronome_sim::outcome::Outcome;
use metronome_sim::scenario::{InputError, Scenario};
use metronome_sim::world::{self, RunOptions};

/// One job of 100 s on two GPUs, half as fast on one, that is worth so much by and by.
fn scenario(quality: &str, rest: &str) -> Result<Scenario, InputError> {
    let text = format!(
        "apiVersion: metronome.dev/v1alpha1
kind: Cluster
metadata: {{name: lab}}
spec: {{nodes: [{{count: 1, gpus: 2}}]}}
---
apiVersion: metronome.dev/v1alpha1
kind: Scaling
metadata: {{name: measured}}
spec: {{sizes: {{1: 1, 2: 2}}, quality: {quality}}}
---
apiVersion: metronome.dev/v1alpha1
kind: TrainingJob
metadata: {{name: it}}
spec: {{members: 2, scaling: measured, work: {{duration: 100s}}{rest}}}
"
    );
    Scenario::read_from(text.as_bytes(), "lab.yaml", Path::new(""))
}

fn run(scenario: &Scenario, policy: &str) -> Outcome {
    world::run(scenario, RunOptions::new(Policy::named(policy).expect("a built-in policy")), &|_| {})
}

#[test]
fn a_job_comes_by_its_milestones_as_it_works() {
    let scenario = scenario("[[0.5, 0.8], [1, 1]]", "").expect("a good scenario");
    for policy in ["kubernetes", "metronome"] {
        let reached = run(&scenario, policy).jobs[0].reached.expect("what it learns is known");
        let seconds = reached.map(|at| at.expect("it is done").since(Instant::START).as_secs_f64());
        let expected = [75.0, 87.5, 97.5];
        assert!(seconds.iter().zip(expected).all(|(at, by)| (at - by).abs() < 0.01), "{policy}: {seconds:?}");
    }
}

#[test]
fn what_is_lost_has_to_be_reached_again() {
    let fails = ", checkpoint: {every: 30s}}\n---
apiVersion: metronome.dev/v1alpha1
kind: Workload
metadata: {name: faults}
spec: {faults: [{node: node-0, at: 80s, for: 10s}]";
    let scenario = scenario("[[0.5, 0.95], [1, 1]]", fails).expect("a good scenario");
    let outcome = run(&scenario, "metronome");
    let [to_90, _, to_99] = outcome.jobs[0].reached.expect("what it learns is known");
    // 47 s of work, of which the node that fails after 80 s takes nothing; 90 s of work, of which it does.
    assert!(to_90.is_some_and(|at| at < Instant::from_secs(80)), "{to_90:?}");
    assert!(to_99.is_some_and(|at| at > Instant::from_secs(100)), "{to_99:?}");
}

#[test]
fn parts_that_make_no_sense_are_refused() {
    let wrong = |quality: &str| scenario(quality, "").expect_err("it makes no sense").to_string();
    assert!(wrong("[[0.5, 0.8]]").contains("the last part is 0.5"), "{}", wrong("[[0.5, 0.8]]"));
    assert!(wrong("[[0.5, 0.8], [0.4, 0.9], [1, 1]]").contains("the part 0.4 does not come after 0.5"));
    assert!(wrong("[[2, 0.8]]").contains("lab.yaml:9"), "{}", wrong("[[2, 0.8]]"));
}
