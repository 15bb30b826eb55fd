//! Why an input cannot be read: which file, where in it, what is wrong, and perhaps what to do.

use std::fmt;

/// Why a file cannot be read. Its text fits after "cannot": `read lab.yaml:12:7: unknown field …`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputError {
    file: String,
    problem: Problem,
}

/// A place in a file, counted from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub line: u64,
    /// Absent where only the line is known, as in a CSV.
    pub column: Option<u64>,
}

/// What is wrong, before it is known in which file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    at: Option<Position>,
    message: String,
    hint: Option<String>,
}

impl InputError {
    pub fn file(&self) -> &str {
        &self.file
    }

    pub fn position(&self) -> Option<Position> {
        self.problem.at
    }

    /// What is wrong, without where.
    pub fn message(&self) -> &str {
        &self.problem.message
    }

    /// What the user might do about it.
    pub fn hint(&self) -> Option<&str> {
        self.problem.hint.as_deref()
    }
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "read {}", self.file)?;
        if let Some(Position { line, column }) = self.problem.at {
            write!(f, ":{line}")?;
            if let Some(column) = column {
                write!(f, ":{column}")?;
            }
        }
        write!(f, ": {}", self.problem.message)
    }
}

impl std::error::Error for InputError {}

impl Position {
    pub(crate) const fn line(line: u64) -> Self {
        Self { line, column: None }
    }
}

impl Problem {
    /// About the file as a whole.
    pub(crate) fn whole(message: impl Into<String>) -> Self {
        Self { at: None, message: one_line(message.into()), hint: None }
    }

    pub(crate) fn at(position: Position, message: impl Into<String>) -> Self {
        Self { at: Some(position), message: one_line(message.into()), hint: None }
    }

    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(one_line(hint.into())), ..self }
    }

    pub(crate) fn with_hint_if(self, hint: Option<String>) -> Self {
        match hint {
            Some(hint) => self.with_hint(hint),
            None => self,
        }
    }

    pub(crate) fn in_file(self, file: &str) -> InputError {
        InputError { file: file.to_owned(), problem: self }
    }
}

/// What was read may hold anything; on a terminal it is shown as one line of printable text of bounded length.
fn one_line(text: String) -> String {
    const LONGEST: usize = 600;
    let clean = text.chars().all(|c| !c.is_control());
    if clean && text.len() <= LONGEST {
        return text;
    }
    let mut shown: String = text.chars().take(LONGEST).flat_map(printable).collect();
    if text.chars().nth(LONGEST).is_some() {
        shown.push('…');
    }
    shown
}

fn printable(c: char) -> impl Iterator<Item = char> {
    let escaped = c.is_control().then(|| c.escape_default());
    let plain = escaped.is_none().then_some(c);
    escaped.into_iter().flatten().chain(plain)
}

/// A text from a file as it is quoted in a message: never longer than a line.
pub(crate) fn quoted(text: &str) -> String {
    const LONGEST: usize = 60;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("`{}…`", &text[..end]),
        None => format!("`{text}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_file_line_and_column() {
        let position = Position { line: 12, column: Some(7) };
        let error = Problem::at(position, "unknown field `gpu`").with_hint("…").in_file("lab.yaml");
        assert_eq!(error.to_string(), "read lab.yaml:12:7: unknown field `gpu`");
        assert_eq!(error.hint(), Some("…"));
        assert_eq!(
            Problem::at(Position::line(3), "no").in_file("jobs.csv").to_string(),
            "read jobs.csv:3: no"
        );
    }

    #[test]
    fn a_message_is_one_printable_line() {
        let error = Problem::whole("a\u{1b}[31m\nb").in_file("f");
        assert_eq!(error.message(), "a\\u{1b}[31m\\nb");
        assert!(Problem::whole("x".repeat(100_000)).in_file("f").message().len() < 1000);
    }
}
