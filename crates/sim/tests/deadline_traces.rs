//! Public traces with deadlines become scenarios, and what is written is what is read back.

use std::fs;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use metronome_core::model::job::Binding;
use metronome_core::model::units::{Duration, Gpus, Instant};
use metronome_sim::import::{self, Batch, ElasticflowOptions, ImportOptions, Imported, PolluxOptions};
use metronome_sim::scenario::Scenario;

fn options(nodes: u32, gpus_per_node: u32) -> ImportOptions {
    let count = |number| NonZeroU32::new(number).expect("more than nothing");
    ImportOptions { nodes: count(nodes), gpus_per_node: count(gpus_per_node), limit: None }
}

/// A public trace, or nothing where the folder of data is absent.
fn data(file: &str) -> Option<PathBuf> {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let path = std::env::var_os("METRONOME_DATA").map_or(default, PathBuf::from).join(file);
    if !path.exists() {
        metronome_skip::skip(format_args!("{file} is not in the folder of data (METRONOME_DATA)"));
        return None;
    }
    Some(path)
}

fn read_back(imported: &Imported) -> Scenario {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("scenario.yaml");
    import::write(imported, &out).unwrap();
    Scenario::read(&out).unwrap()
}

/// A folder with a trace and a table of throughputs.
fn small(trace: &str, table: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("throughputs_A100")).unwrap();
    fs::write(folder.path().join("throughputs_A100/vgg.csv"), table).unwrap();
    let path = folder.path().join("trace.csv");
    fs::write(&path, trace).unwrap();
    (folder, path)
}

const HEADER: &str = "job_id,submission_time,num_iteration,model_name,deadline,batch_size,num_gpu,duration\n";
const TABLE: &str = "global_batch_size,1,2,4,8\n4,2.0,3.0,,9.0\n";

#[test]
fn work_is_iterations_at_the_speed_of_the_table() {
    let (_folder, path) = small(&format!("{HEADER}a,100,600,vgg,400,4,2,1\n"), TABLE);
    let scenario =
        read_back(&import::elasticflow(&path, options(2, 8), &ElasticflowOptions::published()).unwrap());
    let job = &scenario.arrivals(1)[0];
    assert_eq!(job.at, Instant::from_secs(100));
    assert_eq!(job.spec.deadline.unwrap().at, Instant::from_secs(400));
    assert_eq!(job.spec.deadline.unwrap().binding, Binding::Soft);
    let sizes: Vec<u32> = job.spec.scaling.as_ref().unwrap().sizes().iter().map(|(size, _)| *size).collect();
    assert_eq!(sizes, [1, 2], "the hole is no size, and a batch of four is not split in eight");
    assert_eq!(job.spec.work.alone, Some(Duration::from_secs(300)), "600 iterations at 2 a second");
    assert_eq!(job.asks.unwrap().members, 2);
    assert_eq!(
        (scenario.round, scenario.cluster.capacity().gpus),
        (Duration::from_secs(240), Gpus::whole(16))
    );
}

#[test]
fn rows_that_make_no_sense_are_named() {
    let error = |rows: &str, table: &str| {
        let (_folder, path) = small(&format!("{HEADER}{rows}"), table);
        let error = import::elasticflow(&path, options(2, 8), &ElasticflowOptions::published()).unwrap_err();
        (error.position().map(|at| at.line), error.message().to_owned())
    };
    let late = error("a,100,600,vgg,100,4,2,1\n", TABLE);
    assert_eq!(late, (Some(2), "the deadline is over when the job is submitted".into()));
    let unknown = error("a,100,600,vgg,400,5,2,1\n", TABLE);
    assert_eq!(unknown, (Some(2), "there is no table of throughputs for vgg/5".into()));
    let hollow = error("a,100,600,vgg,400,4,2,1\n", "global_batch_size,1,2\n4,,0\n");
    assert_eq!(hollow, (Some(2), "no size is given".into()));
    let (_folder, path) = small(&format!("{HEADER}a,100,0,vgg,400,4,2,1\nb,1,5,vgg,9,4,1,1\n"), TABLE);
    let imported = import::elasticflow(&path, options(2, 8), &ElasticflowOptions::published()).unwrap();
    assert_eq!(imported.report.to_string(), "1 job; dropped: 1 row without duration (first at line 2)");
}

#[test]
fn elasticflow_traces_are_read_back_as_they_were() {
    for (file, jobs) in
        [("195job.csv", 195), ("generated_100jobs_1500lam_seed1.csv", 100), ("cluster02.csv.gz", 5778)]
    {
        let Some(path) = data(&format!("elasticflow/{file}")) else { return };
        let imported = import::elasticflow(&path, options(16, 8), &ElasticflowOptions::published()).unwrap();
        let scenario = read_back(&imported);
        assert_eq!(scenario.job_count(), jobs, "{file}");
        assert!(
            scenario.arrivals(1).iter().all(|job| job.spec.deadline.is_some() && job.spec.scaling.is_some())
        );
    }
}

#[test]
fn chronus_jobs_are_strict_or_best_effort_and_of_one_size() {
    let Some(path) = data("chronus/trace_job_Philly_MIX1.csv.gz") else { return };
    let imported = import::chronus(&path, options(120, 8), import::CHRONUS_ROUND).unwrap();
    let scenario = read_back(&imported);
    let arrivals = scenario.arrivals(1);
    let strict =
        arrivals.iter().filter(|job| job.spec.deadline.is_some_and(|of| of.binding == Binding::Strict));
    assert_eq!((arrivals.len(), strict.count()), (30_756, 21_600));
    assert!(arrivals.iter().all(|job| job.spec.roles.iter().all(|role| !role.gang.is_elastic())));
}

#[test]
fn pollux_jobs_are_as_fast_as_was_measured() {
    let Some(path) = data("pollux/workloads/workload-1.csv") else { return };
    let rules = |batch| PolluxOptions { batch, ..PolluxOptions::PUBLISHED };
    let given = read_back(&import::pollux(&path, options(16, 4), &rules(Batch::Given)).unwrap());
    let best = read_back(&import::pollux(&path, options(16, 4), &rules(Batch::Adaptive)).unwrap());
    assert_eq!((given.job_count(), best.job_count()), (160, 160));
    for (given, best) in given.arrivals(1).iter().zip(best.arrivals(1)) {
        let (given, best) = (given.spec.work.alone.unwrap(), best.spec.work.alone.unwrap());
        assert!(best.0 <= given.0 + given.0 / 20, "the best batch is hardly slower than the given one");
    }
}
