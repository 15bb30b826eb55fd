//! Tuning: every number on which a decision depends, in one typed table.
//!
//! An entry belongs here if another value of it gives another decision. Each room of the core has one file with its
//! entries ([`room`] declares them), so that `policy.tuning.traffic.prediction_tolerance` is a field and the table, the
//! reference page and the names in documents follow from the declaration. A [`Policy`](crate::model::policy::Policy)
//! carries the whole table, and code reads its numbers from the policy or the snapshot, never from a global.
//!
//! Four kinds of number are not entries: sizes of arrays, conversions between units, mathematical constants, and what an
//! agent and the scheduler must agree on (a wire protocol). They stay constants, each with its reason.
//!
//! An entry tells where its value comes from ([`Origin`]). A decision record states the values that it sets in a table
//! `| tuning entry | value |`; a test holds both together.

mod deadlines;
mod decide;
mod engine;
mod model;
mod network;
mod observe;
mod room;
mod traffic;
mod value;

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use deadlines::DeadlinesTuning;
pub use decide::DecideTuning;
pub use engine::EngineTuning;
pub use model::ModelTuning;
pub use network::NetworkTuning;
pub use observe::ObserveTuning;
pub use traffic::TrafficTuning;
pub use value::Value;

/// One number of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The name in documents and decision records, unique in the whole table: `minPreemptionGain`.
    pub name: String,
    /// The room of the core that reads the entry.
    pub room: &'static str,
    /// The value in this table, as text that [`Tuning::set`] accepts.
    pub value: String,
    /// The value without overrides.
    pub default: String,
    /// The range of accepted values.
    pub least: String,
    pub most: String,
    /// The kind of value: "a number", "a whole number", "a duration" or "a share".
    pub kind: &'static str,
    /// The unit of the value.
    pub unit: &'static str,
    /// What the number means, as one sentence.
    pub meaning: String,
    pub origin: Origin,
}

impl Entry {
    pub fn is_overridden(&self) -> bool {
        self.value != self.default
    }
}

/// Where the default of an entry comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A decision record of `docs/design`, by its number. The record states the value.
    Decision(u16),
    /// An experiment that was run to find the value, by its folder in `experiments`.
    Experiment(&'static str),
    /// A publication whose method the entry belongs to.
    Published(&'static str),
    /// The value bounds the work of a search. The text names what is bounded; results degrade slowly below it.
    SearchBudget(&'static str),
    /// The value was set by judgement and no experiment compares others. The text is the reason.
    Judgement(&'static str),
}

/// Why a value was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TuningError {
    #[error("there is no tuning entry `{0}`")]
    UnknownName(String),
    #[error("`{text}` is not {kind} from {least} to {most}")]
    BadValue { text: String, kind: &'static str, least: String, most: String },
}

/// Declares the table as its rooms, in the order in which the reference page lists them.
macro_rules! tuning {
    ($($room:ident: $kind:ident,)*) => {
        /// The table: the entries of all rooms.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Tuning {
            $(pub $room: $kind,)*
        }

        impl Tuning {
            /// The table without overrides.
            pub const DEFAULT: Self = Self { $($room: $kind::DEFAULT,)* };

            /// All entries, room by room.
            pub fn entries(&self) -> Vec<Entry> {
                let mut entries = Vec::new();
                $(entries.extend(self.$room.entries(stringify!($room)));)*
                entries
            }

            /// Overrides the entry of this name.
            pub fn set(&mut self, name: &str, text: &str) -> Result<(), TuningError> {
                $(if let Some(result) = self.$room.set(name, text) {
                    return result;
                })*
                Err(TuningError::UnknownName(name.to_owned()))
            }
        }
    };
}

tuning! {
    decide: DecideTuning,
    traffic: TrafficTuning,
    deadlines: DeadlinesTuning,
    observe: ObserveTuning,
    engine: EngineTuning,
    network: NetworkTuning,
    model: ModelTuning,
}

impl Tuning {
    /// For serde: whether no entry is overridden. A policy without overrides is written as before there was a table.
    pub fn is_default(&self) -> bool {
        *self == Self::DEFAULT
    }

    /// Entries that are overridden, with their values.
    fn overrides(&self) -> BTreeMap<String, String> {
        let overridden = self.entries().into_iter().filter(Entry::is_overridden);
        overridden.map(|entry| (entry.name, entry.value)).collect()
    }
}

impl Default for Tuning {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// A map of the overridden entries alone.
impl Serialize for Tuning {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.overrides().serialize(to)
    }
}

impl<'de> Deserialize<'de> for Tuning {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut tuning = Self::DEFAULT;
        for (name, text) in BTreeMap::<String, String>::deserialize(from)? {
            tuning.set(&name, &text).map_err(serde::de::Error::custom)?;
        }
        Ok(tuning)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_has_a_name_of_its_own_a_meaning_and_a_unit() {
        let entries = Tuning::DEFAULT.entries();
        let names: std::collections::BTreeSet<&str> =
            entries.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names.len(), entries.len());
        for Entry { name, meaning, unit, .. } in &entries {
            assert!(meaning.ends_with('.') && !unit.is_empty(), "{name}: {meaning} [{unit}]");
        }
    }

    #[test]
    fn every_default_can_be_set_by_name_and_lies_in_its_range() {
        let mut tuning = Tuning::DEFAULT;
        for entry in Tuning::DEFAULT.entries() {
            assert_eq!(tuning.set(&entry.name, &entry.default), Ok(()), "{entry:?}");
            assert_eq!(tuning.set(&entry.name, &entry.least), Ok(()), "{entry:?}");
            assert_eq!(tuning.set(&entry.name, &entry.most), Ok(()), "{entry:?}");
            assert_eq!(tuning.set(&entry.name, &entry.default), Ok(()), "{entry:?}");
        }
        assert_eq!(tuning, Tuning::DEFAULT, "texts are exact");
    }

    #[test]
    fn an_unknown_name_and_a_value_out_of_range_are_refused_and_change_nothing() {
        let mut tuning = Tuning::DEFAULT;
        let unknown = TuningError::UnknownName("prediction_tolerance".to_owned());
        assert_eq!(tuning.set("prediction_tolerance", "0.1"), Err(unknown));
        for text in ["-0.1", "1.5", "NaN", "", "5ms", "half"] {
            let refused = tuning.set("predictionTolerance", text).unwrap_err();
            assert_eq!(refused.to_string(), format!("`{text}` is not a number from 0 to 1"));
        }
        assert!(tuning.is_default());
    }

    #[test]
    fn a_table_is_written_as_its_overrides_and_read_again() {
        assert_eq!(serde_json::to_string(&Tuning::DEFAULT).unwrap(), "{}");
        let mut tuning = Tuning::DEFAULT;
        tuning.set("predictionTolerance", "0.02").unwrap();
        let written = serde_json::to_string(&tuning).unwrap();
        assert_eq!(written, r#"{"predictionTolerance":"0.02"}"#);
        assert_eq!(serde_json::from_str::<Tuning>(&written).unwrap(), tuning);
        let refused = serde_json::from_str::<Tuning>(r#"{"tolerance":"1"}"#).unwrap_err();
        assert!(refused.to_string().contains("there is no tuning entry `tolerance`"), "{refused}");
    }
}
