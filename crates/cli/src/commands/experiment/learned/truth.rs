//! What a job did in fact, as its trainers have noted it.

use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;

use metronome_agent::profile::{Sample, Sending};
use metronome_agent::recording;

use crate::failure::Failure;

#[derive(Debug)]
pub(super) struct Truth {
    /// When each iteration began, in nanoseconds since 1970.
    began: Vec<u64>,
    /// What had come over the wire by when.
    heard: Vec<Sample>,
}

/// What was true of the iterations between two moments.
#[derive(Debug)]
pub(super) struct Stretch {
    /// The mean length of an iteration, in nanoseconds.
    pub(super) period: f64,
    pub(super) sending: Sending,
}

impl Truth {
    /// Of the job whose iterations are in this table, with its bytes in the table beside.
    pub(super) fn read(iterations: &Path) -> Result<Self, Failure> {
        let cannot = |path: &Path| Failure::world(format!("read {}", path.display()));
        let table = fs::read_to_string(iterations).map_err(|error| cannot(iterations).because(&error))?;
        let began = table.lines().skip(1).filter_map(|line| line.split(',').nth(1)?.parse().ok()).collect();
        let bytes = iterations.with_file_name("heard.csv");
        let file = File::open(&bytes).map_err(|error| cannot(&bytes).because(&error))?;
        let heard = recording::read(BufReader::new(file)).map_err(|error| cannot(&bytes).because(&error))?;
        Ok(Self { began, heard })
    }

    /// None where no iteration lies between the two.
    pub(super) fn between(&self, [from, until]: [u64; 2]) -> Option<Stretch> {
        let first = self.began.partition_point(|began| *began < from);
        let last = self.began.partition_point(|began| *began <= until);
        let began = self.began.get(first..last).filter(|began| began.len() > 1)?;
        let period = (began[began.len() - 1] - began[0]) as f64 / (began.len() - 1) as f64;
        let first_bytes: Vec<u64> = (first..last).map(|iteration| self.first_byte(iteration)).collect();
        Some(Stretch { period, sending: self.sending(&first_bytes) })
    }

    /// When an iteration began to send. All of them send the same, so whoever is late with the end of one is not taken for
    /// the beginning of the next.
    fn first_byte(&self, iteration: usize) -> u64 {
        let all = self.heard.last().map_or(0, |last| last.bytes);
        let before = iteration as u64 * (all / self.began.len() as u64);
        let after = self.heard.partition_point(|sample| sample.bytes <= before);
        self.heard.get(after.saturating_sub(1)).map_or(0, |sample| sample.at)
    }

    /// Every iteration from its own first byte to that of the next, as profiles do not say more.
    fn sending(&self, began: &[u64]) -> Sending {
        let mut sending = Sending::default();
        let whole = began.iter().copied().zip(began.iter().copied().skip(1));
        for (begin, end) in whole.filter(|(begin, end)| begin < end) {
            let place = |at: u64| (at - begin) as f64 / (end - begin) as f64;
            let first = self.heard.partition_point(|sample| sample.at <= begin).saturating_sub(1);
            let steps = self.heard[first..].windows(2).take_while(|step| step[0].at < end);
            for step in steps {
                let (from, to) = (step[0].at.max(begin), step[1].at.clamp(begin, end));
                let bytes = step[1].bytes.saturating_sub(step[0].bytes) as f64;
                let part = to.saturating_sub(from) as f64 / (step[1].at - step[0].at) as f64;
                if bytes * part > 0.0 {
                    sending.add(place(from)..place(to), bytes * part);
                }
            }
        }
        sending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Iterations of 100, which send 30 bytes from 20 to 50; one of them is longer.
    fn truth() -> (tempfile::TempDir, Truth) {
        let folder = tempfile::tempdir().unwrap();
        let began = [1000, 1100, 1200, 1400, 1500];
        let (mut table, mut heard) = (String::from("iteration,began_ns\n"), String::from("time_ns,bytes\n"));
        for (iteration, began) in began.iter().enumerate() {
            table += &format!("{iteration},{began}\n");
            let sent = iteration * 30;
            heard += &format!("{},{sent}\n{},{}\n", began + 20, began + 50, sent + 30);
        }
        fs::write(folder.path().join("iterations.csv"), table).unwrap();
        fs::write(folder.path().join("heard.csv"), heard).unwrap();
        let truth = Truth::read(&folder.path().join("iterations.csv")).unwrap();
        (folder, truth)
    }

    #[test]
    fn periods_and_bytes_are_those_of_iterations_in_between() {
        let (_folder, truth) = truth();
        let early = truth.between([999, 1250]).unwrap();
        assert!((early.period - 100.0).abs() < 1e-9);
        let mut expected = Sending::default();
        expected.add(0.2..0.5, 1.0);
        assert!(early.sending.displacement(&expected) < 0.003);
        assert!((truth.between([0, 9999]).unwrap().period - 125.0).abs() < 1e-9);
        assert!(truth.between([1101, 1250]).is_none(), "one beginning is no iteration");
    }

    #[test]
    fn what_was_not_noted_is_said() {
        let (folder, _) = truth();
        fs::remove_file(folder.path().join("heard.csv")).unwrap();
        assert!(Truth::read(&folder.path().join("iterations.csv")).is_err());
    }
}
