//! Everything that entered an engine and everything it decided, as versioned records, one JSON object a line.
//!
//! A journal begins with a header and a state record, and carries further state records at intervals, so that its
//! older part can be cut away. The newer part may be cut anywhere: what is whole is read.

use serde::{Deserialize, Serialize};

use crate::check::Violation;
use crate::engine::{Engine, Event, State};
use crate::model::id::JobId;
use crate::model::plan::{Amendment, Step};
use crate::model::units::Instant;
use crate::traffic::decision_inputs::Reconfiguration;

/// The version of the records below. Adding a field with a default keeps it; anything else raises it. A journal of another
/// version is refused: its decisions could not be compared with those that this program makes.
///
/// | version | since |
/// |---|---|
/// | 3 | the plan holds traffic policies, CPU weights, reservations and bookings, and a decision is one amendment of all of them |
pub const VERSION: u32 = 3;

/// One line.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Record {
    Journal {
        version: u32,
    },
    /// Everything the engine knew at this point.
    State(Box<State>),
    Event {
        at: Instant,
        event: Event,
    },
    Polled(Polled),
}

/// A poll that did something, and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Polled {
    pub at: Instant,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decided>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
}

/// A decision as it is kept: the reasons follow from it and are made again on replay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Decided {
    pub amendment: Amendment,
    /// Why traffic policies of running jobs change, or their places because of links.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reconfigured: Vec<Reconfiguration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_by: Option<JobId>,
    /// The plan broke a rule and was thrown away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

impl Decided {
    pub(crate) fn refusal(violation: Violation) -> Self {
        Self {
            amendment: Amendment::default(),
            reconfigured: Vec::new(),
            blocked_by: None,
            refused: Some(violation.to_string()),
        }
    }
}

/// Where records go. The border writes them; nothing is written here.
pub trait Journal {
    fn record(&mut self, record: &Record);
}

#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error("the record is not whole")]
    Cut(#[source] serde_json::Error),
    #[error(
        "the journal is of version {0}, and this program reads version {VERSION}: replay it with the release that wrote it, or \
         start a new journal"
    )]
    Version(u32),
    #[error("the journal does not begin with a state record")]
    NoState,
}

impl Record {
    pub fn to_line(&self) -> String {
        serde_json::to_string(self).expect("records are plain data")
    }

    pub fn from_line(line: &str) -> Result<Self, JournalError> {
        match serde_json::from_str(line).map_err(JournalError::Cut)? {
            Self::Journal { version } if version != VERSION => Err(JournalError::Version(version)),
            record => Ok(record),
        }
    }
}

/// Decides again from recorded events, and compares.
#[derive(Debug, Default)]
pub struct Replay {
    engine: Option<Engine>,
    pub records: u64,
    pub events: u64,
    pub decisions: u64,
    /// Polls that came out differently: what was recorded, what came now.
    pub mismatches: Vec<(Polled, Polled)>,
}

/// A replay that has gone astray stays so; more than a few mismatches tell nothing new.
const MOST_MISMATCHES: usize = 10;

impl Replay {
    pub fn feed(&mut self, record: Record) -> Result<(), JournalError> {
        self.records += 1;
        match (record, &mut self.engine) {
            (Record::Journal { .. }, _) => {}
            (Record::State(state), None) => self.engine = Some(Engine::restore(*state)),
            // The engine that got here by itself knows all that a later state record says.
            (Record::State(_), Some(_)) => {}
            (Record::Event { at, event }, Some(engine)) => {
                engine.observe(at, event);
                self.events += 1;
            }
            (Record::Polled(recorded), Some(engine)) => {
                self.decisions += u64::from(recorded.decision.is_some());
                let now = engine.poll_recorded(recorded.at);
                if now != recorded && self.mismatches.len() < MOST_MISMATCHES {
                    self.mismatches.push((recorded, now));
                }
            }
            (Record::Event { .. } | Record::Polled(_), None) => return Err(JournalError::NoState),
        }
        Ok(())
    }

    /// The engine as it was at the last record.
    pub fn engine(&self) -> Option<&Engine> {
        self.engine.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_of_an_older_version_is_refused_by_its_version() {
        let error = Record::from_line(r#"{"journal":{"version":2}}"#).unwrap_err().to_string();
        assert!(
            error.starts_with("the journal is of version 2, and this program reads version 3"),
            "{error}"
        );
        assert!(Record::from_line(r#"{"journal":{"version":3}}"#).is_ok());
    }

    #[test]
    fn a_state_record_of_an_older_version_is_no_record() {
        // Version 2 kept assignments as `held`.
        let older = r#"{"state":{"now":0,"plan":{"generation":0,"held":{}}}}"#;
        assert!(matches!(Record::from_line(older), Err(JournalError::Cut(_))));
    }
}
