//! Public traces become scenarios, and what is written is what is read back.

use std::fs;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use metronome_core::job::Capabilities;
use metronome_core::units::{Duration, Gpus, Instant};
use metronome_sim::import::{self, Dropped, ImportOptions, Imported, MuriOptions, TimeFrom, Why};
use metronome_sim::scenario::{Costs, InputError, Scenario};

fn options(nodes: u32, gpus_per_node: u32) -> ImportOptions {
    let count = |number| NonZeroU32::new(number).expect("more than nothing");
    ImportOptions { nodes: count(nodes), gpus_per_node: count(gpus_per_node), limit: None }
}

/// A public trace, or nothing where the folder of data is absent.
fn data(file: &str) -> Option<PathBuf> {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let path = std::env::var_os("METRONOME_DATA").map_or(default, PathBuf::from).join(file);
    if !path.exists() {
        eprintln!("skipped: {file} is not in the folder of data (METRONOME_DATA)");
        return None;
    }
    Some(path)
}

fn written(text: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("source.csv");
    fs::write(&path, text).unwrap();
    (folder, path)
}

fn read_back(imported: &Imported) -> Scenario {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("scenario.yaml");
    import::write(imported, &out).unwrap();
    Scenario::read(&out).unwrap()
}

#[test]
fn tiresias_sixty_jobs_are_read_back_as_they_were() {
    let Some(path) = data("tiresias/60_job.csv") else { return };
    let imported = import::tiresias(&path, options(1, 64)).unwrap();
    assert_eq!(imported.report.to_string(), "60 jobs");
    let scenario = read_back(&imported);
    assert_eq!((scenario.name.as_str(), scenario.job_count()), ("60_job", 60));
    assert_eq!(scenario.tick, Duration::SECOND);
    assert_eq!(scenario.cluster.capacity().gpus, Gpus::whole(64));
    let second = &scenario.arrivals(1)[1];
    assert_eq!((&*second.spec.name, second.at), ("1", Instant::from_secs(30)));
    assert_eq!((second.spec.gpus(), second.spec.members()), (Gpus::whole(8), 1));
    assert_eq!(second.spec.work.alone, Some(Duration::from_secs(147)));
    assert_eq!(second.spec.capabilities, Capabilities::CHECKPOINTED);
}

#[test]
fn all_of_philly_is_read_back_in_the_order_of_submission() {
    let Some(path) = data("philly/philly.csv.gz") else { return };
    let imported = import::philly(&path, options(64, 8)).unwrap();
    assert_eq!(imported.report.to_string(), "82247 jobs; dropped: 1 blank line");
    let scenario = read_back(&imported);
    assert_eq!((scenario.name.as_str(), scenario.job_count()), ("philly", 82_247));
    let jobs = scenario.arrivals(1);
    assert_eq!(jobs[0].at, Instant::START);
    assert!(jobs.is_sorted_by_key(|job| job.at));
    let last = jobs.last().unwrap();
    // From 2017-09-04 10:30:41 to 2017-12-22 08:02:11.
    assert_eq!(last.at, Instant::from_secs(109 * 86_400 - 2 * 3600 - 28 * 60 - 30));
    let widest = jobs.iter().map(|job| job.spec.members()).max();
    assert_eq!(widest, Some(16), "128 GPUs on nodes of 8");
}

