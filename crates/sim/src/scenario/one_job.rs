//! A job on its own: one TrainingJob, read against a world that is already there.

use std::io::Read;
use std::path::Path;

use metronome_core::model::cluster::Cluster;
use metronome_core::model::id::{IdVec, QueueId};
use metronome_core::model::queue::Queue;
use metronome_core::model::units::{Bandwidth, Instant};

use super::{Arrival, InputError, documents, source, translate};

/// What a job refers to.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    pub cluster: &'a Cluster,
    pub queues: &'a IdVec<QueueId, Queue>,
    /// The rate at which the GPUs of one node talk to each other; free, if none is said.
    pub within_node: Option<Bandwidth>,
}

impl Setting<'_> {
    /// Reads a file with one TrainingJob, as it would be if it were submitted at `at`.
    pub fn read_job(&self, path: &Path, at: Instant) -> Result<Arrival, InputError> {
        self.read_job_from(source::open(path)?, &path.display().to_string(), at)
    }

    /// The same from anywhere: `name` is what errors call it.
    pub fn read_job_from(&self, reader: impl Read, name: &str, at: Instant) -> Result<Arrival, InputError> {
        let text = source::text(reader, name)?;
        let read = documents::parse(&text).and_then(|documents| translate::one_job(documents, self, at));
        read.map_err(|problem| problem.in_file(name))
    }
}
