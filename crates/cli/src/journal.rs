//! Journals as files: the one place where the command line meets `metronome_core::journal`.
//!
//! STAND-IN bodies until that module is merged: nothing is recorded, and nothing can be read.

use std::path::Path;
use std::sync::Arc;

use metronome_core::cluster::{Level, Name};
use metronome_core::id::{JobId, NodeId, QueueId};
use metronome_core::report::Explanation;
use metronome_core::units::Instant;
use metronome_sim::world::Journal;

use crate::failure::Failure;
use crate::input;
use crate::names::Names;

/// A journal that is written to a new file.
pub(crate) fn create(path: &Path) -> Result<Box<dyn Journal + Send>, Failure> {
    Err(Failure::world(format!("record a journal in {}", path.display())))
}

/// A recorded history, decided again up to some time.
#[derive(Debug)]
pub(crate) struct Past {
    mismatches: Vec<String>,
}

impl Past {
    /// Reads the journal at `path`, up to `until` where that is given.
    pub(crate) fn read(path: &Path, _until: Option<Instant>) -> Result<Self, Failure> {
        input::open(path)?;
        Err(Failure::input(format!("read {}: this build has no journals", path.display())))
    }

    pub(crate) fn explain(&self, _job: &str) -> Option<Explanation> {
        None
    }

    pub(crate) fn job_names(&self) -> Vec<Name> {
        Vec::new()
    }

    pub(crate) fn decisions(&self) -> u64 {
        0
    }

    /// Decisions that came out differently, in words.
    pub(crate) fn mismatches(&self) -> &[String] {
        &self.mismatches
    }
}

impl Names for Past {
    fn job(&self, _: JobId) -> Option<Name> {
        None
    }
    fn node(&self, id: NodeId) -> Name {
        Arc::from(format!("{id:?}"))
    }
    fn queue(&self, id: QueueId) -> Name {
        Arc::from(format!("{id:?}"))
    }
    fn level(&self, _: Level) -> Name {
        Arc::from("level")
    }
}
