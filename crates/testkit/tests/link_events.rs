//! Links that change and loops that are not what was declared: what the engine is told, and what it makes of it.

use std::sync::Arc;

use metronome_core::decide::decide;
use metronome_core::engine::{Engine, Event};
use metronome_core::journal::{Record, Replay};
use metronome_core::model::id::{JobId, LinkId};
use metronome_core::model::job::JobSpec;
use metronome_core::model::policy::{Links, Policy};
use metronome_core::model::profile::{Compute, Iteration, Profile};
use metronome_core::model::units::{Bandwidth, Duration, Instant};
use metronome_core::traffic::decision_inputs::{What, Why};
use metronome_sim::model::{self, TrainingModel};
use metronome_sim::outcome::{Fate, Outcome};
use metronome_sim::scenario::{Fault, Scenario};
use metronome_sim::world::{self, RunOptions};
use metronome_testkit::build::{linked_racks, model_job, policy, run, training_scenario};
use metronome_testkit::lines::Lines;

const NODE: Bandwidth = Bandwidth(100_000_000_000);
const WIDE: Bandwidth = Bandwidth(400_000_000_000);
const NARROW: Bandwidth = Bandwidth(50_000_000_000);

fn lanes() -> Policy {
    Policy { links: Links::Chosen, ..policy("coscheduling") }
}

fn profile(model: &str, members: u32) -> Arc<Profile> {
    let gradients = model::named(model).expect("a known model").iteration.clone();
    let compute = Compute { gpu_type: None, members, time: gradients.compute };
    Arc::new(Profile::new(vec![compute], None).expect("a model computes").reducing(gradients))
}

/// Three members of a node each, so that it crosses racks of two.
fn wide(name: &str, model: &str, iterations: u64) -> (JobSpec, TrainingModel) {
    let (mut spec, training) = model_job(name, 3, 4, model, iterations);
    spec.profile = Some(profile(model, 3));
    (spec, training)
}

/// Two that meet on an uplink, which is wide enough for both.
fn two_that_do_not_mind() -> Scenario {
    let jobs = [(0, wide("a", "gpt2-medium/32", 1000)), (1, wide("b", "gpt2-medium/32", 1000))];
    training_scenario(linked_racks(4, 2, 4, NODE, WIDE), jobs)
}

/// Both directions of the uplink of each rack.
fn uplinks() -> [[LinkId; 2]; 4] {
    [0, 6, 12, 18].map(|up| [LinkId(up), LinkId(up + 1)])
}

