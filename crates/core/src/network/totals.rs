//! The books of the whole network: what the links carried and how much happened.

use crate::model::id::{IdVec, LinkId};

use super::history::LoadHistory;
use super::running::{Running, Stretch};
use super::watch::Watch;

#[derive(Debug)]
pub(super) struct Ledger {
    pub(super) carried: IdVec<LinkId, f64>,
    pub(super) history: Option<LoadHistory>,
    pub(super) watch: Option<Watch>,
    pub(super) events: u64,
}

impl Ledger {
    pub(super) fn new(links: usize) -> Self {
        Self { carried: IdVec::filled(0.0, links), history: None, watch: None, events: 0 }
    }

    /// A stretch of a flow has ended.
    pub(super) fn note(&mut self, job: &Running, stretch: Stretch) {
        if let Some(history) = &mut self.history {
            history.add(job.links(), stretch);
        }
        if let Some(watch) = &mut self.watch {
            watch.note(job, stretch);
        }
    }

    /// Whether somebody wants to know when what was sent: then nothing may be skipped.
    pub(super) fn keeps_times(&self) -> bool {
        self.history.is_some() || self.watch.is_some()
    }

    /// Books what a job has sent since it was last booked. Sums are kept by the job and booked rarely: links are many.
    pub(super) fn book(&mut self, job: &mut Running) {
        for (link, load) in job.links() {
            self.carried[*link] += load * (job.sent - job.booked);
        }
        job.booked = job.sent;
    }
}
