//! Names for the ids in a reason: `core` thinks in numbers, people do not.

use metronome_core::model::cluster::{Level, Name};
use metronome_core::model::id::{JobId, NodeId, QueueId};
use metronome_sim::scenario::Scenario;
use metronome_words::Names;

/// Things are called what the scenario calls them.
pub(crate) struct InScenario<'a>(pub(crate) &'a Scenario);

impl Names for InScenario<'_> {
    /// A policy that places member by member numbers members, not jobs: a scenario cannot tell.
    fn job(&self, _: JobId) -> Option<Name> {
        None
    }

    fn node(&self, id: NodeId) -> Name {
        self.0.cluster.node(id).name.clone()
    }

    fn queue(&self, id: QueueId) -> Name {
        self.0.queues[id].name.clone()
    }

    fn level(&self, level: Level) -> Name {
        Name::from(self.0.cluster.level_name(level))
    }
}
