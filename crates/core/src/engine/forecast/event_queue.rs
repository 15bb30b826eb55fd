//! What is foreseen to happen, in order: by time, then what leaves before what comes, then as it was added.

use std::collections::BTreeMap;

use crate::model::id::JobId;
use crate::model::plan::StepId;
use crate::model::units::{Duration, Instant};

#[derive(Clone, Copy, Debug)]
pub(super) enum Happening {
    /// A job's work is done, unless it was stopped since this was foreseen.
    Ends(JobId),
    /// A step has taken effect. What the job has done by then is known, where the step stopped it.
    Done { job: JobId, step: StepId, executed: Option<Duration> },
}

#[derive(Debug, Default)]
pub(super) struct Agenda {
    entries: BTreeMap<(Instant, u8, u64), Happening>,
    added: u64,
}

impl Agenda {
    pub(super) fn add(&mut self, at: Instant, happening: Happening) {
        let turn = match happening {
            Happening::Ends(_) => 0,
            Happening::Done { .. } => 1,
        };
        self.entries.insert((at, turn, self.added), happening);
        self.added += 1;
    }

    pub(super) fn next_at(&self) -> Option<Instant> {
        self.entries.first_key_value().map(|((at, _, _), _)| *at)
    }

    /// The next thing to happen, if it is due.
    pub(super) fn take(&mut self, now: Instant) -> Option<Happening> {
        let due = self.entries.first_entry().filter(|entry| entry.key().0 <= now)?;
        Some(due.remove())
    }
}
