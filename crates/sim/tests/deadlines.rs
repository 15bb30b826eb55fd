//! Deadlines, and jobs whose size the scheduler may choose: what is read, what is refused, and what a run makes of it.

use std::path::Path;

use metronome_core::model::job::{Binding, Capabilities, Deadline, Gang, OnMiss, Topology};
use metronome_core::model::policy::Policy;
use metronome_core::model::units::{Cpu, Duration, Gpus, Instant, Share};
use metronome_core::observe::scaling::Speed;
use metronome_sim::outcome::Outcome;
use metronome_sim::scenario::{Arrival, Asks, InputError, Scenario};
use metronome_sim::world::{self, Estimates, RunOptions};

const CLUSTER: &str = "apiVersion: metronome.dev/v1alpha1
kind: Cluster
metadata: {name: lab}
spec: {nodes: [{count: 4, cpu: 32, gpus: 4}], links: {node: 100Gbps}}
";

fn document(kind: &str, name: &str, spec: &str) -> String {
    format!(
        "---\napiVersion: metronome.dev/v1alpha1\nkind: {kind}\nmetadata: {{name: {name}}}\nspec: {spec}\n"
    )
}

fn read(documents: &str) -> Result<Scenario, InputError> {
    Scenario::read_from(format!("{CLUSTER}{documents}").as_bytes(), "lab.yaml", Path::new(""))
}

fn job(spec: &str) -> Arrival {
    read(&document("TrainingJob", "it", spec)).expect(spec).arrivals(1).remove(0)
}

fn run(scenario: &Scenario, policy: &str) -> Outcome {
    let policy = Policy::named(policy).expect("a built-in policy");
    world::run(scenario, RunOptions::new(policy), &|_| {})
}

#[test]
fn a_deadline_binds_is_worth_something_and_says_what_comes_after_it() {
    let plain = job("{work: {duration: 1m}, deadline: {after: 1h}}").spec.deadline;
    assert_eq!(plain, Some(Deadline::soft(Instant::from_secs(3600))));
    let said =
        job("{work: {duration: 1m}, deadline: {after: 1h, binding: strict, value: 7}, onMiss: Suspend}");
    let deadline = said.spec.deadline.unwrap();
    assert_eq!((deadline.binding, deadline.value, deadline.on_miss), (Binding::Strict, 7, OnMiss::Suspend));
}

#[test]
fn sizes_come_from_a_table_and_work_is_told_as_it_was_asked_for() {
    let it = job("{members: 2, scaling: {1: 10, 2: 19, 4: 34}, work: {duration: 10m}, checkpoint: {}}");
    assert_eq!(it.spec.roles[0].gang, Gang::elastic(1, 4).unwrap());
    assert_eq!(it.spec.scaling.as_ref().unwrap().sizes()[1], (2, Speed(1_900_000)));
    assert_eq!(it.spec.work.alone, Some(Duration::from_secs(1140)), "ten minutes with two members");
    assert_eq!(it.asks, Some(Asks { members: 2, serial: None }));
    let cut = job("{minMembers: 2, scaling: {1: 10, 2: 19, 4: 34}, work: {duration: 10m}}");
    assert_eq!(cut.spec.roles[0].gang, Gang::elastic(2, 4).unwrap());
    assert_eq!(cut.spec.work.alone, Some(Duration::from_secs(600)), "with the fewest, if none are asked for");
}

#[test]
fn sizes_that_are_slower_than_a_smaller_one_are_not_used_and_those_left_out_are_not_available() {
    let falls = job("{scaling: {1: 10, 2: 19, 4: 15}, work: {duration: 10m}}");
    let scaling = falls.spec.scaling.as_ref().unwrap();
    assert_eq!((scaling.useful().len(), scaling.sizes().len()), (2, 3), "edf asks for the largest of them");
    let holes = job("{scaling: {1: 10, 4: 30}, work: {duration: 10m}}");
    let sizes = holes.spec.scaling.as_ref().unwrap().useful();
    assert_eq!(sizes.iter().map(|(size, _)| *size).collect::<Vec<_>>(), [1, 4]);
}

#[test]
fn a_table_may_be_shared_by_name() {
    let shared = document("Scaling", "resnet", "{sizes: {1: 1.0, 2: 1.5}}")
        + &document("TrainingJob", "it", "{scaling: resnet, work: {duration: 1m}}");
    let it = read(&shared).unwrap().arrivals(1).remove(0);
    assert_eq!(it.spec.scaling.as_ref().unwrap().sizes().len(), 2);
}

