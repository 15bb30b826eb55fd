//! What becomes of links, and what is found out about the loops that cross them.

use std::sync::Arc;

use super::Engine;
use crate::model::id::{JobId, LinkId};
use crate::model::job::JobSpec;
use crate::model::profile::Profile;
use crate::model::units::{Bandwidth, Share};
use crate::network::Pattern;

/// Iterations of a job of equal priority take at most so much longer with a traffic directive than without.
const MAX_SLOWDOWN_BY_DIRECTIVE: Share = Share(20_000);

impl Engine {
    /// A link carries more or less than before. Whoever waits for a better place may find one.
    pub(super) fn link_changed(&mut self, link: LinkId, rate: Bandwidth) {
        if self.state.cluster.fabric.set_rate(link, rate) {
            self.index.contention.set_rate(link, rate);
            self.index.room.grow();
            self.state.dirty = true;
        }
    }

    /// A traffic directive that slows a job of equal priority noticeably is withdrawn.
    pub(super) fn slower_than_fair(&mut self, id: JobId, by: Share) {
        let Some(job) = self.state.jobs.get_mut(id).filter(|_| by > MAX_SLOWDOWN_BY_DIRECTIVE) else {
            return;
        };
        job.slower_than_fair = Some(by);
        self.state.dirty = true;
    }

    /// What a job does is known better than before. What could not be run is no measurement and changes nothing.
    pub(super) fn loop_measured(&mut self, id: JobId, profile: Arc<Profile>) {
        let runs = profile.exchange().is_some_and(|exchange| Pattern::of(exchange).is_ok());
        let Some(job) = self.state.jobs.get_mut(id).filter(|_| runs) else { return };
        job.times_measured += 1;
        let spec = JobSpec { profile: Some(profile), ..(*job.spec).clone() };
        self.asks_for(id, spec);
        if let Some(planned) = self.state.plan.get(id) {
            self.index.contention.leave(id);
            self.index.contention.join(id, &self.state.jobs[id].spec, planned);
        }
        self.index.line_up(&mut self.state, id);
        self.state.dirty = true;
    }
}
