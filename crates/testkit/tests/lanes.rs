//! What jobs may do on links: decided with the plan, recorded, made again on replay, and over with the job.

use metronome_core::decide::decide;
use metronome_core::engine::{Engine, State};
use metronome_core::journal::{Record, Replay};
use metronome_core::model::id::JobId;
use metronome_core::model::policy::{Links, Policy};
use metronome_core::model::units::{Bandwidth, Duration, Instant};
use metronome_core::traffic::TrafficPolicy;
use metronome_sim::outcome::Fate;
use metronome_sim::scenario::{Costs, Fault, Scenario};
use metronome_sim::world::{self, RunOptions};
use metronome_testkit::build::{known_job as known, linked_racks, policy, run, training_scenario};
use metronome_testkit::lines::Lines;

const NODE: Bandwidth = Bandwidth(100_000_000_000);
const RACK: Bandwidth = Bandwidth(50_000_000_000);

/// Everything that is done about links, and nothing.
const ALL: [Links; 7] = [
    Links::Shared,
    Links::Shift,
    Links::Weighted,
    Links::Classes,
    Links::Chosen,
    Links::Rotated,
    Links::Cushioned,
];

fn doing(links: Links) -> Policy {
    Policy { links, ..policy("coscheduling") }
}

/// Jobs that come and go on racks of two nodes, most of them too wide for one, with a node that fails meanwhile.
fn busy() -> Scenario {
    let models = ["vgg16/128", "resnet50/512", "vgg16/128"];
    let of = |index: u64| {
        let name = format!("job-{index}");
        (index * 20, known(&name, 2 + index % 2, models[index as usize % 3], 200 + 40 * index))
    };
    let mut scenario = training_scenario(linked_racks(4, 2, 4, NODE, RACK), (0..8).map(of));
    scenario.costs = Costs { start: Duration::from_secs(3), stop: Duration::from_secs(1) };
    let node = metronome_core::model::id::NodeId(1);
    let (at, lasts) = (Instant::from_secs(100), Some(Duration::from_secs(60)));
    scenario.faults.push(Fault::Node { node, at, lasts, notice: Duration::ZERO });
    scenario
}

/// Two that must meet on an uplink, and compute and send alike.
fn two_alike() -> Scenario {
    let jobs = [(0, known("a", 3, "gpt2-medium/32", 500)), (1, known("b", 3, "gpt2-medium/32", 500))];
    training_scenario(linked_racks(4, 2, 4, NODE, NODE), jobs)
}

fn slowdowns(links: Links) -> Vec<f64> {
    let outcome = run(&two_alike(), doing(links), 1);
    outcome.jobs.iter().map(|job| job.slowdown.expect("a job that trained")).collect()
}

fn state_at(links: Links, seconds: u64) -> State {
    world::state_at(&busy(), RunOptions::new(doing(links)), Instant::from_secs(seconds))
}

#[test]
fn two_that_are_alike_take_turns_by_themselves() {
    let fair = slowdowns(Links::Shared);
    assert!(fair.iter().all(|slowdown| *slowdown > 1.05), "{fair:?}");
    for links in &ALL[1..] {
        let slowed = slowdowns(*links);
        let part = (slowed.iter().sum::<f64>() - 2.0) / (fair.iter().sum::<f64>() - 2.0);
        assert!(part < 0.2, "{links:?} leaves {part:.2} of what fair sharing costs: {slowed:?}");
    }
}

#[test]
fn lanes_are_recorded_and_decided_again_to_the_same_bytes() {
    for links in ALL {
        let lines = Lines::default();
        let journal = Some(Box::new(lines.clone()) as Box<_>);
        let options = RunOptions { journal, state_record_every: 20, ..RunOptions::new(doing(links)) };
        let outcome = world::run(&busy(), options, &|_| {});
        assert_eq!((outcome.alarms, outcome.violations.len()), (0, 0));
        assert!(outcome.jobs.iter().all(|job| job.fate == Fate::Completed));
        let mut replay = Replay::default();
        for line in lines.text().lines() {
            replay.feed(Record::from_line(line).unwrap()).unwrap();
        }
        assert!(replay.mismatches.is_empty(), "{links:?}: {:?}", replay.mismatches[0]);
        assert_eq!(lines.text().contains("\"traffic\":"), links != Links::Shared, "{links:?}");
        let left = &replay.engine().expect("a journal begins with a state").state().plan.traffic();
        assert!(left.is_empty(), "{links:?}: who is over has no lane: {left:?}");
    }
}

#[test]
fn deciding_again_leaves_every_lane_as_it_is() {
    for links in ALL {
        for seconds in (5..200).step_by(15) {
            let engine = Engine::restore(state_at(links, seconds));
            let again = decide(&engine.snapshot(), engine.policy());
            assert!(
                again.amendment.traffic.is_empty(),
                "{links:?} after {seconds} s: {:?}",
                again.amendment.traffic
            );
        }
    }
}

#[test]
fn only_jobs_in_the_plan_have_lanes() {
    for links in ALL {
        for seconds in (5..200).step_by(15) {
            let state = state_at(links, seconds);
            let astray = |job: &&JobId| state.plan.get(**job).is_none() && !state.dirty;
            assert_eq!(state.plan.traffic().keys().find(astray), None, "{links:?} after {seconds} s");
            assert!(state.plan.traffic().values().all(|lane| *lane != TrafficPolicy::default()));
        }
    }
}
