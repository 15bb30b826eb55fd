//! A CSV with named columns, plain or gzipped, read row by row with the line in every error.

use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use csv::{ErrorKind, StringRecord};
use flate2::read::MultiGzDecoder;

use super::guard::{Guard, Stop};
use crate::near::{did_you_mean, listed};
use crate::scenario::InputError;
use crate::scenario::error::{Position, Problem, quoted};
use crate::scenario::source;

const MOST_ROWS: u64 = 5_000_000;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    name: &'static str,
    required: bool,
}

impl Column {
    pub(crate) const fn required(name: &'static str) -> Self {
        Self { name, required: true }
    }

    pub(crate) const fn optional(name: &'static str) -> Self {
        Self { name, required: false }
    }
}

/// What happens to columns that nobody asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strangers {
    Refused,
    Ignored,
}

/// A row: for each column asked for its text, if there is any.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cells<'a, const N: usize> {
    pub(crate) line: u64,
    pub(crate) values: [Option<&'a str>; N],
}

pub(crate) struct Table<const N: usize> {
    file: String,
    reader: csv::Reader<Guard<Box<dyn Read>>>,
    record: StringRecord,
    places: [Option<usize>; N],
    rows: u64,
}

impl<const N: usize> fmt::Debug for Table<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("file", &self.file).field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl<const N: usize> Table<N> {
    pub(crate) fn open(path: &Path, columns: [Column; N], strangers: Strangers) -> Result<Self, InputError> {
        let file = path.display().to_string();
        let plain = decompressed(source::open(path)?)
            .map_err(|error| Problem::whole(error.to_string()).in_file(&file))?;
        let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(Guard::new(plain));
        let header = reader.headers().map_err(|error| problem(&error).in_file(&file))?;
        let places = places(header, &columns, strangers).map_err(|problem| problem.in_file(&file))?;
        Ok(Self { file, reader, record: StringRecord::new(), places, rows: 0 })
    }

    pub(crate) fn file(&self) -> &str {
        &self.file
    }

    pub(crate) fn next(&mut self) -> Result<Option<Cells<'_, N>>, InputError> {
        let more = self.reader.read_record(&mut self.record);
        if !more.map_err(|error| problem(&error).in_file(&self.file))? {
            return Ok(None);
        }
        self.rows += 1;
        if self.rows > MOST_ROWS {
            return Err(Problem::whole(format!("it has more than {MOST_ROWS} rows")).in_file(&self.file));
        }
        let line = self.record.position().map_or(0, csv::Position::line);
        let cell = |place: Option<usize>| self.record.get(place?).filter(|text| !text.is_empty());
        Ok(Some(Cells { line, values: self.places.map(cell) }))
    }

    /// Lines that hold nothing, known once all rows are read.
    pub(crate) fn blank_lines(&self) -> u64 {
        self.reader.position().line().saturating_sub(2 + self.rows)
    }
}

/// A gzipped file is known by its first two bytes, whatever it is called.
fn decompressed(file: std::fs::File) -> std::io::Result<Box<dyn Read>> {
    const GZIP: [u8; 2] = [0x1f, 0x8b];
    let mut buffered = BufReader::new(file);
    let zipped = buffered.fill_buf()?.starts_with(&GZIP);
    Ok(if zipped { Box::new(MultiGzDecoder::new(buffered)) } else { Box::new(buffered) })
}

/// Where each column stands in the header.
fn places<const N: usize>(
    header: &StringRecord,
    columns: &[Column; N],
    strangers: Strangers,
) -> Result<[Option<usize>; N], Problem> {
    let at = Position::line(1);
    let titles: Vec<&str> = header.iter().map(|title| title.trim_start_matches('\u{feff}').trim()).collect();
    if titles.iter().all(|title| title.is_empty()) {
        return Err(Problem::whole("it is empty").with_hint(required(columns)));
    }
    for (index, title) in titles.iter().enumerate() {
        if titles[..index].contains(title) {
            return Err(Problem::at(at, format!("column {} is given twice", quoted(title))));
        }
        let known = columns.iter().any(|column| column.name == *title);
        if strangers == Strangers::Refused && !known {
            let names = columns.iter().map(|column| column.name);
            let hint =
                did_you_mean(title, names.clone()).unwrap_or_else(|| format!("known are {}", listed(names)));
            return Err(Problem::at(at, format!("unknown column {}", quoted(title))).with_hint(hint));
        }
    }
    let mut places = [None; N];
    for (place, column) in places.iter_mut().zip(columns) {
        *place = titles.iter().position(|title| *title == column.name);
        if place.is_none() && column.required {
            let message = format!("column `{}` is missing", column.name);
            return Err(Problem::at(at, message).with_hint(required(columns)));
        }
    }
    Ok(places)
}

fn required(columns: &[Column]) -> String {
    let names: Vec<&str> =
        columns.iter().filter(|column| column.required).map(|column| column.name).collect();
    format!("the first line is a header with {}", names.join(","))
}

fn problem(error: &csv::Error) -> Problem {
    match error.kind() {
        ErrorKind::Io(error) => match error.get_ref().and_then(|source| source.downcast_ref::<Stop>()) {
            Some(stop) => match stop.line() {
                Some(line) => Problem::at(Position::line(line), stop.to_string()),
                None => Problem::whole(stop.to_string()),
            },
            None if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                Problem::whole("it ends in the middle of its compressed data")
            }
            None => Problem::whole(error.to_string()),
        },
        ErrorKind::UnequalLengths { pos, expected_len, len } => {
            let message = format!("the row has {len} fields instead of {expected_len}");
            pos.as_ref().map_or_else(
                || Problem::whole(message.clone()),
                |pos| Problem::at(Position::line(pos.line()), message.clone()),
            )
        }
        ErrorKind::Utf8 { pos, .. } => {
            let line = pos.as_ref().map_or(1, csv::Position::line);
            Problem::at(Position::line(line), "it is not UTF-8 text")
        }
        _ => Problem::whole(error.to_string()),
    }
}
