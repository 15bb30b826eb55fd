//! What was decided for a job on links, as pods carry it: see `docs/guide/network.md`, "What pods are told".

use jiff::Timestamp;
use metronome_core::lane::Follows;
use serde::Deserialize;
use serde_json::Value;

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Word {
    pub generation: u64,
    pub anchor: Timestamp,
    pub period_ns: u64,
    pub turn_ns: u64,
    #[serde(default)]
    pub class: u8,
    #[serde(default)]
    pub hold_ns: u64,
    pub valid_until: Timestamp,
    #[serde(default)]
    pub held: Option<Held>,
    #[serde(default)]
    pub tolerance_ns: Option<u64>,
    #[serde(default)]
    pub pause_ns: Option<u64>,
    #[serde(default)]
    pub weight: Option<u32>,
    #[serde(default)]
    pub follows: Follows,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Held {
    Once,
    EveryIteration,
}

impl Word {
    pub fn read(word: &Value) -> Result<Self, serde_json::Error> {
        Self::deserialize(word)
    }

    /// Whether it still counts: it lapses, should whoever said it be gone.
    pub fn is_valid(&self, now: u64) -> bool {
        i128::from(now) < self.valid_until.as_nanosecond()
    }

    /// Whether anybody is to be held by it.
    pub fn holds(&self) -> Option<Held> {
        self.held.filter(|_| self.hold_ns > 0 && self.period_ns > 0)
    }

    /// How far a moment is after the place before it, in nanoseconds.
    pub fn after_its_place(&self, at: u64) -> u64 {
        let first = self.anchor.as_nanosecond() + i128::from(self.turn_ns);
        (i128::from(at) - first).rem_euclid(i128::from(self.period_ns.max(1))) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_of_a_pod_is_read() {
        let text = serde_json::json!({
            "generation": 12884901890_u64, "anchor": "2026-11-16T12:00:00.123456789Z", "periodNs": 214000000,
            "turnNs": 90000000, "class": 2, "holdNs": 214000000, "validUntil": "2026-11-16T12:15:00.123456789Z",
            "held": "everyIteration", "follows": "bytesSent"
        });
        let word = Word::read(&text).unwrap();
        assert_eq!((word.holds(), word.follows), (Some(Held::EveryIteration), Follows::BytesSent));
        let anchor = word.anchor.as_nanosecond() as u64;
        assert_eq!(word.after_its_place(anchor + 90_000_001), 1);
        assert_eq!(word.after_its_place(anchor + 90_000_000 + 3 * 214_000_000), 0);
        assert_eq!(word.after_its_place(anchor), 124_000_000);
        assert!(word.is_valid(anchor) && !word.is_valid(anchor + 901_000_000_000));
    }
}
