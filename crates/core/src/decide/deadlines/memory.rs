//! The memory of a job at each of its sizes.
//!
//! Jobs are booked in units of GPUs or cores. A job that asks for more memory with each unit than a node has for each
//! of its own may keep other jobs from running though units are free. Where there is such a job, memory gets pools of
//! its own, and what is free of them is converted to the units of each job (`memory_per_unit.rs`).

use crate::deadlines::Units;
use crate::decide::elastic_gang::ElasticGang;
use crate::model::id::JobId;
use crate::model::job::Job;
use crate::model::plan::Assignment;
use crate::model::units::Memory;

/// Memory as a function of the number of members.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemoryNeed {
    always: Units,
    each: Units,
}

impl MemoryNeed {
    /// Of a job that is booked at several sizes, or only at the one it has or asks for.
    pub(super) fn of(id: JobId, job: &Job, held: Option<&Assignment>) -> Self {
        match ElasticGang::of(id, job).filter(|gang| gang.may_be_resized()) {
            Some(gang) => {
                let (least, each) = (bytes(job.spec.least().memory), bytes(gang.of_one().memory));
                Self { always: least - each * Units::from(gang.least()), each }
            }
            None => {
                let has = held.map_or(job.spec.least(), Assignment::total);
                Self { always: bytes(has.memory), each: 0 }
            }
        }
    }

    pub(super) fn with(self, members: u32) -> Units {
        self.always.saturating_add(self.each.saturating_mul(Units::from(members)))
    }
}

pub(super) fn bytes(memory: Memory) -> Units {
    Units::try_from(memory.0).unwrap_or(Units::MAX)
}
