//! The scheduler, a shim or a member is killed right after each of the side effects that a world has: every time the
//! world goes on, ends as an undisturbed one does, and leaves nothing behind.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Child;
use std::sync::Mutex;
use std::time::Instant;

use metronome_local::cleanup::Leftovers;
use metronome_local::fault::{FaultPoint, Phase, Process, VARIABLE};

use crate::ground::{Ground, Ran, iterations};

const JOBS: [(&str, u64); 3] = [("steady", 50), ("struck", 60), ("gives-way", 60)];

/// Every kind of side effect happens in this world: gangs over links, a link that changes, a host that vanishes and
/// returns, and a job that makes room for one of higher priority and comes back.
const WORLD: &str = "
apiVersion: metronome.dev/v1alpha1
kind: Cluster
metadata: {name: small}
spec:
  levels: [node]
  nodes: [{count: 3, cpu: 8, memory: 16Gi, gpus: 2}]
  links: {node: 100Gbps, withinNode: free}
---
apiVersion: metronome.dev/v1alpha1
kind: Workload
metadata: {name: faults}
spec:
  faults:
    - {node: node-0, at: 1s, for: 300ms}
    - {link: {from: node-1, to: root}, at: 200ms, for: 300ms, rate: 50Gbps}
";

fn job(name: &str, members: u32, iterations: u64, says: &str) -> String {
    format!(
        "---
apiVersion: metronome.dev/v1alpha1
kind: TrainingJob
metadata: {{name: {name}{says}
  members: {members}
  resources: {{cpu: 1, memory: 1Gi, nvidia.com/gpu: 1}}
  traffic: {{period: 20ms, phases: [{{offset: 5ms, length: 4ms, rate: 50Gbps}}]}}
  work: {{iterations: {iterations}}}
  checkpoint: {{every: 60ms, takes: 1ms, restart: 10ms}}
"
    )
}

fn scenario() -> String {
    let [steady, struck, gives_way] = JOBS;
    let urgent = ", annotations: {metronome.dev/submit-after: 500ms}}\nspec:\n  priorityClassName: high";
    let usual = "}\nspec:";
    let low = "}\nspec:\n  priorityClassName: low";
    [
        WORLD.to_owned(),
        job(steady.0, 2, steady.1, usual),
        job(struck.0, 2, struck.1, usual),
        job(gives_way.0, 2, gives_way.1, low),
        job("urgent", 4, 10, urgent),
    ]
    .concat()
}

/// How a world ended, without times.
#[derive(Clone, Debug, PartialEq, Eq)]
struct EndState {
    /// Job, what became of it, and the iterations that count.
    jobs: Vec<(String, String, Vec<u64>)>,
    left: Leftovers,
    files: BTreeSet<String>,
}

impl EndState {
    fn of(ground: &Ground, ran: &Ran) -> Self {
        let names = JOBS.map(|(name, _)| name).into_iter().chain(["urgent"]);
        let job = |name: &str| {
            let fate = ran.job(name)["fate"].as_str().unwrap_or_default().to_owned();
            let done = iterations(&ground.of_job(name).join("iterations.csv"));
            (name.to_owned(), fate, surviving(&done))
        };
        let mut files = BTreeSet::new();
        list(&ground.root().join(&ground.world), Path::new(""), &mut files);
        Self { jobs: names.map(job).collect(), left: ground.left(), files }
    }
}

/// The iterations that count: a restart from a checkpoint takes back the iterations after it. An iteration that was never
/// done makes the list differ from `0..n`; [`restarts`] tells whether a repeated one was repeated by a restart.
fn surviving(done: &[u64]) -> Vec<u64> {
    let mut surviving: Vec<u64> = Vec::new();
    for iteration in done {
        let is_restart = surviving.last().is_some_and(|last| iteration <= last);
        if is_restart {
            surviving.retain(|earlier| earlier < iteration);
        }
        surviving.push(*iteration);
    }
    surviving
}

/// How often a record goes back to an earlier iteration, or repeats one.
fn restarts(done: &[u64]) -> u64 {
    done.windows(2).filter(|pair| pair[1] <= pair[0]).count() as u64
}

/// Names of files below a folder. Logs are left out: a member that is killed may have written none.
fn list(folder: &Path, name: &Path, files: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder.join(name)).into_iter().flatten().flatten() {
        let name = name.join(entry.file_name());
        match entry.path().is_dir() {
            true => list(folder, &name, files),
            false if name.extension().is_some_and(|end| end == "log") || name.ends_with("log") => {}
            false => drop(files.insert(name.display().to_string())),
        }
    }
}

/// One run of the world in which something is killed.
struct Trial {
    point: FaultPoint,
    count: u32,
}

/// What came of it: how often members of all jobs were started, and how long it took.
struct Told {
    starts: u64,
    repeated: usize,
    seconds: f64,
}

impl Trial {
    /// Every fault point once, and later occurrences of points that a world reaches again and again.
    fn all() -> Vec<Self> {
        let later = [
            (FaultPoint::StateWritten, 2),
            (FaultPoint::StateWritten, 4),
            (FaultPoint::StateWritten, 8),
            (FaultPoint::ShimSpawned, 4),
            (FaultPoint::GroupPartRemoved, 2),
            // A new world removes what an old one of its name has left: the first time is at the beginning.
            (FaultPoint::MembersRemoved, 2),
            (FaultPoint::GroupsRemoved, 2),
            (FaultPoint::MemberFolderRemoved, 2),
            (FaultPoint::JobEndRecorded, 3),
            (FaultPoint::WorldNamespaceRemoved, 3),
        ];
        let first = FaultPoint::ALL.iter().map(|point| (*point, 1));
        first.chain(later).map(|(point, count)| Self { point, count }).collect()
    }

    /// Runs the world to its end, through the kill; panics where the kill did not happen.
    fn run(&self, ground: &Ground) -> Ran {
        let scenario = ground.scenario(&scenario());
        if self.point.phase() == Phase::Recover {
            let mut first = self.start_armed(ground, &scenario, FaultPoint::StateWritten, 4);
            assert_killed(&mut first, ground);
        }
        let mut scheduler = self.start_armed(ground, &scenario, self.point, self.count);
        if self.point.process() == Process::Scheduler {
            assert_killed(&mut scheduler, ground);
            scheduler = ground.start(&scenario, &["--policies", "metronome"]);
        }
        let ran = ground.finish(&mut scheduler);
        assert!(!token(ground).exists(), "{}: never reached: {}", self.point.name(), ran.said);
        ran
    }

    fn start_armed(&self, ground: &Ground, scenario: &Path, point: FaultPoint, count: u32) -> Child {
        fs::write(token(ground), "").unwrap();
        let armed = format!("{}:{count}:{}", point.name(), token(ground).display());
        ground.start_with(scenario, &["--policies", "metronome"], &[(VARIABLE, &armed)])
    }

    fn tell(&self, ground: &Ground, undisturbed: &EndState) -> Result<Told, String> {
        let begin = Instant::now();
        let ran = self.run(ground);
        let found = EndState::of(ground, &ran);
        if found != *undisturbed {
            return Err(format!("{found:#?}\ninstead of\n{undisturbed:#?}\n{}", ran.said));
        }
        let names = JOBS.map(|(name, _)| name).into_iter().chain(["urgent"]);
        let (mut starts, mut repeated) = (0, 0);
        for name in names {
            let done = iterations(&ground.of_job(name).join("iterations.csv"));
            let of_job = ran.job(name)["starts"].as_u64().unwrap();
            // A gang that ran twice at the same time would go back without a start.
            if restarts(&done) >= of_job {
                return Err(format!("{name} was started {of_job} times and did {done:?}\n{}", ran.said));
            }
            starts += of_job;
            repeated += done.len() - surviving(&done).len();
        }
        Ok(Told { starts, repeated, seconds: begin.elapsed().as_secs_f64() })
    }
}

/// The file whose removal means that the process was killed.
fn token(ground: &Ground) -> std::path::PathBuf {
    ground.folder.path().join("armed")
}

fn assert_killed(scheduler: &mut Child, ground: &Ground) {
    ground.wait_until(|| !token(ground).exists());
    let status = scheduler.wait().unwrap();
    assert_eq!(status.signal(), Some(9), "{}", ground.said());
}

#[test]
fn a_world_recovers_from_a_kill_after_each_of_its_side_effects() {
    let Some(ground) = Ground::new() else { return };
    let undisturbed = {
        let ground = ground.beside();
        let ran = ground.run(&scenario(), &["--policies", "metronome"]);
        ran.assert_all_completed();
        EndState::of(&ground, &ran)
    };
    for (name, count) in JOBS {
        let found = undisturbed.jobs.iter().find(|(found, ..)| found == name).unwrap();
        assert_eq!(found.2, (0..count).collect::<Vec<u64>>(), "{name}");
    }
    let trials = Mutex::new(Trial::all().into_iter().rev().collect::<Vec<_>>());
    let told = Mutex::new(Vec::new());
    // Several worlds at a time: most of a trial is waiting, and nothing here is about time.
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                // A guard in the condition of the loop would be held through its body.
                let next = || trials.lock().unwrap().pop();
                while let Some(trial) = next() {
                    let ended = trial.tell(&ground.beside(), &undisturbed);
                    told.lock().unwrap().push((trial, ended));
                }
            });
        }
    });
    let mut told = told.into_inner().unwrap();
    told.sort_by_key(|(trial, _)| {
        (FaultPoint::ALL.iter().position(|point| *point == trial.point), trial.count)
    });
    eprintln!("{}", table(&told));
    let failed: Vec<_> =
        told.iter().filter_map(|(trial, ended)| Some((trial, ended.as_ref().err()?))).collect();
    for (trial, why) in &failed {
        eprintln!("after {} ({}): {why}", trial.point.name(), trial.count);
    }
    assert!(failed.is_empty(), "{} of {} kills were not recovered from", failed.len(), told.len());
}