#[test]
fn a_process_is_on_one_node_and_its_cores_are_changed_in_place() {
    let it = job("{cpu: {max: 32, asks: 4, serial: 50%}, work: {duration: 10m}, deadline: {after: 1h}}");
    assert_eq!(it.spec.roles[0].gang, Gang::elastic(1, 32).unwrap());
    assert_eq!(it.spec.roles[0].shape.each.cpu, Cpu::cores(1));
    assert_eq!(it.spec.capabilities, Capabilities { resize_in_place: true, ..Capabilities::START_ONLY });
    assert!(matches!(it.spec.topology, Topology::Required(_)));
    assert_eq!(it.spec.work.alone, Some(Duration::from_secs(960)), "600 s with 4 cores are 1/0.625 with one");
    assert_eq!(it.asks, Some(Asks { members: 4, serial: Some(Share(500_000)) }));
}

#[test]
fn a_model_and_a_deadline_are_enough() {
    let it = job("{model: resnet50/512, work: {iterations: 50000}, deadline: {after: 6h}}");
    assert_eq!(it.spec.roles[0].gang, Gang::elastic(1, 16).unwrap(), "all sixteen GPUs");
    let sizes = it.spec.scaling.as_ref().unwrap().sizes().to_vec();
    assert_eq!(sizes.iter().map(|(size, _)| *size).collect::<Vec<_>>(), [1, 2, 4, 8, 16]);
    assert_eq!(sizes[2].1, Speed(4_000_000), "within a node sending is free");
    assert!(sizes[4].1 < Speed(16_000_000), "gradients cross the links");
    let without = job("{model: resnet50/512, work: {iterations: 50000}}");
    assert_eq!((without.spec.members(), without.spec.scaling.as_ref()), (1, None));
}

#[test]
fn what_makes_no_sense_is_refused_with_its_place() {
    let refused = |spec: &str, expected: &str, hint: Option<&str>| {
        let error = read(&document("TrainingJob", "it", spec)).expect_err(spec);
        assert_eq!(error.to_string(), format!("read lab.yaml:9:{expected}"), "{spec}");
        assert_eq!(error.hint(), hint, "{spec}");
    };
    refused(
        "{work: {duration: 1m}, deadline: {after: 0s}}",
        "48: the deadline is over when the job is submitted",
        None,
    );
    refused(
        "{work: {duration: 0s}, deadline: {after: 1h}}",
        "25: the duration of a job is more than nothing",
        None,
    );
    refused(
        "{work: {duration: 1m}, deadline: {after: 1h, binding: hard}}",
        "61: unknown binding `hard`",
        Some("known are strict, soft, bestEffort"),
    );
    refused(
        "{work: {duration: 1m}, deadline: {after: 1h, value: 0}}",
        "59: `0` is not a whole number from 1 to 1000000",
        None,
    );
    refused(
        "{work: {duration: 1m}, onMiss: Fail}",
        "38: `onMiss: Fail` is for a job with a deadline",
        Some("add deadline: {after: 6h}"),
    );
    refused(
        "{work: {duration: 1m}, scaling: {1: 1.0, 2: 0}}",
        "51: with 2 members nothing would be done",
        Some("leave a size out that does not work"),
    );
    refused("{work: {duration: 1m}, scaling: {}}", "39: no size is given", None);
    refused(
        "{work: {duration: 1m}, scaling: fast}",
        "39: there is no Scaling `fast`",
        Some("add a document of kind Scaling, or say sizes: scaling: {1: 1.0, 2: 1.9}"),
    );
    refused(
        "{work: {duration: 1m}, members: 8, scaling: {1: 1.0, 2: 1.9}}",
        "39: 8 members are asked for, and sizes are from 1 to 2",
        None,
    );
    refused(
        "{work: {duration: 1m}, minMembers: 3, scaling: {1: 1.0, 2: 1.9}}",
        "54: no size of it is between `minMembers`, 3, and `maxMembers`, 4294967295",
        None,
    );
    refused(
        "{model: resnet50/512, work: {duration: 1m}, scaling: {1: 1.0}}",
        "60: `model` and how it scales are both given",
        Some("how a model scales follows from its gradients and the links"),
    );
    refused(
        "{work: {duration: 1m}, cpu: {max: 4, asks: 8}}",
        "50: 8 cores are not between `min`, 1, and `max`, 4",
        None,
    );
    refused("{work: {duration: 1m}, cpu: {min: 8, max: 4}}", "49: `min`, 8, is above `max`, 4", None);
    refused(
        "{work: {duration: 1m}, cpu: {max: 4}, members: 2}",
        "54: `cpu` is for one process on one node: there are no members to speak of",
        None,
    );
}

