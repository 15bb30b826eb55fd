//! Names for the ids in a reason: `core` thinks in numbers, people do not.

use metronome_core::cluster::{Level, Name};
use metronome_core::id::{JobId, NodeId, QueueId};

pub trait Names {
    /// None for a job that is not known any more.
    fn job(&self, id: JobId) -> Option<Name>;
    fn node(&self, id: NodeId) -> Name;
    fn queue(&self, id: QueueId) -> Name;
    fn level(&self, level: Level) -> Name;
}
