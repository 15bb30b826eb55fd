//! Logs as they are written, through restarts of members, until the world's run is over.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use metronome_local::logs::MemberLog;

use super::print::Printer;
use super::{LocalLogs, choose, last, lines};
use crate::failure::Failure;
use crate::reply::Reply;

const PAUSE: Duration = Duration::from_millis(100);

/// The document that a world has for as long as its run is not over, through crashes of its scheduler.
const RUN: &str = "world.json";

pub(super) fn follow(world: &Path, args: &LocalLogs) -> Result<Reply, Failure> {
    let mut followed: BTreeMap<(String, String, u32), Followed> = BTreeMap::new();
    let mut is_first_look = true;
    loop {
        // The state is read before the logs, so that every line written until then is printed.
        let is_over = !world.join(RUN).exists();
        let logs = match choose::chosen(world, args) {
            Ok(logs) => logs,
            Err(failure) if is_first_look => return Err(failure),
            // Another run has begun under this name, or the world was cleaned.
            Err(_) => Vec::new(),
        };
        for log in logs {
            let key = (log.job.clone(), log.member.to_string(), log.attempt);
            // One that is moved meanwhile is found at the next look.
            if !followed.contains_key(&key)
                && let Ok(begun) = Followed::begin(log, args.tail.filter(|_| is_first_look))
            {
                followed.insert(key, begun);
            }
        }
        let printer = Printer::of(followed.values().map(|one| &one.log));
        for one in followed.values_mut() {
            let unwritten = one.more(is_over);
            if !unwritten.iter().all(|line| printer.print(&one.log, line)) {
                return Ok(Reply::nothing());
            }
        }
        if is_over {
            return Ok(Reply::nothing());
        }
        is_first_look = false;
        std::thread::sleep(PAUSE);
    }
}

/// A log that is being read. The open file stays the same when it is moved; a new one takes its place when the log has
/// reached its limit.
struct Followed {
    log: MemberLog,
    path: PathBuf,
    file: File,
    /// Read, and not printed yet.
    text: Vec<u8>,
}

impl Followed {
    fn begin(log: MemberLog, tail: Option<usize>) -> io::Result<Self> {
        let (path, earlier) = log.files.split_last().ok_or(io::ErrorKind::NotFound)?;
        let (path, mut text) = (path.clone(), Vec::new());
        for file in earlier {
            File::open(file)?.read_to_end(&mut text)?;
        }
        let mut file = File::open(&path)?;
        file.read_to_end(&mut text)?;
        let lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
        let text = last(&lines, tail).concat();
        Ok(Self { log, path, file, text })
    }

    /// The lines that have come since; at the end also one that is not whole.
    fn more(&mut self, is_over: bool) -> Vec<Vec<u8>> {
        self.read();
        if self.is_replaced()
            && let Ok(file) = File::open(&self.path)
        {
            // What came between the two looks.
            self.read();
            self.file = file;
            self.read();
        }
        let whole = match self.text.iter().rposition(|byte| *byte == b'\n') {
            _ if is_over => self.text.len(),
            Some(end) => end + 1,
            None => 0,
        };
        let text: Vec<u8> = self.text.drain(..whole).collect();
        lines(&text).into_iter().map(<[u8]>::to_vec).collect()
    }

    /// An error ends this read; the next one continues.
    fn read(&mut self) {
        let _ = self.file.read_to_end(&mut self.text);
    }

    fn is_replaced(&self) -> bool {
        match (fs::metadata(&self.path), self.file.metadata()) {
            (Ok(there), Ok(open)) => (there.dev(), there.ino()) != (open.dev(), open.ino()),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_followed_through_its_limit_and_its_end() {
        let world = tempfile::tempdir().unwrap();
        let folder = world.path().join("members/m0");
        fs::create_dir_all(&folder).unwrap();
        let spec = r#"{"command": [], "environment": {"METRONOME_JOB": "default/bert", "METRONOME_MEMBER": "worker-0",
            "METRONOME_ATTEMPT": "1"}, "folder": null, "namespace": null, "entrances": [], "logLimit": 9}"#;
        fs::write(folder.join("spec.json"), spec).unwrap();
        let log = folder.join("log");
        let add = |text: &str| {
            let mut file = File::options().create(true).append(true).open(&log).unwrap();
            std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
        };
        add("zero\none\ntwo\nthr");
        let found = metronome_local::logs::list(world.path()).remove(0);
        let mut followed = Followed::begin(found, Some(2)).unwrap();
        let mut more = |is_over| {
            let lines = followed.more(is_over);
            lines.into_iter().map(|line| String::from_utf8(line).unwrap()).collect::<Vec<String>>()
        };
        add("ee\nfo");
        assert_eq!(more(false), ["two", "three"]);
        add("ur\n");
        fs::rename(&log, folder.join("log.1")).unwrap();
        add("five\nsi");
        assert_eq!(more(false), ["four", "five"]);
        add("x");
        fs::rename(&log, world.path().join("kept")).unwrap();
        assert_eq!(more(true), ["six"]);
    }
}
