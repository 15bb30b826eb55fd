//! What each job put on one link, stretch by stretch: for those who want to see how jobs share it.

use crate::model::id::LinkId;
use crate::model::units::Instant;

use super::running::{Running, Stretch};

/// A stretch of time in which a job put bytes on a link at one rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sent {
    pub key: usize,
    pub from: Instant,
    pub to: Instant,
    /// On the link, in all of the stretch.
    pub bytes: f64,
}

#[derive(Clone, Debug)]
pub(super) struct Watch {
    link: LinkId,
    since: u64,
    sent: Vec<Sent>,
}

impl Watch {
    pub(super) fn new(link: LinkId, since: u64) -> Self {
        Self { link, since, sent: Vec::new() }
    }

    /// Notes of a stretch what was sent since the watch began.
    pub(super) fn note(&mut self, job: &Running, stretch: Stretch) {
        let Stretch { from, to, bytes } = stretch;
        let began = from.max(self.since);
        let Some((_, load)) = job.links().iter().find(|(link, _)| *link == self.link) else { return };
        if to > began && bytes > 0.0 {
            let part = (to - began) as f64 / (to - from) as f64;
            self.sent.push(Sent {
                key: job.key,
                from: Instant(began),
                to: Instant(to),
                bytes: bytes * load * part,
            });
        }
    }

    /// By job, and in order of time.
    pub(super) fn sent(mut self) -> Vec<Sent> {
        self.sent.sort_by_key(|sent| (sent.key, sent.from));
        self.sent
    }
}
