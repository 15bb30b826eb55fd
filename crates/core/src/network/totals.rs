//! Totals of the whole network: bytes per link and number of events.

use crate::model::id::{IdVec, LinkId};

use super::history::LoadHistory;
use super::link_trace::LinkTrace;
use super::running::{RateInterval, RunningLoop};

/// Bytes per link and optional recordings.
#[derive(Debug)]
pub(super) struct LinkTotals {
    pub(super) carried: IdVec<LinkId, f64>,
    pub(super) history: Option<LoadHistory>,
    pub(super) watch: Option<LinkTrace>,
    pub(super) events: u64,
}

impl LinkTotals {
    pub(super) fn new(links: usize) -> Self {
        Self { carried: IdVec::filled(0.0, links), history: None, watch: None, events: 0 }
    }

    /// Records an interval of a flow that ended.
    pub(super) fn record(&mut self, job: &RunningLoop, stretch: RateInterval) {
        if let Some(history) = &mut self.history {
            history.add(job.links(), stretch);
        }
        if let Some(watch) = &mut self.watch {
            watch.record(job, stretch);
        }
    }

    /// Whether a recording needs the time of every transmission: then nothing may be skipped.
    pub(super) fn is_recording(&self) -> bool {
        self.history.is_some() || self.watch.is_some()
    }

    /// Adds the bytes that a job sent since the last call. A job keeps its own sum and this function is called
    /// rarely, because a route has many links.
    pub(super) fn add_sent(&mut self, job: &mut RunningLoop) {
        for (link, load) in job.links() {
            self.carried[*link] += load * (job.sent - job.in_totals);
        }
        job.in_totals = job.sent;
    }
}