fn table(told: &[(Trial, Result<Told, String>)]) -> String {
    let mut text = format!(
        "{:24} {:>5} {:9} {:7} {:>6} {:>8} {:>5}  {}\n",
        "killed after",
        "count",
        "process",
        "phase",
        "starts",
        "repeated",
        "s",
        "what the kill left => what follows"
    );
    for (trial, ended) in told {
        let (name, process, phase) = (trial.point.name(), trial.point.process(), trial.point.phase());
        let (starts, repeated, seconds) = match ended {
            Ok(told) => (told.starts.to_string(), told.repeated.to_string(), format!("{:.1}", told.seconds)),
            Err(_) => ("LOST".to_owned(), String::new(), String::new()),
        };
        writeln!(
            text,
            "{name:24} {:>5} {:9} {:7} {starts:>6} {repeated:>8} {seconds:>5}  {} => {}",
            trial.count,
            format!("{process:?}"),
            format!("{phase:?}"),
            trial.point.left_behind(),
            trial.point.recovery()
        )
        .expect("a string takes everything");
    }
    text
}

#[test]
fn iterations_that_a_restart_takes_back_do_not_count() {
    assert_eq!(surviving(&[0, 1, 2, 3]), [0, 1, 2, 3]);
    assert_eq!(surviving(&[0, 1, 2, 1, 2, 3]), [0, 1, 2, 3]);
    assert_eq!(surviving(&[0, 1, 3]), [0, 1, 3], "a gap shows");
    assert_eq!(surviving(&[0, 1, 1, 2]), [0, 1, 2]);
    let by_one_start = [0, 1, 2, 3];
    let by_two_gangs_at_once = [0, 0, 1, 1, 2, 2];
    assert_eq!([&by_one_start[..], &by_two_gangs_at_once].map(restarts), [0, 3]);
}
