//! One run: the jobs of a mix as processes on this machine, and what they have noted.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use metronome_local::state::WorldFolder;
use metronome_local::world::{Fate, JobOutcome, Outcome};
use metronome_sim::scenario::Scenario;
use metronome_trainer::Notes;

use super::definition::{FAIR, Job, MEMBERS, Mix, Mixes, SEPARATE, Set, fnv, job_name};
use super::runs::{Calibration, Facts, JobRun, Run};
use super::scenario::{Wiring, documents};
use crate::commands::local_run;
use crate::failure::Failure;
use crate::local::Asked;

/// What all runs have in common.
#[derive(Debug)]
pub(super) struct Bench {
    python: String,
    program: PathBuf,
    build: String,
    /// Set where the user has interrupted the command.
    pub(super) stop: Arc<AtomicBool>,
}

/// Which run of a set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Which<'a> {
    pub(super) set: &'a Set,
    pub(super) mix: &'a Mix,
    pub(super) start: u64,
    pub(super) policy: &'a str,
}

impl Bench {
    /// Fails where the interpreter has no PyTorch: every run would.
    pub(super) fn new(mixes: &Mixes, folder: &Path, python: &str) -> Result<Self, Failure> {
        let program = folder.join(&mixes.program);
        let program = program
            .canonicalize()
            .map_err(|error| Failure::input(format!("find {}", program.display())).because(&error))?;
        let import = Command::new(python).args(["-c", "import torch.distributed"]).output();
        if !import.is_ok_and(|output| output.status.success()) {
            return Err(Failure::world(format!("import torch in {python}"))
                .hint("`--python` names an interpreter with PyTorch, such as /usr/bin/python3"));
        }
        let build = std::env::current_exe()
            .and_then(fs::read)
            .map_err(|error| Failure::world("read this executable").because(&error))?;
        Ok(Self {
            python: python.to_owned(),
            program,
            build: format!("{:016x}", fnv(&build)),
            stop: local_run::stopped_by_signals()?,
        })
    }

