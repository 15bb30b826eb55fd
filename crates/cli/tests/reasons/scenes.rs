//! One scene for each reason: the shortest way to it.

use std::sync::Arc;

use metronome_core::engine::{Ending, Event, Settings};
use metronome_core::model::cluster::Level;
use metronome_core::model::groups::Domain;
use metronome_core::model::id::{GroupId, NodeId};
use metronome_core::model::job::{Capabilities, Checkpointing, Deadline, JobSpec, Priority, Rule, Topology};
use metronome_core::model::policy::Policy;
use metronome_core::model::profile::{Bucket, Iteration, Profile};
use metronome_core::model::report::Failure;
use metronome_core::model::units::{Bytes, Duration, Instant, Iterations};
use metronome_core::observe::progress::Sample;

use crate::stage::{SMALL, Stage, gang};

pub(crate) fn gated() -> Stage {
    let mut stage = Stage::new("metronome");
    stage.submit(JobSpec { suspended: true, ..gang("held", 4) });
    stage.asking("held")
}

pub(crate) fn exceeds_quota() -> Stage {
    let mut stage = Stage::new("metronome");
    stage.submit(JobSpec { queue: SMALL, ..gang("large", 8) });
    stage.asking("large")
}

pub(crate) fn no_matching_node() -> Stage {
    let mut stage = Stage::new("metronome");
    stage.submit(gang("huge", 17));
    stage.asking("huge")
}

pub(crate) fn waiting_for_quota() -> Stage {
    let mut stage = Stage::new("metronome");
    stage.submit(JobSpec { queue: SMALL, ..gang("first", 4) });
    stage.wait(2);
    stage.submit(JobSpec { queue: SMALL, ..gang("second", 2) });
    stage.asking("second")
}

/// Two GPUs are free; of two that wait, the urgent one is ahead.
pub(crate) fn insufficient_resources() -> Stage {
    let mut stage = Stage::new("volcano");
    stage.submit(gang("first", 14));
    stage.wait(2);
    stage.submit(gang("second", 4));
    stage.wait(1);
    stage.submit(JobSpec { priority: Priority::HIGH, ..gang("urgent", 6) });
    stage.asking("second")
}

/// Two GPUs are free in each rack.
pub(crate) fn topology_unsatisfied() -> Stage {
    let mut stage = Stage::new("metronome");
    let in_one_rack =
        |name, members| JobSpec { topology: Topology::Required(Level(0)), ..gang(name, members) };
    stage.submit(in_one_rack("first", 6));
    stage.submit(in_one_rack("second", 6));
    stage.wait(2);
    stage.submit(in_one_rack("third", 4));
    stage.asking("third")
}

/// A group counted over pairs of nodes, with so many others on each node.
fn group(stage: &mut Stage, others: &[(u32, u32)]) -> GroupId {
    let pairs: Vec<(NodeId, Domain)> = (0..4).map(|node| (NodeId(node), node / 2)).collect();
    let partition = stage.engine.add_partition(stage.now, pairs);
    let others = others.iter().map(|(node, count)| (NodeId(*node), *count)).collect();
    stage.engine.add_group(stage.now, partition, others, Vec::new())
}

fn ruled(mut spec: JobSpec, group: GroupId, rule: Rule) -> JobSpec {
    spec.roles[0].shape.groups = Arc::from([group]);
    spec.roles[0].shape.rules = Arc::from([rule]);
    spec
}

/// Nobody is there whom it could be beside.
pub(crate) fn affinity_unsatisfied() -> Stage {
    let mut stage = Stage::new("volcano");
    let group = group(&mut stage, &[]);
    let beside = Rule::Together { groups: vec![group], or_first: false };
    stage.submit(ruled(gang("follower", 2), group, beside));
    stage.asking("follower")
}

/// Those it must keep away from are everywhere.
pub(crate) fn anti_affinity_unsatisfied() -> Stage {
    let mut stage = Stage::new("volcano");
    let group = group(&mut stage, &[(0, 1), (2, 1)]);
    stage.submit(ruled(gang("loner", 1), group, Rule::Apart(group)));
    stage.asking("loner")
}

