//! How much of its node's CPU a job has beside others, said on its pods for whoever runs on the nodes to carry out.

use std::collections::BTreeSet;

use metronome_core::model::units::Instant;

use super::World;
use super::pods::{Known, Uid};

pub(super) const CPU_WEIGHT: &str = "metronome.dev/cpu-weight";

impl World {
    /// Says of all whose weight is not the usual one what it is, and takes it back from all others.
    pub(super) fn say_weights(&mut self, now: Instant) {
        let crews = self.engine.plan().weights().keys().filter_map(|job| self.crews.get(job));
        let unusual = crews.flat_map(|crew| crew.members().map(|member| member.uid.clone()));
        let unusual: BTreeSet<Uid> = unusual.collect();
        self.have_said(now, CPU_WEIGHT, unusual, Self::weight_of);
    }

    /// Nothing for the usual one, and for who has not allowed it.
    fn weight_of(&self, known: &Known) -> Option<String> {
        let id = known.job.filter(|_| known.is_placed())?;
        let weight = self.engine.weight(id);
        let allowed = self.engine.job(id)?.spec.capabilities.throttle;
        (allowed && !weight.is_default()).then(|| weight.get().to_string())
    }
}
