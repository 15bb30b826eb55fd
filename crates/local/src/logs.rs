//! Logs of members. While a member runs, its log lies in the member's folder; once it has ended, in its job's:
//! `jobs/NAMESPACE/NAME/MEMBER.attempt-N.log`. The world's folder is enough to find both, with or without a scheduler.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::names::check_file_name;
use crate::process::Records;
use crate::state::member_folders;

/// The number of attempts of a member whose logs are kept, the newest.
pub const KEPT_ATTEMPTS: usize = 5;

/// The lines that are shown of a member that failed.
pub const SHOWN_LINES: usize = 20;

/// The number of bytes at the end of a log in which its last lines are searched.
const LAST_PART: u64 = 64 << 10;

/// What one member wrote in one attempt.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MemberLog {
    /// `namespace/name`.
    pub job: String,
    pub member: MemberName,
    /// Counted from 1, for all members of a job together.
    pub attempt: u32,
    /// The older part first, where there are two.
    pub files: Vec<PathBuf>,
    /// The member's folder is there: more may be written.
    pub is_open: bool,
}

/// `worker-10`, which comes after `worker-9`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MemberName {
    role: String,
    index: u32,
}

impl MemberName {
    fn parse(name: &str) -> Option<Self> {
        let (role, index) = name.rsplit_once('-')?;
        Some(Self { role: role.to_owned(), index: index.parse().ok()? })
    }
}

impl std::fmt::Display for MemberName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&format!("{}-{}", self.role, self.index))
    }
}

impl MemberLog {
    /// The log in a member's folder; none if it has not been opened, or was kept already.
    fn in_member_folder(folder: &Path) -> Option<Self> {
        let spec = Records::in_folder(folder).read_spec().ok()?;
        let said = |name: &str| spec.environment.get(name);
        let job = said("METRONOME_JOB")?.clone();
        job.split('/').try_for_each(check_file_name).ok()?;
        let files: Vec<PathBuf> = ["log.1", "log"].map(|name| folder.join(name)).into();
        let files: Vec<PathBuf> = files.into_iter().filter(|file| file.exists()).collect();
        (!files.is_empty()).then_some(Self {
            job,
            member: MemberName::parse(said("METRONOME_MEMBER")?)?,
            attempt: said("METRONOME_ATTEMPT")?.parse().ok()?,
            files,
            is_open: true,
        })
    }

    /// A log that was kept, by its file in the folder of a job.
    fn kept(job: &str, file: PathBuf) -> Option<Self> {
        let (member, attempt) = file.file_name()?.to_str()?.strip_suffix(".log")?.rsplit_once(".attempt-")?;
        let (member, attempt) = (MemberName::parse(member)?, attempt.parse().ok()?);
        Some(Self { job: job.to_owned(), member, attempt, files: vec![file], is_open: false })
    }

    fn kept_file(&self) -> String {
        format!("{}.attempt-{}.log", self.member, self.attempt)
    }
}

/// All logs of a world, by its folder: in the order of jobs, members and attempts.
pub fn list(world: &Path) -> Vec<MemberLog> {
    let mut logs: Vec<MemberLog> =
        member_folders(world).iter().filter_map(|folder| MemberLog::in_member_folder(folder)).collect();
    for job in jobs(world) {
        let kept = entries(&world.join("jobs").join(&job)).into_iter();
        logs.extend(kept.filter_map(|file| MemberLog::kept(&job, file)));
    }
    logs.sort_unstable();
    logs
}