    /// Runs it. A run that fails is told with its reason; an error is one of the machine, which all runs would meet.
    pub(super) fn run(
        &self,
        which: Which<'_>,
        batches: Option<&BTreeMap<usize, u64>>,
    ) -> Result<Run, Failure> {
        let Which { set, mix, start, policy } = which;
        let notes = Folder::new()?;
        let delays = mix.delays(start);
        let commands: Vec<Vec<String>> =
            (0..mix.jobs.len()).map(|place| self.command(which, place, &delays, batches, &notes.0)).collect();
        let wiring = if policy == SEPARATE { Wiring::Separate } else { Wiring::Shared };
        let text = documents(set, mix, wiring, &commands);
        let scenario = Scenario::read_from(text.as_bytes(), &mix.name, Path::new(""))?;
        let asked = Asked {
            world: world_name(mix),
            root: WorldFolder::usual_root(),
            scale: set.scale,
            seed: start,
            notes: Notes::default(),
        };
        let (began, busy) = (Instant::now(), ProcessorTime::now());
        let under = if policy == SEPARATE { FAIR } else { policy };
        let limit = Duration::from_secs(set.limit_seconds);
        let outcome =
            self.within(limit, |stop| local_run::measure(&scenario, under, &asked, None, stop))?.outcome;
        let (failed, jobs) = match read_jobs(mix, &outcome, &notes.0, &delays) {
            Ok(jobs) => (None, jobs),
            Err(_) if began.elapsed() >= limit => {
                (Some(format!("it took longer than {} s", limit.as_secs())), Vec::new())
            }
            Err(why) => (Some(why), Vec::new()),
        };
        Ok(Run {
            mix: mix.name.clone(),
            start,
            policy: policy.to_owned(),
            definition: set.fingerprint(mix),
            build: self.build.clone(),
            failed,
            seconds: (began.elapsed().as_secs_f64() * 10.0).round() / 10.0,
            busy: busy.zip(ProcessorTime::now()).map(|(before, after)| after.part_since(before)),
            jobs,
        })
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Calls `run` with a flag that is set when the time is up, or the user interrupts.
    fn within<T>(&self, limit: Duration, run: impl FnOnce(&AtomicBool) -> T) -> T {
        let (over, is_over) = mpsc::channel::<()>();
        let stop = AtomicBool::new(false);
        let ends = Instant::now() + limit;
        std::thread::scope(|scope| {
            let stop = &stop;
            scope.spawn(move || {
                while is_over.recv_timeout(Duration::from_millis(100)) == Err(RecvTimeoutError::Timeout) {
                    if Instant::now() >= ends || self.is_stopped() {
                        stop.store(true, Ordering::Relaxed);
                    }
                }
            });
            let result = run(stop);
            drop(over);
            result
        })
    }

    fn command(
        &self,
        which: Which<'_>,
        place: usize,
        delays: &[f64],
        batches: Option<&BTreeMap<usize, u64>>,
        notes: &Path,
    ) -> Vec<String> {
        let (mix, job) = (which.mix, &which.mix.jobs[place]);
        let mut words = self.program(job);
        let mut add = |option: &str, value: String| words.extend([option.to_owned(), value]);
        add("--iterations", job.iterations.to_string());
        add("--jobs", mix.jobs.len().to_string());
        add("--delay-ms", format!("{:.3}", delays[place]));
        add("--notes", notes.display().to_string());
        if let Some(batch) = batches.and_then(|batches| batches.get(&place)) {
            add("--batch", batch.to_string());
        }
        if which.policy == SEPARATE {
            words.push("--trace".into());
        }
        words
    }

    fn program(&self, job: &Job) -> Vec<String> {
        let first = [self.python.clone(), self.program.display().to_string(), job.model.clone()];
        first.into_iter().chain(job.options.iter().cloned()).collect()
    }

    /// Finds batches while as many members compute as in a run; none where no job asks for it.
    pub(super) fn calibrate(&self, set: &Set, mix: &Mix) -> Result<Option<Calibration>, Failure> {
        let cannot = |why: String| Failure::world(format!("choose batches for {}: {why}", mix.name));
        let mut members = Vec::new();
        for (place, job) in mix.jobs.iter().enumerate() {
            let Some(target) = job.calibrate_ms else { continue };
            for _ in 0..MEMBERS {
                let words = self.program(job);
                let mut command = Command::new(&words[0]);
                command.args(&words[1..]).args(["--calibrate-ms", &target.to_string()]);
                let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
                members.push((place, child.map_err(|error| cannot(error.to_string()))?));
            }
        }
        let mut found: Vec<(usize, u64)> = Vec::new();
        for (place, child) in members {
            let output = child.wait_with_output().map_err(|error| cannot(error.to_string()))?;
            let text = String::from_utf8_lossy(&output.stdout);
            let batch = text.trim().parse();
            found.push((place, batch.map_err(|_| cannot(format!("its program says `{}`", text.trim())))?));
        }
        let batches = batches(mix, &found);
        let calibration = Calibration { mix: mix.name.clone(), definition: set.fingerprint(mix), batches };
        Ok(Some(calibration).filter(|calibration| !calibration.batches.is_empty()))
    }
}

/// A world of its own for each mix, so that several commands can measure different mixes side by side.
fn world_name(mix: &Mix) -> String {
    let letters = mix.name.chars().filter(char::is_ascii_alphanumeric).take(MOST_LETTERS);
    format!("mix{}", letters.collect::<String>().to_ascii_lowercase())
}

const MOST_LETTERS: usize = 24;

/// Of each job the median of what its members have found, and those of jobs that are equal: they train one model.
fn batches(mix: &Mix, found: &[(usize, u64)]) -> BTreeMap<usize, u64> {
    let places: BTreeSet<usize> = found.iter().map(|(place, _)| *place).collect();
    let batch = |place: usize| {
        let is_equal = |other: usize| mix.jobs[other].trains_as(&mix.jobs[place]);
        let mut batches: Vec<u64> =
            found.iter().filter(|(other, _)| is_equal(*other)).map(|(_, batch)| *batch).collect();
        batches.sort_unstable();
        (place, batches[batches.len() / 2])
    };
    places.into_iter().map(batch).collect()
}

/// A folder for what members note, which goes with this value. Its name is new for every run, so that a world that an
/// interrupted command has left behind is never taken for this one.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self, Failure> {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let folder =
            std::env::temp_dir().join(format!("metronome-mixes-{}-{}", std::process::id(), now.as_nanos()));
        fs::create_dir_all(&folder).map_err(|error| crate::input::cannot_write(&folder, &error))?;
        Ok(Self(folder))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What the jobs have noted; otherwise why that is no result.
fn read_jobs(mix: &Mix, outcome: &Outcome, notes: &Path, delays: &[f64]) -> Result<Vec<JobRun>, String> {
    let mut noted = Vec::new();
    for (place, job) in outcome.jobs.iter().enumerate() {
        if job.fate != Fate::Completed {
            let why = job.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
            return Err(format!("{} {}{why}", job.name, job.fate.word()));
        }
        if job.restarts > 0 {
            return Err(format!("{} was started again", job.name));
        }
        let times = read_times(&notes.join(format!("{}.times", job_name(place))))?;
        if times.len() as u64 != mix.jobs[place].iterations + 1 {
            return Err(format!("{} has noted {} times", job.name, times.len()));
        }
        let facts = read_facts(&notes.join(format!("{}.json", job_name(place))))?;
        if facts.nodes != MEMBERS {
            return Err(format!("{} ran on {} nodes", job.name, facts.nodes));
        }
        noted.push((job, times, facts));
    }
    let first = noted.iter().map(|(_, times, _)| times[0]).fold(f64::INFINITY, f64::min);
    let since_first = |nanoseconds: u64| rounded((nanoseconds as f64 / 1e9 - first) * 1e3);
    let job_run = |(place, (job, times, facts)): (usize, (&JobOutcome, Vec<f64>, Facts))| JobRun {
        job: job.name.clone(),
        delay_ms: rounded(delays[place]),
        times: times.iter().map(|time| rounded((time - first) * 1e3)).collect(),
        facts: Some(facts),
        first_used_at: job.first_used.as_ref().and_then(|used| used["until_ns"].as_u64()).map(since_first),
        first_used: job.first_used.clone(),
        learned: job.learned.clone(),
        directives: job
            .directives
            .iter()
            .map(|(at, directive)| (since_first(outcome.began.0 + at.0), directive.clone()))
            .collect(),
    };
    Ok(noted.into_iter().enumerate().map(job_run).collect())
}

/// To a hundredth of a millisecond.
fn rounded(milliseconds: f64) -> f64 {
    (milliseconds * 100.0).round() / 100.0
}

fn read_times(file: &Path) -> Result<Vec<f64>, String> {
    let text = fs::read_to_string(file).map_err(|error| format!("its times cannot be read: {error}"))?;
    text.lines().map(|line| line.parse().map_err(|_| format!("`{line}` is no time"))).collect()
}

fn read_facts(file: &Path) -> Result<Facts, String> {
    let text = fs::read_to_string(file).map_err(|error| format!("its facts cannot be read: {error}"))?;
    serde_json::from_str(&text).map_err(|error| format!("its facts make no sense: {error}"))
}

/// Processor time of the machine since it was started, in ticks.
#[derive(Clone, Copy, Debug)]
struct ProcessorTime {
    used: u64,
    all: u64,
}

impl ProcessorTime {
    fn now() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let ticks: Vec<u64> = text
            .lines()
            .next()?
            .split_whitespace()
            .skip(1)
            .take(8)
            .filter_map(|word| word.parse().ok())
            .collect();
        let all = ticks.iter().sum();
        Some(Self { used: all - ticks.get(3)? - ticks.get(4)?, all })
    }

