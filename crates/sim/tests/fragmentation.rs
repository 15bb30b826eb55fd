//! A gang that does not fit, though there is room enough in all: others are moved together for it where that pays.

use std::fmt::Write;
use std::path::Path;

use metronome_core::model::policy::{Moving, Policy};
use metronome_sim::outcome::{Fate, JobOutcome, Outcome};
use metronome_sim::scenario::Scenario;
use metronome_sim::world::{self, RunOptions};

const HEAD: &str = "apiVersion: metronome.dev/v1alpha1\nkind:";

/// A job that comes after so long, with the rest of what it asks for.
fn job(name: &str, after: &str, spec: &str) -> String {
    format!(
        "---\n{HEAD} TrainingJob\nmetadata: {{name: {name}, annotations: {{metronome.dev/submit-after: {after}}}}}\n\
         spec: {{members: 1, {spec}}}\n"
    )
}

fn gpus(count: u32, takes: &str) -> String {
    format!("resources: {{nvidia.com/gpu: {count}}}, work: {{duration: {takes}}}")
}

/// Four nodes of eight GPUs in two racks. On each there soon is one job of two GPUs for four hours, and nobody else.
fn sparse(checkpoint: &str) -> String {
    let mut text = format!(
        "{HEAD} Cluster\nmetadata: {{name: lab}}\nspec: {{levels: [rack, node], nodes: [{{count: 4, perRack: 2, gpus: 8}}]}}\n"
    );
    for node in 0..4 {
        let long = format!("{}{checkpoint}", gpus(2, "4h"));
        write!(
            text,
            "{}{}",
            job(&format!("long-{node}"), "0s", &long),
            job(&format!("short-{node}"), "0s", &gpus(6, "10m"))
        )
        .unwrap();
    }
    text
}

const SAVES: &str = ", checkpoint: {takes: 30s, restart: 30s}";

fn run(text: &str, policy: Policy) -> Outcome {
    let scenario = Scenario::read_from(text.as_bytes(), "lab.yaml", Path::new("")).unwrap();
    let outcome = world::run(&scenario, RunOptions::new(policy), &|_| {});
    assert_eq!((outcome.alarms, &outcome.violations[..]), (0, &[][..]));
    assert!(outcome.jobs.iter().all(|job| job.fate == Fate::Completed));
    outcome
}

fn metronome() -> Policy {
    Policy::named("metronome").unwrap()
}

fn unmoved() -> Policy {
    Policy { moving: Moving::Never, ..metronome() }
}

fn named<'o>(outcome: &'o Outcome, name: &str) -> &'o JobOutcome {
    outcome.jobs.iter().find(|job| &*job.name == name).unwrap()
}

/// Seconds for which a job waited.
fn waited(outcome: &Outcome, name: &str) -> u64 {
    let job = named(outcome, name);
    job.start.unwrap().since(job.submit).as_secs_f64() as u64
}

fn moves(outcome: &Outcome) -> u32 {
    outcome.jobs.iter().map(|job| job.moves).sum()
}

/// Seconds from submission to the end, on average.
fn mean_jct(outcome: &Outcome) -> f64 {
    let times = outcome.jobs.iter().map(|job| job.end.unwrap().since(job.submit).as_secs_f64());
    times.sum::<f64>() / outcome.jobs.len() as f64
}

#[test]
fn one_is_moved_so_that_a_gang_has_a_node() {
    let text = sparse(SAVES) + &job("whole", "30m", &gpus(8, "10h"));
    let (moved, unmoved) = (run(&text, metronome()), run(&text, unmoved()));
    assert_eq!((moves(&moved), moves(&unmoved)), (1, 0));
    assert_eq!(moved.reconfigured.fragmentation, 1);
    assert_eq!(waited(&moved, "whole"), 60, "it starts when the other has left");
    assert!(waited(&unmoved, "whole") > 3 * 3600, "it waits until one is done");
    assert!(mean_jct(&moved) < mean_jct(&unmoved) - 1000.0);
}

