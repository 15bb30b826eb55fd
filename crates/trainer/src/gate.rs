//! A member's turn: when its iterations are to begin.
//!
//! Whoever decides about links writes `turn.json` into the member's folder, whole, and takes it away again. One member of a
//! job waits; the others wait for it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Deserialize;

/// The part of `metronome.dev/turn` that is about time.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Word {
    generation: u64,
    anchor: Timestamp,
    period_ns: u64,
    turn_ns: u64,
    hold_ns: u64,
    valid_until: Timestamp,
    #[serde(default)]
    held: Option<Held>,
    #[serde(default)]
    tolerance_ns: Option<u64>,
    #[serde(default)]
    pause_ns: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Held {
    Once,
    EveryIteration,
}

#[derive(Debug, Default)]
pub(crate) struct Gate {
    file: Option<PathBuf>,
    seen: Option<Seen>,
    word: Option<Word>,
    /// The generation for which it was held, and when, in nanoseconds since 1970.
    held: Option<(u64, i128)>,
    /// The place that the last iteration had, where each has one.
    slot: Option<i128>,
}

/// What tells one version of a file from another.
type Seen = (u64, i64, i64);

impl Gate {
    pub(crate) fn at(folder: Option<&Path>) -> Self {
        Self { file: folder.map(|folder| folder.join("turn.json")), ..Self::default() }
    }

    /// How long to wait before an iteration that could begin now.
    pub(crate) fn wait(&mut self, now: Timestamp) -> std::time::Duration {
        self.look();
        let now = now.as_nanosecond();
        let Some(word) = self.word.as_ref().filter(|word| word.is_in_force(now)) else {
            self.slot = None;
            return std::time::Duration::ZERO;
        };
        let wait = match word.held {
            Some(Held::EveryIteration) => {
                let slot = word.slot(now, self.slot);
                self.slot = Some(slot);
                slot - now
            }
            Some(Held::Once) if word.holds_again(now, self.held) => {
                let wait = word.next(now) - now;
                self.held = Some((word.generation, now + wait));
                wait
            }
            Some(Held::Once) | None => 0,
        };
        std::time::Duration::from_nanos(wait.clamp(0, i128::from(word.hold_ns)) as u64)
    }

    fn look(&mut self) {
        let Some(file) = &self.file else { return };
        let seen = fs::metadata(file).ok().map(|meta| (meta.ino(), meta.mtime(), meta.mtime_nsec()));
        if seen == self.seen {
            return;
        }
        self.seen = seen;
        let read: Option<Word> = fs::read(file).ok().and_then(|text| serde_json::from_slice(&text).ok());
        let is_older =
            |word: &Word| self.word.as_ref().is_some_and(|known| word.generation < known.generation);
        if !read.as_ref().is_some_and(is_older) {
            self.word = read;
        }
    }
}

impl Word {
    fn is_in_force(&self, now: i128) -> bool {
        self.hold_ns > 0 && self.period_ns > 0 && now < self.valid_until.as_nanosecond()
    }

    /// The first place from then on.
    fn next(&self, now: i128) -> i128 {
        let since = self.anchor.as_nanosecond() + i128::from(self.turn_ns) - now;
        now + since.rem_euclid(i128::from(self.period_ns))
    }

    /// The place of an iteration: the one after the last, unless it is late by more than half a period.
    fn slot(&self, now: i128, last: Option<i128>) -> i128 {
        let period = i128::from(self.period_ns);
        let due = last.map(|last| last + period).filter(|due| now <= due + period / 2);
        // A place of another word, or of a clock that was set, is none of ours.
        let due = due.filter(|due| *due <= now + 2 * period && self.next(*due) == *due);
        due.unwrap_or_else(|| self.next(now))
    }

