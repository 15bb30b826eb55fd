//! Names for the ids in a reason: `core` thinks in numbers, people do not.

use metronome_core::cluster::{Level, Name};
use metronome_core::id::{JobId, NodeId, QueueId};
use metronome_sim::scenario::Scenario;

pub(crate) trait Names {
    /// None for a job that is not known any more.
    fn job(&self, id: JobId) -> Option<Name>;
    fn node(&self, id: NodeId) -> Name;
    fn queue(&self, id: QueueId) -> Name;
    fn level(&self, level: Level) -> Name;
}

impl Names for Scenario {
    /// A policy that places member by member numbers members, not jobs: a scenario cannot tell.
    fn job(&self, _: JobId) -> Option<Name> {
        None
    }

    fn node(&self, id: NodeId) -> Name {
        self.cluster.node(id).name.clone()
    }

    fn queue(&self, id: QueueId) -> Name {
        self.queues[id].name.clone()
    }

    fn level(&self, level: Level) -> Name {
        Name::from(self.cluster.level_name(level))
    }
}
