//! Deadlines of jobs that may run on some nodes only: nobody is promised what lies where it may not run.

use metronome_core::deadlines::DeadlineVerdict;
use metronome_core::engine::{Engine, Event};
use metronome_core::model::id::{JobId, NodeId, NodeSetId};
use metronome_core::model::job::{Binding, Deadline, Gang, JobSpec, OnMiss};
use metronome_core::model::units::{Duration, Instant};
use metronome_testkit::build::{engine, gpus, policy, preemptible, racks};

const FIRST: NodeSetId = NodeSetId(0);
const BOTH: NodeSetId = NodeSetId(1);

/// Two nodes of eight GPUs, the first of which is a set of its own.
fn two_nodes() -> Engine {
    let mut engine = engine(racks(1, 2, 8), policy("metronome"));
    let nodes = |nodes: &[u32]| nodes.iter().map(|node| NodeId(*node)).collect();
    engine.observe(Instant::START, Event::NodeSet { set: FIRST, nodes: nodes(&[0]) });
    engine.observe(Instant::START, Event::NodeSet { set: BOTH, nodes: nodes(&[0, 1]) });
    engine
}

/// Eight GPUs for an hour, due within some minutes.
fn due(engine: &mut Engine, name: &str, on: Option<NodeSetId>, minutes: u64) -> JobId {
    let mut spec = preemptible(JobSpec::workers(name, Gang::rigid(8).unwrap(), gpus(1)));
    spec.work.alone = Some(Duration::from_secs(3600));
    spec.roles[0].shape.on.set = on;
    let at = Instant::START + Duration::from_secs(60 * minutes);
    spec.deadline = Some(Deadline { at, binding: Binding::Strict, value: 1, on_miss: OnMiss::Run });
    engine.submit(Instant::START, std::sync::Arc::new(spec))
}

fn verdict(engine: &Engine, job: JobId) -> DeadlineVerdict {
    engine.state().plan.timetable().get(job).map(|entry| entry.verdict).unwrap()
}

#[test]
fn what_lies_where_a_job_may_not_run_is_not_promised_to_it() {
    let mut engine = two_nodes();
    let one = due(&mut engine, "one", Some(FIRST), 100);
    let two = due(&mut engine, "two", Some(FIRST), 100);
    engine.poll(Instant::START);
    assert_eq!(
        (verdict(&engine, one), verdict(&engine, two)),
        (DeadlineVerdict::Promised, DeadlineVerdict::Pending)
    );
}

#[test]
fn who_takes_from_a_part_takes_from_the_whole() {
    let mut engine = two_nodes();
    let narrow = due(&mut engine, "narrow", Some(FIRST), 100);
    let wide = due(&mut engine, "wide", Some(BOTH), 100);
    let anywhere = due(&mut engine, "anywhere", None, 100);
    engine.poll(Instant::START);
    let verdicts = [narrow, wide, anywhere].map(|job| verdict(&engine, job));
    assert_eq!(
        verdicts.iter().filter(|verdict| **verdict == DeadlineVerdict::Promised).count(),
        2,
        "{verdicts:?}"
    );
}

#[test]
fn sets_that_have_nothing_in_common_do_not_meet() {
    let mut engine = two_nodes();
    let second = NodeSetId(2);
    engine.observe(Instant::START, Event::NodeSet { set: second, nodes: vec![NodeId(1)] });
    let jobs = [(FIRST, 70), (second, 70), (FIRST, 130), (second, 130)];
    let jobs = jobs.map(|(set, minutes)| due(&mut engine, &format!("{set:?}-{minutes}"), Some(set), minutes));
    engine.poll(Instant::START);
    for job in jobs {
        assert_eq!(verdict(&engine, job), DeadlineVerdict::Promised);
    }
}
