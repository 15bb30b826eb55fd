//! Published figures from the public traces, by way of the importers: to the printed digit where the rules are known,
//! near where a testbed measured them.

use std::num::NonZeroU32;
use std::path::PathBuf;

use metronome_core::model::policy::Policy;
use metronome_core::model::units::Gpus;
use metronome_sim::import::{self, ImportOptions, Imported, MuriOptions};
use metronome_sim::outcome::Outcome;
use metronome_sim::scenario::Scenario;
use metronome_sim::world::{self, RunOptions};
use metronome_testkit::build::run;
use metronome_testkit::measure::data_folder;

/// Mean JCT, makespan and preemptions of the public Tiresias simulator: policy, then 64, 16 and 8 GPUs.
#[rustfmt::skip]
const TIRESIAS: [(&str, [&str; 3]); 5] = [
    ("fifo",      ["178.417 / 3271 / 0", "200.817 / 3335 / 0", "1556.483 / 5747 / 0"]),
    ("fifo-skip", ["178.417 / 3271 / 0", "190.683 / 3271 / 0", "715.267 / 4806 / 0"]),
    ("srtf",      ["178.417 / 3271 / 0", "192.117 / 3271 / 4", "519.867 / 4901 / 7"]),
    ("srsf",      ["178.417 / 3271 / 0", "195.900 / 3315 / 7", "563.383 / 4962 / 13"]),
    ("tiresias",  ["178.417 / 3271 / 0", "190.683 / 3271 / 0", "715.267 / 4806 / 0"]),
];

/// A file of the public data, or nothing where it is absent.
fn data(file: &str) -> Option<PathBuf> {
    let path = data_folder().join(file);
    if !path.exists() {
        metronome_skip::skip(format_args!("there is no {} (METRONOME_DATA)", path.display()));
        return None;
    }
    Some(path)
}

fn sixty_jobs_on(gpus: u32) -> Option<Scenario> {
    let trace = data("tiresias/60_job.csv")?;
    let one = NonZeroU32::MIN;
    let options = ImportOptions { nodes: one, gpus_per_node: NonZeroU32::new(gpus)?, limit: None };
    Some(read_back(&import::tiresias(&trace, options).expect("the trace is read")))
}

fn read_back(imported: &Imported) -> Scenario {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("imported.yaml");
    import::write(imported, &path).expect("the scenario is written");
    Scenario::read(&path).expect("the scenario is read back")
}

fn completion_times(outcome: &Outcome) -> Vec<f64> {
    let jobs = outcome.jobs.iter();
    jobs.map(|job| job.end.expect("every job ends").since(job.submit).as_secs_f64()).collect()
}

fn figures(outcome: &Outcome) -> String {
    let end = |job: &metronome_sim::outcome::JobOutcome| job.end.expect("every job ends");
    let total: f64 = completion_times(outcome).iter().sum();
    let first = outcome.jobs.iter().map(|job| job.submit).min().expect("there are jobs");
    let last = outcome.jobs.iter().map(end).max().expect("there are jobs");
    let preemptions: u32 = outcome.jobs.iter().map(|job| job.preemptions).sum();
    let makespan = last.since(first).as_secs_f64();
    format!("{:.3} / {makespan:.0} / {preemptions}", total / outcome.jobs.len() as f64)
}

#[test]
fn the_tiresias_table_is_reproduced_to_the_printed_digit() {
    for (column, gpus) in [64, 16, 8].into_iter().enumerate() {
        let Some(scenario) = sixty_jobs_on(gpus) else { return };
        for (name, published) in TIRESIAS {
            let outcome = run(&scenario, Policy::named(name).expect("a policy of that name"), 1);
            assert_eq!(figures(&outcome), published[column], "{name} on {gpus} GPUs");
        }
    }
}

/// Muri's 400 jobs on 64 GPUs, with rounds of 360 s and 30 s for every start. The rest is the testbed's own.
#[test]
fn srtf_and_tiresias_come_within_fifteen_percent_of_the_testbed() {
    let Some(trace) = data("muri/cluster_trace_400.csv") else { return };
    let eight = NonZeroU32::new(8).expect("more than nothing");
    let options = ImportOptions { nodes: eight, gpus_per_node: eight, limit: None };
    let imported = import::muri(&trace, options, MuriOptions::PUBLISHED).expect("the trace is read");
    let scenario = read_back(&imported);
    let mean = |outcome: &Outcome| completion_times(outcome).iter().sum::<f64>() / outcome.jobs.len() as f64;
    for (name, file) in [("srtf", "SRTF"), ("tiresias", "tiresias")] {
        let Some(seen) = data(&format!("muri/testbed_results/{file}.job.csv.gz")) else { return };
        let seen = import::testbed(&seen, name, Gpus::whole(64)).expect("the results are read");
        let options = RunOptions::new(Policy::named(name).expect("a policy of that name"));
        let simulated = world::run(&scenario, options, &|_| {});
        assert_eq!((simulated.alarms, simulated.violations.len()), (0, 0));
        let ratio = mean(&simulated) / mean(&seen);
        assert!((0.85..=1.15).contains(&ratio), "{name}: {ratio:.3} of the testbed");
    }
}
