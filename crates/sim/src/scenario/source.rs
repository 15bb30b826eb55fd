//! Files as bounded text: whatever is named, reading it costs no more than the limit.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::error::{InputError, Problem};

/// The largest scenario file. A cluster of every node and all its jobs one by one stays far below.
const LARGEST: u64 = 16 << 20;

/// Opens a file for reading, with the errors that a user can do something about.
pub(crate) fn open(path: &Path) -> Result<File, InputError> {
    let name = path.display().to_string();
    let file = File::open(path).map_err(|error| unreadable(&error).in_file(&name))?;
    match file.metadata() {
        Ok(metadata) if metadata.is_dir() => Err(Problem::whole("it is a folder").in_file(&name)),
        Ok(_) => Ok(file),
        Err(error) => Err(unreadable(&error).in_file(&name)),
    }
}

fn unreadable(error: &io::Error) -> Problem {
    match error.kind() {
        io::ErrorKind::NotFound => Problem::whole("there is no such file"),
        io::ErrorKind::PermissionDenied => Problem::whole("it may not be read by this user"),
        io::ErrorKind::IsADirectory => Problem::whole("it is a folder"),
        _ => Problem::whole(error.to_string()),
    }
}

/// All of a reader as UTF-8 text; an endless one is given up after the limit.
pub(crate) fn text(reader: impl Read, name: &str) -> Result<String, InputError> {
    let mut bytes = Vec::new();
    let read = reader.take(LARGEST + 1).read_to_end(&mut bytes);
    read.map_err(|error| unreadable(&error).in_file(name))?;
    if bytes.len() as u64 > LARGEST {
        let problem = Problem::whole(format!("it is larger than {} MiB", LARGEST >> 20));
        return Err(problem
            .with_hint("give many jobs as a trace: arrivals: {trace: jobs.csv}")
            .in_file(name));
    }
    String::from_utf8(bytes).map_err(|error| not_utf8(&error).in_file(name))
}

/// The text with one word of it, or several, replaced by others; what stands there twice might mean either.
pub(super) fn replaced(text: &str, old: &str, new: &str) -> Result<String, Problem> {
    match text.matches(old).count() {
        1 => Ok(text.replacen(old, new, 1)),
        0 => Err(Problem::whole(format!("`{old}`, which is to be replaced, does not stand in it"))),
        times => Err(Problem::whole(format!("`{old}`, which is to be replaced, stands in it {times} times"))
            .with_hint("name more of what stands around it")),
    }
}

fn not_utf8(error: &std::string::FromUtf8Error) -> Problem {
    let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
    let line = 1 + valid.iter().filter(|byte| **byte == b'\n').count() as u64;
    Problem::at(super::error::Position::line(line), "it is not UTF-8 text")
}
