//! Trainings on a network, driven by the engine: what contention costs, and what it must not change.

use metronome_core::model::id::LinkId;
use metronome_core::model::units::{Bandwidth, Duration, Instant};
use metronome_sim::outcome::{Fate, Outcome};
use metronome_sim::scenario::{Fault, Scenario};
use metronome_testkit::build::{linked_racks, model_job, policy, run, training_scenario};

const NODE: Bandwidth = Bandwidth(100_000_000_000);
const RACK: Bandwidth = Bandwidth(150_000_000_000);

/// Four racks of two nodes. A gang of three must leave its rack, so two of them meet on an uplink.
fn two_that_meet() -> Scenario {
    let jobs = [
        (0, model_job("a", 3, 4, "vgg16/128", 500)),
        (0, model_job("b", 3, 4, "vgg16/128", 500)),
        (0, model_job("alone", 1, 4, "vgg16/128", 500)),
    ];
    training_scenario(linked_racks(4, 2, 4, NODE, Bandwidth(50_000_000_000)), jobs)
}

fn seconds(outcome: &Outcome, job: usize) -> f64 {
    outcome.jobs[job].ran.as_secs_f64()
}

#[test]
fn jobs_that_meet_on_a_link_are_slower_than_without_contention() {
    let shared = run(&two_that_meet(), policy("coscheduling"), 1);
    let mut ideal = policy("coscheduling");
    ideal.links = metronome_core::model::policy::Links::Ideal;
    let ideal = run(&two_that_meet(), ideal, 1);
    for outcome in [&shared, &ideal] {
        assert!(outcome.violations.is_empty() && outcome.alarms == 0);
        assert!(outcome.jobs.iter().all(|job| job.fate == Fate::Completed));
    }
    let slowdowns =
        |outcome: &Outcome| -> Vec<f64> { outcome.jobs.iter().map(|job| job.slowdown.unwrap()).collect() };
    assert!(
        slowdowns(&ideal).iter().all(|slowdown| (slowdown - 1.0).abs() < 1e-6),
        "{:?}",
        slowdowns(&ideal)
    );
    let met = slowdowns(&shared);
    assert!(met[0] > 1.05 && met[1] > 1.05, "{met:?}");
    assert!((met[2] - 1.0).abs() < 1e-6, "a job on one node sends nothing: {met:?}");
}

#[test]
fn alone_a_job_takes_what_its_closed_form_says() {
    let job = model_job("a", 2, 4, "resnet50/512", 300);
    let expected = job.0.work.alone.unwrap().as_secs_f64();
    let outcome =
        run(&training_scenario(linked_racks(1, 2, 4, NODE, RACK), [(0, job)]), policy("metronome"), 1);
    assert!((seconds(&outcome, 0) / expected - 1.0).abs() < 1e-6, "{} {expected}", seconds(&outcome, 0));
    let carried: f64 = outcome.links.iter().map(|link| link.carried).sum();
    assert!(carried > 0.0);
    let levels: Vec<&str> = outcome.links.iter().map(|link| link.level.as_str()).collect();
    assert_eq!(levels, ["rack", "rack", "node", "node", "node", "node"]);
}

#[test]
fn a_preempted_loop_goes_on_where_it_stopped() {
    let long = model_job("long", 2, 4, "resnet50/512", 2000);
    let short = model_job("short", 2, 4, "resnet50/512", 100);
    let (whole, part) = (long.0.work.alone.unwrap(), short.0.work.alone.unwrap());
    let jobs = [(0, long), (60, short)];
    let outcome = run(&training_scenario(linked_racks(1, 2, 4, NODE, RACK), jobs), policy("srtf"), 1);
    assert_eq!(outcome.jobs[0].preemptions, 1);
    let end = outcome.jobs[0].end.unwrap().as_secs_f64();
    let expected = (whole + part).as_secs_f64();
    // Half an iteration is lost with the stop, and nothing else.
    assert!((0.0..0.3).contains(&(end - expected)), "{end} {expected}");
}

#[test]
fn a_link_that_fails_holds_its_jobs_up_until_it_is_back() {
    let run_with = |faults: Vec<Fault>| {
        let job = model_job("a", 2, 4, "vgg16/128", 500);
        let mut scenario = training_scenario(linked_racks(1, 2, 4, NODE, RACK), [(0, job)]);
        scenario.faults = faults;
        run(&scenario, policy("metronome"), 1)
    };
    let fault =
        |lasts, rate| Fault::Link { links: [LinkId(2), LinkId(3)], at: Instant::from_secs(10), lasts, rate };
    let well = seconds(&run_with(vec![]), 0);
    let minute = Some(Duration::MINUTE);
    let failed = seconds(&run_with(vec![fault(minute, None)]), 0);
    assert!((failed - well - 60.0).abs() < 0.2, "{failed} {well}");
    let degraded = seconds(&run_with(vec![fault(minute, Some(Bandwidth(NODE.0 / 4)))]), 0);
    assert!(degraded > well + 1.0 && degraded < failed, "{degraded}");
    let for_ever = run_with(vec![fault(None, None)]);
    assert_eq!(for_ever.jobs[0].fate, Fate::Unfinished);
}