/// One pair of nodes is full, so the other cannot take more than one more than it.
pub(crate) fn spread_unsatisfied() -> Stage {
    let mut stage = Stage::new("metronome");
    stage.submit(JobSpec { topology: Topology::Required(Level(0)), ..gang("first", 8) });
    stage.wait(2);
    let group = group(&mut stage, &[]);
    let evenly = Rule::Spread { group, skew: 1, own: true, least_domains: 0 };
    stage.submit(ruled(gang("even", 4), group, evenly));
    stage.asking("even")
}

/// Somebody saves its work before it goes.
pub(crate) fn waiting_for_victims() -> Stage {
    let mut stage = Stage::with(Policy::named("volcano").unwrap().preempting(), Settings::default());
    let saves =
        Checkpointing { every: None, takes: Duration::from_secs(20), restart: Duration::from_secs(30) };
    stage.submit(JobSpec {
        priority: Priority::LOW,
        capabilities: Capabilities::CHECKPOINTED,
        checkpointing: Some(saves),
        ..gang("low", 16)
    });
    stage.wait(2);
    let high = Arc::new(JobSpec { priority: Priority::HIGH, ..gang("high", 4) });
    stage.observe(Event::JobSubmitted(high));
    assert_eq!(stage.poll().len(), 1, "one is told to go");
    stage.asking("high")
}

/// Somebody is alone on each node, and one of them goes to another so that a whole node is free.
pub(crate) fn waiting_for_those_who_move() -> Stage {
    let mut stage = Stage::new("metronome");
    let saves =
        Checkpointing { every: None, takes: Duration::from_secs(20), restart: Duration::from_secs(30) };
    let on_one_node = |name: &str, members| JobSpec {
        topology: Topology::Required(Level(1)),
        capabilities: Capabilities::CHECKPOINTED,
        checkpointing: Some(saves),
        ..taking(Duration::HOUR.times(5), gang(name, members))
    };
    for node in 0..4 {
        stage.submit(on_one_node(&format!("small-{node}"), 1));
        stage.submit(on_one_node(&format!("large-{node}"), 3));
    }
    stage.wait(60);
    for node in 0..4 {
        let large = stage.engine.find_job(&format!("large-{node}")).expect("a job of that name");
        stage.observe(Event::JobEnded { job: large, how: Ending::Completed });
    }
    stage.settle();
    stage.wait(1);
    let whole = on_one_node("whole", 4);
    stage.observe(Event::JobSubmitted(Arc::new(taking(Duration::HOUR.times(10), whole))));
    assert_eq!(stage.poll().len(), 1, "one is told to move");
    stage.asking("whole")
}

/// Somebody has waited for so long that all the room is kept for it, and the one who asks would not be gone in time.
pub(crate) fn reserved_until() -> Stage {
    let mut stage = Stage::new("metronome");
    stage.submit(taking(Duration::from_secs(7200), gang("first", 14)));
    stage.wait(1);
    stage.submit(taking(Duration::from_secs(600), gang("wide", 16)));
    stage.wait(60);
    stage.submit(taking(Duration::from_secs(7200), gang("narrow", 1)));
    stage.asking("narrow")
}

/// All there is, for an hour, and then for another.
pub(crate) fn booked_from() -> Stage {
    let mut stage = Stage::new("metronome");
    stage.submit(due(4000, taking(Duration::HOUR, gang("first", 16))));
    stage.submit(due(8000, taking(Duration::HOUR, gang("second", 16))));
    stage.wait(60);
    stage.asking("second")
}

pub(crate) fn deadline_infeasible() -> Stage {
    let mut stage = Stage::new("elasticflow");
    stage.submit(due(4000, taking(Duration::HOUR, gang("first", 16))));
    stage.wait(60);
    stage.submit(due(4000, taking(Duration::HOUR, gang("second", 16))));
    stage.wait(1);
    stage.asking("second")
}

