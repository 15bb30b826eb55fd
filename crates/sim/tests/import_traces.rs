//! Public traces become scenarios, and what is written is what is read back.

use std::fs;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use metronome_core::model::job::Capabilities;
use metronome_core::model::units::{Cpu, Duration, Gpus, Instant, Memory};
use metronome_sim::import::{
    self, Dropped, Fill, ImportOptions, Imported, MuriOptions, Openb, OpenbOptions, TimeFrom, Why,
};
use metronome_sim::scenario::{Costs, Departures, InputError, Scenario};

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

const NODES: &str = "sn,cpu_milli,memory_mib,gpu,model\n\
    a,32000,262144,0,\n\
    b,96000,393216,2,T4\n\
    c,96000,393216,2,T4\n\
    d,64000,262144,8,V100M32\n";

const PODS: &str = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n\
    whole,12000,16384,1,1000,,LS,Running,20,120,40\n\
    half,6000,12288,1,460,T4|V100M32,LS,Failed,10,90,\n\
    idle,500,1024,0,0,,BE,Succeeded,30,30,30\n\
    cpus,1500,1024,0,0,,BE,Succeeded,30,33,31\n\
    all,12000,16384,8,1000,V100M32,LS,Pending,5,10,\n";

/// The two lists in a folder of their own.
fn lists(nodes: &str, pods: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("openb_node_list_all_node.csv"), nodes).unwrap();
    fs::write(folder.path().join("openb_pod_list_default.csv"), pods).unwrap();
    folder
}

fn filled(thousandths: u32, seed: u64) -> OpenbOptions {
    let fill = Some(Fill { thousandths, seed });
    OpenbOptions { fill, departures: Departures::Never, ..OpenbOptions::default() }
}

fn read_lists_back(imported: &Openb) -> Scenario {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("scenario.yaml");
    import::write_openb(imported, &out).unwrap();
    Scenario::read(&out).unwrap()
}

#[test]
fn nodes_and_pods_of_openb_are_read_back_as_they_were() {
    let folder = lists(NODES, PODS);
    let imported = import::openb(folder.path(), OpenbOptions::default()).unwrap();
    assert_eq!(imported.report.to_string(), "4 jobs; dropped: 1 row without duration (first at line 4)");
    let scenario = read_lists_back(&imported);
    assert_eq!((scenario.name.as_str(), scenario.departures), ("openb", Departures::WhenDone));
    let cluster = &scenario.cluster;
    assert_eq!((cluster.nodes().len(), cluster.capacity().gpus), (4, Gpus::whole(12)));
    let jobs = scenario.arrivals(1);
    let seen: Vec<_> = jobs.iter().map(|job| (&*job.spec.name, job.at, job.spec.gpus())).collect();
    let expected = [("all", 5, 8000), ("half", 10, 460), ("whole", 20, 1000), ("cpus", 30, 0)];
    assert_eq!(seen, expected.map(|(name, at, gpus)| (name, Instant::from_secs(at), Gpus(gpus))));
    let [all, half, whole, cpus] = &jobs[..] else { panic!("four jobs") };
    assert!(jobs.iter().all(|job| job.spec.members() == 1));
    let each = cpus.spec.roles[0].shape.each;
    assert_eq!((each.cpu, each.memory), (Cpu(1500), Memory::gib(1)));
    assert_eq!(whole.spec.work.alone, Some(Duration::from_secs(80)), "from being scheduled");
    assert_eq!(half.spec.work.alone, Some(Duration::from_secs(80)), "from creation");
    let on = |job: &metronome_sim::scenario::Arrival| job.spec.roles[0].shape.on;
    assert_eq!(on(all).gpu_type.map(|one| cluster.gpu_type_name(one)), Some("V100M32"));
    let allowed = cluster.nodes().ids().map(|node| cluster.in_set(node, on(half).set.unwrap()));
    assert_eq!(allowed.collect::<Vec<_>>(), [false, true, true, true]);
}

#[test]
fn pods_are_drawn_until_they_ask_for_the_fill() {
    let folder = lists(NODES, PODS);
    let drawn = |seed| read_lists_back(&import::openb(folder.path(), filled(1300, seed)).unwrap());
    let (one, again, other) = (drawn(1), drawn(1), drawn(2));
    let names = |scenario: &Scenario| -> Vec<String> {
        scenario.arrivals(1).iter().map(|job| job.spec.name.to_string()).collect()
    };
    assert_eq!(names(&one), names(&again));
    assert_ne!(names(&one), names(&other));
    let jobs = one.arrivals(1);
    let asked =
        |jobs: &[metronome_sim::scenario::Arrival]| -> Gpus { jobs.iter().map(|job| job.spec.gpus()).sum() };
    let wanted = Gpus(15_600);
    assert!(asked(&jobs) >= wanted && asked(&jobs[..jobs.len() - 1]) < wanted);
    assert_eq!(jobs[1].at, Instant::from_secs(1));
    assert_eq!((one.departures, jobs[0].spec.work.alone), (Departures::Never, None));
}