    fn part_since(self, before: Self) -> f64 {
        let part = (self.used - before.used) as f64 / (self.all - before.all).max(1) as f64;
        (part * 1000.0).round() / 1000.0
    }
}

#[cfg(test)]
mod tests {
    use metronome_core::model::units::{Duration, Moment};

    use super::super::definition::tests::mixes;
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// What two completed jobs leave behind that began to train a quarter of a second apart.
    fn noted(iterations: u64, nodes: u32) -> (tempfile::TempDir, Outcome) {
        let folder = tempfile::tempdir().unwrap();
        for place in 0..2 {
            let put = |end: &str, text: String| {
                fs::write(folder.path().join(format!("{}.{end}", job_name(place))), text).unwrap();
            };
            let time = |end: u64| format!("{:.6}\n", 100.0 + 0.25 * place as f64 + 0.1 * end as f64);
            put("times", (0..=iterations).map(time).collect());
            let facts = format!(
                r#"{{"torch": "2", "members": 2, "nodes": {nodes}, "threads": 1, "batch": 1, "bytes": 5}}"#
            );
            put("json", facts);
        }
        let job = |place: usize| JobOutcome {
            name: job_name(place),
            fate: Fate::Completed,
            why: None,
            log: None,
            last_lines: Vec::new(),
            submitted: None,
            started: None,
            ended: None,
            iterations: 0,
            starts: 1,
            restarts: 0,
            moves: 0,
            resizes: 0,
            learned: None,
            first_used: Some(serde_json::json!({"until_ns": 101 * SECOND})),
            directives: vec![(Duration(3 * SECOND), None)],
        };
        let began = Moment(98 * SECOND);
        (folder, Outcome { began, jobs: vec![job(0), job(1)], agent_restarts: 0 })
    }

