//! What a run keeps of how jobs met on links, for its pictures.

use std::path::Path;

use metronome_core::model::policy::Policy;
use metronome_core::model::units::Instant;
use metronome_sim::encounter::{Course, Encounter};
use metronome_sim::outcome::Outcome;
use metronome_sim::scenario::Scenario;
use metronome_sim::world::{self, Keep, RunOptions};

const CONTENDED: &str = include_str!("../../../experiments/thirteen-models/load-0.95.yaml");

fn run(policy: &str, keep: Keep) -> Outcome {
    let scenario = Scenario::read_from(CONTENDED.as_bytes(), "contended", Path::new(".")).unwrap();
    let options = RunOptions { keep, ..RunOptions::new(Policy::named(policy).unwrap()) };
    world::run(&scenario, options, &|_| {})
}

/// How much slower than alone those on the link are, all together.
fn lost(encounter: &Encounter, course: &Course) -> f64 {
    let each = encounter.sharers.iter().zip(&course.jobs);
    each.map(|(sharer, job)| job.mean.0 as f64 / sharer.period.0 as f64 - 1.0).sum()
}

#[test]
fn what_was_decided_is_seen_to_win_at_the_moment_that_is_shown() {
    let outcome = run("metronome", Keep::Pictures);
    let encounter = outcome.encounter.expect("jobs meet");
    let decided = encounter.decided.as_ref().expect("something was decided about it");
    assert!(lost(&encounter, decided) < lost(&encounter, &encounter.fair));
    assert!(outcome.lane_changes > 0 && encounter.at < outcome.ended);
    assert!(encounter.sharers.iter().all(|sharer| sharer.job < outcome.jobs.len()));
}

#[test]
fn where_nothing_is_decided_there_is_only_one_course() {
    let outcome = run("coscheduling", Keep::Pictures);
    let encounter = outcome.encounter.expect("jobs meet");
    assert_eq!((encounter.decided.is_none(), outcome.lane_changes), (true, 0));
    assert!(lost(&encounter, &encounter.fair) > 0.5, "it is the moment at which most is lost");
    assert!(run("solo", Keep::Pictures).encounter.is_none(), "nobody is in anybody's way");
}

#[test]
fn looking_changes_nothing() {
    let ends =
        |outcome: &Outcome| -> Vec<Option<Instant>> { outcome.jobs.iter().map(|job| job.end).collect() };
    let (plain, pictured) = (run("metronome", Keep::Figures), run("metronome", Keep::Pictures));
    assert_eq!(ends(&plain), ends(&pictured));
    assert!(plain.encounter.is_none());
}
