//! Deadlines: who is promised to be in time is, whatever else comes, as long as predictions hold.

use std::collections::BTreeMap;
use std::sync::Arc;

use metronome_core::deadlines::DeadlineVerdict;
use metronome_core::journal::{Record, Replay};
use metronome_core::model::cluster::Level;
use metronome_core::model::id::JobId;
use metronome_core::model::job::{
    Binding, Capabilities, Checkpointing, Deadline, Gang, JobSpec, OnMiss, Topology,
};
use metronome_core::model::policy::Policy;
use metronome_core::model::units::{Cpu, Duration, Instant, Iterations, Memory, Resources, Share};
use metronome_core::observe::scaling::{Scaling, Speed};
use metronome_sim::outcome::{Fate, Outcome};
use metronome_sim::scenario::{Scenario, Source};
use metronome_sim::world::{self, Estimates, RunOptions};
use metronome_testkit::build::{gpus, policy, preemptible, racks, scenario};
use metronome_testkit::lines::Lines;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// A job that may have one to eight members, each size less efficient than the one below.
fn elastic(name: &str, seconds: u64, speeds: &[u64]) -> JobSpec {
    let most = 1 << (speeds.len() - 1);
    let gang = Gang::elastic(1, most).unwrap();
    let mut spec = preemptible(JobSpec::workers(name, gang, gpus(1)));
    spec.work.alone = Some(Duration::from_secs(seconds));
    let sizes = speeds.iter().enumerate().map(|(at, speed)| (1 << at, Speed(*speed)));
    spec.scaling = Some(Arc::new(Scaling::new(sizes.collect()).unwrap()));
    spec
}

fn due(mut spec: JobSpec, at: u64, binding: Binding) -> JobSpec {
    let at = Instant::from_secs(at);
    spec.deadline = Some(Deadline { at, binding, value: 1, on_miss: OnMiss::Run });
    spec
}

/// Jobs of every kind, more of them than can be in time: some are never stopped, some without a deadline.
fn drawn(seed: u64) -> Scenario {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let takes = Duration::from_secs(random.random_range(0..4));
    let restart = Duration::from_secs(random.random_range(0..6));
    let in_place = seed % 2 == 1;
    let mut at = 0;
    let jobs = (0..random.random_range(10..40u64)).map(|index| {
        at += random.random_range(0..120);
        let speeds = [1_000_000, 1_850_000, 3_200_000, 5_000_000];
        let seconds = random.random_range(60..1500);
        let mut spec = elastic(&format!("job-{index}"), seconds, &speeds[..random.random_range(1..=4)]);
        spec.checkpointing = Some(Checkpointing { every: None, takes, restart });
        if in_place {
            spec.roles[0].shape.each = Resources { cpu: Cpu::cores(8), ..Resources::NONE };
            spec.topology = Topology::Required(Level(1));
            spec.capabilities = Capabilities { resize_in_place: true, rescale: false, ..spec.capabilities };
        }
        if random.random_range(0..4) == 0 {
            let resize_in_place = in_place && random.random_range(0..2) == 0;
            spec.capabilities = Capabilities { resize_in_place, ..Capabilities::START_ONLY };
        }
        let within = seconds * random.random_range(30..200) / 100;
        let spec = match random.random_range(0..10) {
            0..5 => due(spec, at + within, Binding::Strict),
            5..8 => due(spec, at + within, Binding::Soft),
            _ => spec,
        };
        (at, spec)
    });
    let jobs: Vec<_> = jobs.collect();
    let mut scenario = scenario(racks(2, 1, 8), jobs);
    scenario.round = Duration::from_secs([0, 60, 240][seed as usize % 3]);
    scenario
}

/// A run, and for each job the best that was ever said of it.
fn told(scenario: &Scenario, policy: Policy) -> (Outcome, BTreeMap<JobId, DeadlineVerdict>) {
    let lines = Lines::default();
    let journal = Some(Box::new(lines.clone()) as Box<_>);
    let options = RunOptions { seed: 1, journal, full_check_every: 1, ..RunOptions::new(policy) };
    let outcome = world::run(scenario, options, &|_| {});
    assert_eq!((outcome.alarms, &outcome.violations), (0, &Vec::new()), "{:?}", outcome.last_alarm);
    let (mut replay, mut told) = (Replay::default(), BTreeMap::new());
    for line in lines.text().lines() {
        replay.feed(Record::from_line(line).unwrap()).unwrap();
        let entries = replay.engine().map(|engine| engine.state().plan.timetable().iter());
        for (id, entry) in entries.into_iter().flatten() {
            let best = told.entry(id).or_insert(entry.verdict);
            *best = (*best).min(entry.verdict);
        }
    }
    assert!(replay.mismatches.is_empty(), "{:?}", replay.mismatches[0]);
    (outcome, told)
}

