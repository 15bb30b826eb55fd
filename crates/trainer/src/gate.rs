//! A member's turn: when its iterations are to begin.
//!
//! Whoever decides about links writes `turn.json` into the member's folder, whole, and takes it away again. One member of a
//! job waits; the others wait for it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use metronome_core::model::units::{Duration as Span, Moment};
use metronome_core::traffic::{Held, TrafficDirective};

#[derive(Debug, Default)]
pub(crate) struct Gate {
    file: Option<PathBuf>,
    seen: Option<Seen>,
    word: Option<TrafficDirective>,
    /// The generation for which it was held, and when.
    held: Option<(u64, Moment)>,
    /// The place that the last iteration had, where each has one.
    slot: Option<Moment>,
}

/// What tells one version of a file from another.
type Seen = (u64, i64, i64);

impl Gate {
    pub(crate) fn at(folder: Option<&Path>) -> Self {
        Self { file: folder.map(|folder| folder.join("turn.json")), ..Self::default() }
    }

    /// How long to wait before an iteration that could begin now.
    pub(crate) fn wait(&mut self, now: Moment) -> Duration {
        self.look();
        let Some(word) = self.word.as_ref().filter(|word| word.is_valid(now)) else {
            self.slot = None;
            return Duration::ZERO;
        };
        let until = match word.holds() {
            Some(Held::EveryIteration) => *self.slot.insert(slot(word, now, self.slot)),
            Some(Held::Once) if is_to_be_held_once(word, now, self.held) => {
                let place = word.next_place(now);
                self.held = Some((word.generation, place));
                place
            }
            Some(Held::Once) | None => now,
        };
        Duration::from_nanos(until.since(now).min(word.hold).0)
    }

    fn look(&mut self) {
        let Some(file) = &self.file else { return };
        let seen = fs::metadata(file).ok().map(|meta| (meta.ino(), meta.mtime(), meta.mtime_nsec()));
        if seen == self.seen {
            return;
        }
        self.seen = seen;
        let read: Option<TrafficDirective> =
            fs::read(file).ok().and_then(|text| serde_json::from_slice(&text).ok());
        let is_older = |word: &TrafficDirective| {
            self.word.as_ref().is_some_and(|known| word.generation < known.generation)
        };
        if !read.as_ref().is_some_and(is_older) {
            self.word = read;
        }
    }
}

/// The place of an iteration: the one after the last, unless it is late by more than half a period.
fn slot(word: &TrafficDirective, now: Moment, last: Option<Moment>) -> Moment {
    let period = word.period;
    let due = last.map(|last| last + period).filter(|due| now <= *due + Span(period.0 / 2));
    // A place of another word, or of a clock that was set, is none of ours.
    let due = due.filter(|due| *due <= now + period.times(2) && word.next_place(*due) == *due);
    due.unwrap_or_else(|| word.next_place(now))
}

/// Whoever is held once is held again for a newer word, or when it has drifted and was left alone for long enough.
fn is_to_be_held_once(word: &TrafficDirective, now: Moment, held: Option<(u64, Moment)>) -> bool {
    match held.filter(|(generation, _)| *generation >= word.generation) {
        Some((_, at)) => word.is_held_again(now, at),
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn word(held: Held) -> TrafficDirective {
        let lane = metronome_core::traffic::TrafficPolicy::default();
        TrafficDirective {
            period: Span(100 * MS),
            turn: Span(30 * MS),
            hold: Span(100 * MS),
            held: Some(held),
            tolerance: Some(Span(5 * MS)),
            pause: Some(Span::SECOND),
            ..TrafficDirective::of(lane, at(0), Moment::EPOCH).said(3, at(0))
        }
    }

    /// So many milliseconds after the anchor.
    fn at(ms: u64) -> Moment {
        Moment(1_000_000 * MS + ms * MS)
    }

    #[test]
    fn whoever_is_early_waits_every_time_and_whoever_is_late_goes() {
        let word = word(Held::EveryIteration);
        let slot = |ms: u64, last: Option<u64>| slot(&word, at(ms), last.map(at)).since(at(0)).0 / MS;
        assert_eq!(slot(31, None), 130, "the first iteration waits for a place");
        assert_eq!(slot(70, Some(30)), 130, "a short one does not go twice in a period");
        assert_eq!(slot(150, Some(30)), 130, "a late one goes at once, and is due where it was");
        assert_eq!(slot(185, Some(30)), 230, "too late: the next place");
        assert_eq!(slot(150, Some(37)), 230, "a place of another word is none of ours");
    }

    #[test]
    fn who_is_held_once_is_held_again_when_it_has_drifted_and_not_too_soon() {
        let word = word(Held::Once);
        let again = |ms: u64, held| is_to_be_held_once(&word, at(ms), held);
        assert!(again(31, None));
        assert!(!again(133, Some((3, at(31)))), "near enough");
        assert!(!again(140, Some((3, at(31)))), "too soon");
        assert!(again(1_140, Some((3, at(31)))));
        assert!(again(133, Some((2, at(31)))), "a newer word");
    }

    #[test]
    fn a_word_lapses_and_is_never_older_than_the_last() {
        let folder = tempfile::tempdir().unwrap();
        let mut gate = Gate::at(Some(folder.path()));
        let now = at(0);
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
        let later = at(100);
        assert_eq!(gate.wait(later).as_millis(), 30, "an older word is ignored");
        assert_eq!(gate.wait(at(1_000_000)).as_nanos(), 0, "it has lapsed");
        write("nonsense");
        assert_eq!(gate.wait(now).as_nanos(), 0);
        fs::remove_file(folder.path().join("turn.json")).unwrap();
        assert_eq!(gate.wait(now).as_nanos(), 0);
    }
}
