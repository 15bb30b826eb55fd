//! How long each iteration took, as a table: what was true, for whoever compares.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use metronome_core::model::units::Moment;

/// One iteration as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Took {
    pub(crate) began: Moment,
    /// Before it began it was held for so long.
    pub(crate) held: Duration,
    /// From its beginning to the end of compute, of the exchange, and of all.
    pub(crate) computed: Duration,
    pub(crate) exchanged: Duration,
    pub(crate) whole: Duration,
}

#[derive(Debug)]
pub(crate) struct Record {
    out: BufWriter<File>,
    flushed: Instant,
}

impl Record {
    /// Goes on behind what an earlier start has written. A last line that was cut off by a kill is dropped, or the next one
    /// would read as its end.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let written = fs::read(path).unwrap_or_default();
        let whole = written.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        let file = File::options().create(true).append(true).open(path)?;
        if whole < written.len() {
            file.set_len(whole as u64)?;
        }
        let is_new = whole == 0;
        let mut out = BufWriter::new(file);
        if is_new {
            writeln!(out, "iteration,began_ns,held_ns,computed_ns,exchanged_ns,whole_ns")?;
        }
        Ok(Self { out, flushed: Instant::now() })
    }

    /// A record that cannot be written is no reason to stop.
    pub(crate) fn note(&mut self, iteration: u64, took: &Took) {
        let Took { began: Moment(began), held, computed, exchanged, whole } = took;
        let [held, computed, exchanged, whole] = [held, computed, exchanged, whole].map(Duration::as_nanos);
        let _ = writeln!(self.out, "{iteration},{began},{held},{computed},{exchanged},{whole}");
        if self.flushed.elapsed() > Duration::from_millis(500) {
            self.flush();
        }
    }

    pub(crate) fn flush(&mut self) {
        self.flushed = Instant::now();
        let _ = self.out.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_was_cut_off_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("iterations.csv");
        let took = Took {
            began: Moment(7),
            held: Duration::ZERO,
            computed: Duration::ZERO,
            exchanged: Duration::ZERO,
            whole: Duration::ZERO,
        };
        let mut record = Record::open(&path).unwrap();
        record.note(0, &took);
        record.flush();
        let mut text = fs::read_to_string(&path).unwrap();
        text.push('1');
        fs::write(&path, text).unwrap();
        let mut record = Record::open(&path).unwrap();
        record.note(1, &took);
        record.flush();
        let text = fs::read_to_string(&path).unwrap();
        let rows: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(rows, ["0,7,0,0,0,0", "1,7,0,0,0,0"]);
    }
}
