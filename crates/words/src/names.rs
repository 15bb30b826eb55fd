//! Names for the ids in a reason: `core` thinks in numbers, people do not.

use metronome_core::engine::State;
use metronome_core::model::cluster::{Level, Name};
use metronome_core::model::id::{JobId, NodeId, QueueId};

pub trait Names {
    /// None for a job that is not known any more.
    fn job(&self, id: JobId) -> Option<Name>;
    fn node(&self, id: NodeId) -> Name;
    fn queue(&self, id: QueueId) -> Name;
    fn level(&self, level: Level) -> Name;
}

/// Things are called what the engine was told they are called.
impl Names for State {
    fn job(&self, id: JobId) -> Option<Name> {
        self.jobs.get(id).map(|job| job.spec.name.clone())
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
