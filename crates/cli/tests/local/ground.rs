//! A world of a test's own, of which nothing is left behind, however the test ends.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use metronome_local::cleanup::{Leftovers, clean, leftovers};
use metronome_local::names::WorldName;
use metronome_local::rights::Rights;
use serde_json::Value;
use tempfile::TempDir;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_metronome");

pub(crate) struct Ground {
    pub(crate) folder: TempDir,
    pub(crate) world: String,
    /// One test after the other: they are about time, and a machine has few cores.
    _turn: Option<MutexGuard<'static, ()>>,
}

impl Ground {
    /// None where this machine does not allow what the test is about.
    pub(crate) fn new() -> Option<Self> {
        let rights = Rights::look();
        if !(rights.network && rights.cpu) {
            metronome_skip::skip(format_args!("{:?}", rights.missing));
            return None;
        }
        static TURN: Mutex<()> = Mutex::new(());
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        Some(Self::with(Some(turn)))
    }

    /// Another world of the same test, for a test that holds its turn meanwhile.
    pub(crate) fn beside(&self) -> Self {
        Self::with(None)
    }

    fn with(turn: Option<MutexGuard<'static, ()>>) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let world = format!("t{}x{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        Self { folder: tempfile::tempdir().unwrap(), world, _turn: turn }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("worlds")
    }

    /// The folder of a job, with its checkpoint and its record.
    pub(crate) fn of_job(&self, name: &str) -> PathBuf {
        self.root().join(&self.world).join("jobs/default").join(name)
    }

    pub(crate) fn scenario(&self, text: &str) -> PathBuf {
        let file = self.folder.path().join("scenario.yaml");
        fs::write(&file, text).unwrap();
        file
    }

    pub(crate) fn start(&self, scenario: &Path, more: &[&str]) -> Child {
        self.start_with(scenario, more, &[])
    }

    /// The same with more environment.
    pub(crate) fn start_with(&self, scenario: &Path, more: &[&str], environment: &[(&str, &str)]) -> Child {
        let out = fs::File::create(self.folder.path().join("out")).unwrap();
        let err = fs::File::options().create(true).append(true).open(self.folder.path().join("err")).unwrap();
        Command::new(PROGRAM)
            .args(["local", "run", "--output", "json", "--world", &self.world, "--dir"])
            .arg(self.root())
            .arg("-f")
            .arg(scenario)
            .args(more)
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .spawn()
            .unwrap()
    }

    /// Runs to the end and returns what was printed.
    pub(crate) fn run(&self, scenario: &str, more: &[&str]) -> Ran {
        let mut child = self.start(&self.scenario(scenario), more);
        self.finish(&mut child)
    }

    pub(crate) fn finish(&self, child: &mut Child) -> Ran {
        let begin = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            assert!(begin.elapsed() < Duration::from_secs(300), "it goes on and on: {}", self.said());
            std::thread::sleep(Duration::from_millis(20));
        };
        let out = fs::read_to_string(self.folder.path().join("out")).unwrap();
        let document = serde_json::from_str(&out).unwrap_or(Value::Null);
        Ran { code: status.code(), document, said: self.said() }
    }

    /// Fails with what the scheduler has said, should it never be so.
    pub(crate) fn wait_until(&self, is_so: impl Fn() -> bool) {
        let begin = Instant::now();
        while !is_so() {
            assert!(begin.elapsed() < Duration::from_secs(60), "{}", self.said());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn said(&self) -> String {
        fs::read_to_string(self.folder.path().join("err")).unwrap_or_default()
    }

    pub(crate) fn left(&self) -> Leftovers {
        leftovers(&self.root(), &WorldName::new(&self.world).unwrap())
    }

    /// Nothing is left but the folder with what jobs have saved.
    pub(crate) fn assert_clean(&self) {
        let Leftovers { namespaces, groups, processes, .. } = self.left();
        assert_eq!((namespaces, groups, processes), (0, 0, 0), "namespaces, groups, processes");
        assert_eq!(self.agents(), Vec::<i32>::new(), "agents");
        assert_eq!(self.members().len(), 0, "members");
    }

    /// Where the agent of this world is told what it is to know.
    pub(crate) fn agent_folder(&self) -> PathBuf {
        self.root().join(&self.world).join("agent")
    }

    /// Agents of this world.
    pub(crate) fn agents(&self) -> Vec<i32> {
        let folder = self.agent_folder();
        let is_ours = |words: &str| words.contains(&format!("--dir\0{}\0", folder.display()));
        processes().into_iter().filter(|pid| words(*pid).is_some_and(|words| is_ours(&words))).collect()
    }

    /// Processes that train, by job and member, as their own environment says.
    pub(crate) fn members(&self) -> BTreeMap<(String, String), Vec<i32>> {
        self.members_that_run("\0trainer\0")
    }

    /// The same of another program than our trainer: a part of its command line that the shim's does not have.
    pub(crate) fn members_that_run(&self, program: &str) -> BTreeMap<(String, String), Vec<i32>> {
        let root = self.root().display().to_string();
        let mut found: BTreeMap<(String, String), Vec<i32>> = BTreeMap::new();
        for pid in processes() {
            let Ok(environment) = fs::read(format!("/proc/{pid}/environ")) else { continue };
            let environment = String::from_utf8_lossy(&environment).into_owned();
            let get = |name: &str| {
                environment
                    .split('\0')
                    .find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
                    .map(str::to_owned)
            };
            let is_ours = get("METRONOME_DIR").is_some_and(|folder| folder.starts_with(&root));
            let trains = words(pid).is_some_and(|words| words.contains(program));
            if is_ours && trains {
                let who =
                    (get("METRONOME_JOB").unwrap_or_default(), get("METRONOME_MEMBER").unwrap_or_default());
                found.entry(who).or_default().push(pid);
            }
        }
        found
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        for pid in self.agents() {
            kill(pid);
        }
        let _ = clean(&self.root(), &WorldName::new(&self.world).unwrap());
    }
}

pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) document: Value,
    pub(crate) said: String,
}

impl Ran {
    /// What is said of a job in the first run.
    pub(crate) fn job(&self, name: &str) -> &Value {
        let jobs = self.document["runs"][0]["jobs"].as_array().unwrap_or_else(|| panic!("{}", self.said));
        jobs.iter().find(|job| job["name"] == name).unwrap()
    }

    pub(crate) fn assert_all_completed(&self) {
        assert_eq!(self.code, Some(0), "{} {}", self.document, self.said);
        for run in self.document["runs"].as_array().unwrap() {
            for job in run["jobs"].as_array().unwrap() {
                assert_eq!(job["fate"], "completed", "{job} {}", self.said);
            }
        }
    }
}

fn processes() -> Vec<i32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn words(pid: i32) -> Option<String> {
    let words = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    Some(String::from_utf8_lossy(&words).into_owned())
}

pub(crate) fn kill(pid: i32) {
    signal(pid, "KILL");
}

/// Whoever is gone needs none.
pub(crate) fn signal(pid: i32, name: &str) {
    let _ = Command::new("kill").args(["-s", name, &pid.to_string()]).stderr(Stdio::null()).status();
}

/// The iterations that a job has done, in order.
pub(crate) fn iterations(record: &Path) -> Vec<u64> {
    let table = fs::read_to_string(record).unwrap_or_default();
    table.lines().skip(1).filter_map(|line| line.split(',').next()?.parse().ok()).collect()
}
