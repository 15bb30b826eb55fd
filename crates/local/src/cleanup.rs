//! What a world that nobody runs any more has left behind, and its removal.
//!
//! Everything that a world has on this machine is found by the world's name alone, or by the records in its folder, so
//! it does not matter at which point its scheduler ended.

use std::path::Path;
use std::time::Duration;
use std::{fs, io};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::cgroup::{Groups, Hierarchies};
use crate::error::{LocalError, Result};
use crate::fault::{self, FaultPoint};
use crate::names::{MemberNumber, NAMESPACES, Namespace, WorldName};
use crate::patience::Patience;
use crate::process::{Member, Records};
use crate::state::{WorldFolder, member_folders};

/// How many things of a world there are on this machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leftovers {
    pub namespaces: usize,
    pub groups: usize,
    /// Members and their shims.
    pub processes: usize,
    pub agents: usize,
    pub folders: usize,
}

impl Leftovers {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Counts what there is of a world, whoever runs it. Nothing is changed.
pub fn leftovers(root: &Path, world: &WorldName) -> Leftovers {
    let folder = root.join(world.as_str());
    let groups = Groups::of(Hierarchies::find(), world);
    let members = groups.members();
    let in_groups =
        members.iter().flat_map(|member| groups.find(*member).processes()).map(|pid| pid.as_raw());
    let mut processes: Vec<i32> = in_groups.collect();
    for folder in member_folders(&folder) {
        processes.extend(Records::in_folder(&folder).alive().iter().map(|process| process.pid));
    }
    processes.sort_unstable();
    processes.dedup();
    Leftovers {
        namespaces: namespaces(world).len(),
        groups: members.len() + usize::from(groups.exist()),
        processes: processes.len(),
        agents: agents(&folder.join("agent")).len(),
        folders: usize::from(folder.exists()),
    }
}

/// Removes all there is of a world, its folder last; what there was. A world that a scheduler holds is refused.
pub fn clean(root: &Path, world: &WorldName) -> Result<Leftovers> {
    let found = leftovers(root, world);
    let folder = WorldFolder::open(root, world)?;
    clean_but_folder(&folder)?;
    folder.remove()?;
    Ok(found)
}

/// The same for the process that holds the lock. The folder stays, and in it all but the members: checkpoints are kept.
/// What cannot be removed does not keep the rest from being removed; the first error is returned.
pub fn clean_but_folder(folder: &WorldFolder) -> Result<()> {
    let world = folder.world();
    let groups = Groups::of(Hierarchies::find(), world);
    end_agents(&folder.path().join("agent"));
    let mut errors = Vec::new();
    errors.extend(folder.members().into_iter().filter_map(|number| end_member(folder, number).err()));
    fault::after(FaultPoint::MembersRemoved);
    errors.extend(groups.members().into_iter().filter_map(|member| groups.find(member).remove().err()));
    errors.extend(groups.remove().err());
    fault::after(FaultPoint::GroupsRemoved);
    for namespace in namespaces(world) {
        errors.extend(remove_namespace(&namespace).err());
        fault::after(FaultPoint::WorldNamespaceRemoved);
    }
    errors.into_iter().next().map_or(Ok(()), Err)
}

/// Kills a member and removes its folder. A shim that is on its way finds that it is void; one that is there records an
/// end and exits.
fn end_member(folder: &WorldFolder, number: MemberNumber) -> Result<()> {
    let groups = Groups::of(Hierarchies::find(), folder.world());
    let mut member = Member::adopt(&folder.member(number)?, Some(groups.find(number)))?;
    member.kill()?;
    folder.forget(number)
}

/// Agents that serve a folder, by their command lines.
pub(crate) fn agents(folder: &Path) -> Vec<Pid> {
    let serves = |words: &[u8]| {
        let mut words = words.split(|byte| *byte == 0);
        words.any(|word| word == b"--dir") && words.next() == Some(folder.as_os_str().as_encoded_bytes())
    };
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_agent = |pid: &i32| fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|words| serves(&words));
    pids.filter(is_agent).map(Pid::from_raw).collect()
}

/// Kills agents that an earlier scheduler has left for a folder, and waits until they are gone.
pub(crate) fn end_agents(folder: &Path) {
    let patience = Patience::new(AGENT_END);
    loop {
        let left = agents(folder);
        if left.is_empty() || patience.is_over() {
            return;
        }
        for pid in left {
            let _ = kill(pid, Signal::SIGKILL);
        }
        patience.pause();
    }
}

/// The longest that a killed agent is waited for.
const AGENT_END: Duration = Duration::from_secs(5);

fn namespaces(world: &WorldName) -> Vec<Namespace> {
    let prefix = world.prefix();
    let entries = fs::read_dir(NAMESPACES).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut found: Vec<Namespace> = names.filter(|name| name.starts_with(&prefix)).map(Namespace).collect();
    found.sort_unstable();
    found
}

/// As `ip netns del` does, also for one that was only half made: a file on which nothing is mounted yet.
pub(crate) fn remove_namespace(namespace: &Namespace) -> Result<()> {
    let path = namespace.path();
    // Nothing mounted is as good as unmounted.
    let _ = nix::mount::umount2(&path, nix::mount::MntFlags::MNT_DETACH);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(LocalError::file(&path, error)),
        _ => Ok(()),
    }
}
