//! Transmissions of each job on one link over time, for pictures of how jobs share it.

use crate::model::id::LinkId;
use crate::model::units::Instant;

use super::running::{RateInterval, RunningLoop};

/// An interval in which a job sent on a link at one rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkTransmission {
    pub key: usize,
    pub from: Instant,
    pub to: Instant,
    /// Bytes on the link in the whole interval.
    pub bytes: f64,
}

/// Recorder of the transmissions on one link.
#[derive(Clone, Debug)]
pub(super) struct LinkTrace {
    link: LinkId,
    since: u64,
    transmissions: Vec<LinkTransmission>,
}

impl LinkTrace {
    pub(super) fn new(link: LinkId, since: u64) -> Self {
        Self { link, since, transmissions: Vec::new() }
    }

    /// Records the part of an interval that lies after the start of the recording.
    pub(super) fn record(&mut self, job: &RunningLoop, stretch: RateInterval) {
        let RateInterval { from, to, bytes } = stretch;
        let began = from.max(self.since);
        let Some((_, load)) = job.links().iter().find(|(link, _)| *link == self.link) else { return };
        if to > began && bytes > 0.0 {
            let part = (to - began) as f64 / (to - from) as f64;
            self.transmissions.push(LinkTransmission {
                key: job.key,
                from: Instant(began),
                to: Instant(to),
                bytes: bytes * load * part,
            });
        }
    }

    /// Transmissions by job and time.
    pub(super) fn into_transmissions(mut self) -> Vec<LinkTransmission> {
        self.transmissions.sort_by_key(|transmissions| (transmissions.key, transmissions.from));
        self.transmissions
    }
}
