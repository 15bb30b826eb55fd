//! How the program ends, as scripts see it.

use std::process::ExitCode;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Done = 0,
    /// A check or an experiment fell short.
    FellShort = 1,
    /// Wrong use or bad input.
    WrongUse = 2,
    /// The world refused or was unreachable.
    Unreachable = 3,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
