//! Everything that runs for a contestant: its scheduler and, where pods are not made beforehand, whoever makes them.

use std::process::ExitStatus;
use std::time::Duration;

use metronome_testcluster::{Companion, Error, Usage};

#[derive(Debug)]
pub(crate) struct Cast(Vec<(String, Companion)>);

/// What each process of a cast has used.
pub(crate) type Bill = Vec<(String, Usage)>;

impl Cast {
    pub(crate) fn of(name: impl Into<String>, scheduler: Companion) -> Self {
        Self(vec![(name.into(), scheduler)])
    }

    #[must_use]
    pub(crate) fn with(mut self, name: impl Into<String>, other: Companion) -> Self {
        self.0.push((name.into(), other));
        self
    }

    pub(crate) fn bill(&self) -> Result<Bill, Error> {
        self.0.iter().map(|(name, one)| Ok((name.clone(), one.usage()?))).collect()
    }

    /// The first that has ended, and how.
    pub(crate) fn ended(&mut self) -> Option<(&str, ExitStatus)> {
        self.0.iter_mut().find_map(|(name, one)| Some((name.as_str(), one.ended()?)))
    }

    /// The last that each said.
    pub(crate) fn log_tails(&self) -> String {
        let tails = self.0.iter().map(|(name, one)| format!("{name}:\n{}", one.log_tail()));
        tails.collect::<Vec<_>>().join("\n")
    }
}

pub(crate) fn cpu(bill: &Bill) -> Duration {
    bill.iter().map(|(_, usage)| usage.cpu).sum()
}

/// The peaks of all, although they may not have been at the same time.
pub(crate) fn peak_rss_bytes(bill: &Bill) -> u64 {
    bill.iter().map(|(_, usage)| usage.peak_rss_bytes).sum()
}
