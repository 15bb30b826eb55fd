//! Those who are moved so that somebody who waits has a place.

use metronome_core::engine::{Ending, Event};
use metronome_core::model::id::JobId;
use metronome_core::model::job::{Checkpointing, JobSpec, Life};
use metronome_core::model::plan::{Action, Step};
use metronome_core::model::report::Reason;
use metronome_core::model::units::Duration;
use metronome_core::traffic::decision_inputs::{What, Why};
use metronome_testkit::build::{policy, preemptible, racks};
use metronome_testkit::drive::{Driver, Op};

use super::{assert_well, nodes, observe, runs, single};

fn saving(name: &str, gpus: u64, hours: u64) -> JobSpec {
    let (takes, restart) = (Duration::from_secs(30), Duration::from_secs(30));
    let mut spec = preemptible(single(name, gpus));
    spec.checkpointing = Some(Checkpointing { every: None, takes, restart });
    spec.work.alone = Some(Duration::HOUR.times(hours));
    spec
}

/// Four nodes of eight GPUs, with one job of two GPUs on each.
fn sparse() -> (Driver, Vec<JobId>) {
    let mut driver = Driver::new(racks(2, 2, 8), policy("metronome"));
    let small = |node| saving(&format!("small-{node}"), 2, 5);
    let pairs: Vec<(JobId, JobId)> = (0..4)
        .map(|node| {
            let pair = (driver.submit(small(node)), driver.submit(saving("large", 6, 5)));
            driver.settle();
            pair
        })
        .collect();
    driver.apply(&Op::Pass(Duration::HOUR));
    for (_, large) in &pairs {
        observe(&mut driver, Event::JobEnded { job: *large, how: Ending::Completed });
    }
    driver.settle();
    driver.apply(&Op::Pass(Duration::MINUTE));
    let small: Vec<JobId> = pairs.into_iter().map(|(small, _)| small).collect();
    assert_eq!(small.iter().flat_map(|small| nodes(&driver, *small)).collect::<Vec<_>>(), [0, 1, 2, 3]);
    (driver, small)
}

fn is_move(step: &Step) -> bool {
    matches!(step.action, Action::Move { .. })
}

/// Who is on its way elsewhere.
fn moving(driver: &Driver, jobs: &[JobId]) -> Vec<JobId> {
    let moves = |job: &&JobId| matches!(driver.engine.life(**job), Some(Life::Moving { .. }));
    jobs.iter().filter(moves).copied().collect()
}

#[test]
fn a_gang_has_its_place_at_once_and_starts_when_the_last_has_left_it() {
    let (mut driver, small) = sparse();
    let whole = driver.submit(saving("whole", 8, 20));
    driver.poll();
    let [moved] = moving(&driver, &small)[..] else { panic!("one is moved") };
    let [step] = &driver.steps[driver.steps.len() - 1..] else { panic!("a step") };
    assert!(
        matches!(&step.action, Action::Move { from, .. } if from.touches(driver.engine.plan().get(whole).unwrap().nodes().next().unwrap()))
    );
    assert_eq!(driver.engine.verdict(whole), Some(Reason::WaitingForVictims));
    let name = driver.engine.job(moved).unwrap().spec.name.clone();
    assert_eq!(driver.engine.explain(whole).unwrap().awaits, [name]);
    let [made] = &driver.engine.state().reconfigured[..] else { panic!("one change") };
    assert_eq!((made.why, made.what), (Why::Fragmentation { job: whole }, What::Place));
    assert_eq!(made.jobs, [moved]);
    assert!(made.saves > Duration::HOUR.times(3), "{:?}", made.saves);
    driver.poll();
    assert!(matches!(driver.engine.life(whole), Some(Life::Queued)));
    driver.settle();
    assert!(runs(&driver, whole) && small.iter().all(|small| runs(&driver, *small)));
    assert_well(&driver);
}

#[test]
fn where_a_checkpoint_is_refused_the_gang_waits_on_and_another_is_moved() {
    let (mut driver, small) = sparse();
    let whole = driver.submit(saving("whole", 8, 20));
    driver.poll();
    let first = moving(&driver, &small);
    driver.apply(&Op::StepFails(0));
    driver.poll();
    assert!(runs(&driver, first[0]), "it is where it was");
    assert!(nodes(&driver, whole).is_empty() && driver.engine.explain(whole).unwrap().awaits.is_empty());
    driver.apply(&Op::Pass(Duration::MINUTE));
    driver.poll();
    let second = moving(&driver, &small);
    assert!(second.len() == 1 && second != first);
    driver.settle();
    assert!(runs(&driver, whole) && small.iter().all(|small| runs(&driver, *small)));
    assert_well(&driver);
}

#[test]
fn where_every_checkpoint_is_refused_nobody_is_stuck() {
    let (mut driver, small) = sparse();
    let whole = driver.submit(saving("whole", 8, 20));
    for _ in 0..60 {
        driver.poll();
        while driver.engine.state().under_way.values().next().is_some() {
            driver.apply(&Op::StepFails(0));
        }
        driver.apply(&Op::Pass(Duration::MINUTE));
    }
    assert!(small.iter().all(|small| runs(&driver, *small)));
    assert_eq!(driver.engine.life(whole), Some(&Life::Queued));
    // A minute after the first time, two after the second, and so on: at most six times within the hour.
    for small in &small {
        let tries = driver.steps.iter().filter(|step| step.job == *small && is_move(step)).count();
        assert!((1..=6).contains(&tries), "{tries} tries");
    }
    observe(&mut driver, Event::JobEnded { job: small[0], how: Ending::Completed });
    driver.settle();
    assert!(runs(&driver, whole));
    assert_well(&driver);
}
