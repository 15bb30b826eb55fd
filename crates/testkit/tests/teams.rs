//! Workers in groups: the gang may be spread, its groups may not.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use metronome_core::engine::{Engine, Event};
use metronome_core::model::cluster::Level;
use metronome_core::model::id::{JobId, NodeId};
use metronome_core::model::job::{Gang, JobSpec, Teams};
use metronome_core::model::report::Reason;
use metronome_core::model::units::Instant;
use metronome_testkit::build::{engine, gpus, policy, racks};

const RACK: Level = Level(0);
const NODE: Level = Level(1);

fn in_teams(members: u64, size: u32, within: Level) -> JobSpec {
    let size = NonZeroU32::new(size).unwrap();
    let spec = JobSpec::workers("gang", Gang::rigid(members).unwrap(), gpus(1));
    JobSpec { teams: Some(Teams { size, within }), ..spec }
}

/// Three racks of two nodes with eight GPUs each, of which these are taken.
fn partly_taken(name: &str, taken: [u64; 6]) -> Engine {
    let mut engine = engine(racks(3, 2, 8), policy(name));
    for (node, count) in taken.into_iter().enumerate() {
        let spec = JobSpec::workers("other", Gang::rigid(count.max(1)).unwrap(), gpus(1));
        let part = metronome_core::model::plan::Part::of(0, NodeId(node as u32), count as u32);
        if count > 0 {
            engine.found(Instant::START, Arc::new(spec), vec![part], Instant::START);
        }
    }
    engine
}

fn submit(engine: &mut Engine, spec: JobSpec) -> JobId {
    let job = engine.submit(Instant::START, Arc::new(spec));
    for step in engine.poll(Instant::START).into_inner() {
        engine.observe(Instant::START, Event::StepDone { job: step.job, step: step.id });
    }
    job
}

fn by_node(engine: &Engine, job: JobId) -> BTreeMap<u32, u32> {
    let plan = engine.plan().get(job).expect("it has a place");
    plan.parts().iter().map(|part| (part.node.0, part.members)).collect()
}

#[test]
fn every_node_has_whole_groups() {
    for name in ["metronome", "volcano", "coscheduling"] {
        // Five, six and seven are free somewhere, and one group of four fits in each.
        let mut engine = partly_taken(name, [3, 2, 1, 8, 8, 8]);
        let job = submit(&mut engine, in_teams(12, 4, NODE));
        assert_eq!(by_node(&engine, job), BTreeMap::from([(0, 4), (1, 4), (2, 4)]), "{name}");
    }
}

#[test]
fn every_rack_has_whole_groups_and_its_nodes_need_not() {
    let mut engine = partly_taken("metronome", [3, 4, 2, 4, 8, 8]);
    let job = submit(&mut engine, in_teams(16, 8, RACK));
    let racks = by_node(&engine, job).into_iter().fold(BTreeMap::new(), |mut racks, (node, members)| {
        *racks.entry(node / 2).or_insert(0) += members;
        racks
    });
    assert_eq!(racks, BTreeMap::from([(0, 8), (1, 8)]));
}

#[test]
fn who_finds_room_but_not_for_whole_groups_waits_and_hears_how_many_would_fit() {
    let mut engine = partly_taken("metronome", [3, 2, 1, 8, 8, 8]);
    let job = submit(&mut engine, in_teams(16, 4, NODE));
    let verdict = engine.verdict(job);
    assert!(
        matches!(verdict, Some(Reason::InsufficientResources { members: 16, fit: 12, .. })),
        "{verdict:?}"
    );
}

#[test]
fn groups_that_no_place_could_ever_hold_are_refused_at_once() {
    let mut engine = partly_taken("metronome", [0; 6]);
    let job = submit(&mut engine, in_teams(9, 9, NODE));
    assert!(engine.life(job).is_none(), "it is over");
}
