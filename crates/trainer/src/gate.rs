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
        let wait = self.word.as_ref().and_then(|word| word.wait(now, self.held));
        let Some((wait, generation)) = wait else { return std::time::Duration::ZERO };
        self.held = Some((generation, now + i128::from(wait)));
        std::time::Duration::from_nanos(wait)
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
    /// So many nanoseconds, and the generation that says so; nothing where nobody is held.
    fn wait(&self, now: i128, held: Option<(u64, i128)>) -> Option<(u64, u64)> {
        let kind = self.held.filter(|_| self.hold_ns > 0 && self.period_ns > 0)?;
        if now >= self.valid_until.as_nanosecond() {
            return None;
        }
        let period = i128::from(self.period_ns);
        let since = (now - self.anchor.as_nanosecond() - i128::from(self.turn_ns)).rem_euclid(period);
        let until_next = if since == 0 { 0 } else { period - since };
        let is_held = match kind {
            // Whoever is late has begun its place already.
            Held::EveryIteration => since >= period - since,
            Held::Once => match held {
                Some((generation, _)) if generation >= self.generation => {
                    let off = since.min(until_next);
                    let drifted = self.tolerance_ns.is_some_and(|tolerance| off > i128::from(tolerance));
                    let rested = |at: i128| now - at >= i128::from(self.pause_ns.unwrap_or(0));
                    drifted && held.is_some_and(|(_, at)| rested(at))
                }
                _ => true,
            },
        };
        let wait = until_next.min(i128::from(self.hold_ns)) as u64;
        (is_held && wait > 0).then_some((wait, self.generation))
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
        let wait = |ms: i128| word.wait(at(ms), Some((3, 0))).map(|(wait, _)| i128::from(wait) / MS);
        assert_eq!(
            [0, 29, 30, 31, 79, 81, 129].map(wait),
            [Some(30), Some(1), None, None, None, Some(49), Some(1)]
        );
    }

    #[test]
    fn who_is_held_once_is_held_again_when_it_has_drifted_and_not_too_soon() {
        let word = word(Held::Once);
        let wait = |ms: i128, held| word.wait(at(ms), held).map(|(wait, _)| i128::from(wait) / MS);
        assert_eq!(wait(31, None), Some(99), "until the next place, however late");
        assert_eq!(wait(133, Some((3, at(31)))), None, "near enough");
        assert_eq!(wait(140, Some((3, at(31)))), None, "too soon");
        assert_eq!(wait(1_140, Some((3, at(31)))), Some(90));
        assert_eq!(wait(133, Some((2, at(31)))), Some(97), "a newer word");
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
        assert_eq!(gate.wait(now).as_millis(), 30, "an older word is ignored");
        assert_eq!(gate.wait(Timestamp::from_second(2_000).unwrap()).as_nanos(), 0, "it has lapsed");
        write("nonsense");
        assert_eq!(gate.wait(now).as_nanos(), 0);
        fs::remove_file(folder.path().join("turn.json")).unwrap();
        assert_eq!(gate.wait(now).as_nanos(), 0);
    }
}