#[test]
fn muri_four_hundred_jobs_are_read_back_with_rounds_and_starts() {
    let Some(path) = data("muri/cluster_trace_400.csv") else { return };
    let imported = import::muri(&path, options(8, 8), MuriOptions::PUBLISHED).unwrap();
    assert_eq!(imported.report.to_string(), "400 jobs");
    let scenario = read_back(&imported);
    assert_eq!((scenario.name.as_str(), scenario.job_count()), ("cluster_trace_400", 400));
    assert_eq!((scenario.round, scenario.tick), (Duration::from_secs(360), Duration::ZERO));
    assert_eq!(scenario.costs, Costs { start: Duration::from_secs(30), stop: Duration::ZERO });
    assert_eq!(scenario.cluster.capacity().gpus, Gpus::whole(64));
    let jobs = scenario.arrivals(1);
    let second = &jobs[1];
    assert_eq!((&*second.spec.name, second.at), ("1", Instant::from_secs(1534)));
    assert_eq!(second.spec.work.alone, Some(Duration::from_secs(281)));
    assert_eq!(second.spec.capabilities, Capabilities::CHECKPOINTED);
    let widest = jobs.iter().map(|job| job.spec.members()).max();
    assert_eq!(widest, Some(4), "32 GPUs on nodes of 8");
}

#[test]
fn larger_trace_of_muri_is_read_gzipped() {
    let Some(path) = data("muri/trace1.csv.gz") else { return };
    let imported = import::muri(&path, options(8, 8), MuriOptions::PUBLISHED).unwrap();
    assert_eq!(imported.report.jobs, 1494);
}

const MURI: &str = "job_id,num_gpu,submit_time,iterations,model_name,duration,iteration_time,priority\n\
    b,12,2500,1000,vgg16,281000,214.5,1\n\
    a,1,0,10,gpt2,5000,437,0\n\
    none,0,0,10,gpt2,5000,437,0\n\
    never,1,0,10,gpt2,0,437,0\n";

#[test]
fn muri_counts_in_milliseconds_and_says_twice_how_long_a_job_takes() {
    let (_folder, path) = written(MURI);
    let times = |time| {
        let muri = MuriOptions { round: Duration::ZERO, time };
        let imported = import::muri(&path, options(2, 8), muri).unwrap();
        let scenario = read_back(&imported);
        assert_eq!(scenario.round, Duration::ZERO);
        let jobs = scenario.arrivals(1);
        let told: Vec<_> =
            jobs.iter().map(|job| (job.spec.name.to_string(), job.at, job.spec.work.alone)).collect();
        (imported.report.to_string(), told)
    };
    let job = |name: &str, at, alone| {
        (name.to_owned(), Instant::START + Duration::from_millis(at), Some(Duration::from_millis(alone)))
    };
    let (report, told) = times(TimeFrom::Duration);
    assert_eq!(told, [job("a", 0, 5000), job("b", 2500, 281_000)]);
    let dropped = "1 row without duration (first at line 5), 1 row without GPUs (first at line 4)";
    assert_eq!(report, format!("2 jobs; dropped: {dropped}"));
    let (_, told) = times(TimeFrom::Iterations);
    assert_eq!(told[..2], [job("a", 0, 4370), job("never", 0, 4370)]);
    assert_eq!(told[2], job("b", 2500, 214_500));
}

#[test]
fn a_wrong_row_of_muri_is_named_by_its_line() {
    let cases = [
        ("b,12,", "a,12,", 3, "a second job is called `a`"),
        ("2500,1000", "soon,1000", 2, "submit_time: `soon` is not a number with a unit"),
        ("281000", "-1", 2, "duration: `-1ms` is negative"),
        ("10,gpt2,5000", "ten,gpt2,5000", 3, "iterations: `ten` is not a whole number"),
        ("437,0\nnone", ",0\nnone", 3, "iteration_time is empty"),
        ("2500,1000", "2500,1000000000000", 2, "its iterations take longer than can be counted"),
        ("iteration_time,", "seconds,", 1, "column `iteration_time` is missing"),
    ];
    for (good, bad, line, message) in cases {
        let (_folder, path) = written(&MURI.replacen(good, bad, 1).replace("214.5", "21450000"));
        let muri = MuriOptions { time: TimeFrom::Iterations, ..MuriOptions::PUBLISHED };
        let error = import::muri(&path, options(2, 8), muri).unwrap_err();
        assert!(error.message().contains(message), "{error}");
        assert_eq!(error.position().map(|position| position.line), Some(line), "{error}");
    }
}