#[test]
fn a_wrong_list_is_named_by_its_line() {
    let pod = |row: &str| format!("{}{row}\n", PODS.lines().next().map(|head| format!("{head}\n")).unwrap());
    let cases = [
        (NODES.to_owned(), pod("a,1,1,2,500,,LS,Running,0,1,0"), Some(2), "a share is of a single one"),
        (NODES.to_owned(), pod("a,1,1,1,0,,LS,Running,0,1,0"), Some(2), "gpu_milli is 0 beside a num_gpu"),
        (
            NODES.to_owned(),
            pod("a,1,1,1,1001,,LS,Running,0,1,0"),
            Some(2),
            "gpu_milli: `1001` is not a whole",
        ),
        (NODES.to_owned(), pod("a,0,0,0,0,,LS,Running,0,1,0"), Some(2), "a pod takes something"),
        (NODES.to_owned(), pod("a,1,1,0,0,,LS,Running,0,,0"), Some(2), "deletion_time is empty"),
        (
            NODES.to_owned(),
            format!("{PODS}all,1,1,0,0,,LS,Running,0,1,0\n"),
            Some(7),
            "a second pod is called",
        ),
        (format!("{NODES}d,1,1,0,\n"), PODS.to_owned(), Some(6), "a second node is called `d`"),
        (format!("{NODES}e,1,1,0,T4\n"), PODS.to_owned(), Some(6), "a node without GPUs has a model"),
        (format!("{NODES}e,one,1,0,\n"), PODS.to_owned(), Some(6), "cpu_milli: `one` is not a whole number"),
        ("sn,cpu_milli,memory_mib,gpu,model\n".into(), PODS.to_owned(), None, "there are no nodes in it"),
    ];
    for (nodes, pods, line, message) in cases {
        let folder = lists(&nodes, &pods);
        let error = import::openb(folder.path(), OpenbOptions::default()).unwrap_err();
        assert_eq!(error.position().map(|position| position.line), line, "{error}");
        assert!(error.message().contains(message), "{error}");
    }
    let without = lists(NODES, PODS);
    fs::remove_file(without.path().join("openb_pod_list_default.csv")).unwrap();
    let error = import::openb(without.path(), OpenbOptions::default()).unwrap_err();
    assert!(error.message().contains("there is no openb_pod_list_default.csv"), "{error}");
    assert!(error.hint().is_some());
}

#[test]
fn all_of_openb_is_read_back() {
    let Some(folder) = data("openb") else { return };
    let imported = import::openb(&folder, OpenbOptions::default()).unwrap();
    assert_eq!(
        imported.report.to_string(),
        "8151 jobs; dropped: 1 row without duration (first at line 7287)"
    );
    let cluster = read_lists_back(&imported).cluster;
    assert_eq!((cluster.nodes().len(), cluster.capacity().gpus), (1523, Gpus::whole(6212)));
}

#[test]
fn a_list_of_hosts_becomes_a_cluster_with_half_of_what_is_below_above_each_switch() {
    let (folder, hosts) = written("ip,DSW,PSW,ASW\na,G1,P1,S1\nb,G1,P1,S1\nc,G1,P1,S2\nd,G1,P2,S1\n");
    let (jobs, out) = (folder.path().join("jobs.yaml"), folder.path().join("scenario.yaml"));
    fs::write(
        &jobs,
        "apiVersion: metronome.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: one}\nspec: {members: 1, resources: {nvidia.com/gpu: 1}, work: {duration: 1h}}\n",
    )
    .unwrap();
    let imported = import::lingjun(&hosts, Some(&jobs)).unwrap();
    assert_eq!((imported.hosts(), imported.racks()), (4, 3));
    import::write_lingjun(&imported, &out).unwrap();
    let cluster = Scenario::read(&out).unwrap().cluster;
    let names: Vec<&str> = cluster.nodes().values().map(|node| &*node.name).collect();
    assert_eq!(names, ["P1-S1-0", "P1-S1-1", "P1-S2-0", "P2-S1-0"]);
    assert_eq!(cluster.domain_count(), 5, "two pods, and three racks of which two are called alike");
    let rates: Vec<String> =
        cluster.fabric.links().values().step_by(2).map(|link| link.rate.to_string()).collect();
    let hosts = ["200Gbps"; 4];
    assert_eq!(rates, [&hosts[..], &["200Gbps", "100Gbps", "100Gbps", "150Gbps", "50Gbps"]].concat());
}

#[test]
fn hosts_that_make_no_topology_are_named_by_their_line() {
    let (_folder, twice) = written("ip,DSW,PSW,ASW\na,G1,P1,S1\nb,G2,P1,S1\n");
    let error = import::lingjun(&twice, None).unwrap_err();
    assert!(error.to_string().ends_with(":3: pod `P1` is under two core switches"), "{error}");
    let (_folder, empty) = written("ip,DSW,PSW,ASW\n");
    assert_eq!(import::lingjun(&empty, None).unwrap_err().message(), "there are no hosts in it");
}

#[test]
fn all_of_lingjun_is_read_back() {
    let Some(list) = data("lingjun/topo.csv") else { return };
    let imported = import::lingjun(&list, None).unwrap();
    assert_eq!((imported.hosts(), imported.racks()), (847, 119));
}
