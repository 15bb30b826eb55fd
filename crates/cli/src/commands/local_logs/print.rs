//! Lines on standard output, with the member that wrote them where there are several.

use std::collections::BTreeSet;
use std::io::Write;

use metronome_local::logs::MemberLog;

use super::choose::short;

pub(super) struct Printer {
    prefix: Prefix,
    width: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Prefix {
    None,
    Member,
    JobAndMember,
}

impl Printer {
    pub(super) fn of<'a>(logs: impl Iterator<Item = &'a MemberLog> + Clone) -> Self {
        let jobs: BTreeSet<&str> = logs.clone().map(|log| log.job.as_str()).collect();
        let members: BTreeSet<String> = logs.clone().map(|log| log.member.to_string()).collect();
        let prefix = match (jobs.len(), members.len()) {
            (2.., _) => Prefix::JobAndMember,
            (_, 2..) => Prefix::Member,
            _ => Prefix::None,
        };
        let width = logs.map(|log| prefix.of(log).len()).max().unwrap_or_default();
        Self { prefix, width }
    }

    /// Whether anybody still reads.
    pub(super) fn print(&self, log: &MemberLog, line: &[u8]) -> bool {
        let mut out = std::io::stdout().lock();
        let text = String::from_utf8_lossy(line);
        let width = self.width;
        let written = match self.prefix {
            Prefix::None => writeln!(out, "{text}"),
            prefix => writeln!(out, "{:width$} | {text}", prefix.of(log)),
        };
        written.is_ok()
    }
}

impl Prefix {
    fn of(self, log: &MemberLog) -> String {
        match self {
            Self::None => String::new(),
            Self::Member => log.member.to_string(),
            Self::JobAndMember => format!("{}/{}", short(&log.job), log.member),
        }
    }
}
