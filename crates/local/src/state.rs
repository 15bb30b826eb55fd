//! The folder of a world: whoever holds its lock is its scheduler. All that must outlive a crash lies in it, each file
//! written whole.

mod whole;

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::fcntl::{Flock, FlockArg};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub(crate) use whole::write_first;
pub use whole::{read, write};

use crate::error::{LocalError, Result};
use crate::names::{MemberNumber, WorldName, check_file_name};
use crate::patience::Patience;

/// A world's folder, locked for as long as this value lives. The lock goes with the process, however it ends.
#[derive(Debug)]
pub struct WorldFolder {
    world: WorldName,
    path: PathBuf,
    lock: Flock<File>,
}

/// A hold on the lock for programs that a scheduler runs: as long as one of them is not done, the world is not free,
/// though the scheduler may be gone.
#[derive(Debug)]
pub(crate) struct Tie(File);

impl Tie {
    /// Another hold, for one program.
    pub(crate) fn share(&self) -> io::Result<File> {
        self.0.try_clone()
    }
}

impl WorldFolder {
    /// Where worlds lie unless told otherwise: `/run/metronome` for root, the user's runtime folder for others.
    pub fn usual_root() -> PathBuf {
        if nix::unistd::geteuid().is_root() {
            return "/run/metronome".into();
        }
        match std::env::var_os("XDG_RUNTIME_DIR") {
            Some(folder) => Path::new(&folder).join("metronome"),
            None => std::env::temp_dir().join(format!("metronome-{}", nix::unistd::geteuid())),
        }
    }

    /// Makes the folder if there is none, and locks it. A world that another scheduler holds is refused, after a moment:
    /// what one that has just ended was doing is done first.
    pub fn open(root: &Path, world: &WorldName) -> Result<Self> {
        let path = root.join(world.as_str());
        let patience = Patience::new(LAST_DEEDS);
        loop {
            // For its owner alone: tokens lie in it.
            let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&path);
            made.map_err(|error| LocalError::file(&path, error))?;
            match lock(&path, world) {
                // Whoever held it before may have removed the folder just now: then this is the lock of nothing.
                Ok(lock) if !is_still_there(&path.join(LOCK), &lock) => {}
                Ok(lock) => return Ok(Self { world: world.clone(), path, lock }),
                Err(LocalError::Held { .. }) if !patience.is_over() => patience.pause(),
                Err(error) => return Err(error),
            }
        }
    }

    /// The worlds that have a folder under a root.
    pub fn worlds(root: &Path) -> Vec<WorldName> {
        let entries = fs::read_dir(root).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| WorldName::new(entry.file_name().to_str()?).ok());
        let mut names: Vec<WorldName> = names.collect();
        names.sort_unstable();
        names
    }

    pub fn world(&self) -> &WorldName {
        &self.world
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn tie(&self) -> Result<Tie> {
        let file = self.lock.try_clone();
        file.map(Tie).map_err(|error| LocalError::file(&self.path.join(LOCK), error))
    }

    /// The agent's own folder.
    pub fn agent(&self) -> Result<PathBuf> {
        made(self.path.join("agent"))
    }

    /// The folder of a member.
    pub fn member(&self, number: MemberNumber) -> Result<PathBuf> {
        made(self.members_folder().join(number.to_string()))
    }

    /// The members that have a folder, in the order of their numbers.
    pub fn members(&self) -> Vec<MemberNumber> {
        let folders = member_folders(&self.path);
        let names = folders.iter().filter_map(|folder| folder.file_name()?.to_str());
        let mut numbers: Vec<MemberNumber> =
            names.filter_map(|name| name.strip_prefix('m')?.parse().ok().map(MemberNumber)).collect();
        numbers.sort_unstable();
        numbers
    }

    /// Forgets a member that has ended: its records, all there is in its folder. Its log is kept with its job.
    pub fn forget(&self, number: MemberNumber) -> Result<()> {
        let folder = self.members_folder().join(number.to_string());
        crate::logs::keep(&self.path, &folder);
        remove_all(&folder)
    }

    /// Where a job, `namespace/name`, keeps its checkpoints, the same for all its members and all its starts.
    pub fn checkpoints(&self, job: &str) -> Result<PathBuf> {
        job.split('/').try_for_each(check_file_name)?;
        made(self.path.join("jobs").join(job).join("checkpoint"))
    }

    /// Writes a document of the world, such as `world.json`: whole, or not at all.
    pub fn write(&self, name: &str, document: &impl Serialize) -> Result<()> {
        write(&self.path.join(name), document)
    }

    /// Reads a document of the world; nothing if there is none.
    pub fn read<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>> {
        read(&self.path.join(name))
    }

    /// Removes the folder and all that is in it, the lock last.
    pub fn remove(self) -> Result<()> {
        for entry in fs::read_dir(&self.path).map_err(|error| LocalError::file(&self.path, error))?.flatten()
        {
            if entry.file_name() != LOCK {
                remove_all(&entry.path())?;
            }
        }
        remove_all(&self.path)
    }

    fn members_folder(&self) -> PathBuf {
        self.path.join("members")
    }
}

