//! Journals as files, one record a line: the one place where the command line meets `metronome_core::journal`.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use metronome_core::engine::{Engine, State as EngineState};
use metronome_core::journal::{Journal, JournalError, Polled, Record, Replay};
use metronome_core::model::cluster::Name;
use metronome_core::model::id::JobId;
use metronome_core::model::report::{Explanation, State};
use metronome_core::model::units::{Duration, Instant};

use crate::failure::Failure;
use crate::input;

/// A journal that is written to a new file. The engine keeps one handle and writes; the other is asked afterwards
/// whether all of it could be written.
#[derive(Clone, Debug)]
pub(crate) struct JournalFile {
    path: PathBuf,
    sink: Arc<Mutex<Sink>>,
}

#[derive(Debug)]
struct Sink {
    writer: BufWriter<File>,
    /// The first write that failed; after it nothing more is written.
    failed: Option<io::Error>,
}

impl JournalFile {
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        let sink = Sink { writer: BufWriter::new(input::create(path)?), failed: None };
        Ok(Self { path: path.to_owned(), sink: Arc::new(Mutex::new(sink)) })
    }

    pub(crate) fn finish(self) -> Result<(), Failure> {
        let mut sink = self.sink.lock().unwrap_or_else(PoisonError::into_inner);
        let flushed = match sink.failed.take() {
            Some(error) => Err(error),
            None => sink.writer.flush(),
        };
        flushed.map_err(|error| input::cannot_write(&self.path, &error))
    }
}

impl Journal for JournalFile {
    fn record(&mut self, record: &Record) {
        let mut sink = self.sink.lock().unwrap_or_else(PoisonError::into_inner);
        if sink.failed.is_none() {
            sink.failed = writeln!(sink.writer, "{}", record.to_line()).err();
        }
    }
}

/// A recorded history, decided again up to some time.
#[derive(Debug)]
pub(crate) struct Past {
    replay: Replay,
    until: Option<Instant>,
    mismatches: Vec<String>,
}

impl Past {
    /// Reads the journal at `path`, up to and with `until` where that is given.
    pub(crate) fn read(path: &Path, until: Option<Instant>) -> Result<Self, Failure> {
        let file = BufReader::new(input::open(path)?);
        let replay = replayed(file, until).map_err(|Trouble { line, what }| {
            Failure::input(format!("read {}:{line}: {what}", path.display()))
        })?;
        let mismatches = replay.mismatches.iter().map(|(then, now)| difference(then, now)).collect();
        Ok(Self { replay, until, mismatches })
    }

    fn engine(&self) -> &Engine {
        self.replay.engine().expect("a journal is not read without its state")
    }

    pub(crate) fn state(&self) -> &EngineState {
        self.engine().state()
    }

    /// The time up to which it was read.
    pub(crate) fn now(&self) -> Instant {
        self.until.map_or(self.state().now, |until| until.max(self.state().now))
    }

    pub(crate) fn explain(&self, job: &str) -> Option<(JobId, Explanation)> {
        let engine = self.engine();
        let id = engine.find_job(job)?;
        let mut explanation = engine.explain(id)?;
        // The engine's time stands still between records; whoever waits goes on waiting.
        let since = self.now().since(engine.state().now);
        if !matches!(explanation.state, State::Running | State::Refused | State::Failed | State::Done) {
            explanation.waited += since;
        }
        explanation.ahead.iter_mut().for_each(|ahead| ahead.waited += since);
        Some((id, explanation))
    }

    pub(crate) fn job_names(&self) -> Vec<Name> {
        let state = self.engine().state();
        let live = state.jobs.iter().map(|(_, job)| job.spec.name.clone());
        live.chain(state.over.iter().map(|(_, ended)| ended.name.clone())).collect()
    }

    pub(crate) fn decisions(&self) -> u64 {
        self.replay.decisions
    }

    /// Decisions that came out differently, in words.
    pub(crate) fn mismatches(&self) -> &[String] {
        &self.mismatches
    }
}

/// What is wrong with a journal, and in which line.
#[derive(Debug, PartialEq, Eq)]
struct Trouble {
    line: usize,
    what: String,
}

/// Feeds the records up to `until`. A last line that was cut off while it was written is left out; a broken line
/// before others is trouble.
fn replayed(reader: impl BufRead, until: Option<Instant>) -> Result<Replay, Trouble> {
    let mut replay = Replay::default();
    let mut cut: Option<Trouble> = None;
    for (index, text) in reader.lines().enumerate() {
        if let Some(trouble) = cut {
            return Err(trouble);
        }
        let trouble = |what: String| Trouble { line: index + 1, what };
        let text = text.map_err(|error| trouble(error.to_string()))?;
        match Record::from_line(&text) {
            Ok(record) if until.is_some_and(|until| time(&record) > until) => break,
            Ok(record) => replay.feed(record).map_err(|error| trouble(error.to_string()))?,
            Err(JournalError::Cut(_)) if index == 0 => return Err(trouble("it is not a journal".into())),
            Err(error @ JournalError::Cut(_)) => cut = Some(trouble(error.to_string())),
            Err(error) => return Err(trouble(error.to_string())),
        }
    }
    match replay.engine() {
        Some(_) => Ok(replay),
        None => Err(Trouble { line: 1, what: "there is no state in it to begin from".into() }),
    }
}

/// When a record was made; a header and a state belong to what follows them.
fn time(record: &Record) -> Instant {
    match record {
        Record::Event { at, .. } => *at,
        Record::Polled(polled) => polled.at,
        Record::Journal { .. } | Record::State(_) => Instant::START,
    }
}

fn difference(then: &Polled, now: &Polled) -> String {
    let (at, recorded, again) = (Duration(then.at.0), then.steps.len(), now.steps.len());
    match recorded == again {
        true => format!("{at} after the beginning: {recorded} steps as recorded, but not the same ones"),
        false => {
            format!("{at} after the beginning: {recorded} steps were recorded, and now there are {again}")
        }
    }
}

#[cfg(test)]
mod tests;
