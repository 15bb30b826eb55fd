//! What the engine decided about links and why, kept while it runs: the part of its journal that a trace shows.

use std::sync::{Arc, Mutex, PoisonError};

use metronome_core::engine::Event;
use metronome_core::journal::{Journal, Record};
use metronome_core::model::id::{Id, JobId};
use metronome_core::model::units::Instant;
use metronome_core::traffic::decision_inputs::Reconfiguration;

/// A journal that is asked after the run. The engine keeps one handle and writes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Decisions(Arc<Mutex<Log>>);

#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    /// Names in the order of job ids.
    jobs: Vec<String>,
    pub(super) about_links: Vec<AboutLinks>,
    /// When decisions began to be made with a profile of a job.
    pub(super) profiles: Vec<(Instant, JobId)>,
}

/// A decision by which jobs stand otherwise on links.
#[derive(Clone, Debug)]
pub(super) struct AboutLinks {
    pub(super) at: Instant,
    pub(super) jobs: Vec<JobId>,
    pub(super) reconfigured: Vec<Reconfiguration>,
}

impl Decisions {
    pub(crate) fn log(&self) -> Log {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Journal for Decisions {
    fn record(&mut self, record: &Record) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).note(record);
    }
}

impl Log {
    fn note(&mut self, record: &Record) {
        match record {
            Record::Event { event: Event::JobSubmitted(spec) | Event::JobFound { spec, .. }, .. } => {
                self.jobs.push(spec.name.to_string());
            }
            Record::Event { at, event: Event::LoopMeasured { job, .. } } => self.profiles.push((*at, *job)),
            Record::Polled(polled) => {
                let Some(decision) = &polled.decision else { return };
                if !decision.amendment.traffic.is_empty() || !decision.reconfigured.is_empty() {
                    let jobs = decision.amendment.traffic.keys().copied().collect();
                    let reconfigured = decision.reconfigured.clone();
                    self.about_links.push(AboutLinks { at: polled.at, jobs, reconfigured });
                }
            }
            Record::Event { .. } | Record::Journal { .. } | Record::State(_) => {}
        }
    }

    pub(super) fn name(&self, job: JobId) -> &str {
        self.jobs.get(job.index()).map_or("a job", String::as_str)
    }

    /// The reason for a change of a running job, with all that it was a part of, by the latest decision about the job that
    /// was made up to then. None where its directive came with its start.
    pub(super) fn why(&self, job: &str, at: Instant) -> Option<&Reconfiguration> {
        let is_it = |id: &JobId| self.name(*id) == job;
        let made = self.about_links.iter().rev().find(|made| made.at <= at && made.jobs.iter().any(is_it))?;
        made.reconfigured.iter().find(|change| change.jobs.iter().any(is_it))
    }
}
