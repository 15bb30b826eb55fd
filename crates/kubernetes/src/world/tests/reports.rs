//! What pods and those who made them say of their progress.

use super::*;
use crate::deed::EventReason;
use crate::objects::{Done, Report, TrainJob};

fn saying(mut pod: Value, progress: &str) -> Value {
    pod["metadata"]["annotations"]["metronome.dev/progress"] = json!(progress);
    pod
}

fn iterations(world: &World, name: &str) -> Option<u64> {
    let job = world.engine.job(world.engine.find_job(name)?)?;
    Some(job.progress.latest?.iterations.0)
}

#[test]
fn a_pod_says_how_far_it_is() {
    let running = on(pod("p"), "n");
    let mut world = world(4, vec![saying(running.clone(), r#"{"iteration": 10, "metrics": {"loss": 2.5}}"#)]);
    assert_eq!(iterations(&world, "ns/p"), Some(10), "what was said before a restart counts");
    apply(&mut world, at(5), saying(running.clone(), r#"{"iteration": 30, "metrics": {"loss": 1.5}}"#));
    assert_eq!(iterations(&world, "ns/p"), Some(30));
    let told = |deeds: &[Deed]| {
        let of =
            |deed: &&Deed| matches!(&deed.kind, Kind::Tell(it) if it.reason == EventReason::ProgressIgnored);
        deeds.iter().filter(of).count()
    };
    world.turn(at(5));
    apply(&mut world, at(6), saying(running.clone(), "nearly there"));
    assert_eq!(told(&world.turn(at(6))), 1);
    apply(&mut world, at(7), saying(running, "nearly there"));
    assert_eq!(told(&world.turn(at(7))), 0, "the same is not complained of twice");
    assert_eq!(iterations(&world, "ns/p"), Some(30));
}

#[test]
fn a_trainer_says_how_far_its_pods_are_in_percent() {
    let mut running = on(pod("p"), "n");
    running["metadata"]["labels"]["jobset.sigs.k8s.io/jobset-name"] = json!("bert");
    let train = |percent: u64| TrainJob {
        namespace: "ns".into(),
        name: "bert".into(),
        report: Report {
            done: Some(Done::Percent(percent)),
            loss: Some(0.4),
            at: Some(at(percent)),
            ..Report::default()
        },
    };
    let lists = vec![
        Change::TrainJob(Delta::Reset(vec![train(20)])),
        Change::Pod(Delta::Reset(vec![read(running)])),
        Change::Node(Delta::Reset(vec![node("n", 4)])),
    ];
    let mut world = World::rebuild(Settings::new("metronome"), START, Initial { lists });
    assert_eq!(iterations(&world, "ns/p"), Some(20));
    world.apply(at(60), Change::TrainJob(Delta::Applied(train(60))));
    assert_eq!(iterations(&world, "ns/p"), Some(60));
    let job = world.engine.job(world.engine.find_job("ns/p").unwrap()).unwrap();
    assert_eq!(job.spec.work.iterations.map(|all| all.0), Some(100));
}

#[test]
fn of_a_job_that_falls_silent_is_said_once_that_it_hangs() {
    let running = on(pod("p"), "n");
    let mut world = world(4, vec![running.clone()]);
    for iteration in 1..=5 {
        let report = format!(r#"{{"iteration": {iteration}}}"#);
        apply(&mut world, at(10 * iteration), saying(running.clone(), &report));
        world.turn(at(10 * iteration));
    }
    let mut told = |seconds: u64| {
        let of = |deed: &&Deed| matches!(&deed.kind, Kind::Tell(it) if it.reason == EventReason::Stalled);
        world.turn(at(seconds)).iter().filter(of).count()
    };
    assert_eq!(told(149), 0, "ten iterations of ten seconds are not over");
    assert_eq!(told(151), 1);
    assert_eq!(told(170), 0, "it is not said twice");
    apply(&mut world, at(180), saying(running, r#"{"iteration": 6}"#));
    world.turn(at(180));
    assert_eq!(world.engine.stalled().count(), 0);
}
