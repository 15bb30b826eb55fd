//! What a member writes, kept to a limit: the newest part, and the part before it.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;

/// Losing words is never a reason for a member to fail: whatever cannot be written is dropped.
#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    file: Option<File>,
    written: u64,
    limit: u64,
}

impl Log {
    pub(super) fn open(path: PathBuf, limit: u64) -> Self {
        let file = File::create(&path).ok();
        Self { path, file, written: 0, limit }
    }

    pub(super) fn take(&mut self, words: &[u8]) {
        if self.written + words.len() as u64 > self.limit && self.written > 0 {
            self.begin_anew();
        }
        if let Some(file) = &mut self.file {
            let _ = file.write_all(words);
        }
        self.written += words.len() as u64;
    }

    /// Gives back the room that it takes, for something that matters more.
    pub(super) fn make_room(&mut self) {
        let _ = fs::remove_file(self.path.with_extension("1"));
        self.file = File::create(&self.path).ok();
        self.written = 0;
    }

    fn begin_anew(&mut self) {
        let _ = fs::rename(&self.path, self.path.with_extension("1"));
        self.file = File::create(&self.path).ok();
        self.written = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_is_kept_within_twice_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut log = Log::open(path.clone(), 100);
        for number in 0..1000 {
            log.take(format!("{number:>9}\n").as_bytes());
        }
        let (now, before) =
            (fs::read_to_string(&path).unwrap(), fs::read_to_string(folder.path().join("log.1")).unwrap());
        assert!(now.len() <= 100 && before.len() <= 100);
        let kept: Vec<u32> = (before + &now).lines().map(|line| line.trim().parse().unwrap()).collect();
        assert_eq!(kept.last(), Some(&999));
        assert!(kept.windows(2).all(|pair| pair[1] == pair[0] + 1));
    }
}
