//! How long each iteration took, as a table: what was true, for whoever compares.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use metronome_core::units::Moment;

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
    /// Goes on behind what an earlier start has written.
    pub(crate) fn open(file: &Path) -> io::Result<Self> {
        let file = File::options().create(true).append(true).open(file)?;
        let is_new = file.metadata()?.len() == 0;
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