fn is_in_time(outcome: &Outcome, spec: &JobSpec) -> bool {
    let job = outcome.jobs.iter().find(|job| job.name == spec.name).expect("every job has an outcome");
    let by = spec.deadline.expect("it has a deadline").at;
    job.fate == Fate::Completed && job.end.is_some_and(|end| end <= by)
}

fn seeds() -> u64 {
    std::env::var("METRONOME_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(300)
}

/// Who makes room is in the middle of another change of its size there.
const BUSY: u64 = 12_132;

/// How many were promised to be in time, and who of them was not.
fn promised_and_late(
    seeds: impl Iterator<Item = u64>,
    drawn: impl Fn(u64) -> Scenario,
) -> (usize, Vec<(u64, String)>) {
    let (mut promised, mut missed) = (0, Vec::new());
    for seed in seeds {
        let scenario = drawn(seed);
        let (outcome, told) = told(&scenario, policy("metronome"));
        let specs: Vec<JobSpec> = listed(&scenario);
        for (id, _) in told.iter().filter(|(_, verdict)| **verdict == DeadlineVerdict::Promised) {
            let spec = &specs[id.0 as usize];
            promised += 1;
            if !is_in_time(&outcome, spec) {
                missed.push((seed, spec.name.to_string()));
            }
        }
    }
    (promised, missed)
}

#[test]
fn nobody_who_was_promised_is_late() {
    let (promised, missed) = promised_and_late((0..seeds()).chain([BUSY]), drawn);
    assert!(missed.is_empty(), "{} of {promised}: {missed:?}", missed.len());
    assert!(promised > 1000, "{promised}");
}

/// The same jobs on one node, with memory that is gone before its GPUs and cores are for some of them.
fn short_of_memory(seed: u64) -> Scenario {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut scenario = Scenario { cluster: racks(1, 1, 16), ..drawn(seed) };
    let Source::Listed(arrivals) = &mut scenario.sources[0] else { panic!("a list") };
    for arrival in arrivals {
        let spec = Arc::make_mut(&mut arrival.spec);
        spec.roles[0].shape.each.memory = Memory::gib(random.random_range(16..400));
    }
    scenario
}

#[test]
fn nobody_who_was_promised_is_late_where_memory_runs_out_first() {
    let (promised, missed) = promised_and_late(0..seeds(), short_of_memory);
    assert!(missed.is_empty(), "{} of {promised}: {missed:?}", missed.len());
    assert!(promised > 500, "{promised}");
}

/// Jobs in the order of submission, which is that of their ids.
fn listed(scenario: &Scenario) -> Vec<JobSpec> {
    let Source::Listed(arrivals) = &scenario.sources[0] else { panic!("a list") };
    arrivals.iter().map(|arrival| (*arrival.spec).clone()).collect()
}

/// Strict jobs that need more than their least, and of which it is misjudged by up to a half what more members are worth.
fn misjudged(seed: u64, iterations: Option<Iterations>) -> Scenario {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut at = 0;
    let jobs = (0..24).map(|index| {
        at += random.random_range(0..400);
        let seconds = random.random_range(1200..6000);
        let speeds = [1_000_000, 1_850_000, 3_200_000, 5_000_000];
        let mut spec = elastic(&format!("job-{index}"), seconds, &speeds);
        spec.work.iterations = iterations;
        let within = seconds * random.random_range(30..90) / 100;
        (at, due(spec, at + within, Binding::Strict))
    });
    let mut scenario = scenario(racks(2, 1, 8), jobs.collect::<Vec<_>>());
    scenario.estimates = Estimates::Scaling { error: Share(500_000) };
    scenario
}

/// How many were in time, and how many were promised to be and were not.
fn in_time_and_broken(iterations: Option<Iterations>) -> (usize, usize) {
    let (mut in_time, mut broken) = (0, 0);
    for seed in 0..seeds() / 10 {
        let scenario = misjudged(seed, iterations);
        let (outcome, told) = told(&scenario, policy("metronome"));
        let specs = listed(&scenario);
        in_time += specs.iter().filter(|spec| is_in_time(&outcome, spec)).count();
        let promised = told.iter().filter(|(_, verdict)| **verdict == DeadlineVerdict::Promised);
        broken += promised.filter(|(id, _)| !is_in_time(&outcome, &specs[id.0 as usize])).count();
    }
    (in_time, broken)
}

#[test]
fn more_are_in_time_who_are_not_as_fast_as_was_said_if_that_is_measured() {
    let (blind, measured) = (in_time_and_broken(None), in_time_and_broken(Some(Iterations(1_000_000))));
    println!("in time, promises broken: {blind:?} blind, {measured:?} measured");
    assert!(measured.0 > blind.0, "{measured:?} instead of {blind:?} in time");
    assert!(measured.1 < blind.1, "{measured:?} instead of {blind:?} promises broken");
}
