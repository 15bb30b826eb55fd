//! Control groups: one for each member, `metronome/<world>/<member>`, in every hierarchy that limits something.
//!
//! Machines have one hierarchy for all (version 2), one for each controller (version 1), or both side by side. Each
//! thing that is limited is looked for on its own, so any mixture works.

mod hierarchies;
mod kill;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use metronome_core::model::units::{Cpu, Memory};
use nix::unistd::Pid;

pub use hierarchies::{Hierarchies, Mounted, Version};

use crate::error::{LocalError, Result};
use crate::fault::{self, FaultPoint};
use crate::names::{MemberNumber, WorldName};
use crate::patience::Patience;

/// Quotas are given out afresh this often: an iteration takes tens of them, so that half a core is half as fast, not
/// fast and then stopped.
const QUOTA_PERIOD_US: u64 = 20_000;
/// The kernel takes no less.
const LEAST_QUOTA_US: u64 = 1_000;

/// How long a group is waited for that its last processes are just leaving.
const LEAVING: Duration = Duration::from_secs(5);

/// The groups of one world.
#[derive(Clone, Debug)]
pub struct Groups {
    hierarchies: Hierarchies,
    world: WorldName,
}

impl Groups {
    /// Nothing is made yet.
    pub fn of(hierarchies: Hierarchies, world: &WorldName) -> Self {
        Self { hierarchies, world: world.clone() }
    }

    /// Makes the group of a member; one that is there already is taken as it is.
    pub fn make(&self, member: MemberNumber) -> Result<Group> {
        let group = self.find(member);
        for (mounted, path) in self.hierarchies.distinct().into_iter().zip(&group.paths) {
            if mounted.version == Version::Two {
                self.delegate(mounted)?;
            }
            fs::create_dir_all(path).map_err(|error| LocalError::file(path, error))?;
            fault::after(FaultPoint::GroupPartMade);
        }
        Ok(group)
    }

    /// The group of a member, whether it is there or not.
    pub fn find(&self, member: MemberNumber) -> Group {
        let at = |mounted: &Mounted| self.root(mounted).join(member.to_string());
        let version_and_path = |mounted: Option<&Mounted>| mounted.map(|m| (m.version, at(m)));
        Group {
            paths: self.hierarchies.distinct().into_iter().map(at).collect(),
            cpu: version_and_path(self.hierarchies.cpu()),
            memory: version_and_path(self.hierarchies.memory()),
            freezer: version_and_path(self.hierarchies.freezer()),
        }
    }

    /// The members that have a group, in any hierarchy.
    pub fn members(&self) -> Vec<MemberNumber> {
        let mut numbers = BTreeSet::new();
        for mounted in self.hierarchies.distinct() {
            let entries = fs::read_dir(self.root(mounted)).into_iter().flatten().flatten();
            numbers.extend(entries.filter_map(|entry| {
                let name = entry.file_name();
                name.to_str()?.strip_prefix('m')?.parse().ok().map(MemberNumber)
            }));
        }
        numbers.into_iter().collect()
    }

    /// Removes the world's own group, once those of its members are gone. What lies above is everybody's and goes with
    /// its last world.
    pub fn remove(&self) -> Result<()> {
        for mounted in self.hierarchies.distinct() {
            remove_folder(&self.root(mounted))?;
            // Another world may use it; then it stays.
            let _ = fs::remove_dir(mounted.path.join("metronome"));
        }
        Ok(())
    }

    /// Whether there is a group of this world.
    pub(crate) fn exist(&self) -> bool {
        self.hierarchies.distinct().into_iter().any(|mounted| self.root(mounted).exists())
    }

    fn root(&self, mounted: &Mounted) -> PathBuf {
        mounted.path.join("metronome").join(self.world.as_str())
    }

    /// In version 2 a group has the controllers that all above it pass on.
    fn delegate(&self, mounted: &Mounted) -> Result<()> {
        let root = self.root(mounted);
        fs::create_dir_all(&root).map_err(|error| LocalError::file(&root, error))?;
        let wanted: String = mounted.controllers.iter().map(|name| format!("+{name} ")).collect();
        if wanted.is_empty() {
            return Ok(());
        }
        for folder in [mounted.path.clone(), mounted.path.join("metronome"), root] {
            put(&folder.join("cgroup.subtree_control"), wanted.trim_end())?;
        }
        Ok(())
    }
}

/// The group of one member.
#[derive(Clone, Debug)]
pub struct Group {
    paths: Vec<PathBuf>,
    cpu: Option<(Version, PathBuf)>,
    memory: Option<(Version, PathBuf)>,
    freezer: Option<(Version, PathBuf)>,
}

