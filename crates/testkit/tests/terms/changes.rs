//! Jobs that the engine did not start, that ask for something else, or that end bit by bit.

use std::sync::Arc;

use metronome_core::engine::{Ending, Event};
use metronome_core::model::id::{JobId, NodeId};
use metronome_core::model::job::{Gang, Priority, Role, RoleKind};
use metronome_core::model::plan::Part;
use metronome_core::model::report::State;
use metronome_core::model::units::{Duration, Instant};
use metronome_testkit::build::{gpus, policy, racks};
use metronome_testkit::drive::Driver;

use super::{NOW, assert_well, gang, nodes, observe, runs, single, with_priority};

fn part(role: u8, node: u32, members: u32) -> Part {
    Part::of(role, NodeId(node), members)
}

#[test]
fn a_job_found_running_holds_its_nodes_even_if_they_are_too_small() {
    let mut driver = Driver::new(racks(1, 2, 4), policy("volcano"));
    driver.now = Instant::from_secs(100);
    let spec = Arc::new(gang("found", 6, 1));
    let since = Instant::from_secs(40);
    let found = driver.engine.found(driver.now, spec, vec![part(0, 0, 6)], since);
    let other = driver.submit(gang("other", 4, 1));
    driver.settle();
    assert!(runs(&driver, found));
    assert_eq!(nodes(&driver, other), [1]);
    let job = driver.engine.job(found).unwrap();
    assert_eq!((job.submitted, job.progress.executed(driver.now)), (since, Duration::from_secs(60)));
    assert_well(&driver);
}

#[test]
fn a_job_found_in_pieces_uses_up_its_id_and_nothing_else() {
    let mut driver = Driver::new(racks(1, 2, 4), policy("volcano"));
    let whole = Arc::new(gang("found", 3, 1));
    for parts in [vec![part(0, 0, 2)], vec![part(0, 9, 3)], vec![part(0, 0, 3), part(1, 0, 1)]] {
        let found = driver.engine.found(NOW, whole.clone(), parts, NOW);
        assert!(driver.engine.job(found).is_none());
    }
    assert_eq!(driver.submit(gang("next", 8, 1)), JobId(3));
    driver.settle();
    assert!(runs(&driver, JobId(3)));
    assert_well(&driver);
}

#[test]
fn whoever_was_planned_into_the_room_of_a_job_found_there_goes_elsewhere() {
    let mut driver = Driver::new(racks(1, 2, 4), policy("srtf"));
    driver.submit(metronome_testkit::build::job("long", 4, 100));
    driver.submit(metronome_testkit::build::job("longer", 4, 200));
    driver.settle();
    let short = driver.submit(metronome_testkit::build::job("short", 4, 10));
    driver.poll();
    let planned = nodes(&driver, short)[0];
    driver.engine.found(NOW, Arc::new(gang("found", 1, 1)), vec![part(0, planned, 1)], NOW);
    assert!(nodes(&driver, short).is_empty());
    driver.settle();
    assert!(runs(&driver, short));
    assert_well(&driver);
}

#[test]
fn members_that_end_give_their_room_back_and_the_last_ends_the_job() {
    let mut driver = Driver::new(racks(1, 1, 4), policy("volcano"));
    let mut spec = gang("a", 2, 1);
    spec.roles.push(Role { kind: RoleKind::Ps, gang: Gang::rigid(2).unwrap(), ..spec.roles[0].clone() });
    let job = driver.submit(spec);
    driver.settle();
    let waits = driver.submit(gang("b", 3, 1));
    driver.settle();
    let left = |role, members| Event::MembersLeft { job, role, node: NodeId(0), device: None, members };
    observe(&mut driver, left(0, 3));
    assert_eq!(driver.engine.plan().get(job).unwrap().members(), 4, "so many were never there");
    observe(&mut driver, left(0, 2));
    observe(&mut driver, left(1, 1));
    driver.settle();
    assert_eq!(driver.engine.plan().get(job).unwrap().total(), gpus(1));
    assert!(runs(&driver, job) && runs(&driver, waits));
    observe(&mut driver, left(1, 1));
    driver.settle();
    assert_eq!(driver.engine.explain(job).unwrap().state, State::Done);
    assert_well(&driver);
}

#[test]
fn a_waiting_job_that_asks_for_something_else_keeps_its_id_and_its_time() {
    let mut driver = Driver::new(racks(1, 1, 4), policy("volcano"));
    let runner = driver.submit(gang("runner", 3, 1));
    driver.settle();
    let waits = driver.submit(gang("waits", 4, 1));
    driver.settle();
    driver.now = Instant::from_secs(60);
    observe(&mut driver, Event::JobChanged { job: waits, spec: Arc::new(single("smaller", 1)) });
    driver.settle();
    assert!(runs(&driver, waits));
    let changed = driver.engine.job(waits).unwrap();
    assert_eq!((&*changed.spec.name, changed.submitted), ("smaller", NOW));
    let spec = Arc::new(with_priority(gang("renamed", 1, 4), 7));
    observe(&mut driver, Event::JobChanged { job: runner, spec });
    let runner = driver.engine.job(runner).unwrap();
    assert_eq!((&*runner.spec.name, runner.spec.priority), ("renamed", Priority(7)));
    assert_eq!(runner.spec.members(), 3, "who runs keeps its size");
    assert_well(&driver);
}

#[test]
fn a_job_that_its_owner_takes_away_is_done() {
    let mut driver = Driver::new(racks(1, 1, 4), policy("volcano"));
    let job = driver.submit(single("a", 4));
    let next = driver.submit(single("b", 4));
    driver.settle();
    observe(&mut driver, Event::JobEnded { job, how: Ending::Withdrawn });
    driver.settle();
    assert_eq!(driver.engine.explain(job).unwrap().state, State::Done);
    assert!(runs(&driver, next));
}

#[test]
fn a_start_that_may_fail_for_ever_is_tried_for_ever() {
    let mut driver = Driver::new(racks(1, 1, 4), policy("volcano"));
    let job = driver.submit({
        let mut spec = single("a", 1);
        spec.start_retries = u32::MAX;
        spec
    });
    for _ in 0..200 {
        driver.poll();
        driver.apply(&metronome_testkit::drive::Op::StepFails(0));
        driver.now = driver.now + Duration::HOUR;
    }
    assert!(driver.engine.job(job).is_some_and(|job| job.failed_starts > 100));
}