#[test]
fn several_are_moved_for_a_gang_of_several_nodes_or_one_rack() {
    let wide = "members: 2, ".to_owned() + &gpus(8, "10h");
    let anywhere = sparse(SAVES) + &job("wide", "30m", &wide).replace("members: 1, ", "");
    let outcome = run(&anywhere, metronome());
    assert_eq!((moves(&outcome), waited(&outcome, "wide")), (2, 60));
    let one_rack = sparse(SAVES)
        + &job("wide", "30m", &format!("{wide}, topology: {{required: rack}}")).replace("members: 1, ", "");
    let outcome = run(&one_rack, metronome());
    assert_eq!((moves(&outcome), waited(&outcome, "wide")), (2, 60));
}

#[test]
fn a_gang_that_must_be_on_one_node_is_not_helped_by_room_on_several() {
    let four = format!("{}, topology: {{required: node}}", gpus(2, "10h"));
    let text = sparse(SAVES) + &job("four", "30m", &four).replace("members: 1, ", "members: 4, ");
    let outcome = run(&text, metronome());
    assert_eq!((moves(&outcome), waited(&outcome, "four")), (1, 60));
}

#[test]
fn nobody_is_moved_where_that_costs_more_than_it_gains() {
    let dear = ", checkpoint: {takes: 10s, restart: 20s}";
    // Those who run are done soon after.
    let text = sparse(dear).replace("duration: 4h", "duration: 31m") + &job("whole", "30m", &gpus(8, "10h"));
    let outcome = run(&text, metronome());
    assert_eq!((moves(&outcome), waited(&outcome, "whole")), (0, 60));
    // It takes them as long to go elsewhere as to end.
    let text = sparse(", checkpoint: {takes: 1h, restart: 2h}") + &job("whole", "30m", &gpus(8, "10h"));
    assert_eq!(moves(&run(&text, metronome())), 0);
}

#[test]
fn nobody_is_moved_for_a_long_gang_while_a_short_one_waits_for_the_same_room() {
    let text = sparse(SAVES) + &job("whole", "30m", &gpus(8, "10h"));
    let all = job("all", "20m", &gpus(8, "1m")).replace("members: 1, ", "members: 4, ");
    let outcome = run(&(text + &all), metronome());
    assert_eq!(moves(&outcome), 0);
    let ends = |name: &str| named(&outcome, name).end.unwrap();
    assert!(ends("all") < ends("whole"), "the short one does not wait for the long one");
}

#[test]
fn nobody_is_moved_who_cannot_be_or_has_just_come() {
    let text = sparse("") + &job("whole", "30m", &gpus(8, "10h"));
    assert_eq!(moves(&run(&text, metronome())), 0);
    let text = sparse(", checkpoint: {takes: 2m, restart: 3m}") + &job("whole", "30m", &gpus(8, "10h"));
    let outcome = run(&text, metronome());
    assert_eq!(moves(&outcome), 1);
    assert_eq!(waited(&outcome, "whole"), (50 - 30 + 5) * 60, "after ten times as long as a move takes");
}

#[test]
fn where_steps_fail_everybody_completes_all_the_same() {
    let faults = "---\napiVersion: metronome.dev/v1alpha1\nkind: Workload\nmetadata: {name: faults}\n\
                  spec: {faults: [{steps: {fail: 40%, late: 10%, delay: 1m}}]}\n";
    let text = sparse(SAVES) + &job("whole", "30m", &gpus(8, "10h")) + faults;
    let scenario = Scenario::read_from(text.as_bytes(), "lab.yaml", Path::new("")).unwrap();
    for seed in 0..20 {
        let outcome = world::run(&scenario, RunOptions { seed, ..RunOptions::new(metronome()) }, &|_| {});
        assert_eq!((outcome.alarms, &outcome.violations[..]), (0, &[][..]), "seed {seed}");
        let ends = outcome.jobs.iter().filter(|job| matches!(job.fate, Fate::Unfinished)).count();
        assert_eq!(ends, 0, "seed {seed}");
    }
}
