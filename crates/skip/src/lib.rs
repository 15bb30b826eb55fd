//! The record of skipped tests.
//!
//! A test that cannot run on this machine calls [`skip`] and returns. The test harness counts it as passed and hides
//! what it prints; the record tells `cargo xtask test` that it was skipped, and why.

use std::env;
use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::thread;

/// The environment variable that names the file of the record.
pub const RECORD: &str = "METRONOME_SKIPS";

/// Separates the test from the reason on a line of the record. Names of tests do not contain it.
const SEPARATOR: char = '\t';

/// One skipped test.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Skip {
    pub test: String,
    /// On one line.
    pub reason: String,
}

/// Records that the calling test is skipped: on standard error, and in the file that [`RECORD`] names, if it names one.
/// The name of the test is that of the thread, as the test harness sets it.
///
/// # Panics
/// If the record cannot be written: a skip must not be lost.
pub fn skip(reason: impl fmt::Display) {
    let skip = Skip::new(&test_name(), reason);
    eprintln!("skipped: {skip}");
    if let Some(record) = env::var_os(RECORD).filter(|path| !path.is_empty()) {
        let path = Path::new(&record);
        skip.append_to(path).unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
    }
}

impl Skip {
    pub fn new(test: &str, reason: impl fmt::Display) -> Self {
        let reason = reason.to_string();
        let lines: Vec<&str> = reason.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        Self { test: test.to_owned(), reason: lines.join("; ").replace(SEPARATOR, " ") }
    }

    /// All skips of a record, each test once, in order of test.
    pub fn read_all(record: &str) -> Vec<Self> {
        let mut skips: Vec<Self> = record.lines().filter_map(Self::parse).collect();
        skips.sort();
        skips.dedup_by(|later, earlier| later.test == earlier.test);
        skips
    }

    fn parse(line: &str) -> Option<Self> {
        let (test, reason) = line.split_once(SEPARATOR)?;
        Some(Self::new(test, reason))
    }

    /// In one write, so that tests of several threads and processes do not mix their lines.
    fn append_to(&self, record: &Path) -> io::Result<()> {
        let line = format!("{}{SEPARATOR}{}\n", self.test, self.reason);
        File::options().create(true).append(true).open(record)?.write_all(line.as_bytes())
    }
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.test, self.reason)
    }
}

/// With one thread for all tests the harness runs them on the main thread; then the program stands for the test.
fn test_name() -> String {
    let thread = thread::current();
    match thread.name() {
        Some(name) if name != "main" => name.to_owned(),
        _ => env::current_exe()
            .ok()
            .and_then(|path| path.file_stem().map(|stem| stem.to_string_lossy().into_owned()))
            .unwrap_or_else(|| "a test".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_record_holds_each_skipped_test_once_with_its_reason_on_one_line() {
        let folder = env::temp_dir().join(format!("metronome-skip-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let record = folder.join("skips");
        Skip::new("module::b", "cannot build etcd\nhint:\tinstall Go").append_to(&record).unwrap();
        Skip::new("module::a", "no chromium").append_to(&record).unwrap();
        Skip::new("module::a", "no chromium, again").append_to(&record).unwrap();
        let skips = Skip::read_all(&fs::read_to_string(&record).unwrap());
        fs::remove_dir_all(&folder).unwrap();
        let shown: Vec<String> = skips.iter().map(Skip::to_string).collect();
        assert_eq!(shown, ["module::a: no chromium", "module::b: cannot build etcd; hint: install Go"]);
    }

    #[test]
    fn a_skip_is_named_after_the_test_that_calls() {
        assert_eq!(test_name(), "tests::a_skip_is_named_after_the_test_that_calls");
    }
}