#[test]
fn a_workload_of_processes_says_what_is_drawn() {
    let workload = |fields: &str| {
        let spec = format!("{{jobs: 40, arrivals: {{poisson: {{load: 1.0}}}}, {fields}}}");
        read(&document("Workload", "drawn", &spec))
    };
    let fields = "cpus: {max: 32, asks: 4}, serial: {from: 1%, to: 5%}, duration: {from: 5m, to: 15m}, \
                  deadlines: {from: 1.2, to: 3, binding: strict}";
    let arrivals = workload(fields).unwrap().arrivals(7);
    assert_eq!(arrivals.len(), 40);
    for Arrival { at, spec, asks, .. } in &arrivals {
        let asks = asks.unwrap();
        let serial = asks.serial.unwrap();
        assert!((Share(10_000)..=Share(50_000)).contains(&serial), "{serial:?}");
        let one_core = spec.work.alone.unwrap().as_secs_f64();
        let as_asked = one_core * (serial.as_f64() + (1.0 - serial.as_f64()) / 4.0);
        assert!((300.0..=900.01).contains(&as_asked), "{as_asked}");
        let deadline = spec.deadline.unwrap();
        let factor = deadline.at.since(*at).as_secs_f64() / as_asked;
        assert!((1.199..=3.001).contains(&factor) && deadline.binding == Binding::Strict, "{factor}");
    }
    let gaps = arrivals.last().unwrap().at.as_secs_f64() / 40.0;
    let offered = 600.0 * 4.0 / 128.0;
    assert!(
        (0.5..2.0).contains(&(gaps / offered)),
        "one job of 4 cores and ten minutes every {offered} s: {gaps}"
    );

    let wrong = |fields: &str, expected: &str| {
        assert_eq!(workload(fields).expect_err(fields).message(), expected, "{fields}");
    };
    let lasting = "duration: {mean: 10m}";
    wrong(
        &format!("cpus: {{max: 64, asks: 64}}, {lasting}"),
        "jobs of 64 cores can never run: such a job needs 64 CPUs within one node, and none is that large",
    );
    wrong(
        &format!("cpus: {{max: 8}}, gpus: {{from: 1, to: 2}}, {lasting}"),
        "`gpus` and `cpus` are both given",
    );
    wrong(
        &format!("gpus: {{from: 1, to: 2}}, serial: {{from: 0, to: 1}}, {lasting}"),
        "`serial` is for `cpus`",
    );
    wrong(
        &format!("cpus: {{max: 8}}, models: all, {lasting}"),
        "`models` are trained on GPUs, and jobs take `cpus`",
    );
    wrong(
        &format!("cpus: {{max: 8}}, deadlines: {{from: 0, to: 1}}, {lasting}"),
        "a deadline lies after submission",
    );
    wrong(
        "cpus: {max: 8}, duration: {median: 1m, mean: 1m}",
        "durations are one of {median, sigma, atMost}, {mean, atLeast, atMost} and {from, to}",
    );
    wrong("cpus: {max: 8}, duration: {from: 2m, to: 1m}", "`from`, 2m, is above `to`, 1m");
    wrong(
        &format!("cpus: {{max: 8}}, estimates: {{error: 1}}, {lasting}"),
        "an error is less than the whole: nothing takes no time",
    );
}

#[test]
fn who_ignores_deadlines_gives_what_was_asked_for() {
    let spec = "{cpu: {max: 32, asks: 4, serial: 10%}, work: {duration: 10m}, deadline: {after: 11m}}";
    let scenario = read(&document("TrainingJob", "it", spec)).unwrap();
    let outcome = run(&scenario, "kubernetes");
    let job = &outcome.jobs[0];
    assert_eq!((job.members, job.gpus), (1, Gpus::ZERO));
    assert_eq!(job.ran.as_secs_f64().round(), 600.0);
    let cpu = job.cpu.unwrap();
    // Four cores for ten minutes, of which one in 0.1 + 0.9/4 of the time and all in the rest.
    assert!((cpu.held - 2400.0).abs() < 1e-3 && (cpu.used - 600.0 / 0.325).abs() < 1e-3, "{cpu:?}");
    assert!(outcome.violations.is_empty());
}

#[test]
fn lengths_are_misjudged_as_the_scenario_says() {
    let spec = "{jobs: 5, arrivals: {poisson: {load: 1}}, gpus: {from: 1, to: 1}, duration: {mean: 10m}, estimates: {error: 30%}}";
    let scenario = read(&document("Workload", "drawn", spec)).unwrap();
    assert_eq!(scenario.estimates, Estimates::Uniform { error: Share(300_000) });
    let state =
        world::state_at(&scenario, RunOptions::new(Policy::named("fifo").unwrap()), Instant(u64::MAX / 4));
    assert_eq!(state.jobs.iter().count(), 0, "all are done, however long they were believed to be");
}