/// To be done by then.
fn due(seconds: u64, mut spec: JobSpec) -> JobSpec {
    spec.deadline = Some(Deadline::soft(Instant::from_secs(seconds)));
    spec
}

/// Two jobs send most of the time; what is left free lies on a node of each.
pub(crate) fn bandwidth_contended() -> Stage {
    let mut stage = Stage::over_links("metronome");
    stage.submit(sending(gang("first", 6)));
    stage.submit(sending(gang("second", 6)));
    stage.wait(1);
    stage.submit(sending(gang("third", 4)));
    stage.asking("third")
}

pub(crate) fn bandwidth_reserved() -> Stage {
    let mut stage = Stage::over_links("exclusive");
    stage.submit(sending(gang("first", 6)));
    stage.submit(sending(gang("second", 6)));
    stage.wait(1);
    stage.submit(sending(gang("third", 4)));
    stage.asking("third")
}

/// Each iteration computes for a tenth of a second and sends for about as long.
fn sending(mut spec: JobSpec) -> JobSpec {
    let compute = Duration::from_millis(100);
    let buckets = vec![Bucket { ready: Duration::from_millis(50), bytes: Bytes(1_250_000_000) }];
    let iteration = Iteration { compute, buckets, finish: Duration::ZERO };
    let profile = Profile::new(Vec::new(), None).unwrap().reducing(iteration);
    spec.profile = Some(Arc::new(profile));
    spec
}

fn taking(alone: Duration, mut spec: JobSpec) -> JobSpec {
    spec.work.alone = Some(alone);
    spec
}

pub(crate) fn behind_higher_priority() -> Stage {
    let mut stage = Stage::new("fifo");
    stage.submit(gang("first", 14));
    stage.wait(1);
    stage.submit(gang("wide", 8));
    stage.wait(1);
    stage.submit(gang("narrow", 1));
    stage.asking("narrow")
}

pub(crate) fn start_failed() -> Stage {
    let mut stage = Stage::new("metronome");
    stage.observe(Event::JobSubmitted(Arc::new(gang("unlucky", 4))));
    for step in stage.poll() {
        stage.observe(Event::StepFailed { job: step.job, step: step.id, failure: Failure::NodeGone });
    }
    stage.asking("unlucky")
}

/// Its node is gone, and what is left of it is being stopped.
pub(crate) fn node_lost() -> Stage {
    let mut stage = Stage::new("metronome");
    let job = stage.submit(gang("stricken", 8));
    stage.wait(2);
    let node = stage.engine.plan().get(job).and_then(|plan| plan.nodes().next()).unwrap();
    stage.observe(Event::NodeLost(node));
    assert_eq!(stage.poll().len(), 1, "what is left of it is stopped");
    stage.asking("stricken")
}

/// It reports every ten minutes, and then no more.
pub(crate) fn stalled() -> Stage {
    let mut stage = Stage::new("metronome");
    let job = stage.submit(gang("hung", 4));
    for iterations in 1..=6 {
        stage.wait(10);
        let sample = Sample { at: stage.now, iterations: Iterations(iterations), loss: None, used: None };
        stage.observe(Event::Progress { job, sample });
    }
    stage.wait(120);
    stage.settle();
    stage.asking("hung")
}

pub(crate) fn training_failed() -> Stage {
    let mut stage = Stage::new("metronome");
    let job = stage.submit(gang("broken", 4));
    stage.wait(2);
    stage.observe(Event::JobEnded { job, how: Ending::Failed });
    stage.settle();
    stage.asking("broken")
}

pub(crate) fn too_many_jobs() -> Stage {
    let settings = Settings { most_jobs: 2, ..Settings::default() };
    let mut stage = Stage::with(Policy::named("metronome").unwrap(), settings);
    stage.submit(gang("first", 1));
    stage.submit(gang("second", 1));
    stage.submit(gang("third", 1));
    stage.asking("third")
}
