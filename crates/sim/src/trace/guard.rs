//! A reader that stops before memory does: whole files, single lines and quoted fields are bounded.

use std::fmt;
use std::io::{self, Read};

/// Decompressed; a bomb is stopped here.
const LARGEST_FILE: u64 = 1 << 30;
const LONGEST_LINE: usize = 64 << 10;

/// Why reading stopped, as the source of an `io::Error`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    FileTooLarge,
    LineTooLong {
        line: u64,
    },
    /// A field that is opened by a quote and not closed would take the rest of the file.
    OpenQuote {
        line: u64,
    },
}

impl Stop {
    pub(crate) const fn line(self) -> Option<u64> {
        match self {
            Self::FileTooLarge => None,
            Self::LineTooLong { line } | Self::OpenQuote { line } => Some(line),
        }
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FileTooLarge => write!(f, "it is larger than {} MiB", LARGEST_FILE >> 20),
            Self::LineTooLong { .. } => write!(f, "the line is longer than {} KiB", LONGEST_LINE >> 10),
            Self::OpenQuote { .. } => f.write_str("a quoted field does not end on its line"),
        }
    }
}

impl std::error::Error for Stop {}

pub(crate) struct Guard<R> {
    inner: R,
    line: u64,
    total: u64,
    line_length: usize,
    in_quotes: bool,
}

impl<R> fmt::Debug for Guard<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").field("line", &self.line).field("total", &self.total).finish_non_exhaustive()
    }
}

impl<R> Guard<R> {
    pub(crate) fn new(inner: R) -> Self {
        Self { inner, line: 1, total: 0, line_length: 0, in_quotes: false }
    }

    fn watch(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        self.total += bytes.len() as u64;
        if self.total > LARGEST_FILE {
            return Err(Stop::FileTooLarge);
        }
        for byte in bytes {
            match byte {
                b'\n' if self.in_quotes => return Err(Stop::OpenQuote { line: self.line }),
                b'\n' => {
                    self.line += 1;
                    self.line_length = 0;
                }
                _ => {
                    self.in_quotes ^= *byte == b'"';
                    self.line_length += 1;
                    if self.line_length > LONGEST_LINE {
                        return Err(Stop::LineTooLong { line: self.line });
                    }
                }
            }
        }
        Ok(())
    }
}

impl<R: Read> Read for Guard<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.watch(&buffer[..count]).map_err(|stop| io::Error::new(io::ErrorKind::InvalidData, stop))?;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stop(reader: impl Read) -> Option<Stop> {
        let mut guard = Guard::new(reader);
        let error = io::copy(&mut guard, &mut io::sink()).err()?;
        error.get_ref().and_then(|source| source.downcast_ref::<Stop>()).copied()
    }

    #[test]
    fn an_endless_line_is_given_up() {
        assert_eq!(stop(io::repeat(b'a')), Some(Stop::LineTooLong { line: 1 }));
        assert_eq!(stop(&b"a\n\"b\nc\n"[..]), Some(Stop::OpenQuote { line: 2 }));
        assert_eq!(stop(&b"a,\"b\"\"c\"\n"[..]), None);
    }

    #[test]
    fn an_endless_file_is_given_up() {
        assert_eq!(stop(io::repeat(b'\n')), Some(Stop::FileTooLarge));
    }
}
