//! Members as processes. Each is started by a shim, a process of its own that outlives the scheduler, so whatever
//! becomes of the scheduler, how a member ended is on record.
//!
//! What is known of a member lies in its folder, so that a scheduler that comes later knows as much as the one that
//! started it:
//!
//! | file | by | says |
//! |---|---|---|
//! | `spec.json` | scheduler | what to start |
//! | `claim.json` | whoever is first | which shim starts it; or that no shim may any more |
//! | `started.json` | shim | the process |
//! | `asked.json`, `killed.json` | scheduler | that it was asked to leave; that it was killed |
//! | `refused.json` | shim | why the command could not be started |
//! | `ended.json` | shim | how it ended, and when |
//! | `log`, `log.1` | shim | what it has written, the newest part |
//! | `hosts`, `nsswitch.conf` | shim | the files that it sees in `/etc` |

mod identity;
mod records;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use nix::sys::signal::{Signal, kill, killpg};
use serde::{Deserialize, Serialize};

pub use identity::Identity;
pub use records::{Ended, HostIdentity, How, Spec};

use crate::cgroup::Group;
use crate::clock;
use crate::error::{LocalError, Result};
use crate::fault::{self, FaultPoint};
use crate::patience::Patience;
pub(crate) use records::{Claim, Records};

/// How this executable is told to be a shim: the words before those that [`shim::main`](crate::shim::main) takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launcher {
    pub program: PathBuf,
    pub arguments: Vec<String>,
}

/// How a member stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    Starting,
    Running {
        pid: i32,
    },
    Ended(Ended),
    /// Nobody knows how it ended: its shim was killed, or never came.
    Lost,
}

/// How long a shim is waited for that is just about to start or to record something.
const SETTLING: Duration = Duration::from_secs(10);

/// A member that was started, here or by a scheduler before us.
#[derive(Debug)]
pub struct Member {
    records: Records,
    group: Option<Group>,
    /// What was read once and does not change any more: members are asked how they stand many times a second.
    claim: Option<Claim>,
    started: Option<Identity>,
    /// The shim, where it is our own child: it has to be waited for when it ends.
    shim: Option<Child>,
}

impl Member {
    /// Starts a member in its folder. What lies there of one before it is removed.
    pub fn start(launcher: &Launcher, folder: &Path, spec: &Spec, group: Option<Group>) -> Result<Self> {
        let records = Records::in_folder(folder);
        records.clear()?;
        let spec = Spec { start_id: new_start_id(), ..spec.clone() };
        records.write_spec(&spec)?;
        fault::after(FaultPoint::SpecWritten);
        let log = fs::File::create(folder.join("shim.log"));
        let log = log.map_err(|error| LocalError::file(&folder.join("shim.log"), error))?;
        let shim = Command::new(&launcher.program)
            .args(&launcher.arguments)
            .arg("watch")
            .arg(folder)
            .arg(&spec.start_id)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(|source| LocalError::Spawn {
                program: launcher.program.display().to_string(),
                source,
            })?;
        fault::after(FaultPoint::ShimSpawned);
        Ok(Self { records, group, claim: None, started: None, shim: Some(shim) })
    }

    /// Takes over a member that an earlier scheduler has started, or was about to. One whose shim has not come yet
    /// will not be started any more: it is lost.
    pub fn adopt(folder: &Path, group: Option<Group>) -> Result<Self> {
        let records = Records::in_folder(folder);
        records.claim(&Claim::Void)?;
        Ok(Self { records, group, claim: None, started: None, shim: None })
    }

    pub fn folder(&self) -> &Path {
        self.records.folder()
    }

    pub fn group(&self) -> Option<&Group> {
        self.group.as_ref()
    }

    /// Whether it was asked to leave, by us or by a scheduler before us.
    pub fn was_asked(&self) -> bool {
        self.records.was_asked() || self.records.was_killed()
    }

    pub fn status(&mut self) -> Result<Status> {
        self.reap();
        // In this order: a shim that is found dead has written whatever it was going to write.
        if self.claim.is_none() {
            self.claim = self.records.read_claim()?;
        }
        let alive = match &self.claim {
            None => self.shim.is_some(),
            Some(Claim::Void) => false,
            Some(Claim::Shim(shim)) => shim.is_alive(),
        };
        if let Some(ended) = self.records.read_ended()? {
            return Ok(Status::Ended(ended));
        }
        if !alive {
            return Ok(Status::Lost);
        }
        if self.started.is_none() {
            self.started = self.records.read_started()?;
        }
        Ok(self.started.as_ref().map_or(Status::Starting, |started| Status::Running { pid: started.pid }))
    }

    /// Asks it to save and leave: `SIGTERM`. One that is just being started is not started at all, or asked as soon as
    /// it is.
    pub fn ask_to_leave(&mut self) -> Result<()> {
        self.records.write_asked()?;
        fault::after(FaultPoint::LeaveRecorded);
        if let Some(Claim::Shim(shim)) = self.records.read_claim()? {
            signal(&shim, Signal::SIGTERM)?;
        }
        fault::after(FaultPoint::LeaveAsked);
        Ok(())
    }

    /// Ends it and everybody it has started, and waits until that is on record.
    pub fn kill(&mut self) -> Result<()> {
        // Where the disk is full it is killed all the same: it is tried until it is over.
        let _ = self.records.write_killed();
        fault::after(FaultPoint::KillRecorded);
        let _ = self.records.claim(&Claim::Void);
        let patience = Patience::new(SETTLING);
        loop {
            if let Some(group) = &self.group {
                group.kill()?;
            }
            // Where there are no control groups this is all there is; whoever left its session is not found by it.
            self.kill_group_of_processes()?;
            match self.status()? {
                Status::Ended(_) | Status::Lost => {
                    fault::after(FaultPoint::MemberKilled);
                    return Ok(());
                }
                Status::Starting | Status::Running { .. } if patience.is_over() => {
                    let what = format!("the member in {}", self.folder().display());
                    return Err(LocalError::Stays { what, why: "its shim does not answer".into() });
                }
                Status::Starting | Status::Running { .. } => patience.pause(),
            }
        }
    }

    fn kill_group_of_processes(&self) -> Result<()> {
        let Some(started) = self.records.read_started()? else { return Ok(()) };
        if !started.is_alive() {
            return Ok(());
        }
        match killpg(nix::unistd::Pid::from_raw(started.pid), Signal::SIGKILL) {
            Ok(()) | Err(nix::Error::ESRCH) => Ok(()),
            Err(source) => Err(LocalError::Signal { pid: started.pid, source }),
        }
    }

    fn reap(&mut self) {
        let over = self.shim.as_mut().is_some_and(|shim| matches!(shim.try_wait(), Ok(Some(_)) | Err(_)));
        if over {
            self.shim = None;
        }
    }
}

/// A name for one start of one member that no other start has: a shim that an earlier scheduler spawned and that comes
/// late must not start the next member of the same number.
fn new_start_id() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{}-{}-{count}", std::process::id(), clock::now().0)
}

/// Sends a signal to a process, if it is still the one that was meant.
fn signal(process: &Identity, signal: Signal) -> Result<()> {
    if !process.is_alive() {
        return Ok(());
    }
    match kill(nix::unistd::Pid::from_raw(process.pid), signal) {
        Ok(()) | Err(nix::Error::ESRCH) => Ok(()),
        Err(source) => Err(LocalError::Signal { pid: process.pid, source }),
    }
}
