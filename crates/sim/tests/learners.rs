//! Jobs that share the cores of their nodes: what is read, what is refused, and what a run makes of them.

use std::path::Path;

use metronome_core::model::policy::Policy;
use metronome_sim::outcome::{Fate, Outcome};
use metronome_sim::scenario::{InputError, Scenario};
use metronome_sim::world::{self, RunOptions};

fn read(nodes: u32, workload: &str) -> Result<Scenario, InputError> {
    let head = "apiVersion: metronome.dev/v1alpha1\nkind:";
    let text = format!(
        "{head} Cluster\nmetadata: {{name: lab}}\nspec: {{nodes: [{{count: {nodes}, cpu: 8}}]}}\n---\n\
         {head} Workload\nmetadata: {{name: it}}\nspec: {workload}\n"
    );
    Scenario::read_from(text.as_bytes(), "lab.yaml", Path::new(""))
}

fn run(scenario: &Scenario, policy: &str, seed: u64) -> Outcome {
    let policy = Policy::named(policy).expect("a built-in policy");
    let outcome = world::run(scenario, RunOptions { seed, ..RunOptions::new(policy) }, &|_| {});
    assert_eq!((outcome.alarms, &outcome.violations[..]), (0, &[][..]));
    assert!(outcome.jobs.iter().all(|job| job.fate == Fate::Completed));
    outcome
}

fn times(outcome: &Outcome) -> Vec<f64> {
    outcome.jobs.iter().map(|job| job.end.unwrap().since(job.submit).as_secs_f64()).collect()
}

fn mean(outcome: &Outcome) -> f64 {
    times(outcome).iter().sum::<f64>() / outcome.jobs.len() as f64
}

const TWO: &str = "{jobs: 2, arrivals: {within: 0s}, learners: {asks: [1], uses: [8], \
                   work: [{share: 1, takes: {median: 80s}}]}}";

#[test]
fn two_who_can_use_a_whole_node_take_twice_as_long_together() {
    let times = times(&run(&read(1, TWO).unwrap(), "kubernetes", 1));
    assert!(times.iter().all(|time| (time - 20.0).abs() < 0.01), "{times:?}");
}

#[test]
fn each_has_its_own_node_where_there_are_two() {
    for policy in ["kubernetes", "metronome"] {
        let times = times(&run(&read(2, TWO).unwrap(), policy, 1));
        assert!(times.iter().all(|time| (time - 10.0).abs() < 0.01), "{policy}: {times:?}");
    }
}

const MANY: &str = "jobs: 24, arrivals: {within: 1m}, learners: {asks: [500m], uses: [4, 8], noise: 1%, \
                    work: [{share: 50%, takes: {median: 200s}}, {share: 50%, takes: {median: 800s}}]";

/// With how long the last takes, over how long it takes where cores are shared fairly: where only the loss is known at
/// which jobs end, orders change as curves do, and whoever is last pays for it.
#[test]
fn whoever_has_least_left_goes_first_and_the_last_is_not_much_later() {
    for (ends, gain, latest) in [("iterations", 0.8, 1.05), ("target", 0.95, 1.5)] {
        let scenario = read(2, &format!("{{{MANY}, ends: {ends}}}}}")).unwrap();
        for seed in 1..=3 {
            let (fair, ours) = (run(&scenario, "kubernetes", seed), run(&scenario, "metronome", seed));
            assert!(mean(&ours) < gain * mean(&fair), "{ends}: {} of {}", mean(&ours), mean(&fair));
            let late = ours.ended.as_secs_f64() / fair.ended.as_secs_f64();
            assert!(late < latest, "{ends}, seed {seed}: {late} times as late");
        }
    }
}

#[test]
fn a_gang_goes_at_the_pace_of_its_slowest_member() {
    // Twelve processes on two nodes, eight of them on one: they have a core each and could use two.
    let gangs = |jobs: u32| {
        let learners = "{members: [12], asks: [1], uses: [2], work: [{share: 1, takes: {median: 240s}}]}";
        format!("{{jobs: {jobs}, arrivals: {{within: 0s}}, learners: {learners}}}")
    };
    for jobs in [1, 2] {
        let times = times(&run(&read(3, &gangs(jobs)).unwrap(), "fair", 1));
        assert!(times.iter().all(|time| (time - 20.0).abs() < 0.01), "{jobs}: {times:?}");
    }
}

#[test]
fn gangs_over_several_nodes_complete_beside_others() {
    let learners = "{members: [12, 1], asks: [1], uses: [2, 8], work: [{share: 1, takes: {median: 400s}}]}";
    let scenario = format!(
        "{{jobs: 12, arrivals: {{within: 2m}}, learners: {learners}, checkpoint: {{takes: 1s, restart: 1s}}}}"
    );
    let scenario = read(4, &scenario).unwrap();
    for policy in ["fair", "specon", "metronome"] {
        for seed in 1..=3 {
            let outcome = run(&scenario, policy, seed);
            assert!(outcome.jobs.iter().any(|job| job.nodes > 1), "{policy}, seed {seed}");
        }
    }
}

#[test]
fn nobody_without_checkpoints_is_moved() {
    let moves = |checkpoint: &str, policy: &str| -> u32 {
        let scenario = read(3, &format!("{{{MANY}}}{checkpoint}}}")).unwrap();
        run(&scenario, policy, 1).jobs.iter().map(|job| job.moves).sum()
    };
    for policy in ["specon", "metronome"] {
        assert_eq!(moves("", policy), 0);
    }
    assert!(moves(", checkpoint: {takes: 1s, restart: 1s}", "specon") > 0);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let learners = |fields: &str| format!("{{jobs: 2, arrivals: {{within: 1m}}, learners: {{{fields}}}}}");
    let work = "work: [{share: 1, takes: {median: 1m}}]";
    let cases = [
        ("{jobs: 2, arrivals: {within: 1m}}".to_owned(), "`arrivals.within` is for `learners`"),
        (learners(&format!("asks: [], uses: [4], {work}")), "no amount of CPU is given"),
        (learners(&format!("asks: [1], uses: [9], {work}")), "the largest has"),
        (learners(&format!("asks: [1], uses: [4], members: [], {work}")), "no number of processes is given"),
        (
            learners(&format!("asks: [1], uses: [4], members: [0], {work}")),
            "not a whole number from 1 to 1000",
        ),
        (learners(&format!("asks: [1], uses: [4], {work}, ends: soon")), "unknown word for ends `soon`"),
        (learners("asks: [1], uses: [4], work: [{share: 50%, takes: {median: 1m}}]"), "do not sum to 1"),
        (
            format!(
                "{{jobs: 2, arrivals: {{poisson: {{load: 1}}}}, learners: {{asks: [1], uses: [4], {work}}}}}"
            ),
            "`learners` are for arrivals.within",
        ),
    ];
    for (workload, expected) in cases {
        let error = read(1, &workload).expect_err(&workload).to_string();
        assert!(error.contains(expected), "{error}");
    }
}
