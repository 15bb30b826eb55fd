//! When bytes came over the wire, as a table: what was true, for whoever learns it from counters.
//!
//! What the leader sends is noted by who hears it, the next on the ring: what a program has handed over may wait in its
//! kernel for a long while, but what has come in was sent.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Duration;

/// Nothing is noted more often.
const STEP: u64 = Duration::from_micros(200).as_nanos() as u64;

/// A look at how much had come in by a moment, in nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Look {
    at: u64,
    bytes: u64,
}

/// Both ends of every pause are noted, so that what came between two rows came evenly.
#[derive(Debug)]
pub(crate) struct Trace<W: Write = BufWriter<File>> {
    out: W,
    noted: Option<Look>,
    last: Option<Look>,
}

impl Trace {
    pub(crate) fn create(file: &Path) -> io::Result<Self> {
        Self::new(BufWriter::new(File::create(file)?))
    }
}

impl<W: Write> Trace<W> {
    fn new(mut out: W) -> io::Result<Self> {
        writeln!(out, "time_ns,bytes")?;
        Ok(Self { out, noted: None, last: None })
    }

    /// A trace that cannot be written is no reason to stop.
    pub(crate) fn look(&mut self, at: u64, bytes: u64) {
        let look = Look { at, bytes };
        let before = self.last.replace(look);
        let Some(noted) = self.noted else { return self.note(look) };
        if bytes == noted.bytes || at.saturating_sub(noted.at) < STEP {
            return;
        }
        let ends_a_pause = |before: &Look| {
            at.saturating_sub(before.at) >= STEP || before.at.saturating_sub(noted.at) >= STEP
        };
        if let Some(before) = before.filter(|before| before.at > noted.at && ends_a_pause(before)) {
            self.note(before);
        }
        self.note(look);
    }

    fn note(&mut self, look: Look) {
        self.noted = Some(look);
        let _ = writeln!(self.out, "{},{}", look.at, look.bytes);
    }
}

impl<W: Write> Drop for Trace<W> {
    /// What came in last counts, however soon after the one before.
    fn drop(&mut self) {
        let noted = self.noted.map_or(0, |noted| noted.bytes);
        if let Some(last) = self.last.filter(|last| last.bytes > noted) {
            self.note(last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(looks: &[(u64, u64)]) -> String {
        let mut out = Vec::new();
        let mut trace = Trace::new(&mut out).unwrap();
        looks.iter().for_each(|(at_us, bytes)| trace.look(at_us * 1000, *bytes));
        drop(trace);
        String::from_utf8(out).unwrap().replace("000,", ",").replacen("time_ns,bytes\n", "", 1)
    }

    #[test]
    fn both_ends_of_a_pause_are_noted_and_little_else() {
        let looks = [(0, 0), (1001, 10), (1050, 20), (1201, 30), (5001, 30), (9001, 30), (9401, 80)];
        assert_eq!(noted(&looks), "0,0\n1001,10\n1201,30\n9001,30\n9401,80\n");
    }

    #[test]
    fn what_is_found_after_a_sleep_came_at_its_end() {
        let looks = [(0, 0), (50, 10), (11_001, 10), (11_002, 40), (11_301, 60)];
        assert_eq!(noted(&looks), "0,0\n50,10\n11001,10\n11002,40\n11301,60\n");
    }

    #[test]
    fn what_came_last_is_noted_however_soon() {
        assert_eq!(noted(&[(0, 0), (901, 10), (951, 30)]), "0,0\n901,10\n951,30\n");
    }
}
