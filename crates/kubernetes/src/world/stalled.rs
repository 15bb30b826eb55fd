//! Says of jobs that seem to hang that they do: once each time, on the first pod of each.

use std::collections::BTreeMap;

use metronome_core::model::id::JobId;
use metronome_core::model::units::Instant;
use metronome_words::sentence;

use super::World;
use crate::deed::{About, EventReason, Kind, Telling};

impl World {
    pub(super) fn say_who_hangs(&mut self) {
        let hang: BTreeMap<JobId, Instant> = self.engine.stalled().collect();
        let before = std::mem::replace(&mut self.stalled, hang.clone());
        for (job, _) in hang.into_iter().filter(|(job, since)| before.get(job) != Some(since)) {
            let (Some(first), Some(reason)) = (self.first_of(job), self.engine.verdict(job)) else {
                continue;
            };
            let about = About::Pod(self.pods[&first].reference());
            let message = sentence(&reason, self.engine.state());
            self.do_it(Kind::Tell(Telling { about, reason: EventReason::Stalled, message }));
        }
    }
}
