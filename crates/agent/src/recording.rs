//! Counters that were written down: CSV with a header that names a column of times and one of bytes.

use std::io::BufRead;

use crate::profile::Sample;

/// The columns that may say when: their names, and how many nanoseconds their unit has.
const TIMES: [(&str, f64); 4] = [("time_s", 1e9), ("time_ms", 1e6), ("time_us", 1e3), ("time_ns", 1.0)];
const BYTES: &str = "bytes";

/// What is wrong with a recording, and in which line.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct RecordingError {
    pub line: usize,
    #[source]
    pub problem: Problem,
}

#[derive(Debug, thiserror::Error)]
pub enum Problem {
    #[error("there is no header")]
    Empty,
    #[error("the header names no time: one of time_s, time_ms, time_us, time_ns")]
    NoTime,
    #[error("the header names no column `bytes`")]
    NoBytes,
    #[error("there are {found} fields where the header has {expected}")]
    Fields { found: usize, expected: usize },
    #[error("`{0}` is not a time")]
    NotATime(String),
    #[error("`{0}` is not a number of bytes")]
    NotBytes(String),
    #[error("the time is not after that of the line before")]
    NotAfter,
    #[error("it cannot be read: {0}")]
    Read(std::io::Error),
}

/// Reads all samples of a recording.
pub fn read(text: impl BufRead) -> Result<Vec<Sample>, RecordingError> {
    let mut lines = (1..).zip(text.lines());
    let at = |line: usize| move |problem: Problem| RecordingError { line, problem };
    let (line, header) = lines.next().ok_or(Problem::Empty).map_err(at(1))?;
    let header = header.map_err(Problem::Read).map_err(at(line))?;
    let columns = Columns::of(header.trim_start_matches('\u{feff}')).map_err(at(line))?;
    let mut samples: Vec<Sample> = Vec::new();
    for (line, text) in lines {
        let text = text.map_err(Problem::Read).map_err(at(line))?;
        if text.trim().is_empty() {
            continue;
        }
        let sample = columns.sample(&text).map_err(at(line))?;
        if samples.last().is_some_and(|last| sample.at <= last.at) {
            return Err(at(line)(Problem::NotAfter));
        }
        samples.push(sample);
    }
    Ok(samples)
}

/// Where in a line time and bytes are.
struct Columns {
    count: usize,
    time: usize,
    unit: f64,
    bytes: usize,
}

impl Columns {
    fn of(header: &str) -> Result<Self, Problem> {
        let names: Vec<&str> = header.split(',').map(str::trim).collect();
        if header.trim().is_empty() {
            return Err(Problem::Empty);
        }
        let time = |name: &&str| TIMES.iter().find(|(time, _)| time == name);
        let unit = names.iter().find_map(&time).ok_or(Problem::NoTime)?.1;
        let place = |wanted: &dyn Fn(&&str) -> bool| names.iter().position(wanted);
        Ok(Self {
            count: names.len(),
            time: place(&|name| time(name).is_some()).ok_or(Problem::NoTime)?,
            unit,
            bytes: place(&|name| *name == BYTES).ok_or(Problem::NoBytes)?,
        })
    }

    fn sample(&self, line: &str) -> Result<Sample, Problem> {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        if fields.len() != self.count {
            return Err(Problem::Fields { found: fields.len(), expected: self.count });
        }
        let (time, bytes) = (fields[self.time], fields[self.bytes]);
        Ok(Sample {
            at: self.nanos(time).ok_or_else(|| Problem::NotATime(shortened(time)))?,
            bytes: bytes.parse().map_err(|_| Problem::NotBytes(shortened(bytes)))?,
        })
    }

    /// Whole nanoseconds are exact; seconds since 1970 with nine decimals are more than a number with a point can hold.
    fn nanos(&self, text: &str) -> Option<u64> {
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        let whole: u64 = whole.parse().ok()?;
        let part: f64 = if part.is_empty() { 0.0 } else { format!("0.{part}").parse().ok()? };
        whole.checked_mul(self.unit as u64)?.checked_add((part * self.unit).round() as u64)
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> String {
        read(text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn columns_may_come_in_any_order_and_units() {
        let samples =
            read(&b"interface,bytes,time_s\nm0,7,1700000000.000000001\nm0,8,1700000000.005\n"[..]).unwrap();
        let at = 1_700_000_000_000_000_000;
        assert_eq!(samples, [Sample { at: at + 1, bytes: 7 }, Sample { at: at + 5_000_000, bytes: 8 }]);
        assert_eq!(read(&b"time_ns,bytes\n12,5\n\n"[..]).unwrap(), [Sample { at: 12, bytes: 5 }]);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        assert_eq!(told(""), "line 1: there is no header");
        assert_eq!(
            told("when,bytes\n"),
            "line 1: the header names no time: one of time_s, time_ms, time_us, time_ns"
        );
        assert_eq!(told("time_s\n"), "line 1: the header names no column `bytes`");
        assert_eq!(told("time_s,bytes\n1,2\n3\n"), "line 3: there are 1 fields where the header has 2");
        assert_eq!(told("time_s,bytes\n-1,2\n"), "line 2: `-1` is not a time");
        assert_eq!(told("time_s,bytes\n1,2.5\n"), "line 2: `2.5` is not a number of bytes");
        assert_eq!(told("time_s,bytes\n1,2\n1,3\n"), "line 3: the time is not after that of the line before");
        assert_eq!(told("time_s,bytes\n99999999999,1\n"), "line 2: `99999999999` is not a time");
    }
}