impl Group {
    /// The files into which a process writes itself to belong to it.
    pub fn entrances(&self) -> Vec<PathBuf> {
        self.paths.iter().map(|path| path.join("cgroup.procs")).collect()
    }

    /// The folder by which it is frozen: of version 1 or 2.
    pub fn freezer(&self) -> Option<&Path> {
        self.freezer.as_ref().map(|(_, path)| path.as_path())
    }

    /// So much of the machine's cores and no more, from now on. Nothing happens where cores cannot be limited.
    pub fn set_cpus(&self, cpus: Cpu) -> Result<()> {
        let quota = (cpus.0 * QUOTA_PERIOD_US / 1000).max(LEAST_QUOTA_US);
        match &self.cpu {
            None => Ok(()),
            Some((Version::Two, path)) => put(&path.join("cpu.max"), &format!("{quota} {QUOTA_PERIOD_US}")),
            Some((Version::One, path)) => {
                put(&path.join("cpu.cfs_period_us"), &QUOTA_PERIOD_US.to_string())?;
                put(&path.join("cpu.cfs_quota_us"), &quota.to_string())
            }
        }
    }

    /// How it stands beside others where cores are short: 100 is usual, 1 to 10,000 is possible.
    pub fn set_cpu_weight(&self, weight: u32) -> Result<()> {
        let weight = u64::from(weight.clamp(1, 10_000));
        match &self.cpu {
            None => Ok(()),
            Some((Version::Two, path)) => put(&path.join("cpu.weight"), &weight.to_string()),
            Some((Version::One, path)) => {
                put(&path.join("cpu.shares"), &(weight * 1024 / 100).clamp(2, 262_144).to_string())
            }
        }
    }

    pub fn set_memory(&self, memory: Memory) -> Result<()> {
        match &self.memory {
            None => Ok(()),
            Some((Version::Two, path)) => put(&path.join("memory.max"), &memory.0.to_string()),
            Some((Version::One, path)) => put(&path.join("memory.limit_in_bytes"), &memory.0.to_string()),
        }
    }

    pub fn freeze(&self) -> Result<()> {
        match &self.freezer {
            None => Ok(()),
            Some((Version::Two, path)) => put(&path.join("cgroup.freeze"), "1"),
            Some((Version::One, path)) => put(&path.join("freezer.state"), "FROZEN"),
        }
    }

    pub fn thaw(&self) -> Result<()> {
        match &self.freezer {
            None => Ok(()),
            Some((Version::Two, path)) => put(&path.join("cgroup.freeze"), "0"),
            Some((Version::One, path)) => put(&path.join("freezer.state"), "THAWED"),
        }
    }

    /// Who belongs to it, in any hierarchy.
    pub fn processes(&self) -> Vec<Pid> {
        let mut pids = BTreeSet::new();
        for entrance in self.entrances() {
            let text = fs::read_to_string(entrance).unwrap_or_default();
            pids.extend(text.lines().filter_map(|line| line.trim().parse::<i32>().ok()));
        }
        // A process of another pid namespace is told as 0, which would mean our own group of processes.
        pids.into_iter().filter(|pid| *pid > 0).map(Pid::from_raw).collect()
    }

    /// Ends every process in it, those that fork meanwhile too, and waits until they are gone.
    pub fn kill(&self) -> Result<()> {
        kill::kill_all(self)
    }

    /// Removes it; whoever is in it is ended first.
    pub fn remove(&self) -> Result<()> {
        self.kill()?;
        for path in &self.paths {
            remove_folder(path)?;
            fault::after(FaultPoint::GroupPartRemoved);
        }
        Ok(())
    }

    /// Whether every hierarchy has it.
    pub fn is_whole(&self) -> bool {
        self.paths.iter().all(|path| path.exists())
    }

    fn exists(&self) -> bool {
        self.paths.iter().any(|path| path.exists())
    }
}

/// The files of a group are not made, only written.
fn put(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).map_err(|error| LocalError::file(path, error))
}

/// Removes a group and those below it. The kernel keeps a group for a moment after its last process is gone.
fn remove_folder(path: &Path) -> Result<()> {
    let patience = Patience::new(LEAVING);
    loop {
        let below = fs::read_dir(path).into_iter().flatten().flatten();
        for entry in below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
            remove_folder(&entry.path())?;
        }
        match fs::remove_dir(path) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) if patience.is_over() => {
                let what = format!("the group {}", path.display());
                return Err(LocalError::Stays { what, why: error.to_string() });
            }
            Err(_) => patience.pause(),
        }
    }
}
