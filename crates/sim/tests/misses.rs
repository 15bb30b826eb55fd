//! What becomes of jobs that cannot be in time, and who is left out where not all can be.

use std::path::Path;

use metronome_core::model::policy::Policy;
use metronome_core::model::units::Instant;
use metronome_sim::outcome::{Fate, JobOutcome, Outcome};
use metronome_sim::scenario::Scenario;
use metronome_sim::world::{self, RunOptions};

const CLUSTER: &str = "apiVersion: metronome.dev/v1alpha1
kind: Cluster
metadata: {name: lab}
spec: {nodes: [{count: 1, gpus: 4}]}
";

fn run(jobs: &[(&str, &str)]) -> Outcome {
    let documents = jobs.iter().map(|(name, spec)| {
        format!("---\napiVersion: metronome.dev/v1alpha1\nkind: TrainingJob\nmetadata: {{name: {name}}}\nspec: {spec}\n")
    });
    let text = format!("{CLUSTER}{}", documents.collect::<String>());
    let scenario = Scenario::read_from(text.as_bytes(), "lab.yaml", Path::new("")).expect("a good scenario");
    let policy = Policy::named("metronome").expect("a built-in policy");
    let outcome = world::run(&scenario, RunOptions::new(policy), &|_| {});
    assert_eq!((outcome.alarms, &outcome.violations), (0, &Vec::new()));
    outcome
}

fn of<'o>(outcome: &'o Outcome, name: &str) -> &'o JobOutcome {
    outcome.jobs.iter().find(|job| &*job.name == name).expect("every job has an outcome")
}

/// A job that takes ten minutes and is to be done in five.
fn hopeless(on_miss: &str) -> Outcome {
    let spec =
        format!("{{work: {{duration: 10m}}, checkpoint: {{}}, deadline: {{after: 5m}}, onMiss: {on_miss}}}");
    run(&[("late", &spec), ("other", "{work: {duration: 20m}}")])
}

#[test]
fn who_cannot_be_in_time_runs_on_if_it_wishes_to() {
    let outcome = hopeless("Run");
    let late = of(&outcome, "late");
    assert_eq!((late.fate, late.end), (Fate::Completed, Some(Instant::from_secs(600))));
}

#[test]
fn who_cannot_be_in_time_is_taken_off_the_line_if_it_wishes_to() {
    let outcome = hopeless("Suspend");
    assert_eq!(of(&outcome, "late").fate, Fate::Unfinished);
    assert_eq!(of(&outcome, "other").fate, Fate::Completed);
}

#[test]
fn who_cannot_be_in_time_has_failed_if_it_wishes_to() {
    let outcome = hopeless("Fail");
    let late = of(&outcome, "late");
    assert_eq!(late.fate, Fate::Failed);
    assert!(late.end.is_none_or(|end| end < Instant::from_secs(300)), "it is told at once: {:?}", late.end);
}

#[test]
fn of_two_who_cannot_both_be_in_time_the_one_is_that_is_worth_more() {
    let spec = |value: u32| {
        format!(
            "{{members: 4, resources: {{nvidia.com/gpu: 1}}, work: {{duration: 30m}}, checkpoint: {{}}, deadline: {{after: 40m, value: {value}}}}}"
        )
    };
    for (first, second) in [(1, 5), (5, 1)] {
        let outcome = run(&[("first", &spec(first)), ("second", &spec(second))]);
        let by = |name: &str| of(&outcome, name).end.expect("both are done");
        let in_time = |name: &str| by(name) <= Instant::from_secs(2400);
        assert_eq!((in_time("first"), in_time("second")), (first > second, second > first));
    }
}
