//! What a command has to say on standard output, and how it ends.

use std::io::{ErrorKind, Write};

use serde::Serialize;

use crate::exit::Exit;
use crate::failure::Failure;

/// How data is printed. The variants carry no doc comments: clap would make every help twice as long with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    // Tables and sentences.
    Human,
    // One document with a `version`, for programs.
    Json,
}

#[derive(Debug)]
#[must_use]
pub(crate) struct Reply {
    text: String,
    /// Words about the data, for standard error.
    remark: Option<String>,
    exit: Exit,
}

impl Reply {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), remark: None, exit: Exit::Done }
    }

    pub(crate) fn json(document: &impl Serialize) -> Self {
        let mut text = serde_json::to_string_pretty(document).expect("figures are numbers, names are text");
        text.push('\n');
        Self::text(text)
    }

    pub(crate) fn nothing() -> Self {
        Self::text("")
    }

    pub(crate) fn saying(self, text: String) -> Self {
        Self { text, ..self }
    }

    /// After what was remarked before.
    pub(crate) fn remarking(self, remark: String) -> Self {
        let remarks: Vec<String> = self.remark.into_iter().chain([remark]).collect();
        Self { remark: Some(remarks.join("\n")), ..self }
    }

    pub(crate) fn ending(self, exit: Exit) -> Self {
        Self { exit, ..self }
    }

    #[cfg(test)]
    pub(crate) fn said(&self) -> &str {
        &self.text
    }

    #[cfg(test)]
    pub(crate) fn exit(&self) -> Exit {
        self.exit
    }

    /// A reader that has seen enough and closed the pipe, as `head` does, is no failure.
    pub(crate) fn write(self) -> Result<Exit, Failure> {
        if let Some(remark) = &self.remark {
            // If nobody listens there is nobody to tell so.
            let _ = writeln!(std::io::stderr().lock(), "{remark}");
        }
        let mut out = std::io::stdout().lock();
        match out.write_all(self.text.as_bytes()).and_then(|()| out.flush()) {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                Err(Failure::world("write to standard output").because(&error))
            }
            _ => Ok(self.exit),
        }
    }
}