#[test]
fn rows_that_are_no_jobs_are_counted_and_named() {
    let text = "timestamp,duration,num_gpus,cluster\n\
        2017-10-09 07:00:10,5.5,12,a\n\
        2017-10-09 07:00:00,0.0,1,a\n\
        2017-10-09 07:00:00,9.0,0,a\n\
        2017-10-09 07:00:01,7,4,a\n\
        \n";
    let (_folder, path) = written(text);
    let imported = import::philly(&path, options(4, 8)).unwrap();
    let dropped = vec![Dropped { line: 3, why: Why::NoDuration }, Dropped { line: 4, why: Why::NoGpus }];
    assert_eq!(imported.report.dropped, dropped);
    assert_eq!((imported.report.jobs, imported.report.blank_lines), (2, 1));

    let jobs = read_back(&imported).arrivals(1);
    let seen: Vec<_> = jobs.iter().map(|job| (&*job.spec.name, job.at, job.spec.members())).collect();
    let expected = vec![("philly-4", Instant::START, 1), ("philly-1", Instant::from_secs(9), 2)];
    assert_eq!(seen, expected, "12 GPUs are a member of 8 and one of 4");
    assert_eq!(jobs[1].spec.gpus(), Gpus::whole(12));
    assert_eq!(jobs[1].spec.work.alone, Some(Duration::from_millis(5500)));
}

#[test]
fn a_limit_keeps_the_first_by_submission() {
    let text = "job_id,num_gpu,submit_time,duration\nb,1,20,5\na,1,10,5\nc,1,30,5\n";
    let (_folder, path) = written(text);
    let imported = import::tiresias(&path, ImportOptions { limit: Some(2), ..options(1, 4) }).unwrap();
    assert_eq!(imported.report.to_string(), "2 jobs; dropped: 1 job beyond the limit");
    let names: Vec<_> =
        read_back(&imported).arrivals(1).iter().map(|job| job.spec.name.to_string()).collect();
    assert_eq!(names, ["a", "b"]);
}

#[test]
fn the_trace_being_imported_is_never_overwritten() {
    let (folder, path) = written("job_id,num_gpu,submit_time,duration\na,1,10,5\n");
    let imported = import::tiresias(&path, options(1, 4)).unwrap();
    let error = import::write(&imported, &folder.path().join("source.yaml")).unwrap_err();
    assert!(error.to_string().ends_with("source.csv: it is the trace that is being imported"), "{error}");
    let error = import::write(&imported, &folder.path().join("out.csv")).unwrap_err();
    assert!(error.to_string().ends_with("out.csv: the trace beside it would have the same name"), "{error}");
    assert!(import::write(&imported, &folder.path().join("out.yaml")).is_ok());
}

#[test]
fn a_wrong_row_is_named_by_its_line() {
    let cases = [
        ("timestamp,duration,num_gpus\nyesterday,5,1\n", 2, "is not a time such as"),
        ("timestamp,duration,num_gpus\n2017-10-09 07:00:10,-5,1\n", 2, "duration: `-5s` is negative"),
        ("timestamp,duration,num_gpus\n2017-10-09 07:00:10,5,NaN\n", 2, "`NaN` is not a number with a unit"),
        ("timestamp,duration,num_gpus\n2017-10-09 07:00:10,5\n", 2, "the row has 2 fields instead of 3"),
        ("timestamp,num_gpus\n2017-10-09 07:00:10,5\n", 1, "column `duration` is missing"),
    ];
    for (text, line, message) in cases {
        let (_folder, path) = written(text);
        let error: InputError = import::philly(&path, options(1, 8)).unwrap_err();
        assert_eq!(error.position().map(|position| position.line), Some(line), "{error}");
        assert!(error.message().contains(message), "{error}");
    }
}
