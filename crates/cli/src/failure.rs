//! Errors as users read them: `error: cannot …`, the causes, and where it helps a hint.

use std::error::Error;
use std::io::Write;

use metronome_sim::scenario::InputError;
use owo_colors::OwoColorize;

use crate::exit::Exit;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    exit: Exit,
    cannot: String,
    causes: Vec<String>,
    hint: Option<String>,
}

impl Failure {
    /// What was asked for makes no sense; `cannot` fits after that word.
    pub(crate) fn input(cannot: impl Into<String>) -> Self {
        Self { exit: Exit::WrongUse, cannot: cannot.into(), causes: Vec::new(), hint: None }
    }

    /// What was asked for makes sense, but the outside did not let us.
    pub(crate) fn world(cannot: impl Into<String>) -> Self {
        Self { exit: Exit::Unreachable, ..Self::input(cannot) }
    }

    /// The same from an error whose own words fit after "cannot".
    pub(crate) fn from_world(error: &dyn Error) -> Self {
        let failure = Self::world(error.to_string());
        match error.source() {
            Some(source) => failure.because(source),
            None => failure,
        }
    }

    pub(crate) fn because(mut self, error: &dyn Error) -> Self {
        let mut cause = Some(error);
        while let Some(error) = cause {
            self.causes.push(error.to_string());
            cause = error.source();
        }
        self
    }

    /// More that led to it, in words of our own.
    pub(crate) fn noting(mut self, notes: &[String]) -> Self {
        self.causes.extend_from_slice(notes);
        self
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Writes it to standard error. If even that is closed there is nobody left to tell.
    pub(crate) fn tell(&self) -> Exit {
        let mut err = anstream::stderr().lock();
        let _ = self.write(&mut err);
        self.exit
    }

    fn write(&self, err: &mut impl Write) -> std::io::Result<()> {
        writeln!(err, "{} cannot {}", "error:".red().bold(), self.cannot)?;
        for cause in &self.causes {
            writeln!(err, "  caused by: {cause}")?;
        }
        match &self.hint {
            Some(hint) => writeln!(err, "\n{} {hint}", "hint:".bold()),
            None => Ok(()),
        }
    }
}

impl From<InputError> for Failure {
    fn from(error: InputError) -> Self {
        let failure = Self::input(error.to_string());
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_told_with_its_causes_and_a_hint() {
        let cause = std::io::Error::other("the disk is full");
        let failure = Failure::world("write out.csv").because(&cause).hint("choose another disk");
        let mut told = anstream::StripStream::new(Vec::new());
        failure.write(&mut told).unwrap();
        assert_eq!(
            String::from_utf8(told.into_inner()).unwrap(),
            "error: cannot write out.csv\n  caused by: the disk is full\n\nhint: choose another disk\n"
        );
    }
}
