//! Published figures, reproduced to the printed digit from the public trace, by way of the importer.

use std::num::NonZeroU32;

use metronome_core::policy::Policy;
use metronome_sim::import::{self, ImportOptions};
use metronome_sim::outcome::Outcome;
use metronome_sim::scenario::Scenario;
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

fn sixty_jobs_on(gpus: u32) -> Option<Scenario> {
    let trace = data_folder().join("tiresias/60_job.csv");
    if !trace.exists() {
        eprintln!("skipped: there is no {}", trace.display());
        return None;
    }
    let one = NonZeroU32::MIN;
    let options = ImportOptions { nodes: one, gpus_per_node: NonZeroU32::new(gpus)?, limit: None };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("tiresias.yaml");
    let imported = import::tiresias(&trace, options).expect("the trace is read");
    import::write(&imported, &path).expect("the scenario is written");
    Some(Scenario::read(&path).expect("the scenario is read back"))
}

fn figures(outcome: &Outcome) -> String {
    let end = |job: &metronome_sim::outcome::JobOutcome| job.end.expect("every job ends");
    let total: f64 = outcome.jobs.iter().map(|job| end(job).since(job.submit).as_secs_f64()).sum();
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