fn faulty(mut scenario: Scenario, at: Duration, lasts: Duration, rate: Option<Bandwidth>) -> Scenario {
    let fault = |links| Fault::Link { links, at: Instant::START + at, lasts: Some(lasts), rate };
    scenario.faults.extend(uplinks().map(fault));
    scenario
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn all_completed(outcome: &Outcome) -> bool {
    (outcome.alarms, outcome.violations.len()) == (0, 0)
        && outcome.jobs.iter().all(|job| job.fate == Fate::Completed)
}

fn engine_at(scenario: &Scenario, policy: Policy, at: u64) -> Engine {
    Engine::restore(world::state_at(scenario, RunOptions::new(policy), Instant::from_secs(at)))
}

#[test]
fn a_link_that_carries_less_is_answered_with_lanes_and_the_reason() {
    let scenario = faulty(two_that_do_not_mind(), seconds(20), seconds(40), Some(NARROW));
    assert!(engine_at(&scenario, lanes(), 15).state().plan.traffic().is_empty(), "nobody minds at first");
    let narrow = engine_at(&scenario, lanes(), 21);
    assert_eq!(narrow.state().plan.traffic().len(), 2);
    let [made] = &narrow.state().reconfigured[..] else { panic!("{:?}", narrow.state().reconfigured) };
    assert_eq!((made.what, &made.jobs[..]), (What::Lanes, &[JobId(0), JobId(1)][..]));
    assert!(matches!(made.why, Why::Link { was: WIDE, is: NARROW, .. }), "{made:?}");
    assert!(made.saves > seconds(1), "{made:?}");
    assert!(engine_at(&scenario, lanes(), 62).state().plan.traffic().is_empty(), "and not when it is over");
    let outcome = run(&scenario, lanes(), 1);
    assert!(all_completed(&outcome));
    assert_eq!((outcome.reconfigured.link, outcome.link_answers.len()), (2, 16));
    assert!(outcome.link_answers.iter().all(|answer| *answer == seconds(1)), "when it is seen");
}

#[test]
fn lanes_help_where_a_link_carries_less() {
    let scenario = faulty(two_that_do_not_mind(), seconds(20), seconds(400), Some(NARROW));
    let mean = |links: Links| {
        let outcome = run(&scenario, Policy { links, ..lanes() }, 1);
        outcome.jobs.iter().filter_map(|job| job.slowdown).sum::<f64>()
    };
    let (fair, chosen) = (mean(Links::Shared), mean(Links::Chosen));
    assert!(chosen < fair, "{chosen:.3} against {fair:.3}");
}

#[test]
fn a_link_that_comes_and_goes_changes_lanes_now_and_then() {
    let mut scenario = two_that_do_not_mind();
    for at in 0..40 {
        scenario = faulty(scenario, seconds(20 + at), Duration::from_millis(500), Some(NARROW));
    }
    let outcome = run(&scenario, lanes(), 1);
    assert!(all_completed(&outcome));
    // Lanes that no longer help are given up at once, those that would help come only so often.
    assert!((1..=44).contains(&outcome.reconfigured.link), "{:?}", outcome.reconfigured);
}

#[test]
fn whoever_crosses_a_link_that_is_down_waits_and_goes_on() {
    let whole = run(&two_that_do_not_mind(), lanes(), 1);
    let scenario = faulty(two_that_do_not_mind(), seconds(20), seconds(100), None);
    let stalled = engine_at(&scenario, lanes(), 60);
    assert!(stalled.snapshot().contention.flows().all(|(_, flow)| flow.is_stalled()));
    assert!(decide(&stalled.snapshot(), stalled.policy()).amendment.traffic.is_empty());
    let outcome = run(&scenario, lanes(), 1);
    assert!(all_completed(&outcome));
    for (with, without) in outcome.jobs.iter().zip(&whole.jobs) {
        let later = with.end.unwrap().since(without.end.unwrap());
        assert!(later > seconds(99) && later < seconds(102), "{later}");
    }
}

#[test]
fn nobody_starts_across_a_link_that_is_down_while_it_can_wait() {
    let jobs = [(10, wide("a", "gpt2-medium/32", 1000))];
    let scenario = training_scenario(linked_racks(4, 2, 4, NODE, WIDE), jobs);
    let scenario = faulty(scenario, Duration::ZERO, seconds(200), None);
    let outcome = run(&scenario, policy("metronome"), 1);
    assert!(all_completed(&outcome));
    assert_eq!(outcome.jobs[0].start, Some(Instant::from_secs(201)), "when it is seen to be back");
}

#[test]
fn events_of_links_are_recorded_and_decided_again_to_the_same_bytes() {
    let mut scenario = faulty(two_that_do_not_mind(), seconds(20), seconds(20), Some(NARROW));
    scenario = faulty(scenario, seconds(50), seconds(10), None);
    let lines = Lines::default();
    let journal = Some(Box::new(lines.clone()) as Box<_>);
    let options = RunOptions { journal, state_record_every: 10, ..RunOptions::new(lanes()) };
    assert!(all_completed(&world::run(&scenario, options, &|_| {})));
    assert!(lines.text().contains("linkChanged") && lines.text().contains("\"reconfigured\""));
    let mut replay = Replay::default();
    for line in lines.text().lines() {
        replay.feed(Record::from_line(line).unwrap()).unwrap();
    }
    assert!(replay.mismatches.is_empty(), "{:?}", replay.mismatches[0]);
}

/// `b` is said to train something that hardly sends, and sends as much as `a`.
fn one_that_lies() -> Scenario {
    let (mut spec, training) = wide("b", "gpt2-medium/32", 1000);
    spec.profile = Some(profile("resnet50/512", 3));
    let jobs = [(0, wide("a", "gpt2-medium/32", 1000)), (1, (spec, training))];
    training_scenario(linked_racks(4, 2, 4, NODE, NODE), jobs)
}

fn believed(engine: &Engine, job: u32) -> Iteration {
    let spec = &engine.job(JobId(job)).expect("it is not over").spec;
    spec.profile.as_ref().and_then(|profile| profile.gradients.clone()).expect("a model's gradients")
}

#[test]
fn what_is_measured_takes_the_place_of_what_was_declared() {
    let scenario = one_that_lies();
    let truth = model::named("gpt2-medium/32").unwrap().iteration.clone();
    assert_ne!(believed(&engine_at(&scenario, lanes(), 2), 1), truth);
    let later = engine_at(&scenario, lanes(), 60);
    assert_eq!(believed(&later, 1), truth);
    let times = |job| later.job(JobId(job)).unwrap().times_measured;
    assert_eq!((times(0), times(1)), (0, 1), "who said the truth is not asked again");
    let outcome = run(&scenario, lanes(), 1);
    assert!(all_completed(&outcome));
    assert!(outcome.reconfigured.profile <= 1);
    let honest = run(
        &training_scenario(
            linked_racks(4, 2, 4, NODE, NODE),
            [(0, wide("a", "gpt2-medium/32", 1000)), (1, wide("b", "gpt2-medium/32", 1000))],
        ),
        lanes(),
        1,
    );
    let mean = |outcome: &Outcome| outcome.jobs.iter().filter_map(|job| job.slowdown).sum::<f64>() / 2.0;
    assert!(mean(&outcome) < mean(&honest) + 0.05, "{:.3} against {:.3}", mean(&outcome), mean(&honest));
}

#[test]
fn what_is_no_loop_is_no_measurement_and_a_link_that_is_not_there_does_not_change() {
    let mut engine = engine_at(&one_that_lies(), lanes(), 5);
    let (before, now) = (believed(&engine, 0), Instant::from_secs(5));
    let nothing = Profile::new(Vec::new(), None).unwrap();
    let empty = Iteration { compute: Duration::ZERO, buckets: Vec::new(), finish: Duration::ZERO };
    for profile in [nothing.clone(), nothing.reducing(empty)] {
        engine.observe(now, Event::LoopMeasured { job: JobId(0), profile: Arc::new(profile) });
    }
    engine.observe(now, Event::LoopMeasured { job: JobId(99), profile: profile("resnet50/512", 3) });
    engine.observe(now, Event::LinkChanged { link: LinkId(999), rate: NARROW });
    assert_eq!(believed(&engine, 0), before);
    assert!(!engine.state().dirty);
}

#[test]
fn a_loop_that_changes_again_has_drifted() {
    let mut engine = engine_at(&one_that_lies(), lanes(), 60);
    let now = Instant::from_secs(60);
    for model in ["vgg16/128", "resnet50/512"] {
        engine.observe(now, Event::LoopMeasured { job: JobId(1), profile: profile(model, 3) });
    }
    let decision = decide(&engine.snapshot(), engine.policy());
    for made in &decision.report.reconfigured {
        assert_eq!(made.why, Why::Drift { job: JobId(1) });
    }
    assert_eq!(engine.job(JobId(1)).unwrap().times_measured, 3);
}
