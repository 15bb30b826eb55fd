//! Weather: a hundred thousand random histories of gangs on small clusters, with steps that fail, come late or get
//! lost and nodes that go and come back. Every plan is checked whole, and the world keeps books of its own.

use std::sync::atomic::{AtomicU64, Ordering};

use metronome_core::model::cluster::Level;
use metronome_core::model::id::NodeId;
use metronome_core::model::job::Gang;
use metronome_core::model::job::{Checkpointing, JobSpec, Priority, Topology};
use metronome_core::model::units::{Duration, Instant};
use metronome_sim::outcome::{Fate, Outcome};
use metronome_sim::scenario::{Costs, Fault, Scenario};
use metronome_testkit::build::{gpus, job, policy, preemptible, racks, run, scenario, share, with_bad_steps};
use rand::RngExt;
use rand_pcg::Pcg64;
use rayon::prelude::*;

const HISTORIES: u64 = 100_000;

/// Every policy that places gangs whole.
const WHOLE: [&str; 8] =
    ["metronome", "coscheduling", "volcano", "fifo", "fifo-skip", "srtf", "srsf", "tiresias"];

fn random_history(seed: u64) -> Scenario {
    let mut chance = Pcg64::new(u128::from(seed), 11);
    let cluster =
        racks(chance.random_range(1..3), chance.random_range(1..4), [2, 4, 8][chance.random_range(0..3)]);
    let nodes = cluster.nodes().len() as u32;
    let jobs: Vec<(u64, JobSpec)> = (0..chance.random_range(2..9))
        .map(|index| (chance.random_range(0..200), random_job(&mut chance, index)))
        .collect();
    let mut jobs = jobs;
    jobs.sort_by_key(|(at, _)| *at);
    let mut history = scenario(cluster, jobs);
    history.costs = Costs {
        start: Duration::from_secs(chance.random_range(0..5)),
        stop: Duration::from_secs(chance.random_range(0..5)),
    };
    let worst = chance.random_range(0..4u32);
    let history_faults = (worst * 60, worst * 80, worst * 40);
    for _ in 0..chance.random_range(0..3) {
        history.faults.push(Fault::Node {
            node: NodeId(chance.random_range(0..nodes)),
            at: Instant::from_secs(chance.random_range(0..400)),
            lasts: Some(Duration::from_secs(chance.random_range(1..300))),
            notice: Duration::from_secs(60 * chance.random_range(0..3)),
        });
    }
    let (fail, late, lost) = history_faults;
    with_bad_steps(history, fail, late, lost, Duration::from_secs(chance.random_range(1..200)))
}

fn random_job(chance: &mut Pcg64, index: u32) -> JobSpec {
    let name = format!("job-{index}");
    let mut spec = match chance.random_range(0..4) {
        3 => {
            let gang = Gang::rigid(chance.random_range(1..9)).unwrap();
            let mut spec = JobSpec::workers(&name, gang, share(chance.random_range(50..1000)));
            spec.work.alone = Some(Duration::from_secs(chance.random_range(1..300)));
            spec
        }
        0 => job(&name, chance.random_range(1..9), chance.random_range(1..300)),
        1 => {
            let min = chance.random_range(1..5);
            let gang = Gang::elastic(min, min + chance.random_range(1..9)).unwrap();
            let mut spec = JobSpec::workers(&name, gang, gpus(chance.random_range(1..3)));
            spec.work.alone = Some(Duration::from_secs(chance.random_range(1..900)));
            spec
        }
        _ => {
            let gang = Gang::rigid(chance.random_range(1..5)).unwrap();
            let mut spec = JobSpec::workers(&name, gang, gpus(chance.random_range(1..5)));
            spec.work.alone = Some(Duration::from_secs(chance.random_range(1..300)));
            spec
        }
    };
    if chance.random_bool(0.5) {
        spec = preemptible(spec);
        spec.checkpointing = Some(Checkpointing {
            every: chance.random_bool(0.5).then(|| Duration::from_secs(chance.random_range(1..60))),
            takes: Duration::from_secs(chance.random_range(0..10)),
            restart: Duration::from_secs(chance.random_range(0..10)),
        });
    }
    spec.priority = [Priority::LOW, Priority::NORMAL, Priority::HIGH][chance.random_range(0..3)];
    if chance.random_bool(0.1) {
        spec.topology = Topology::Required(Level(chance.random_range(0..2)));
    }
    spec
}

fn judge(seed: u64, name: &str, outcome: &Outcome) {
    assert_eq!(outcome.alarms, 0, "seed {seed}, {name}: {:?}", outcome.last_alarm);
    assert!(outcome.violations.is_empty(), "seed {seed}, {name}: {:?}", outcome.violations);
    for job in &outcome.jobs {
        let ended = matches!(job.fate, Fate::Completed | Fate::Refused | Fate::Failed);
        assert!(ended, "seed {seed}, {name}: {} is {:?}, {:?}", job.name, job.fate, job.wait_reason);
    }
}

#[test]
fn no_history_splits_a_gang_oversubscribes_a_node_or_deadlocks() {
    let completed = AtomicU64::new(0);
    let troubled = AtomicU64::new(0);
    (0..HISTORIES).into_par_iter().for_each(|seed| {
        let name = WHOLE[(seed % WHOLE.len() as u64) as usize];
        let outcome = run(&random_history(seed), policy(name), seed);
        judge(seed, name, &outcome);
        let done = outcome.jobs.iter().filter(|job| job.fate == Fate::Completed).count();
        completed.fetch_add(done as u64, Ordering::Relaxed);
        let interrupted = outcome.jobs.iter().any(|job| job.fate == Fate::Completed && job.ran > job.alone);
        troubled.fetch_add(u64::from(interrupted), Ordering::Relaxed);
    });
    let (completed, troubled) = (completed.into_inner(), troubled.into_inner());
    println!(
        "{HISTORIES} histories: {completed} jobs completed; in {troubled} of them work was lost and done again"
    );
    assert!(completed > HISTORIES, "most jobs end well");
    assert!(troubled > HISTORIES / 100, "faults do hit running jobs");
}

#[test]
fn member_by_member_scheduling_does_deadlock() {
    let deadlocks: u64 = (0..2000u64)
        .into_par_iter()
        .map(|seed| {
            // Without faults: what deadlocks then does so by half-placed gangs alone.
            let history = Scenario { faults: Vec::new(), ..random_history(seed) };
            let outcome = run(&history, policy("kubernetes"), seed);
            assert!(outcome.violations.is_empty(), "seed {seed}: {:?}", outcome.violations);
            u64::from(outcome.jobs.iter().any(|job| job.fate == Fate::Deadlocked))
        })
        .sum();
    println!("2000 histories without faults under kubernetes: {deadlocks} deadlocked");
    assert!(deadlocks > 20, "the positive control finds deadlocks: {deadlocks}");
}