/// The jobs of a world that have a folder, `namespace/name`.
pub fn jobs(world: &Path) -> Vec<String> {
    let name = |path: &PathBuf| Some(path.file_name()?.to_str()?.to_owned());
    let mut jobs = Vec::new();
    for folder in entries(&world.join("jobs")) {
        let Some(namespace) = name(&folder) else { continue };
        let names = entries(&folder).iter().filter_map(name).collect::<Vec<_>>();
        jobs.extend(names.into_iter().map(|name| format!("{namespace}/{name}")));
    }
    jobs.sort_unstable();
    jobs
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// Moves the log of a member that has ended to its job's folder, and removes the oldest there; where it lies then. A
/// log is worth keeping, but nothing depends on it: errors leave it where it is.
pub(crate) fn keep(world: &Path, member: &Path) -> Option<PathBuf> {
    let log = MemberLog::in_member_folder(member)?;
    let folder = world.join("jobs").join(&log.job);
    fs::create_dir_all(&folder).ok()?;
    let kept = folder.join(log.kept_file());
    for part in &log.files {
        append(part, &kept).ok()?;
    }
    remove_oldest(&log, &folder);
    Some(kept)
}

fn append(part: &Path, kept: &Path) -> io::Result<()> {
    if !kept.exists() {
        return fs::rename(part, kept);
    }
    io::copy(&mut File::open(part)?, &mut File::options().append(true).open(kept)?)?;
    fs::remove_file(part)
}

fn remove_oldest(newest: &MemberLog, folder: &Path) {
    let logs = entries(folder).into_iter().filter_map(|file| MemberLog::kept(&newest.job, file));
    let mut logs: Vec<MemberLog> = logs.filter(|log| log.member == newest.member).collect();
    logs.sort_unstable();
    let surplus = logs.len().saturating_sub(KEPT_ATTEMPTS);
    for file in logs.iter().take(surplus).flat_map(|log| &log.files) {
        let _ = fs::remove_file(file);
    }
}

/// The last lines of a log, at most `most`.
pub fn last_lines(log: &Path, most: usize) -> Vec<String> {
    let text = last_part(log).unwrap_or_default();
    // A bar of progress writes over its own line.
    let lines = text.lines().map(|line| line.trim_end_matches('\r').rsplit('\r').next().unwrap_or_default());
    let lines: Vec<&str> = lines.collect();
    lines[lines.len().saturating_sub(most)..].iter().map(|line| (*line).to_owned()).collect()
}

fn last_part(log: &Path) -> io::Result<String> {
    let mut file = File::open(log)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LAST_PART)))?;
    let mut bytes = Vec::new();
    file.take(LAST_PART).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok(match text.split_once('\n') {
        // The line in which the part begins is not whole.
        Some((_, rest)) if length > LAST_PART => rest.to_owned(),
        _ => text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Spec;

    /// A member's folder with a log.
    fn member(world: &Path, number: u32, name: &str, attempt: u32, files: &[(&str, &str)]) -> PathBuf {
        let folder = world.join("members").join(format!("m{number}"));
        fs::create_dir_all(&folder).unwrap();
        let mut spec = Spec::of(&["true"]);
        let attempt = attempt.to_string();
        let said =
            [("METRONOME_JOB", "default/bert"), ("METRONOME_MEMBER", name), ("METRONOME_ATTEMPT", &attempt)];
        spec.environment.extend(said.map(|(name, value)| (name.to_owned(), value.to_owned())));
        Records::in_folder(&folder).write_spec(&spec).unwrap();
        for (file, text) in files {
            fs::write(folder.join(file), text).unwrap();
        }
        folder
    }

    fn found(world: &Path) -> Vec<(String, u32, bool)> {
        list(world).into_iter().map(|log| (log.member.to_string(), log.attempt, log.is_open)).collect()
    }

    #[test]
    fn a_log_is_kept_whole_when_its_member_has_ended() {
        let world = tempfile::tempdir().unwrap();
        let folder = member(world.path(), 3, "worker-1", 2, &[("log.1", "one\n"), ("log", "two\n")]);
        assert_eq!(found(world.path()), [("worker-1".to_owned(), 2, true)]);
        let kept = keep(world.path(), &folder).unwrap();
        assert_eq!(kept, world.path().join("jobs/default/bert/worker-1.attempt-2.log"));
        assert_eq!(fs::read_to_string(&kept).unwrap(), "one\ntwo\n");
        assert_eq!(keep(world.path(), &folder), None, "there is nothing left to keep");
        assert_eq!(found(world.path()), [("worker-1".to_owned(), 2, false)]);
        assert_eq!(jobs(world.path()), ["default/bert"]);
    }

    #[test]
    fn the_newest_attempts_of_each_member_are_kept() {
        let world = tempfile::tempdir().unwrap();
        for attempt in 1..=12 {
            let folder = member(world.path(), 0, "worker-0", attempt, &[("log", "text\n")]);
            keep(world.path(), &folder).unwrap();
        }
        let folder = member(world.path(), 1, "worker-10", 1, &[("log", "text\n")]);
        keep(world.path(), &folder).unwrap();
        member(world.path(), 2, "worker-9", 12, &[("log", "text\n")]);
        let attempts: Vec<u32> =
            list(world.path()).iter().filter(|log| log.member.index == 0).map(|log| log.attempt).collect();
        assert_eq!(attempts, [8, 9, 10, 11, 12]);
        let names: Vec<String> = found(world.path()).into_iter().map(|(name, ..)| name).collect();
        assert_eq!(names[5..], ["worker-9", "worker-10"]);
    }

    #[test]
    fn the_last_lines_are_whole_lines() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        assert_eq!(last_lines(&log, 3), Vec::<String>::new());
        fs::write(&log, "one\ntwo\n10%\r50%\r100%\r\nend").unwrap();
        assert_eq!(last_lines(&log, 3), ["two", "100%", "end"]);
        fs::write(&log, "line\n".repeat(100_000) + "end\n").unwrap();
        assert_eq!(last_lines(&log, 2), ["line", "end"]);
        fs::write(&log, format!("{}\nend\n", "x".repeat(100_000))).unwrap();
        assert_eq!(last_lines(&log, 20), ["end"]);
    }
}
