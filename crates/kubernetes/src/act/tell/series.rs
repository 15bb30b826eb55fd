//! Which tellings are the same said again. The first becomes an event; the rest become its count, written now and
//! then, and once more when the series has ended.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::bucket::{Bucket, Limit};
use crate::deed::{About, EventReason, Telling};

/// A series has ended when nothing was added to it for so long.
const WINDOW: Duration = Duration::from_secs(360);
/// The count of a series is written at most so often, and not before its event surely is.
const SPACING: Duration = Duration::from_secs(10);
/// New events about one object.
const PER_OBJECT: Limit = Limit { per_second: 1.0 / 60.0, burst: 10 };
/// Objects remembered at once. Beyond, all is forgotten, and what is said again becomes new events.
const OBJECTS: usize = 50_000;

#[derive(Debug, Default)]
pub(in crate::act) struct Series(HashMap<Arc<str>, Object>);

#[derive(Debug)]
struct Object {
    bucket: Bucket,
    runs: HashMap<Sort, Run>,
}

/// What makes two tellings the same: numbers in them may differ.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Sort {
    reason: EventReason,
    words: String,
}

#[derive(Debug)]
struct Run {
    first: Telling,
    name: String,
    count: u32,
    written: u32,
    written_at: Instant,
    heard_at: Instant,
}

/// What is to be written for a telling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Write {
    New,
    Count { name: String, count: u32 },
    Nothing,
    TooMany,
}

impl Series {
    /// `name` is what a new event would be called.
    pub(super) fn hear(&mut self, telling: &Telling, name: &str, now: Instant) -> Write {
        // Said once for each pod by nature: not worth remembering.
        if telling.reason == EventReason::Scheduled {
            return Write::New;
        }
        if self.0.len() >= OBJECTS {
            self.0.clear();
        }
        let object = self.0.entry(telling.uid().clone()).or_insert_with(|| Object::new(now));
        object.hear(telling, name, now)
    }

    /// Forgets what has ended; returns the events whose last count is yet to be written.
    pub(super) fn sweep(&mut self, now: Instant) -> Vec<(Telling, String, u32)> {
        let mut unwritten = Vec::new();
        for object in self.0.values_mut() {
            let ended = object.runs.extract_if(|_, run| now - run.heard_at > WINDOW);
            let ended = ended.map(|(_, run)| run).filter(|run| run.count > run.written);
            unwritten.extend(ended.map(|run| (run.first, run.name, run.count)));
        }
        self.0.retain(|_, object| !object.runs.is_empty());
        unwritten
    }
}

impl Object {
    fn new(now: Instant) -> Self {
        Self { bucket: Bucket::new(PER_OBJECT, now), runs: HashMap::new() }
    }

    fn hear(&mut self, telling: &Telling, name: &str, now: Instant) -> Write {
        let sort = Sort::of(telling);
        if let Some(run) = self.runs.get_mut(&sort) {
            return run.again(now);
        }
        if !self.bucket.take(now) {
            return Write::TooMany;
        }
        let (first, name) = (telling.clone(), name.to_owned());
        self.runs.insert(sort, Run { first, name, count: 1, written: 1, written_at: now, heard_at: now });
        Write::New
    }
}

impl Run {
    fn again(&mut self, now: Instant) -> Write {
        self.count += 1;
        self.heard_at = now;
        if now - self.written_at < SPACING {
            return Write::Nothing;
        }
        (self.written, self.written_at) = (self.count, now);
        Write::Count { name: self.name.clone(), count: self.count }
    }
}

impl Sort {
    fn of(telling: &Telling) -> Self {
        let words = telling.message.chars().filter(|letter| !letter.is_ascii_digit()).collect();
        Self { reason: telling.reason, words }
    }
}

impl Telling {
    fn uid(&self) -> &Arc<str> {
        match &self.about {
            About::Pod(pod) => &pod.uid,
            About::Object(group) => &group.uid,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deed::PodRef;

    fn telling(uid: &str, reason: EventReason, message: &str) -> Telling {
        let pod = PodRef { namespace: "a".into(), name: "one".into(), uid: uid.into(), version: "1".into() };
        Telling { about: About::Pod(pod), reason, message: message.into() }
    }

    fn failed(message: &str) -> Telling {
        telling("u", EventReason::FailedScheduling, message)
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn the_same_with_other_numbers_is_counted_now_and_then() {
        let (mut series, now) = (Series::default(), Instant::now());
        assert_eq!(series.hear(&failed("8 needed, 3 free"), "e1", now), Write::New);
        assert_eq!(series.hear(&failed("8 needed, 4 free"), "e2", now + SECOND), Write::Nothing);
        let count = Write::Count { name: "e1".into(), count: 3 };
        assert_eq!(series.hear(&failed("8 needed, 5 free"), "e3", now + 10 * SECOND), count);
        assert_eq!(series.hear(&failed("8 needed, 5 free"), "e4", now + 11 * SECOND), Write::Nothing);
    }

    #[test]
    fn the_last_count_is_written_when_the_series_has_ended() {
        let (mut series, now) = (Series::default(), Instant::now());
        series.hear(&failed("no room"), "e1", now);
        series.hear(&failed("no room"), "e2", now + SECOND);
        assert_eq!(series.sweep(now + WINDOW), []);
        assert_eq!(series.sweep(now + WINDOW + 2 * SECOND), [(failed("no room"), "e1".into(), 2)]);
        assert_eq!(series.hear(&failed("no room"), "e3", now + 2 * WINDOW), Write::New);
    }

    #[test]
    fn other_words_other_reasons_and_other_objects_are_other_events() {
        let (mut series, now) = (Series::default(), Instant::now());
        for telling in [
            failed("no room"),
            failed("no quota"),
            telling("u", EventReason::Preempted, "no room"),
            telling("v", EventReason::FailedScheduling, "no room"),
        ] {
            assert_eq!(series.hear(&telling, "e", now), Write::New);
        }
    }

    #[test]
    fn one_object_cannot_flood_and_others_are_heard() {
        let (mut series, now) = (Series::default(), Instant::now());
        let letters = ('a'..='z').map(|letter| failed(&letter.to_string()));
        let written = letters.filter(|telling| series.hear(telling, "e", now) == Write::New).count();
        assert_eq!(written, 10);
        assert_eq!(series.hear(&telling("v", EventReason::FailedScheduling, "a"), "e", now), Write::New);
    }
}
