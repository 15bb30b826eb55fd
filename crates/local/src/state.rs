//! The folder of a world: whoever holds its lock is its scheduler. All that must outlive a crash lies in it, each file
//! written whole.

mod whole;

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::fcntl::{Flock, FlockArg};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub(crate) use whole::{is_unfinished, write_first};
pub use whole::{read, write};

use crate::error::{LocalError, Result};
use crate::fault::{self, FaultPoint};
use crate::names::{MemberNumber, WorldName, check_file_name};
use crate::patience::Patience;
use crate::process::Identity;

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

    /// Makes the folder if there is none, and locks it. A world that another scheduler holds is refused. Programs that a
    /// scheduler was running when it was killed still hold the lock: they are waited for.
    pub fn open(root: &Path, world: &WorldName) -> Result<Self> {
        let path = root.join(world.as_str());
        let (moment, patience) = (Patience::new(UNKNOWN_HOLDER), Patience::new(LAST_COMMANDS));
        loop {
            // For its owner alone: tokens lie in it.
            let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&path);
            made.map_err(|error| LocalError::file(&path, error))?;
            match lock(&path, world) {
                // Whoever held it before may have removed the folder just now: then this is the lock of nothing.
                Ok(lock) if !is_still_there(&path.join(LOCK), &lock) => {}
                Ok(lock) => {
                    sign(&lock).map_err(|error| LocalError::file(&path.join(LOCK), error))?;
                    remove_unfinished(&path);
                    fault::after(FaultPoint::FolderLocked);
                    return Ok(Self { world: world.clone(), path, lock });
                }
                Err(LocalError::Held { .. }) if is_waited_for(&path, &moment, &patience) => patience.pause(),
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
        fault::after(FaultPoint::LogKept);
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

/// The longest that a program runs which a killed scheduler had started, also on a busy machine.
const LAST_COMMANDS: Duration = Duration::from_secs(60);

/// How long a holder of the lock may take to sign it.
const UNKNOWN_HOLDER: Duration = Duration::from_secs(2);

/// Writes into the lock which process holds it.
fn sign(lock: &File) -> io::Result<()> {
    let Some(own) = Identity::own() else { return Ok(()) };
    let text = serde_json::to_vec(&own)?;
    lock.set_len(0)?;
    lock.write_all_at(&text, 0)
}

/// Whether the lock of a world will be free soon: its scheduler has ended, or has not signed the lock yet.
fn is_waited_for(folder: &Path, moment: &Patience, patience: &Patience) -> bool {
    let holder: Option<Identity> = read(&folder.join(LOCK)).ok().flatten();
    match holder {
        Some(holder) if holder.is_alive() => false,
        Some(_) => !patience.is_over(),
        None => !moment.is_over(),
    }
}

/// Removes files that a killed process was writing when it ended: `.NAME.PID`.
fn remove_unfinished(world: &Path) {
    let jobs = subfolders(&world.join("jobs")).into_iter().flat_map(|namespace| subfolders(&namespace));
    for folder in jobs.chain([world.to_owned(), world.join("agent")]) {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| is_unfinished(&entry.file_name().to_string_lossy())) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn subfolders(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

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
    fn a_lock_of_a_scheduler_that_has_ended_is_waited_for() {
        let root = tempfile::tempdir().unwrap();
        let folder = WorldFolder::open(root.path(), &world("a")).unwrap();
        let path = folder.path().to_owned();
        let (moment, patience) = (Patience::new(Duration::ZERO), Patience::new(Duration::from_secs(60)));
        assert!(!is_waited_for(&path, &moment, &patience), "this process holds it");
        let ended = Identity { began: 1, ..Identity::own().unwrap() };
        fs::write(path.join(LOCK), serde_json::to_vec(&ended).unwrap()).unwrap();
        assert!(is_waited_for(&path, &moment, &patience), "its programs are not done yet");
        fs::write(path.join(LOCK), "").unwrap();
        assert!(!is_waited_for(&path, &moment, &patience), "nothing tells whose it is");
    }

    #[test]
    fn files_that_a_killed_process_was_writing_are_removed() {
        let root = tempfile::tempdir().unwrap();
        let folder = WorldFolder::open(root.path(), &world("a")).unwrap();
        let job = folder.checkpoints("default/bert").unwrap().parent().unwrap().to_owned();
        for path in [folder.path().join(".world.json.77"), job.join(".task.json.78")] {
            fs::write(path, "[1,").unwrap();
        }
        fs::write(job.join(".mine"), "").unwrap();
        drop(folder);
        let folder = WorldFolder::open(root.path(), &world("a")).unwrap();
        assert!(!folder.path().join(".world.json.77").exists() && !job.join(".task.json.78").exists());
        assert!(job.join(".mine").exists());
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
