//! What a world that nobody runs any more has left behind, and its removal.
//!
//! Everything that a world has on this machine is found by the world's name alone, or by the records in its folder, so
//! it does not matter at which point its scheduler ended.

use std::path::Path;
use std::{fs, io};

use crate::cgroup::{Groups, Hierarchies};
use crate::error::{LocalError, Result};
use crate::names::{NAMESPACES, Namespace, WorldName};
use crate::process::{Member, Records};
use crate::state::{WorldFolder, member_folders};

/// How many things of a world there are on this machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leftovers {
    pub namespaces: usize,
    pub groups: usize,
    /// Members and their shims.
    pub processes: usize,
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

/// The same by who holds the lock. The folder stays, and in it all but the members: checkpoints are kept.
pub fn clean_but_folder(folder: &WorldFolder) -> Result<()> {
    let world = folder.world();
    end_members(folder)?;
    let groups = Groups::of(Hierarchies::find(), world);
    for member in groups.members() {
        groups.find(member).remove()?;
    }
    groups.remove()?;
    namespaces(world).iter().try_for_each(remove_namespace)
}

/// A shim that is on its way finds that it is not wanted any more; one that is there records an end, and goes.
fn end_members(folder: &WorldFolder) -> Result<()> {
    let groups = Groups::of(Hierarchies::find(), folder.world());
    for number in folder.members() {
        let mut member = Member::adopt(&folder.member(number)?, Some(groups.find(number)))?;
        member.kill()?;
        folder.forget(number)?;
    }
    Ok(())
}

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