const LOCK: &str = "lock";

/// What a program takes at most that a scheduler had started when it ended.
const LAST_DEEDS: Duration = Duration::from_secs(2);

/// The folders of the members of a world, by the world's folder.
pub(crate) fn member_folders(world: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(world.join("members")).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

fn lock(folder: &Path, world: &WorldName) -> Result<Flock<File>> {
    let path = folder.join(LOCK);
    let file = match File::options().create(true).truncate(false).write(true).open(&path) {
        Ok(file) => file,
        // Somebody removes the folder at this very moment.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(LocalError::Held { world: world.to_string() });
        }
        Err(error) => return Err(LocalError::file(&path, error)),
    };
    match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
        Ok(lock) => Ok(lock),
        Err((_, nix::Error::EWOULDBLOCK)) => Err(LocalError::Held { world: world.to_string() }),
        Err((_, error)) => Err(LocalError::file(&path, error.into())),
    }
}

fn is_still_there(path: &Path, lock: &File) -> bool {
    match (fs::metadata(path), lock.metadata()) {
        (Ok(there), Ok(ours)) => (there.dev(), there.ino()) == (ours.dev(), ours.ino()),
        _ => false,
    }
}

fn made(folder: PathBuf) -> Result<PathBuf> {
    match fs::create_dir_all(&folder) {
        Ok(()) => Ok(folder),
        Err(error) => Err(LocalError::file(&folder, error)),
    }
}

fn remove_all(path: &Path) -> Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(LocalError::file(path, error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn world(name: &str) -> WorldName {
        WorldName::new(name).unwrap()
    }

    #[test]
    fn a_world_has_one_scheduler() {
        let root = tempfile::tempdir().unwrap();
        let first = WorldFolder::open(root.path(), &world("a")).unwrap();
        let second = WorldFolder::open(root.path(), &world("a"));
        assert!(matches!(second, Err(LocalError::Held { .. })), "{second:?}");
        WorldFolder::open(root.path(), &world("b")).unwrap();
        drop(first);
        WorldFolder::open(root.path(), &world("a")).unwrap();
        assert_eq!(WorldFolder::worlds(root.path()), [world("a"), world("b")]);
    }

    #[test]
    fn a_folder_that_is_removed_leaves_nothing() {
        let root = tempfile::tempdir().unwrap();
        let folder = WorldFolder::open(root.path(), &world("a")).unwrap();
        folder.write("world.json", &vec![1, 2]).unwrap();
        folder.member(MemberNumber(3)).unwrap();
        folder.checkpoints("default/bert").unwrap();
        assert_eq!(folder.members(), [MemberNumber(3)]);
        assert_eq!(fs::metadata(folder.path()).unwrap().mode() & 0o777, 0o700);
        assert_eq!(folder.read::<Vec<u32>>("world.json").unwrap(), Some(vec![1, 2]));
        folder.remove().unwrap();
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_job_cannot_lead_out_of_the_folder() {
        let root = tempfile::tempdir().unwrap();
        let folder = WorldFolder::open(root.path(), &world("a")).unwrap();
        assert!(folder.checkpoints("../../etc").is_err());
        assert!(folder.checkpoints("a//b").is_err());
    }
}