    /// Whoever is held once is held again for a newer word, or when it has drifted and was left alone for long enough.
    fn holds_again(&self, now: i128, held: Option<(u64, i128)>) -> bool {
        let Some((_, at)) = held.filter(|(generation, _)| *generation >= self.generation) else {
            return true;
        };
        let ahead = self.next(now) - now;
        let off = ahead.min(i128::from(self.period_ns) - ahead);
        let drifted = self.tolerance_ns.is_some_and(|tolerance| off > i128::from(tolerance));
        drifted && now - at >= i128::from(self.pause_ns.unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i128 = 1_000_000;

    fn word(held: Held) -> Word {
        Word {
            generation: 3,
            anchor: Timestamp::from_second(1_000).unwrap(),
            period_ns: 100_000_000,
            turn_ns: 30_000_000,
            hold_ns: 100_000_000,
            valid_until: Timestamp::from_second(2_000).unwrap(),
            held: Some(held),
            tolerance_ns: Some(5_000_000),
            pause_ns: Some(1_000_000_000),
        }
    }

    /// So many milliseconds after the anchor.
    fn at(ms: i128) -> i128 {
        1_000_000 * MS + ms * MS
    }

    #[test]
    fn whoever_is_early_waits_every_time_and_whoever_is_late_goes() {
        let word = word(Held::EveryIteration);
        let slot = |ms: i128, last: Option<i128>| (word.slot(at(ms), last.map(at)) - at(0)) / MS;
        assert_eq!(slot(31, None), 130, "the first iteration waits for a place");
        assert_eq!(slot(70, Some(30)), 130, "a short one does not go twice in a period");
        assert_eq!(slot(150, Some(30)), 130, "a late one goes at once, and is due where it was");
        assert_eq!(slot(185, Some(30)), 230, "too late: the next place");
        assert_eq!(slot(150, Some(37)), 230, "a place of another word is none of ours");
    }

    #[test]
    fn who_is_held_once_is_held_again_when_it_has_drifted_and_not_too_soon() {
        let word = word(Held::Once);
        let again = |ms: i128, held| word.holds_again(at(ms), held);
        assert!(again(31, None));
        assert!(!again(133, Some((3, at(31)))), "near enough");
        assert!(!again(140, Some((3, at(31)))), "too soon");
        assert!(again(1_140, Some((3, at(31)))));
        assert!(again(133, Some((2, at(31)))), "a newer word");
        assert_eq!((word.next(at(31)) - at(31)) / MS, 99);
    }

    #[test]
    fn a_word_lapses_and_is_never_older_than_the_last() {
        let folder = tempfile::tempdir().unwrap();
        let mut gate = Gate::at(Some(folder.path()));
        let now = Timestamp::from_second(1_000).unwrap();
        assert_eq!(gate.wait(now).as_nanos(), 0, "no word");
        let write = |text: &str| {
            fs::write(folder.path().join("new"), text).unwrap();
            fs::rename(folder.path().join("new"), folder.path().join("turn.json")).unwrap();
        };
        let text = |generation: u64, turn: u64| {
            format!(
                r#"{{"generation":{generation},"anchor":"1970-01-01T00:16:40Z","periodNs":100000000,"turnNs":{turn},"class":0,
                    "holdNs":100000000,"validUntil":"1970-01-01T00:33:20Z","held":"everyIteration","follows":"bytesSent"}}"#
            )
        };
        write(&text(4, 30_000_000));
        assert_eq!(gate.wait(now).as_millis(), 30);
        write(&text(3, 20_000_000));
        let later = now + jiff::SignedDuration::from_millis(100);
        assert_eq!(gate.wait(later).as_millis(), 30, "an older word is ignored");
        assert_eq!(gate.wait(Timestamp::from_second(2_000).unwrap()).as_nanos(), 0, "it has lapsed");
        write("nonsense");
        assert_eq!(gate.wait(now).as_nanos(), 0);
        fs::remove_file(folder.path().join("turn.json")).unwrap();
        assert_eq!(gate.wait(now).as_nanos(), 0);
    }
}
