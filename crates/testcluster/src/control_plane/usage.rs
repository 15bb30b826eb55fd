//! What a process has used, as the kernel counts it.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::error::{Error, Result};

/// What a process has used since it started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// User and system time of all its threads.
    pub cpu: Duration,
    pub peak_rss_bytes: u64,
}

/// `USER_HZ`, which Linux fixes at 100 in everything it shows to programs.
const TICK: Duration = Duration::from_millis(10);

impl Usage {
    /// What a process has used that runs.
    pub fn of(pid: u32) -> Result<Self> {
        let folder = PathBuf::from(format!("/proc/{pid}"));
        let failed = |source| Error::File { path: folder.clone(), source };
        let stat = fs::read_to_string(folder.join("stat")).map_err(failed)?;
        let status = fs::read_to_string(folder.join("status")).map_err(failed)?;
        Self::parse(&stat, &status).ok_or_else(|| failed(io::Error::other("the process has ended")))
    }

    fn parse(stat: &str, status: &str) -> Option<Self> {
        // The command's name, in parentheses, may hold blanks; what follows starts with the third field.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
        let mut ticks = || fields.next()?.parse::<u32>().ok();
        let cpu = TICK * (ticks()? + ticks()?);
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        let kilobytes: u64 = peak.trim().strip_suffix(" kB")?.parse().ok()?;
        Some(Self { cpu, peak_rss_bytes: kilobytes * 1024 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_and_system_time_are_added_whatever_the_program_is_called() {
        let stat = "7 (a ) b) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20";
        let usage = Usage::parse(stat, "Name:\tx\nVmHWM:\t    12 kB\n").unwrap();
        assert_eq!(usage, Usage { cpu: Duration::from_secs(2), peak_rss_bytes: 12 * 1024 });
    }

    #[test]
    fn a_process_that_runs_has_used_memory() {
        assert!(Usage::of(std::process::id()).unwrap().peak_rss_bytes > 0);
    }
}
