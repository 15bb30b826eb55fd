//! What Muri's testbed did with the 400 jobs of its trace, and what that says of our rules for it.

use std::fs;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use metronome_core::model::units::{Duration, Gpus, Instant};
use metronome_sim::import::{self, ImportOptions, MuriOptions, TimeFrom};
use metronome_sim::outcome::Outcome;
use metronome_sim::results::Comparison;
use metronome_sim::scenario::Scenario;

/// A file of the public data, or nothing where the folder is absent.
fn data(file: &str) -> Option<PathBuf> {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let path = std::env::var_os("METRONOME_DATA").map_or(default, PathBuf::from).join(file);
    if !path.exists() {
        metronome_skip::skip(format_args!("{file} is not in the folder of data (METRONOME_DATA)"));
        return None;
    }
    Some(path)
}

fn seen(file: &str) -> Option<Outcome> {
    let path = data(&format!("muri/testbed_results/{file}.job.csv.gz"))?;
    Some(import::testbed(&path, file, Gpus::whole(64)).unwrap())
}

/// Each job with the time that its iterations take.
fn by_iterations() -> Option<Scenario> {
    let path = data("muri/cluster_trace_400.csv")?;
    let eight = NonZeroU32::new(8).unwrap();
    let options = ImportOptions { nodes: eight, gpus_per_node: eight, limit: None };
    let muri = MuriOptions { time: TimeFrom::Iterations, ..MuriOptions::PUBLISHED };
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("muri.yaml");
    import::write(&import::muri(&path, options, muri).unwrap(), &out).unwrap();
    Some(Scenario::read(&out).unwrap())
}

#[test]
fn the_averages_of_the_testbed_are_those_that_were_published() {
    for (file, published) in [("SRTF", 249_140.0), ("tiresias", 336_533.0)] {
        let Some(outcome) = seen(file) else { return };
        let comparison = Comparison::of("muri", &[outcome]);
        let figures = &comparison.summary[0].figures;
        assert_eq!(figures.jobs.completed, 400.0);
        assert_eq!(figures.jct_s.mean.unwrap().round(), published, "{file}");
    }
}

/// The two things that our rules for Muri rest on. Jobs that started once took about half a minute more than their
/// iterations; and the GPU-time of all jobs is nearer to their iterations than to the durations in the trace.
#[test]
fn a_start_takes_half_a_minute_and_jobs_take_as_long_as_their_iterations() {
    let Some(scenario) = by_iterations() else { return };
    let jobs = scenario.arrivals(1);
    for file in ["SRTF", "tiresias"] {
        let Some(outcome) = seen(file) else { return };
        let mut beyond = Vec::new();
        let [mut ran, mut iterations, mut durations] = [0.0; 3];
        for job in &outcome.jobs {
            let asked = jobs.iter().find(|asked| asked.spec.name == job.name).expect("a job of the trace");
            let alone = asked.spec.work.alone.unwrap().as_secs_f64();
            let gpus = job.gpus.0 as f64;
            if job.preemptions == 0 {
                beyond.push(job.ran.as_secs_f64() - alone);
            }
            ran += gpus * job.ran.as_secs_f64();
            iterations += gpus * alone;
            durations += gpus * job.alone.as_secs_f64();
        }
        assert!(beyond.len() > 100, "{file}: {} jobs started once", beyond.len());
        let start = beyond.iter().sum::<f64>() / beyond.len() as f64;
        assert!((29.0..33.0).contains(&start), "{file}: {start:.1} s a start");
        let (by_iterations, by_durations) = (ran / iterations, ran / durations);
        assert!((1.0..1.03).contains(&by_iterations), "{file}: {by_iterations:.3} of the iterations");
        assert!((1.09..1.11).contains(&by_durations), "{file}: {by_durations:.3} of the durations");
    }
}

const SEEN: &str = "job_id,num_gpu,submit_time,start_time,end_time,real_executed_time,duration,job_counter\n\
    0,8,1.5,2.5,100.25,60.125,55,3\n";

fn read(text: &str) -> Result<Outcome, metronome_sim::scenario::InputError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("seen.csv");
    fs::write(&path, text).unwrap();
    import::testbed(&path, "seen", Gpus::whole(64))
}

#[test]
fn a_row_of_a_testbed_is_a_job_that_completed() {
    let outcome = read(SEEN).unwrap();
    let job = &outcome.jobs[0];
    assert_eq!((outcome.policy.as_str(), &*job.name, job.gpus), ("seen", "0", Gpus::whole(8)));
    assert_eq!(job.submit, Instant::START + Duration::from_millis(1500));
    assert_eq!(job.end, Some(Instant::START + Duration::from_millis(100_250)));
    assert_eq!((job.ran, job.preemptions), (Duration::from_millis(60_125), 2));
}

#[test]
fn a_wrong_row_of_a_testbed_is_named_by_its_line() {
    let second = format!("{SEEN}0,8,1.5,2.5,100.25,60.125,55,3\n");
    let cases = [
        (SEEN.replace("100.25", "2.25"), 2, "not submitted, started and ended in this order"),
        (SEEN.replace(",3\n", ",0\n"), 2, "job_counter: `0` is not a whole number from 1"),
        (SEEN.replace("0,8,", "0,0,"), 2, "num_gpu is 0"),
        (SEEN.replace("60.125", "long"), 2, "real_executed_time: `long` is not a number"),
        (SEEN.replace("60.125", "99"), 2, "ran for longer than from its start to its end"),
        (second, 3, "a second job is called `0`"),
        (SEEN.replace("duration", "length"), 1, "column `duration` is missing"),
    ];
    for (text, line, message) in cases {
        let error = read(&text).unwrap_err();
        assert_eq!(error.position().map(|position| position.line), Some(line), "{error}");
        assert!(error.message().contains(message), "{error}");
    }
    let none = SEEN.lines().next().unwrap();
    assert_eq!(read(none).unwrap_err().message(), "there are no jobs in it");
}