    fn read((folder, outcome): &(tempfile::TempDir, Outcome)) -> Result<Vec<JobRun>, String> {
        read_jobs(&mixes().sets[0].mixes[0], outcome, folder.path(), &[7.0, 8.0])
    }

    #[test]
    fn times_of_a_run_count_from_its_first_iteration() {
        let jobs = read(&noted(5, 2)).unwrap();
        assert_eq!(jobs[0].times, [0.0, 100.0, 200.0, 300.0, 400.0, 500.0]);
        assert_eq!((jobs[1].times[0], jobs[1].delay_ms), (250.0, 8.0));
        assert_eq!(jobs[0].first_used_at, Some(1000.0));
        assert_eq!(jobs[0].directives, [(1000.0, None)]);
    }

    #[test]
    fn a_run_that_is_not_whole_is_no_result() {
        assert_eq!(read(&noted(4, 2)).unwrap_err(), "job-0 has noted 5 times");
        assert_eq!(read(&noted(5, 1)).unwrap_err(), "job-0 ran on 1 nodes");
        let mut failed = noted(5, 2);
        failed.1.jobs[1].fate = Fate::Failed;
        failed.1.jobs[1].why = Some("worker-1 ended with 1".into());
        assert_eq!(read(&failed).unwrap_err(), "job-1 failed: worker-1 ended with 1");
        let mut again = noted(5, 2);
        again.1.jobs[0].restarts = 1;
        assert_eq!(read(&again).unwrap_err(), "job-0 was started again");
    }

    #[test]
    fn worlds_are_called_after_their_mixes() {
        let mix = Mix { name: "0.3 beside 0.6".into(), ..mixes().sets[0].mixes[0].clone() };
        assert_eq!(world_name(&mix), "mix03beside06");
    }

    #[test]
    fn equal_jobs_have_one_batch() {
        let mut mix = mixes().sets[0].mixes[0].clone();
        mix.jobs[1] = mix.jobs[0].clone();
        let found = [(0, 30), (0, 34), (1, 20), (1, 22)];
        assert_eq!(batches(&mix, &found), BTreeMap::from([(0, 30), (1, 30)]));
        mix.jobs[1].model = "mlp".into();
        assert_eq!(batches(&mix, &found), BTreeMap::from([(0, 34), (1, 22)]));
        assert_eq!(batches(&mix, &found[2..]), BTreeMap::from([(1, 22)]));
    }

    #[test]
    fn the_used_part_of_processor_time_leaves_out_idle_time() {
        let at = |text: &str| ProcessorTime::parse(text).unwrap();
        let (before, after) =
            (at("cpu  100 0 50 800 50 0 0 0 0 0\ncpu0 1"), at("cpu  150 0 75 900 75 0 0 0 0 0\n"));
        assert_eq!(after.part_since(before), 0.375);
        assert!(ProcessorTime::parse("").is_none());
    }
}
