//! The neutral terms in which a world describes what it has and asks for: counters, sets of nodes, groups and rules,
//! jobs found running, and room made for those of higher priority.

mod changes;
mod moves;
mod nodes;
mod preemption;
mod rules;

use metronome_core::engine::Event;
use metronome_core::model::id::{JobId, NodeId};
use metronome_core::model::job::{Capabilities, Gang, JobSpec, Life, Priority};
use metronome_core::model::units::Instant;
use metronome_testkit::build::gpus;
use metronome_testkit::drive::Driver;

const NOW: Instant = Instant::START;

/// One member of so many GPUs.
fn single(name: &str, each: u64) -> JobSpec {
    gang(name, 1, each)
}

fn gang(name: &str, members: u64, each: u64) -> JobSpec {
    JobSpec::workers(name, Gang::rigid(members).expect("a positive number of members"), gpus(each))
}

fn with_priority(mut spec: JobSpec, priority: i32) -> JobSpec {
    spec.priority = Priority(priority);
    spec
}

fn evictable(mut spec: JobSpec) -> JobSpec {
    spec.capabilities = Capabilities { evict: true, ..Capabilities::START_ONLY };
    spec
}

fn runs(driver: &Driver, job: JobId) -> bool {
    matches!(driver.engine.life(job), Some(Life::Running(_)))
}

/// The nodes a job is planned onto.
fn nodes(driver: &Driver, job: JobId) -> Vec<u32> {
    driver
        .engine
        .plan()
        .get(job)
        .map_or_else(Vec::new, |planned| planned.nodes().map(|node| node.0).collect())
}

fn observe(driver: &mut Driver, event: Event) {
    driver.engine.observe(driver.now, event);
}

/// Nothing was wrong with any plan.
fn assert_well(driver: &Driver) {
    let state = driver.engine.state();
    assert_eq!(state.alarms, 0, "{:?}", state.last_alarm);
}

/// Nodes 0 to 3, each in a domain of its own.
fn each_its_own() -> Vec<(NodeId, u32)> {
    (0..4).map(|node| (NodeId(node), node)).collect()
}

/// Nodes 0 and 1 in one domain, 2 and 3 in another.
fn two_by_two() -> Vec<(NodeId, u32)> {
    (0..4).map(|node| (NodeId(node), node / 2)).collect()
}
